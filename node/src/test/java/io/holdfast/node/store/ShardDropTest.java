package io.holdfast.node.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.ShardId;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * A shard of very many extents is dropped: others do not wait for it, and a crash at any moment
 * leaves a store that finishes it.
 */
class ShardDropTest {
    private static final long SEGMENT_BYTES = 2 << 20;
    private static final int MANY_EXTENTS = 1_000_000;
    private static final int SOME_EXTENTS = 50_000;

    /** Extents with bytes in the journal; the others are trimmed blocks, which cost as much. */
    private static final int DATA_ENTRIES = 200;

    private static final int ENTRY_BLOCKS = 64;

    /** Each second block of them is trimmed, so that every block left is an extent. */
    private static final int EXTENTS_PER_ENTRY = ENTRY_BLOCKS;

    private static final int BATCH = 1000;
    private static final int OTHER_BLOCKS = 4096;
    private static final int OPERATIONS = 4000;

    /** What a percentile may be on a machine with other work, whatever it was before. */
    private static final long NOISE_NANOS = TimeUnit.MILLISECONDS.toNanos(3);

    private static final int MOST_TIMES_SLOWER = 3;

    private final Loop loop = new Loop();
    private final TestOwner owner = new TestOwner();
    private final TestOwner otherOwner = new TestOwner();
    private final Random random = new Random(11);
    private final List<JournalStore> opened = new ArrayList<>();
    private long last;
    private long otherLast;

    @TempDir Path directory;

    @AfterEach
    void closeAll() {
        opened.forEach(JournalStore::abandon);
    }

    private JournalStore open(Rows.Opener rows) throws IOException {
        StoreOptions options =
                new StoreOptions(SEGMENT_BYTES, 256 << 20, 128 << 20, 1 << 20, 2, "boot-1");
        JournalStore store = new JournalStore(directory, options, loop, Threads.REAL, rows);
        opened.add(store);
        return store;
    }

    /** A store with a shard of so many extents and another one, all of it in the database. */
    private JournalStore withExtents(int extents, Rows.Opener rows) throws IOException {
        JournalStore store = open(rows);
        Rig.create(store, Rig.SHARD, owner);
        Rig.create(store, Rig.OTHER, otherOwner);
        for (int i = 0; i < OTHER_BLOCKS; i += ENTRY_BLOCKS) {
            write(store, i, ENTRY_BLOCKS);
        }
        List<Entry> batch = new ArrayList<>();
        for (int i = 0; i < DATA_ENTRIES; i++) {
            long block = (long) i * ENTRY_BLOCKS;
            batch.add(Rig.write(Rig.SHARD, 1, ++last, block, ENTRY_BLOCKS));
            for (int j = 1; j < ENTRY_BLOCKS; j += 2) {
                batch.add(Rig.zero(Rig.SHARD, 1, ++last, block + j, 1));
            }
            put(store, batch);
            turn(store);
        }
        long block = (long) DATA_ENTRIES * ENTRY_BLOCKS;
        for (int i = DATA_ENTRIES * EXTENTS_PER_ENTRY; i < extents; i++, block += 2) {
            batch.add(Rig.zero(Rig.SHARD, 1, ++last, block, 1));
            if (batch.size() == BATCH) {
                put(store, batch);
                turn(store);
            }
        }
        put(store, batch);
        loop.until(() -> !store.checkpointRunning());
        Rig.checkpoint(store, loop);
        return store;
    }

    private void put(JournalStore store, List<Entry> entries) {
        store.append(Rig.SHARD, entries, null);
        store.apply(Rig.SHARD, entries);
        owner.applied = last;
        owner.appliedEpoch = 1;
        entries.clear();
    }

    private void write(JournalStore store, long block, int count) {
        Entry entry = Rig.write(Rig.OTHER, 1, ++otherLast, block, count);
        store.append(Rig.OTHER, List.of(entry), null);
        store.write();
        store.apply(Rig.OTHER, List.of(entry));
        otherOwner.applied = otherLast;
        otherOwner.appliedEpoch = 1;
    }

