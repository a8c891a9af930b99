package io.holdfast.node.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.node.port.Store.Space;
import io.holdfast.node.store.Cleaner.Demand;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.Entry;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Room: when there is little, when the next segment cannot be made, and what a drop costs. */
class StoreSpaceTest {
    private static final long SEGMENT_BYTES = StoreOptions.MIN_SEGMENT_BYTES;

    private final Loop loop = new Loop();
    private final List<JournalStore> opened = new ArrayList<>();

    @TempDir Path directory;

    @AfterEach
    void closeAll() {
        opened.forEach(JournalStore::abandon);
    }

    /** A disk on which no new segment can be made while {@code full}. */
    private static final class FullDisk implements Disk {
        volatile boolean full;

        /** What was made of a segment stays there when there is no room for the rest. */
        volatile boolean leaves;

        volatile @Nullable Path left;

        @Override
        public void write(FileChannel file, ByteBuffer bytes, long offset) throws IOException {
            REAL.write(file, bytes, offset);
        }

        @Override
        public void force(FileChannel file) throws IOException {
            REAL.force(file);
        }

        @Override
        public FileChannel prepare(Path in, int segment, long bytes, Segments.Fill fill)
                throws IOException {
            if (full) {
                if (leaves) {
                    left = Files.write(Segments.file(in, segment), new byte[100]);
                }
                throw new IOException("No space left on device");
            }
            return REAL.prepare(in, segment, bytes, fill);
        }
    }

    private JournalStore open(Disk disk, long storeBytes) throws IOException {
        StoreOptions options =
                new StoreOptions(
                        SEGMENT_BYTES, 1L << 40, 64 << 20, 1 << 20, 2, "boot-1", storeBytes);
        JournalStore store = new JournalStore(directory, options, loop, disk);
        opened.add(store);
        return store;
    }

    private static void write(JournalStore store, TestOwner owner, long sequence, long block) {
        Entry entry = Rig.write(Rig.SHARD, 1, sequence, block, 64);
        store.append(Rig.SHARD, List.of(entry), null);
        store.apply(Rig.SHARD, List.of(entry));
        owner.applied = sequence;
        owner.appliedEpoch = 1;
        store.write();
    }

    @Test
    void aSegmentThatCannotBeMadeIsTriedAgainWhileThePresentOneHasRoom() throws IOException {
        FullDisk disk = new FullDisk();
        JournalStore store = open(disk, 200 * SEGMENT_BYTES);
        TestOwner owner = new TestOwner();
        Rig.create(store, Rig.SHARD, owner);
        disk.full = true;
        // Takes the segment that was prepared; the one after it cannot be.
        for (int i = 1; i <= 5; i++) {
            write(store, owner, i, i * 64L);
        }
        turnsUntil(store, () -> store.usage().space() == Space.FULL);
        assertThat(owner.failures).isEmpty();
        write(store, owner, 6, 0);

        disk.full = false;
        turnsUntil(store, () -> store.usage().space() == Space.OK);
        for (int i = 7; i <= 20; i++) {
            write(store, owner, i, i * 64L);
        }
        Rig.sync(store, loop);

        assertThat(owner.failures).isEmpty();
    }

    /** The simulator's seed 219: the disk that could not make it could not remove it, either. */
    @Test
    void whatAFailedAttemptLeftDoesNotStandInTheWayOfASegment() throws IOException {
        FullDisk disk = new FullDisk();
        JournalStore store = open(disk, 200 * SEGMENT_BYTES);
        TestOwner owner = new TestOwner();
        Rig.create(store, Rig.SHARD, owner);
        disk.full = true;
        disk.leaves = true;
        for (int i = 1; i <= 5; i++) {
            write(store, owner, i, i * 64L);
        }
        turnsUntil(store, () -> store.usage().space() == Space.FULL);
        assertThat(disk.left).isNotNull().exists();

        disk.full = false;
        turnsUntil(store, () -> store.usage().space() == Space.OK);
        for (int i = 6; i <= 20; i++) {
            write(store, owner, i, i * 64L);
        }
        Rig.sync(store, loop);

        assertThat(owner.failures).isEmpty();
        assertThat(Rig.read(store, loop, Rig.SHARD, 20 * 64L, 64).getFirst().sequence())
                .isEqualTo(20);
    }

    @Test
    void aSegmentGrowsWhenSegmentsAreMadeLargerThanTheyWere() throws IOException {
        JournalStore small = open(Disk.REAL, 0);
        TestOwner owner = new TestOwner();
        Rig.create(small, Rig.SHARD, owner);
        write(small, owner, 1, 64);
        small.close();

        StoreOptions larger =
                new StoreOptions(4 * SEGMENT_BYTES, 1L << 40, 64 << 20, 1 << 20, 2, "boot-1", 0);
        JournalStore store = new JournalStore(directory, larger, loop, Disk.REAL);
        opened.add(store);
        store.open(Rig.SHARD, owner);
        long entries = 2 * SEGMENT_BYTES / (64 * Blocks.SEALED_SIZE);
        for (int i = 2; i <= entries; i++) {
            write(store, owner, i, i * 64L);
        }
        Rig.sync(store, loop);

        assertThat(owner.failures).isEmpty();
        long live = entries * 64 * Blocks.SEALED_SIZE;
        assertThat(live).isGreaterThan(SEGMENT_BYTES);
        turnsUntil(store, () -> store.usage().liveBytes() == live);
    }

