package io.holdfast.node.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.node.port.Store.Verified;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.Nonce;
import io.holdfast.proto.peer.ReplicaMessage.Cursor;
import io.holdfast.proto.peer.ScrubMessage;
import io.holdfast.proto.peer.ScrubMessage.Stretch;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.NavigableMap;
import java.util.Random;
import java.util.TreeMap;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a scrub reads, against what was written. */
class VerifyTest {
    private static final long SEED = 42;
    private static final int LAYER = 1;
    private static final int BLOCKS = 3000;

    private final Loop loop = new Loop();
    private final TestOwner owner = new TestOwner();

    /** Newest write of each block. */
    private final NavigableMap<Long, Entry> model = new TreeMap<>();

    @TempDir Path directory;
    private JournalStore store;

    @BeforeEach
    void open() throws IOException {
        store = new JournalStore(directory, Rig.OPTIONS, loop);
        Rig.create(store, Rig.SHARD, owner);
        Random random = new Random(SEED);
        for (int sequence = 1; sequence <= 300; sequence++) {
            long block = random.nextInt(BLOCKS);
            write(
                    random.nextInt(4) == 0
                            ? Rig.zero(Rig.SHARD, 1, sequence, block, 1 + random.nextInt(200))
                            : Rig.write(
                                    Rig.SHARD,
                                    1,
                                    sequence,
                                    block,
                                    1 + random.nextInt(Blocks.MAX_PER_ENTRY)));
            if (sequence == 200) {
                // Some pages are rows by now, some are newer in memory.
                Rig.checkpoint(store, loop);
            }
        }
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
        for (long block = entry.block(); block < entry.block() + entry.count(); block++) {
            model.put(block, entry);
        }
    }

    private @Nullable Verified verify(Cursor from, Cursor to, int maxBytes) {
        List<@Nullable Verified> got = new ArrayList<>();
        store.verify(Rig.SHARD, from, to, maxBytes, got::add);
        loop.until(() -> !got.isEmpty());
        return got.getFirst();
    }

    /** Walks over a range and returns its stretches by block. */
    private NavigableMap<Long, Stretch> walk(Cursor from, Cursor to, int maxBytes) {
        NavigableMap<Long, Stretch> found = new TreeMap<>();
        Cursor at = from;
        while (!at.equals(to)) {
            Verified part = verify(at, to, maxBytes);
            if (part == null) {
                throw new AssertionError("no answer at " + at);
            }
            assertThat(part.applied()).isEqualTo(owner.applied);
            for (Stretch each : part.stretches()) {
                assertThat(each.block()).isGreaterThanOrEqualTo(at.block());
                for (long block = each.block(); block < each.end(); block++) {
                    assertThat(found.put(block, each)).as("block %d twice", block).isNull();
                }
            }
            assertThat(part.next()).isNotEqualTo(at);
            at = part.next();
        }
        return found;
    }

    private void same(NavigableMap<Long, Stretch> found, long from, long to) {
        assertThat(found.keySet()).isEqualTo(model.subMap(from, to).keySet());
        found.forEach((block, stretch) -> {
            Entry wrote = model.get(block);
            if (wrote == null) {
                throw new AssertionError(block);
            }
            boolean zero = wrote.payload().length == 0;
            assertThat(stretch.sequence()).isEqualTo(wrote.sequence());
            assertThat(stretch.epoch()).isEqualTo(wrote.epoch());
            assertThat(stretch.trim()).isEqualTo(zero);
            assertThat(stretch.intact()).isTrue();
            int index = (int) (block - wrote.block());
            assertThat(stretch.nonceOf(block))
                    .isEqualTo(zero ? Nonce.NONE : wrote.nonce().plus(index));
            if (!zero) {
                CRC32C crc = new CRC32C();
                crc.update(wrote.payload(), index * Blocks.SEALED_SIZE, Blocks.SEALED_SIZE);
                int at = (int) (block - stretch.block()) * ScrubMessage.SUM_SIZE;
                assertThat(ByteBuffer.wrap(stretch.sums()).getInt(at))
                        .isEqualTo((int) crc.getValue());
            }
        });
    }

    @Test
    void partsOfAnySizeAddUpToTheMap() {
        for (int maxBytes : List.of(1, 5000, 300_000, 1 << 30)) {
            same(walk(Cursor.START, ScrubMessage.END, maxBytes), 0, Long.MAX_VALUE);
        }
    }

    @Test
    void aRangeHasWhatLiesInIt() {
        Random random = new Random(SEED);
        for (int round = 0; round < 50; round++) {
            long from = random.nextInt(BLOCKS);
            long to = from + 1 + random.nextInt(BLOCKS);
            same(walk(new Cursor(LAYER, from), new Cursor(LAYER, to), 100_000), from, to);
        }
        assertThat(walk(new Cursor(LAYER + 1, 0), ScrubMessage.END, 1000)).isEmpty();
        assertThat(walk(Cursor.START, new Cursor(LAYER, 0), 1000)).isEmpty();
    }

    @Test
    void everyTurnedBitOfALiveRecordIsNoticed() throws IOException {
        Random random = new Random(SEED);
        write(Rig.write(Rig.SHARD, 1, 301, 100_000, 8));
        Rig.sync(store, loop);
        Cursor from = new Cursor(LAYER, 100_000);
        long place = store.logPlace(Rig.SHARD, 301);
        Path file = Segments.file(directory.resolve("journal"), Place.segment(place));
        int length = Entry.HEADER_SIZE + 8 * Blocks.SEALED_SIZE;
        for (int round = 0; round < 100; round++) {
            long at = Place.offset(place) + random.nextInt(length);
            int bit = 1 << random.nextInt(8);
            turn(file, at, bit);
            assertThat(walk(from, ScrubMessage.END, 1 << 20).values())
                    .as("byte %d", at - Place.offset(place))
                    .hasSize(8)
                    .noneMatch(Stretch::intact);
            turn(file, at, bit);
        }
        assertThat(walk(from, ScrubMessage.END, 1 << 20).values()).allMatch(Stretch::intact);
    }

    private static void turn(Path file, long at, int bit) throws IOException {
        try (FileChannel channel =
                FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            ByteBuffer one = ByteBuffer.allocate(1);
            channel.read(one, at);
            one.put(0, (byte) (one.get(0) ^ bit)).flip();
            channel.write(one, at);
        }
    }

    @Test
    void aShardThatIsDroppedMeanwhileGivesNoAnswer() {
        List<@Nullable Verified> got = new ArrayList<>();
        store.verify(Rig.SHARD, Cursor.START, ScrubMessage.END, 1 << 20, got::add);
        store.drop(Rig.SHARD);
        loop.until(() -> !got.isEmpty());
        assertThat(got).containsExactly((Verified) null);
        store.verify(Rig.SHARD, Cursor.START, ScrubMessage.END, 1 << 20, got::add);
        assertThat(got).hasSize(2).containsOnlyNulls();
        assertThat(store.liveBytes(Rig.SHARD)).isZero();
    }

    @Test
    void liveBytesAreThoseOfTheMap() {
        long written = model.values().stream().filter(each -> each.payload().length > 0).count();
        assertThat(store.liveBytes(Rig.SHARD)).isEqualTo(written * Blocks.SEALED_SIZE);
    }
}
