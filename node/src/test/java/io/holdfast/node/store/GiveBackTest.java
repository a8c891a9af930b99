package io.holdfast.node.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.proto.peer.Entry;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.AbstractExecutorService;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A store with all the room in the world, whose users trim or delete something: the file system has
 * its space back within a minute, without further writes, and nothing is moved in vain. The minute
 * is one of a clock that the test moves on.
 */
class GiveBackTest {
    private static final long SEGMENT_BYTES = StoreOptions.MIN_SEGMENT_BYTES;
    private static final Duration TICK = Duration.ofMillis(20);
    private static final Duration MINUTE = Duration.ofMinutes(1);

    /** Segments that are full of written blocks at the start. */
    private static final int FULL = 12;

    private static final int ENTRY_BLOCKS = 64;

    /** What is there anyhow: one that is written to, and one that will be next. */
    private static final int LEAST_SEGMENTS = 2;

    private final Loop loop = new Loop();
    private final TestOwner owner = new TestOwner();
    private final Clock clock = new Clock();
    private final List<JournalStore> opened = new ArrayList<>();
    private long last;

    @TempDir Path directory;

    /** Real threads, and a clock that stands unless it is moved on. */
    private final class Clock implements Threads {
        private final AtomicInteger busy = new AtomicInteger();
        private final AtomicLong nanos = new AtomicLong(1_000);

        @Override
        public ExecutorService one(String name) {
            return new Counting(REAL.one(name));
        }

        @Override
        public ExecutorService pool(String name, int threads, int mostWaiting) {
            return new Counting(REAL.pool(name, threads, mostWaiting));
        }

        @Override
        public <T> T await(Future<T> future) throws ExecutionException, InterruptedException {
            return REAL.await(future);
        }

        @Override
        public long nanoTime() {
            return nanos.get();
        }
    }

    /** Knows how many tasks are under way. */
    private final class Counting extends AbstractExecutorService {
        private final ExecutorService real;

        Counting(ExecutorService real) {
            this.real = real;
        }

        @Override
        public void execute(Runnable task) {
            clock.busy.incrementAndGet();
            real.execute(() -> {
                try {
                    task.run();
                } finally {
                    clock.busy.decrementAndGet();
                    loop.execute(() -> {});
                }
            });
        }

        @Override
        public void shutdown() {
            real.shutdown();
        }

        @Override
        public List<Runnable> shutdownNow() {
            return real.shutdownNow();
        }

        @Override
        public boolean isShutdown() {
            return real.isShutdown();
        }

        @Override
        public boolean isTerminated() {
            return real.isTerminated();
        }

        @Override
        public boolean awaitTermination(long timeout, TimeUnit unit) throws InterruptedException {
            return real.awaitTermination(timeout, unit);
        }
    }

    @AfterEach
    void closeAll() {
        opened.forEach(JournalStore::abandon);
    }

    private JournalStore open() throws IOException {
        StoreOptions options =
                new StoreOptions(
                        SEGMENT_BYTES,
                        1L << 40,
                        64 << 20,
                        1 << 20,
                        2,
                        "boot-1",
                        1000 * SEGMENT_BYTES);
        JournalStore store = new JournalStore(directory, options, loop, clock, RocksRows::new);
        opened.add(store);
        return store;
    }

    private JournalStore filled() throws IOException {
        JournalStore store = open();
        Rig.create(store, Rig.SHARD, owner);
        long before = store.segments().getLast();
        for (long block = 0; store.segments().getLast() < before + FULL; block += ENTRY_BLOCKS) {
            put(store, Rig.write(Rig.SHARD, 1, ++last, block, ENTRY_BLOCKS));
        }
        store.write();
        turns(store, TICK);
        assertThat(store.segments()).hasSize(FULL + 1);
        return store;
    }

    private void put(JournalStore store, Entry entry) {
        store.append(Rig.SHARD, List.of(entry), null);
        store.apply(Rig.SHARD, List.of(entry));
        owner.applied = entry.sequence();
        owner.appliedEpoch = 1;
    }

    private void trim(JournalStore store, long block, int count) {
        put(store, Rig.zero(Rig.SHARD, 1, ++last, block, count));
        store.write();
    }

    /** Every second run of {@code count} blocks, as in a file system with many small holes. */
    private void trimEverySecond(JournalStore store, int count) {
        long blocks = last * ENTRY_BLOCKS;
        for (long block = 0; block < blocks; block += 2L * count) {
            put(store, Rig.zero(Rig.SHARD, 1, ++last, block, count));
        }
        store.write();
    }

    /** Turns without writes, as the ticks of a node make them, for some time of the clock. */
    private void turns(JournalStore store, Duration time) {
        turnsUntil(store, time, () -> false);
    }