    @Test
    void withoutAnyRoomTheStoreFailsWhenThePresentSegmentIsFull() throws IOException {
        FullDisk disk = new FullDisk();
        JournalStore store = open(disk, 200 * SEGMENT_BYTES);
        TestOwner owner = new TestOwner();
        Rig.create(store, Rig.SHARD, owner);
        disk.full = true;
        for (int i = 1; i <= 10; i++) {
            write(store, owner, i, i * 64L);
        }

        assertThat(owner.failures).hasSize(1);
        assertThat(Rig.read(store, loop, Rig.SHARD, 64, 64).getFirst().sequence()).isEqualTo(1);
    }

    @Test
    void aStoreFullOfLiveDataIsFullAndCannotBeCleaned() throws IOException {
        JournalStore store = open(Disk.REAL, 16 * SEGMENT_BYTES);
        TestOwner owner = new TestOwner();
        Rig.create(store, Rig.SHARD, owner);
        long sequence = 0;
        while (store.usage().space() != Space.FULL) {
            sequence++;
            write(store, owner, sequence, sequence * 64);
            store.turnEnded();
            loop.drain();
            assertThat(sequence).isLessThan(60);
        }
        long free = store.usage().freeBytes();

        assertThat(free)
                .isBetween(
                        (SpaceMeter.FULL_SEGMENTS - 1) * SEGMENT_BYTES,
                        SpaceMeter.FULL_SEGMENTS * SEGMENT_BYTES);
        // Three records fill a segment to three quarters. Moving them would win nothing.
        Rig.checkpoint(store, loop);
        assertThat(store.isCleanable()).isFalse();
        store.turnEnded();
        assertThat(store.usage().cleanable()).isFalse();
        // All of it goes, and there is room again.
        store.drop(Rig.SHARD);
        Rig.create(store, Rig.OTHER, new TestOwner());
        turnsUntil(store, () -> store.usage().space() == Space.OK);
    }

    private void turnsUntil(JournalStore store, BooleanSupplier condition) {
        loop.until(() -> {
            store.turnEnded();
            loop.execute(() -> {});
            return condition.getAsBoolean();
        });
    }

    @Test
    void aShardOfManyExtentsIsDroppedInSmallSteps() throws IOException {
        JournalStore store = open(Disk.REAL, 1L << 40);
        TestOwner owner = new TestOwner();
        Rig.create(store, Rig.SHARD, owner);
        int pages = 20_000;
        List<Entry> entries = new ArrayList<>();
        for (int i = 1; i <= pages; i++) {
            entries.add(Rig.zero(Rig.SHARD, 1, i, (long) i * ExtentPage.BLOCKS, 1));
        }
        store.append(Rig.SHARD, entries, null);
        store.apply(Rig.SHARD, entries);
        owner.applied = pages;
        owner.appliedEpoch = 1;
        long held = store.mapBytes();

        long start = System.nanoTime();
        store.drop(Rig.SHARD);
        long dropped = System.nanoTime() - start;
        assertThat(store.mapBytes()).isEqualTo(held);
        int turns = 0;
        while (store.mapBytes() > 0) {
            store.turnEnded();
            turns++;
        }

        assertThat(turns).isBetween(pages / 1024, pages / 512);
        assertThat(dropped).isLessThan(TimeUnit.MILLISECONDS.toNanos(100));
        Rig.checkpoint(store, loop);
        store.abandon();
        assertThat(open(Disk.REAL, 1L << 40).shards()).isEmpty();
    }

    @Test
    void theCleanerWorksTheHarderTheLessRoomThereIs() {
        long segment = 64 << 20;
        long used = 50 * segment;
        long live = 40 * segment;

        assertThat(Demand.of(9 * segment, 0, used, live, segment)).isEqualTo(Demand.NONE);
        assertThat(Demand.of(7 * segment, 0, used, live, segment).pace()).isEqualTo(0.5);
        assertThat(Demand.of(5 * segment, 0, used, live, segment).pace()).isEqualTo(1.5);
        assertThat(Demand.of(5 * segment, segment, used, live, segment).pace()).isEqualTo(1.0);
        assertThat(Demand.of(3 * segment, 0, used, live, segment).isUrgent()).isTrue();
        assertThat(Demand.of(segment / 2, segment, used, live, segment).mayBegin()).isFalse();
        assertThat(Demand.of(segment / 2, 0, used, live, segment).mayBegin()).isTrue();
        assertThat(Demand.of(90 * segment, 0, used, segment, segment).pace())
                .isEqualTo(Cleaner.DEAD_PACE);
    }
}
