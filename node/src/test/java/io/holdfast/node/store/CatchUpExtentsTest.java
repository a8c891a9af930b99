package io.holdfast.node.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.node.port.Store.Copy;
import io.holdfast.node.port.Store.Extents;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.ClientReply.Run;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.Nonce;
import io.holdfast.proto.peer.ReplicaMessage.Cursor;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a follower gets, and what it makes of it, when records of the giver are damaged. */
class CatchUpExtentsTest {
    private static final int MOST = 1 << 20;

    private final Loop loop = new Loop();
    private final TestOwner owner = new TestOwner();

    @TempDir Path directory;
    private JournalStore giver;
    private JournalStore taker;

    @BeforeEach
    void open() throws IOException {
        giver = new JournalStore(directory.resolve("giver"), Rig.OPTIONS, loop);
        taker = new JournalStore(directory.resolve("taker"), Rig.OPTIONS, loop);
        Rig.create(giver, Rig.SHARD, owner);
        Rig.create(taker, Rig.SHARD, new TestOwner());
        write(Rig.write(Rig.SHARD, 1, 1, 1000, 64));
        write(Rig.write(Rig.SHARD, 1, 2, 1020, 8));
        write(Rig.zero(Rig.SHARD, 1, 3, 1030, 1));
        Rig.sync(giver, loop);
    }

    @AfterEach
    void close() {
        giver.abandon();
        taker.abandon();
    }

    private void write(Entry entry) {
        giver.append(Rig.SHARD, List.of(entry), null);
        giver.apply(Rig.SHARD, List.of(entry));
        owner.applied = entry.sequence();
        owner.appliedEpoch = entry.epoch();
    }

    private Path segment() {
        return Segments.file(directory.resolve("giver/journal"), 1);
    }

    /** Turns a bit over in the first block of an entry. */
    private void damage(long sequence) throws IOException {
        long at = Place.offset(giver.logPlace(Rig.SHARD, sequence)) + Entry.HEADER_SIZE + 99;
        try (FileChannel channel =
                FileChannel.open(segment(), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            ByteBuffer one = ByteBuffer.allocate(1);
            channel.read(one, at);
            one.put(0, (byte) (one.get(0) ^ 4)).flip();
            channel.write(one, at);
        }
    }

    private Copy copy(JournalStore store, long block) {
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

    private List<Entry> catchUp() {
        Extents all = Rig.extents(giver, loop, 0, Cursor.START, MOST);
        assertThat(all.done()).isTrue();
        taker.appendMoved(Rig.SHARD, all.moved());
        Rig.sync(taker, loop);
        return all.moved();
    }

    @Test
    void goodRecordsGiveGoodCopies() {
        assertThat(catchUp()).hasSize(6).noneMatch(Entry::isDoubtful);
        for (long block : List.of(1000L, 1020L, 1028L, 1063L)) {
            assertThat(copy(taker, block).intact()).as("block %d", block).isTrue();
        }
    }

    @Test
    void aDamagedRecordsBlocksKeepTheirVersionAndAreDoubtfulAtTheTaker() throws IOException {
        damage(1);
        assertThat(catchUp().stream().filter(Entry::isDoubtful))
                .allMatch(entry -> entry.sequence() == 1)
                .hasSize(3);
        Copy bad = copy(taker, 1000);
        assertThat(bad.intact()).isFalse();
        assertThat(bad.run().sequence()).isEqualTo(1);
        assertThat(bad.run().nonce()).isEqualTo(new Nonce(1, 5, 1000));
        // The bytes as they are, good or bad: the tag tells. They may be all that is left.
        assertThat(bad.run().payload()).isNotEqualTo(sealed(1, 64, 0));
        assertThat(copy(taker, 1063).run().payload()).isEqualTo(sealed(1, 64, 63));
        assertThat(copy(taker, 1063).intact()).isFalse();
        assertThat(copy(taker, 1020).intact()).isTrue();

        // As a reader does, or a scrub, with the copy of a third replica.
        Run good = new Run(1000, 1, 1, new Nonce(1, 5, 1000), sealed(1, 64, 0));
        assertThat(taker.repair(Rig.SHARD, 1, good)).isTrue();
        assertThat(copy(taker, 1000).intact()).isTrue();
    }

    @Test
    void aDoubtfulCopyIsHandedOnAsDoubtful() throws IOException {
        damage(1);
        catchUp();
        Extents next = Rig.extents(taker, loop, 0, Cursor.START, MOST);
        assertThat(next.moved().stream().filter(Entry::isDoubtful)).hasSize(3);
    }

    @Test
    void theCleanerMovesADoubtfulCopyAsDoubtful() throws IOException {
        damage(1);
        catchUp();
        long filler = 10;
        while (taker.segments().size() < 3) {
            Entry entry = Rig.write(Rig.SHARD, 1, filler++, 5000, 64);
            taker.appendMoved(
                    Rig.SHARD,
                    List.of(
                            Entry.builder(Rig.SHARD, entry.kind())
                                    .at(1, entry.sequence(), 0)
                                    .blocks(1, entry.block(), entry.count())
                                    .sealed(entry.nonce(), entry.payload())
                                    .flags(Entry.FLAG_MOVED)
                                    .build()));
            taker.write();
        }
        Rig.checkpoint(taker, loop);
        String before = copy(taker, 1000).place();
        taker.clean();
        loop.until(() -> !taker.cleaning());
        assertThat(copy(taker, 1000).place()).isNotEqualTo(before);
        assertThat(copy(taker, 1000).intact()).isFalse();
        assertThat(copy(taker, 1020).intact()).isTrue();
    }

    @Test
    void whatCannotBeReadKeepsNoCatchUpFromItsEnd() throws IOException {
        Rig.checkpoint(giver, loop);
        giver.abandon();
        giver = new JournalStore(directory.resolve("giver"), Rig.OPTIONS, loop);
        giver.open(Rig.SHARD, owner);
        // Behind the start's back, so that there is nothing where the map points to.
        try (FileChannel channel = FileChannel.open(segment(), StandardOpenOption.WRITE)) {
            channel.truncate(SegmentHeader.SIZE);
        }
        assertThat(catchUp().stream().filter(Entry::isDoubtful)).hasSize(5);
        assertThat(copy(taker, 1000).run().sequence()).isEqualTo(1);
        assertThat(copy(taker, 1000).intact()).isFalse();
        assertThat(Files.size(segment())).isEqualTo(SegmentHeader.SIZE);
    }
}
