package io.holdfast.node.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.holdfast.node.port.Store.Extents;
import io.holdfast.node.replica.HardState;
import io.holdfast.node.replica.HardState.Standing;
import io.holdfast.node.replica.Recovered;
import io.holdfast.proto.peer.ClientReply.Run;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.EntryKind;
import io.holdfast.proto.peer.Nonce;
import io.holdfast.proto.peer.ReplicaMessage.Cursor;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class JournalStoreTest {
    private final Loop loop = new Loop();
    private final TestOwner owner = new TestOwner();
    private final List<JournalStore> opened = new ArrayList<>();

    @TempDir Path directory;

    @AfterEach
    void closeAll() {
        opened.forEach(JournalStore::abandon);
    }

    private JournalStore open() throws IOException {
        return open(Rig.OPTIONS);
    }

    private JournalStore open(StoreOptions options) throws IOException {
        JournalStore store = new JournalStore(directory, options, loop);
        opened.add(store);
        return store;
    }

    private JournalStore fresh() throws IOException {
        JournalStore store = open();
        Rig.create(store, Rig.SHARD, owner);
        return store;
    }

    private void appendAndApply(JournalStore store, Entry... entries) {
        store.append(Rig.SHARD, List.of(entries), null);
        store.apply(Rig.SHARD, List.of(entries));
        owner.applied = entries[entries.length - 1].sequence();
        owner.appliedEpoch = entries[entries.length - 1].epoch();
    }

    @Test
    void readsWhatWasAppliedInTheSameTurn() throws IOException {
        JournalStore store = fresh();
        appendAndApply(store, Rig.write(Rig.SHARD, 1, 1, 10, 4), Rig.zero(Rig.SHARD, 1, 2, 12, 1));

        List<Run> runs = Rig.read(store, loop, Rig.SHARD, 9, 6);

        assertThat(runs).extracting(Run::block).containsExactly(9L, 10L, 12L, 13L, 14L);
        assertThat(runs).extracting(Run::sequence).containsExactly(0L, 1L, 2L, 1L, 0L);
        assertThat(runs.get(1).payload()).isEqualTo(slice(Rig.payload(4, 1), 0, 2));
        assertThat(runs.get(2).isZero()).isTrue();
        assertThat(runs.get(3).payload()).isEqualTo(slice(Rig.payload(4, 1), 3, 4));
        assertThat(runs.get(3).nonce()).isEqualTo(new Nonce(1, 5, 1003));
        assertThat(store.newestSequence(Rig.SHARD, 1, 9, 6)).isEqualTo(2);
        assertThat(store.newestSequence(Rig.SHARD, 1, 14, 6)).isZero();
    }

    private static byte[] slice(byte[] payload, int from, int to) {
        return Arrays.copyOfRange(payload, from * 4112, to * 4112);
    }

    @Test
    void readsTheSameOnTheReaderThreads() throws IOException {
        JournalStore store = fresh();
        appendAndApply(
                store, Rig.write(Rig.SHARD, 1, 1, 1020, 8), Rig.write(Rig.SHARD, 1, 2, 0, 1));
        List<Run> onLoop = Rig.read(store, loop, Rig.SHARD, 1019, 10);
        store.alwaysReadOnPool();

        List<Run> onPool = Rig.read(store, loop, Rig.SHARD, 1019, 10);

        assertThat(onPool).usingRecursiveComparison().isEqualTo(onLoop);
        assertThat(onLoop).hasSize(3);
        assertThat(onLoop.get(1).payload()).isEqualTo(Rig.payload(8, 1));
    }

    @Test
    void reopensAfterACleanClose() throws IOException {
        JournalStore store = fresh();
        Entry third = Rig.write(Rig.SHARD, 2, 3, 5, 1);
        appendAndApply(store, Rig.write(Rig.SHARD, 1, 1, 0, 2), Rig.write(Rig.SHARD, 1, 2, 1, 1));
        store.append(Rig.SHARD, List.of(third), new HardState(2, 3, Standing.VOTER));
        store.close();

        JournalStore again = open(Rig.options("boot-2"));
        Recovered past = again.open(Rig.SHARD, owner);

        assertThat(again.shards()).containsExactly(Rig.SHARD);
        assertThat(past.hardState()).isEqualTo(new HardState(2, 3, Standing.VOTER));
        assertThat(past.applied()).isEqualTo(2);
        assertThat(past.appliedEpoch()).isEqualTo(1);
        assertThat(past.shardState()).isEqualTo(TestOwner.state(2));
        assertThat(past.entries()).extracting(Entry::sequence).containsExactly(3L);
        assertThat(past.entries().getFirst().payload()).isEqualTo(third.payload());
        assertThat(Rig.read(again, loop, Rig.SHARD, 0, 6))
                .extracting(Run::sequence)
                .containsExactly(1L, 2L, 0L);
        again.apply(Rig.SHARD, past.entries());
        assertThat(again.newestSequence(Rig.SHARD, 1, 5, 1)).isEqualTo(3);
    }

    @Test
    void replaysFromTheCheckpointAfterACrashOfTheProcess() throws IOException {
        JournalStore store = fresh();
        appendAndApply(store, Rig.write(Rig.SHARD, 1, 1, 0, 2));
        Rig.checkpoint(store, loop);
        appendAndApply(store, Rig.write(Rig.SHARD, 1, 2, 1, 2));
        store.write();
        store.abandon();

        Recovered past = open().open(Rig.SHARD, new TestOwner());

        assertThat(past.applied()).isEqualTo(1);
        assertThat(past.hardState()).isEqualTo(HardState.FRESH);
        assertThat(past.entries()).extracting(Entry::sequence).containsExactly(2L);
    }

    @Test
    void refusesASecondOpenOfTheDirectory() throws IOException {
        open();

        assertThatThrownBy(this::open)
                .isInstanceOf(StoreException.class)
                .hasMessageContaining(directory.toString())
                .hasMessageContaining("" + ProcessHandle.current().pid());
    }

    @Test
    void votersBecomeLearnersWhenTheMachineRestartedUncleanly() throws IOException {
        JournalStore store = fresh();
        store.append(Rig.SHARD, List.of(), new HardState(4, 2, Standing.VOTER));
        store.write();
        store.abandon();

        JournalStore second = open(Rig.options("boot-2"));
        second.abandon();
        // The second start crashes at once; the third, in the same boot, must not forget.
        Recovered past = open(Rig.options("boot-2")).open(Rig.SHARD, owner);

        assertThat(past.hardState()).isEqualTo(new HardState(4, 2, Standing.LEARNER));
    }

    @Test
    void aReplacedTailStaysReplacedEvenByALowerEpoch() throws IOException {
        JournalStore store = fresh();
        store.append(
                Rig.SHARD,
                List.of(
                        Rig.write(Rig.SHARD, 1, 1, 0, 1),
                        Rig.write(Rig.SHARD, 4, 2, 0, 1),
                        Rig.write(Rig.SHARD, 4, 3, 0, 1)),
                null);
        store.truncate(Rig.SHARD, 1);
        store.append(Rig.SHARD, List.of(Rig.write(Rig.SHARD, 3, 2, 9, 1)), null);
        assertThat(store.log(Rig.SHARD, 1, 9, 1 << 20))
                .extracting(Entry::epoch)
                .containsExactly(1L, 3L);
        store.write();
        store.abandon();

        Recovered past = open().open(Rig.SHARD, owner);

        assertThat(past.entries()).extracting(Entry::epoch).containsExactly(1L, 3L);
        assertThat(past.entries()).extracting(Entry::sequence).containsExactly(1L, 2L);
    }

    @Test
    void theLogIsServedFromTheJournalWhenItFellOutOfMemory() throws IOException {
        JournalStore store = fresh();
        for (int i = 1; i <= 500; i++) {
            store.append(Rig.SHARD, List.of(Rig.write(Rig.SHARD, 1, i, i, 2)), null);
            store.write();
        }

        List<Entry> old = store.log(Rig.SHARD, 3, 40, 1 << 20);

        assertThat(old).hasSize(38);
        assertThat(old.getFirst().payload()).isEqualTo(Rig.payload(2, 3));
        assertThat(old.getLast().sequence()).isEqualTo(40);
        assertThat(store.log(Rig.SHARD, 1, 500, 1)).hasSize(1);
        assertThat(store.log(Rig.SHARD, 501, 600, 1 << 20)).isEmpty();
    }

    @Test
    void installsABaseThatSurvivesACrash() throws IOException {
        JournalStore store = fresh();
        appendAndApply(store, Rig.write(Rig.SHARD, 1, 1, 0, 1), Rig.write(Rig.SHARD, 1, 2, 1, 1));
        store.append(Rig.SHARD, List.of(Rig.write(Rig.SHARD, 1, 3, 2, 1)), null);
        HardState state = new HardState(3, 1, Standing.LEARNER);
        store.appendMoved(Rig.SHARD, List.of(moved(80, 3, 5), moved(1, 1, 0)));
        boolean[] done = {false};
        store.installBase(Rig.SHARD, 3, 90, TestOwner.state(90), state, () -> done[0] = true);
        store.append(Rig.SHARD, List.of(Rig.write(Rig.SHARD, 3, 91, 6, 1)), null);
        assertThat(store.log(Rig.SHARD, 2, 3, 100)).isEmpty();
        loop.until(() -> done[0]);
        store.write();
        store.abandon();

        JournalStore again = open();
        Recovered past = again.open(Rig.SHARD, owner);

        assertThat(past.applied()).isEqualTo(90);
        assertThat(past.appliedEpoch()).isEqualTo(3);
        assertThat(past.shardState()).isEqualTo(TestOwner.state(90));
        assertThat(past.hardState()).isEqualTo(state);
        assertThat(past.entries()).extracting(Entry::sequence).containsExactly(91L);
        assertThat(Rig.read(again, loop, Rig.SHARD, 0, 7))
                .extracting(Run::sequence)
                .containsExactly(1L, 2L, 0L, 80L, 0L);
    }

    private static Entry moved(long sequence, long epoch, long block) {
        return Entry.builder(Rig.SHARD, EntryKind.WRITE)
                .at(epoch, sequence, 0)
                .blocks(1, block, 1)
                .sealed(new Nonce(1, 5, sequence * 1000), Rig.payload(1, sequence))
                .flags(Entry.FLAG_MOVED)
                .build();
    }

    @Test
    void aDroppedShardStaysDroppedAndItsSuccessorIsEmpty() throws IOException {
        JournalStore store = fresh();
        appendAndApply(store, Rig.write(Rig.SHARD, 1, 1, 0, 4));
        Rig.checkpoint(store, loop);
        appendAndApply(store, Rig.write(Rig.SHARD, 1, 2, 2, 4));
        store.drop(Rig.SHARD);
        store.append(Rig.SHARD, List.of(Rig.write(Rig.SHARD, 1, 3, 0, 1)), null);
        assertThat(store.shards()).isEmpty();
        TestOwner successor = new TestOwner();
        Rig.create(store, Rig.SHARD, successor);
        assertThat(store.newestSequence(Rig.SHARD, 1, 0, 100)).isZero();
        store.append(Rig.SHARD, List.of(Rig.write(Rig.SHARD, 1, 1, 50, 1)), null);
        store.write();
        store.abandon();

        JournalStore again = open();
        Recovered past = again.open(Rig.SHARD, successor);
        assertThat(past.applied()).isZero();
        assertThat(past.entries()).extracting(Entry::block).containsExactly(50L);
        assertThat(again.newestSequence(Rig.SHARD, 1, 0, 100)).isZero();
        again.apply(Rig.SHARD, past.entries());
        successor.applied = 1;
        successor.appliedEpoch = 1;
        Rig.checkpoint(again, loop);
        again.drop(Rig.SHARD);
        Rig.checkpoint(again, loop);
        again.abandon();

        assertThat(open().shards()).isEmpty();
    }

    @Test
    void extentsAreWalkedInPartsFromMemoryAndDatabase() throws IOException {
        JournalStore store = fresh();
        appendAndApply(
                store, Rig.write(Rig.SHARD, 1, 1, 1000, 64), Rig.write(Rig.SHARD, 1, 2, 5000, 8));
        Rig.checkpoint(store, loop);
        appendAndApply(
                store, Rig.zero(Rig.SHARD, 1, 3, 5002, 3000), Rig.write(Rig.SHARD, 1, 4, 20000, 3));

        List<Entry> all = new ArrayList<>();
        Cursor from = Cursor.START;
        Extents part;
        do {
            part = Rig.extents(store, loop, 1, from, 5000);
            all.addAll(part.moved());
            from = part.next();
        } while (!part.done());

        assertThat(all).allMatch(Entry::isMoved).noneMatch(entry -> entry.sequence() == 1);
        assertThat(all.getFirst().block()).isEqualTo(5000);
        assertThat(all.getFirst().payload()).isEqualTo(slice(Rig.payload(8, 2), 0, 2));
        assertThat(all.getLast().block()).isEqualTo(20000);
        assertThat(all.getLast().payload()).isEqualTo(Rig.payload(3, 4));
        assertThat(
                        all.stream()
                                .filter(entry -> entry.kind() == EntryKind.ZERO)
                                .mapToInt(Entry::count)
                                .sum())
                .isEqualTo(3000);
        assertThat(all.stream().filter(entry -> entry.kind() == EntryKind.ZERO))
                .allMatch(Entry::isTrim);
    }

    @Test
    void waitingSyncsShareTheNextForce() throws Exception {
        AtomicInteger forces = new AtomicInteger();
        AtomicReference<CountDownLatch> gate = new AtomicReference<>(new CountDownLatch(0));
        CountDownLatch entered = new CountDownLatch(1);
        Disk counting =
                new Disk() {
                    @Override
                    public void write(FileChannel file, ByteBuffer bytes, long offset)
                            throws IOException {
                        REAL.write(file, bytes, offset);
                    }

                    @Override
                    public void force(FileChannel file) throws IOException {
                        forces.incrementAndGet();
                        entered.countDown();
                        try {
                            gate.get().await();
                        } catch (InterruptedException e) {
                            throw new IOException(e);
                        }
                        REAL.force(file);
                    }
                };
        JournalStore store = new JournalStore(directory, Rig.OPTIONS, loop, counting);
        opened.add(store);
        Rig.create(store, Rig.SHARD, owner);
        CountDownLatch closed = new CountDownLatch(1);
        gate.set(closed);
        int before = forces.get();
        List<Long> synced = new ArrayList<>();
        store.append(Rig.SHARD, List.of(Rig.write(Rig.SHARD, 1, 1, 0, 1)), null);
        store.write();
        store.sync(synced::add);
        while (forces.get() == before) {
            Thread.onSpinWait();
        }
        for (int i = 2; i <= 100; i++) {
            store.append(Rig.SHARD, List.of(Rig.write(Rig.SHARD, 1, i, 0, 1)), null);
            store.write();
            store.sync(synced::add);
        }
        long end = store.write();
        closed.countDown();
        loop.until(() -> synced.size() == 100);

        assertThat(forces.get() - before).isEqualTo(2);
        assertThat(synced.get(0)).isLessThan(end);
        assertThat(synced.subList(1, 100)).containsOnly(end);
    }

    @Test
    void aFailedSyncIsReportedOnceAndNothingIsSyncedAfterwards() throws IOException {
        UnsyncableDisk failing = new UnsyncableDisk();
        JournalStore store = new JournalStore(directory, Rig.OPTIONS, loop, failing);
        opened.add(store);
        TestOwner other = new TestOwner();
        Rig.create(store, Rig.SHARD, owner);
        Rig.create(store, Rig.OTHER, other);
        appendAndApply(store, Rig.write(Rig.SHARD, 1, 1, 0, 1));
        store.write();
        failing.breakDown();
        List<Long> synced = new ArrayList<>();
        store.sync(synced::add);
        loop.until(() -> !owner.failures.isEmpty());
        failing.heal();
        store.sync(synced::add);
        store.append(Rig.SHARD, List.of(Rig.write(Rig.SHARD, 1, 2, 0, 1)), null);
        store.write();
        store.turnEnded();
        loop.drain();

        assertThat(owner.failures).hasSize(1);
        assertThat(other.failures).hasSize(1);
        assertThat(synced).isEmpty();
        assertThat(Rig.read(store, loop, Rig.SHARD, 0, 1).getFirst().sequence()).isEqualTo(1);
        store.close();
        assertThat(synced).isEmpty();
    }

    @Test
    void aFailedWriteIsReportedBeforeItReturns() throws IOException {
        boolean[] full = {false};
        Disk failing =
                new Disk() {
                    @Override
                    public void write(FileChannel file, ByteBuffer bytes, long offset)
                            throws IOException {
                        if (full[0]) {
                            throw new IOException("No space left on device");
                        }
                        REAL.write(file, bytes, offset);
                    }

                    @Override
                    public void force(FileChannel file) throws IOException {
                        REAL.force(file);
                    }
                };
        JournalStore store = new JournalStore(directory, Rig.OPTIONS, loop, failing);
        opened.add(store);
        Rig.create(store, Rig.SHARD, owner);
        appendAndApply(store, Rig.write(Rig.SHARD, 1, 1, 0, 1));
        long end = store.write();
        full[0] = true;
        store.append(Rig.SHARD, List.of(Rig.write(Rig.SHARD, 1, 2, 0, 1)), null);

        assertThat(store.write()).isEqualTo(end);
        assertThat(owner.failures).hasSize(1);
        full[0] = false;
        store.append(Rig.SHARD, List.of(Rig.write(Rig.SHARD, 1, 2, 0, 1)), null);
        assertThat(store.write()).isEqualTo(end);
        assertThat(Rig.read(store, loop, Rig.SHARD, 0, 1).getFirst().sequence()).isEqualTo(1);
        store.abandon();
        assertThat(open().open(Rig.SHARD, owner).entries()).hasSize(1);
    }

    @Test
    void theMapStaysWithinItsMemoryAndComesBackFromTheDatabase() throws IOException {
        StoreOptions small = new StoreOptions(2 << 20, 1L << 40, 50_000, 1 << 20, 2, "boot-1");
        JournalStore store = open(small);
        Rig.create(store, Rig.SHARD, owner);
        int pages = 400;
        for (int i = 1; i <= pages; i++) {
            long block = (long) i * ExtentPage.BLOCKS;
            appendAndApply(store, Rig.write(Rig.SHARD, 1, i, block, 1));
            store.turnEnded();
            if (store.checkpointRunning()) {
                loop.until(() -> !store.checkpointRunning());
            }
            assertThat(store.mapBytes()).isLessThan(2 * small.cacheBytes());
        }
        Rig.checkpoint(store, loop);
        assertThat(store.mapBytes()).isLessThanOrEqualTo(small.cacheBytes());

        for (int i = 1; i <= pages; i++) {
            long block = (long) i * ExtentPage.BLOCKS;
            assertThat(store.newestSequence(Rig.SHARD, 1, block, 2)).isEqualTo(i);
        }
        assertThat(store.mapBytes()).isLessThanOrEqualTo(small.cacheBytes());
        assertThat(store.usage().extents()).isPositive();
        assertThat(store.usage().journalBytes()).isGreaterThanOrEqualTo(2 << 20);
    }

    @Test
    void aShardsStateIsKeptWhileItsReplicaIsNotOpen() throws IOException {
        JournalStore store = fresh();
        appendAndApply(store, Rig.write(Rig.SHARD, 1, 1, 0, 1));
        store.append(Rig.SHARD, List.of(Rig.write(Rig.SHARD, 1, 2, 1, 1)), null);
        store.close();

        JournalStore unused = open();
        Rig.checkpoint(unused, loop);
        unused.close();
        Recovered past = open().open(Rig.SHARD, owner);

        assertThat(past.applied()).isEqualTo(1);
        assertThat(past.shardState()).isEqualTo(TestOwner.state(1));
        assertThat(past.entries()).extracting(Entry::sequence).containsExactly(2L);
    }

    @Test
    void answersAtOnceWhatIsInThePageCache() throws IOException {
        // Where RWF_NOWAIT is known to work; elsewhere the reader threads do all reads.
        assumeTrue(List.of("ext4", "xfs", "btrfs").contains(Files.getFileStore(directory).type()));
        JournalStore store = fresh();
        for (int i = 1; i <= 64; i++) {
            appendAndApply(store, Rig.write(Rig.SHARD, 1, i, i, 1));
        }
        List<List<Run>> got = new ArrayList<>();

        store.read(Rig.SHARD, 1, 1, 64, got::add);

        assertThat(got).hasSize(1);
        assertThat(got.getFirst()).hasSize(64);
        for (Run run : got.getFirst()) {
            assertThat(run.payload()).isEqualTo(Rig.payload(1, run.sequence()));
        }
    }
}
