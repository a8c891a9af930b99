package io.holdfast.node.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.node.port.Store.Copy;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.ClientReply.Run;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.Nonce;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Single blocks with the verdict on their record, and putting a good copy in a bad one's place. */
class BlockCopyTest {
    private final Loop loop = new Loop();
    private final TestOwner owner = new TestOwner();

    @TempDir Path directory;
    private JournalStore store;

    @BeforeEach
    void open() throws IOException {
        store = new JournalStore(directory, Rig.OPTIONS, loop);
        Rig.create(store, Rig.SHARD, owner);
        write(Rig.write(Rig.SHARD, 1, 1, 1000, 64));
        write(Rig.write(Rig.SHARD, 1, 2, 1020, 8));
        write(Rig.zero(Rig.SHARD, 1, 3, 1030, 1));
        Rig.sync(store, loop);
    }

    @AfterEach
    void close() {
        store.abandon();
    }

    private void write(Entry entry) {
        store.append(Rig.SHARD, List.of(entry), null);
        store.apply(Rig.SHARD, List.of(entry));
        owner.applied = entry.sequence();
        owner.appliedEpoch = entry.epoch();
    }

    private Copy copy(long block) {
        List<Copy> got = new ArrayList<>();
        store.copy(Rig.SHARD, 1, block, got::add);
        loop.until(() -> !got.isEmpty());
        return got.getFirst();
    }

    private static byte[] sealed(long sequence, int count, int index) {
        return Arrays.copyOfRange(
                Rig.payload(count, sequence),
                index * Blocks.SEALED_SIZE,
                (index + 1) * Blocks.SEALED_SIZE);
    }

    /** Turns a bit over, {@code skipped} bytes behind the start of an entry's record. */
    private void damage(long sequence, int skipped) throws IOException {
        long place = store.logPlace(Rig.SHARD, sequence);
        Path file = Segments.file(directory.resolve("journal"), Place.segment(place));
        try (FileChannel channel =
                FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            ByteBuffer one = ByteBuffer.allocate(1);
            long at = Place.offset(place) + skipped;
            channel.read(one, at);
            one.put(0, (byte) (one.get(0) ^ 4)).flip();
            channel.write(one, at);
        }
    }

    private static int inBlock(int index) {
        return Entry.HEADER_SIZE + index * Blocks.SEALED_SIZE + 99;
    }

    @Test
    void everyBlockOfARecordIsVerified() {
        for (long block = 1000; block < 1064; block++) {
            Copy copy = copy(block);
            assertThat(copy.intact()).as("block %d", block).isTrue();
            if (block < 1020 || block >= 1031) {
                assertThat(copy.run().sequence()).isEqualTo(1);
                assertThat(copy.run().payload()).isEqualTo(sealed(1, 64, (int) (block - 1000)));
                assertThat(copy.run().nonce()).isEqualTo(new Nonce(1, 5, 1000 + block - 1000));
            }
        }
        assertThat(copy(1025).run().payload()).isEqualTo(sealed(2, 8, 5));
        assertThat(copy(1030).run().isZero()).isTrue();
        assertThat(copy(1030).run().sequence()).isEqualTo(3);
        assertThat(copy(999).run().sequence()).isZero();
    }

    @Test
    void aBlockOfADamagedRecordIsGivenOutAsDoubtful() throws IOException {
        damage(1, inBlock(7));
        assertThat(copy(1007).intact()).isFalse();
        assertThat(copy(1007).run().payload()).isNotEqualTo(sealed(1, 64, 7));
        // The others have the bytes that were written, which the reader's tag tells.
        assertThat(copy(1063).intact()).isFalse();
        assertThat(copy(1063).run().payload()).isEqualTo(sealed(1, 64, 63));
        assertThat(copy(1020).intact()).isTrue();
    }

    @Test
    void aDamagedHeaderMakesEveryBlockOfItsRecordDoubtful() throws IOException {
        damage(2, 52);
        assertThat(copy(1020).intact()).isFalse();
        assertThat(copy(1027).intact()).isFalse();
        assertThat(copy(1019).intact()).isTrue();
    }

    @Test
    void aGoodCopyTakesTheBadOnesPlaceAndStaysThere() throws IOException {
        damage(1, inBlock(7));
        Run good = new Run(1007, 1, 1, new Nonce(1, 5, 1007), sealed(1, 64, 7));
        assertThat(store.repair(Rig.SHARD, 1, good)).isTrue();
        assertThat(copy(1007).intact()).isTrue();
        assertThat(copy(1007).run()).usingRecursiveComparison().isEqualTo(good);
        assertThat(Rig.read(store, loop, Rig.SHARD, 1007, 1).getFirst().payload())
                .isEqualTo(good.payload());
        assertThat(copy(1008).intact()).isFalse();
        store.turnEnded();
        assertThat(store.usage().repairedBlocks()).isEqualTo(1);
        store.close();
        store = new JournalStore(directory, Rig.OPTIONS, loop);
        store.open(Rig.SHARD, owner);
        assertThat(copy(1007).intact()).isTrue();
        assertThat(copy(1007).run()).usingRecursiveComparison().isEqualTo(good);
    }

    @Test
    void aCopyOfAnotherWriteIsNotTaken() {
        byte[] bytes = sealed(1, 64, 22);
        // Overwritten since; given out twice around a power loss; zeroes; never written.
        for (Run wrong :
                List.of(
                        new Run(1022, 1, 1, new Nonce(1, 5, 1022), bytes),
                        new Run(1022, 1, 3, new Nonce(1, 5, 2002), bytes),
                        new Run(1022, 1, 2, new Nonce(1, 6, 2002), bytes),
                        new Run(1030, 1, 3, new Nonce(1, 5, 3000), bytes),
                        new Run(1030, 1, 3, Nonce.NONE, new byte[0]),
                        new Run(5, 1, 1, new Nonce(1, 5, 1000), bytes))) {
            assertThat(store.repair(Rig.SHARD, 1, wrong)).as("%s", wrong).isFalse();
        }
        assertThat(copy(1022).run().payload()).isEqualTo(sealed(2, 8, 2));
        assertThat(copy(1022).run().sequence()).isEqualTo(2);
        assertThat(copy(5).run().sequence()).isZero();
    }
}