    /** The same, until a condition holds; whether it did. */
    private boolean turnsUntil(JournalStore store, Duration time, BooleanSupplier condition) {
        long end = clock.nanos.get() + time.toNanos();
        while (clock.nanos.get() < end && !condition.getAsBoolean()) {
            clock.nanos.addAndGet(TICK.toNanos());
            store.turnEnded();
            loop.drain();
            // What threads do takes none of the clock's time.
            loop.until(() -> clock.busy.get() == 0);
            loop.drain();
        }
        return condition.getAsBoolean();
    }

    private int files() throws IOException {
        return Segments.list(directory.resolve("journal")).size();
    }

    private void assertSound(JournalStore store) throws IOException {
        Rig.checkpoint(store, loop);
        assertThat(store.recount().getFirst()).isEqualTo(store.recount().getLast());
    }

    @Test
    void whatIsTrimmedIsFreeWithinAMinuteWithoutFurtherWrites() throws IOException {
        JournalStore store = filled();
        trim(store, 0, (int) (last * ENTRY_BLOCKS) - 4);

        assertThat(turnsUntil(store, MINUTE, () -> store.segments().size() <= LEAST_SEGMENTS))
                .isTrue();

        assertThat(files()).isLessThanOrEqualTo(LEAST_SEGMENTS + 1);
        assertThat(store.usage().journalBytes())
                .isLessThanOrEqualTo((LEAST_SEGMENTS + 1) * SEGMENT_BYTES);
        assertSound(store);
    }

    @Test
    void whatIsTrimmedHereAndThereIsFreeWithinAMinuteToo() throws IOException {
        JournalStore store = filled();
        trimEverySecond(store, 16);

        int half = FULL / 2 + LEAST_SEGMENTS + 1;
        assertThat(turnsUntil(store, MINUTE, () -> store.segments().size() <= half))
                .as("%s of %s", store.segments(), store.usage())
                .isTrue();

        // Each block that was left has been moved once.
        assertThat(store.usage().movedBytes()).isLessThan(FULL / 2 * SEGMENT_BYTES);
        assertSound(store);
        long moved = store.usage().movedBytes();
        turns(store, MINUTE);
        assertThat(store.usage().movedBytes()).isEqualTo(moved);
    }

    @Test
    void aDeletedShardsSpaceIsFreeWithinAMinuteThoughItWasTheLast() throws IOException {
        JournalStore store = filled();
        store.drop(Rig.SHARD);

        assertThat(turnsUntil(store, MINUTE, () -> store.segments().size() <= LEAST_SEGMENTS))
                .isTrue();
        assertThat(store.usage().liveBytes()).isZero();
    }

    @Test
    void aStartGoesOnWithWhatWasTrimmedBefore() throws IOException {
        JournalStore store = filled();
        trimEverySecond(store, 16);
        store.abandon();

        JournalStore again = open();
        owner.applied = 0;
        owner.appliedEpoch = 0;
        List<Entry> entries = again.open(Rig.SHARD, owner).entries();
        again.apply(Rig.SHARD, entries);
        owner.applied = last;
        owner.appliedEpoch = 1;

        int half = FULL / 2 + LEAST_SEGMENTS + 1;
        assertThat(turnsUntil(again, MINUTE, () -> again.segments().size() <= half)).isTrue();
        assertSound(again);
    }

    @Test
    void logIsKeptForFollowersForAWhile() throws IOException {
        JournalStore store = filled();
        trim(store, 0, (int) (last * ENTRY_BLOCKS));

        turns(store, Duration.ofNanos(SegmentRemover.KEPT_LOG_NANOS));

        assertThat(store.log(Rig.SHARD, 1, 1, 1 << 20)).hasSize(1);
        assertThat(store.segments()).hasSize(FULL + 1);
    }

    @Test
    void whileSegmentsChangeNothingOfThemIsMoved() throws IOException {
        JournalStore store = filled();
        long blocks = last * ENTRY_BLOCKS;
        trimEverySecond(store, 16);
        // A block of each entry is trimmed in turn, each segment every two seconds.
        for (int round = 0; round < 8; round++) {
            for (long block = 16L + round; block < blocks; block += ENTRY_BLOCKS) {
                put(store, Rig.zero(Rig.SHARD, 1, ++last, block, 1));
            }
            store.write();
            turns(store, Duration.ofSeconds(2));
        }

        assertThat(store.usage().movedBytes()).isZero();
    }

    @Test
    void segmentsThatAreMoreThanHalfLiveStayWhileThereIsRoom() throws IOException {
        JournalStore store = filled();
        long blocks = last * ENTRY_BLOCKS;
        for (long block = 0; block < blocks; block += ENTRY_BLOCKS) {
            put(store, Rig.zero(Rig.SHARD, 1, ++last, block, ENTRY_BLOCKS * 2 / 5));
        }
        store.write();

        turns(store, MINUTE.multipliedBy(10));

        assertThat(store.usage().movedBytes()).isZero();
    }
}
