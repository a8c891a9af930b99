package io.holdfast.simulation;

import static io.holdfast.simulation.SimFailure.check;

import io.holdfast.node.port.Store;
import io.holdfast.node.port.Store.Copy;
import io.holdfast.node.port.Store.Extents;
import io.holdfast.node.replica.HardState;
import io.holdfast.node.replica.Recovered;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.ClientReply.Run;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.EntryKind;
import io.holdfast.proto.peer.ReplicaMessage.Cursor;
import io.holdfast.proto.peer.ShardId;
import java.io.UncheckedIOException;
import java.util.ArrayDeque;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;

/**
 * One shard in the production store of a node ({@link SimJournal}). What checkers see is kept
 * beside it: what was handed to the store, and what the store has said of it.
 */
final class JournalShard extends SimStorage {
    /** Bytes of one block in a part of a catch-up or in a frame. */
    private static final int BLOCK_BYTES = Entry.HEADER_SIZE + Blocks.SEALED_SIZE;

    /** The journal was written to a place of the store's when so much had been handed over. */
    private record Written(long place, int end) {}

    private final SimJournal node;
    private final ArrayDeque<Written> unsynced = new ArrayDeque<>();

    /** Sequences of blocks of which a catch-up brought what may not be what was written. */
    private final TreeMap<Long, Long> doubtful = new TreeMap<>();

    private final TreeSet<Long> everDoubtful = new TreeSet<>();
    private @Nullable SimReplica replica;

    JournalShard(ShardId shard, HardState state, Watcher watcher, SimJournal node) {
        super(shard, watcher, state);
        this.node = node;
    }

    /** The replica that runs on it from now on. */
    void attach(SimReplica driver) {
        replica = driver;
    }

    private Store store() {
        return node.store();
    }

    /** What the store asks of the replica. */
    private final class Owner implements Store.Owner {
        private SimReplica replica() {
            SimReplica driver = replica;
            if (driver == null) {
                throw new IllegalStateException("asked for the state of a replica being opened");
            }
            return driver;
        }

        @Override
        public byte[] shardState() {
            return replica().shardState();
        }

        @Override
        public long applied() {
            return replica().applied();
        }

        @Override
        public long appliedEpoch() {
            return replica().appliedEpoch();
        }

        @Override
        public void failed(Exception cause) {
            node.failed(cause);
        }
    }

    // ---- the port ----

    @Override
    int append(List<Entry> entries, @Nullable HardState state) {
        int end = super.append(entries, state);
        store().append(shard(), entries, state);
        return end;
    }

    @Override
    void truncate(long sequence) {
        super.truncate(sequence);
        store().truncate(shard(), sequence);
    }

    @Override
    int appendMoved(List<Entry> moved) {
        for (Entry entry : moved) {
            if (entry.isDoubtful()) {
                for (long block = entry.block(); block < entry.block() + entry.count(); block++) {
                    doubtful.merge(block, entry.sequence(), Math::max);
                    everDoubtful.add(block);
                }
            }
        }
        int end = super.appendMoved(moved);
        store().appendMoved(shard(), moved);
        return end;
    }

    @Override
    int installBase(long epoch, long sequence, byte[] shardState, HardState state) {
        journal.add(new Item.Base(epoch, sequence, shardState, state, new TreeMap<>()));
        log.clear();
        baseSequence = sequence;
        baseEpoch = epoch;
        store().installBase(shard(), epoch, sequence, shardState, state, () -> {});
        return end();
    }

    @Override
    void startOver(HardState state) {
        store().drop(shard());
        try {
            store().create(shard(), state, new Owner());
        } catch (UncheckedIOException e) {
            check(node.isOutOfService(), "store", "not failed, but ", e);
        }
        if (!node.isOutOfService()) {
            journal.add(new Item.Cleared(state));
            log.clear();
            baseSequence = 0;
            baseEpoch = 0;
            written(end());
            synced(end());
        }
    }

    @Override
    void apply(List<Entry> entries) {
        store().apply(shard(), entries);
    }

    @Override
    void applied(long sequence) {
        // The store asks the replica.
    }

    @Override
    public long newestSequence(int layer, long block, int count) {
        return store().newestSequence(shard(), layer, block, count);
    }

    @Override
    void read(int layer, long block, int count, Consumer<@Nullable List<Run>> done) {
        store().read(shard(), layer, block, count, done);
    }