    private void turn(JournalStore store) {
        store.write();
        store.turnEnded();
        loop.drain();
    }

    /** Nanoseconds of operations of the other shard, each with all that the loop does meanwhile. */
    private long[] operations(JournalStore store, int least, BooleanSupplier enough) {
        LongStream.Builder nanos = LongStream.builder();
        for (int i = 0; i < least || !enough.getAsBoolean(); i++) {
            long start = System.nanoTime();
            long block = random.nextInt(OTHER_BLOCKS);
            if (i % 2 == 0) {
                write(store, block, 1);
            } else {
                assertThat(Rig.read(store, loop, Rig.OTHER, block, 1)).hasSize(1);
            }
            store.turnEnded();
            loop.drain();
            nanos.add(System.nanoTime() - start);
        }
        return nanos.build().sorted().toArray();
    }

    private static long p99(long[] sorted) {
        return sorted[sorted.length * 99 / 100];
    }

    /** Turns until nothing of the shard is left, neither in memory nor on the disk. */
    private void finish(JournalStore store) throws IOException {
        loop.until(() -> {
            turn(store);
            loop.execute(() -> {});
            return store.mapBytes() < 8 << 20 && !store.checkpointRunning();
        });
        Rig.checkpoint(store, loop);
        List<List<UsageRow>> rows = store.recount();
        assertThat(rows.getFirst()).isEqualTo(rows.getLast());
        assertThat(rows.getFirst()).extracting(UsageRow::shard).containsOnly(Rig.OTHER);
        assertThat(store.usage().liveBytes())
                .isEqualTo(store.liveBytes(Rig.OTHER))
                .isEqualTo((long) OTHER_BLOCKS * 4112);
    }

    private void assertSoundOnDisk() throws IOException {
        try (OfflineStore offline = OfflineStore.open(directory)) {
            StoreCheck check = offline.verify((bytes, all) -> {});
            assertThat(check.sound()).as("%s", check).isTrue();
            assertThat(check.shards()).isOne();
            assertThat(check.extents()).isLessThanOrEqualTo(OTHER_BLOCKS);
        }
    }

    @Test
    void othersDoNotWaitWhileAShardOfAMillionExtentsIsDropped() throws IOException {
        JournalStore store = withExtents(MANY_EXTENTS, RocksRows::new);
        assertThat(store.usage().extents()).isGreaterThan(MANY_EXTENTS / 2);
        operations(store, OPERATIONS, () -> true);
        long[] before = operations(store, OPERATIONS, () -> !store.checkpointRunning());

        long start = System.nanoTime();
        store.drop(Rig.SHARD);
        long dropping = System.nanoTime() - start;
        boolean[] checkpoint = new boolean[1];
        long[] during =
                operations(
                        store,
                        OPERATIONS,
                        () -> {
                            checkpoint[0] |= store.checkpointRunning();
                            return checkpoint[0] && !store.checkpointRunning();
                        });

        System.out.printf(
                "a million extents: drop %d us; p99 of %d operations before %d us, of %d during %d us;"
                        + " most %d us, %d us%n",
                dropping / 1000,
                before.length,
                p99(before) / 1000,
                during.length,
                p99(during) / 1000,
                before[before.length - 1] / 1000,
                during[during.length - 1] / 1000);
        assertThat(p99(during)).isLessThan(MOST_TIMES_SLOWER * Math.max(NOISE_NANOS, p99(before)));
        finish(store);
        store.close();
        assertSoundOnDisk();
    }

    /** When the process ends in the middle of a drop. */
    enum Moment {
        /** The drop is not even in the operating system's hands. */
        NOT_WRITTEN,
        WRITTEN,
        /** Some of its pages are still in memory. */
        PAGES_LEFT,
        /** The checkpoint is captured, nothing of it is in the database. */
        BEFORE_THE_BATCH,
        /** All of it is, and the store has not heard. */
        AFTER_THE_BATCH,
        /** The room is not free yet. */
        CHECKPOINTED,
        /** Some segments are gone. */
        SOME_REMOVED
    }