    @Override
    void copy(int layer, long block, Consumer<Copy> done) {
        store().copy(shard(), layer, block, done);
    }

    @Override
    boolean repair(int layer, Run copy) {
        boolean repaired = store().repair(shard(), layer, copy);
        if (repaired) {
            doubtful.remove(copy.block());
        }
        return repaired;
    }

    /** Whether the newest version of a block is here, as it was written, and can be read. */
    boolean hasGood(long block, long sequence) {
        return !node.disk().wasEverUnreadable()
                && newestSequence(SealedBlocks.LAYER, block, 1) == sequence
                && !isDoubtful(block, sequence);
    }

    /** Whether this version of a block came from a damaged record of another node. */
    boolean isDoubtful(long block, long sequence) {
        return doubtful.getOrDefault(block, 0L) == sequence;
    }

    /** Whether any version of it ever did. */
    boolean wasDoubtful(long block) {
        return everDoubtful.contains(block);
    }

    @Override
    void extents(long since, Cursor from, int most, Consumer<Extents> done) {
        store().extents(shard(), since, from, most * BLOCK_BYTES, done);
    }

    @Override
    List<Entry> log(long from, long through, int most) {
        return store().log(shard(), from, through, most * BLOCK_BYTES);
    }

    @Override
    void moveLogStart(long sequence) {
        // The log is as long as segments are kept.
    }

    @Override
    Recovered recover(boolean unclean) {
        replica = null;
        Recovered recovered =
                store().shards().contains(shard())
                        ? store().open(shard(), new Owner())
                        : store().create(shard(), node.stateOfNew(shard()), new Owner());
        check(
                !unclean || node.wasClosed() || !recovered.hardState().standing().counts(),
                "power loss",
                "a replica still counts that may have forgotten something: ",
                recovered.hardState());
        journal.clear();
        positions.clear();
        log.clear();
        unsynced.clear();
        writtenEnd = 0;
        syncedEnd = 0;
        baseSequence = recovered.applied();
        baseEpoch = recovered.appliedEpoch();
        journal.add(new Item.State(recovered.hardState()));
        for (Entry entry : recovered.entries()) {
            check(entry.sequence() == last() + 1, "journal", entry, " recovered at ", last());
            log.add(entry);
            positions.put(EntryKey.of(entry), end());
            journal.add(new Item.Logged(entry));
        }
        written(end());
        synced(end());
        return recovered;
    }

    // ---- the way to disk ----

    /** Writes what was handed over, of all shards; false: the disk has failed. */
    boolean write() {
        return node.write();
    }

    /** The store has written everything, to this place. */
    void written(long place) {
        if (unsynced.isEmpty() || unsynced.getLast().end < end()) {
            unsynced.add(new Written(place, end()));
        }
        written(end());
    }

    /** The store has synced everything to this place. */
    void synced(long place) {
        while (!unsynced.isEmpty() && unsynced.getFirst().place <= place) {
            synced(unsynced.removeFirst().end);
        }
    }

    /** Syncs what is written. */
    void sync(IntConsumer done) {
        node.sync(() -> done.accept(syncedEnd()));
    }

    /** The turn is over: map and shard state agree. */
    void turnEnded() {
        node.turnEnded();
    }

    /** Takes a checkpoint, for scenarios. */
    void checkpoint() {
        node.checkpoint();
    }

    /** The disk is a new one. */
    void wiped() {
        journal.clear();
        positions.clear();
        log.clear();
        unsynced.clear();
        writtenEnd = 0;
        syncedEnd = 0;
        baseSequence = 0;
        baseEpoch = 0;
        syncedState = HardState.FORGETFUL;
    }

    // ---- for checkers ----

    @Override
    SortedMap<Place, Cell> map() {
        TreeMap<Place, Cell> map = new TreeMap<>();
        for (Run run : node.readAll(shard())) {
            if (run.sequence() == 0) {
                continue;
            }
            Entry.Builder entry =
                    Entry.builder(shard(), run.isZero() ? EntryKind.ZERO : EntryKind.WRITE)
                            .at(1, run.sequence(), 0)
                            .blocks(SealedBlocks.LAYER, run.block(), run.count());
            if (!run.isZero()) {
                entry.sealed(run.nonce(), run.payload());
            }
            Cell cell = new Cell(entry.build());
            for (int i = 0; i < run.count(); i++) {
                map.put(new Place(SealedBlocks.LAYER, run.block() + i), cell);
            }
        }
        return map;
    }
}