    /** The real database, whose process ends around a commit. */
    private static final class EndingRows implements Rows {
        private final Rows real;
        volatile @Nullable Moment end;

        EndingRows(Path directory) throws IOException {
            real = new RocksRows(directory);
        }

        @Override
        public byte @Nullable [] get(Family family, byte[] key) throws IOException {
            return real.get(family, key);
        }

        @Override
        public void scan(
                Family family, byte @Nullable [] from, byte @Nullable [] to, Visitor visitor)
                throws IOException {
            real.scan(family, from, to, visitor);
        }

        @Override
        public Batch batch() {
            Batch batch = real.batch();
            Moment when = end;
            return new Batch() {
                @Override
                public void put(Family family, byte[] key, byte[] value) throws IOException {
                    batch.put(family, key, value);
                }

                @Override
                public void delete(Family family, byte[] key) throws IOException {
                    batch.delete(family, key);
                }

                @Override
                public void deleteRange(Family family, byte[] from, byte[] to) throws IOException {
                    batch.deleteRange(family, from, to);
                }

                @Override
                public void commit() throws IOException {
                    if (when == Moment.BEFORE_THE_BATCH) {
                        throw new IOException("the process has ended");
                    }
                    batch.commit();
                    if (when == Moment.AFTER_THE_BATCH) {
                        throw new IOException("the process has ended");
                    }
                }

                @Override
                public void close() {
                    batch.close();
                }
            };
        }

        @Override
        public long estimate(Family family) {
            return real.estimate(family);
        }

        @Override
        public void close() {
            real.close();
        }
    }

    @ParameterizedTest
    @EnumSource(Moment.class)
    void aCrashInTheMiddleLeavesAStoreThatFinishesTheDrop(Moment moment) throws IOException {
        List<EndingRows> rows = new ArrayList<>();
        JournalStore store =
                withExtents(
                        SOME_EXTENTS,
                        map -> {
                            EndingRows made = new EndingRows(map);
                            rows.add(made);
                            return made;
                        });
        int segments = store.segments().size();
        store.drop(Rig.SHARD);
        switch (moment) {
            case NOT_WRITTEN -> {}
            case WRITTEN -> store.write();
            case PAGES_LEFT -> {
                store.write();
                store.turnEnded();
            }
            case BEFORE_THE_BATCH, AFTER_THE_BATCH -> {
                rows.getFirst().end = moment;
                store.checkpoint();
                loop.until(() -> !store.checkpointRunning());
            }
            case CHECKPOINTED -> {
                store.checkpoint();
                loop.until(() -> !store.checkpointRunning());
            }
            case SOME_REMOVED -> {
                Rig.checkpoint(store, loop);
                Files.delete(Segments.file(directory.resolve("journal"), 20));
            }
        }
        store.abandon();
        loop.drain();

        JournalStore again = open(RocksRows::new);
        boolean isThere = again.shards().contains(Rig.SHARD);
        assertThat(isThere).isEqualTo(moment == Moment.NOT_WRITTEN);
        reopen(again, Rig.OTHER, otherOwner);
        if (isThere) {
            // Whoever keeps the replicas finds it again, and does it again.
            reopen(again, Rig.SHARD, owner);
            again.drop(Rig.SHARD);
        }
        finish(again);
        assertThat(again.segments().size()).isLessThanOrEqualTo(segments);
        again.close();
        assertSoundOnDisk();
    }

    private static void reopen(JournalStore store, ShardId shard, TestOwner owner) {
        long applied = owner.applied;
        owner.applied = 0;
        List<Entry> entries = store.open(shard, owner).entries();
        store.apply(shard, entries);
        owner.applied = applied;
    }
}
