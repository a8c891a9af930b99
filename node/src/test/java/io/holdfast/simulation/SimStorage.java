package io.holdfast.simulation;

import static io.holdfast.simulation.SimFailure.check;

import io.holdfast.node.port.Store.Copy;
import io.holdfast.node.port.Store.Extents;
import io.holdfast.node.replica.BlockVersions;
import io.holdfast.node.replica.HardState;
import io.holdfast.node.replica.Recovered;
import io.holdfast.proto.peer.ClientReply.Run;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.ReplicaMessage.Cursor;
import io.holdfast.proto.peer.ShardId;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Where one shard of one node is kept: the fast model ({@link SimStore}), or the production store
 * on a simulated disk ({@link JournalShard}). Holds what checkers ask of both: what was handed over
 * for the journal, in order, and how far that is written and synced.
 *
 * <p>Each record goes from queued (lost when the process dies) over written (page cache: lost when
 * power fails) to synced.
 */
abstract sealed class SimStorage implements BlockVersions permits SimStore, JournalShard {
    /** Something in the journal. */
    sealed interface Item {
        /** An entry of the log. */
        record Logged(Entry entry) implements Item {}

        /** Hard state. */
        record State(HardState state) implements Item {}

        /** A moved copy, not part of the log. */
        record Moved(Entry entry) implements Item {}

        /** Everything before is forgotten. */
        record Cleared(HardState state) implements Item {}

        /** The log restarts here, with the map as it stood then, if it is a model's. */
        record Base(
                long epoch,
                long sequence,
                byte[] shardState,
                HardState state,
                TreeMap<Place, Cell> map)
                implements Item {}
    }

    /** A block of a layer. */
    record Place(int layer, long block) implements Comparable<Place> {
        @Override
        public int compareTo(Place other) {
            int byLayer = Integer.compare(layer, other.layer);
            return byLayer != 0 ? byLayer : Long.compare(block, other.block);
        }
    }

    /** What a block holds: a part of an entry. */
    record Cell(Entry entry) {
        long sequence() {
            return entry.sequence();
        }
    }

    /** Names an entry of any epoch. */
    record EntryKey(long sequence, long epoch) {
        static EntryKey of(Entry entry) {
            return new EntryKey(entry.sequence(), entry.epoch());
        }
    }

    /** Hears of the journal's way to disk. */
    interface Watcher {
        void written(Entry entry);

        void synced(Entry entry);
    }

    private final ShardId shard;
    private final Watcher watcher;

    /** What was handed over, as far as it is not lost. */
    final ArrayList<Item> journal = new ArrayList<>();

    final Map<EntryKey, Integer> positions = new HashMap<>();

    /** The log after {@link #baseSequence}. */
    final ArrayList<Entry> log = new ArrayList<>();

    long baseSequence;

    /** Epoch of the entry at {@link #baseSequence}, 0: none. */
    long baseEpoch;

    int writtenEnd;
    int syncedEnd;
    HardState syncedState;

    SimStorage(ShardId shard, Watcher watcher, HardState state) {
        this.shard = shard;
        this.watcher = watcher;
        this.syncedState = state;
    }

    // ---- the port ----

    /**
     * Queues entries and then state.
     *
     * @return the journal's end, for {@link #written} and {@link #synced}
     */
    int append(List<Entry> entries, @Nullable HardState state) {
        for (Entry entry : entries) {
            check(
                    entry.sequence() == last() + 1,
                    "journal",
                    "append of ",
                    entry,
                    " after sequence ",
                    last());
            check(!entry.isMoved(), "journal", "a moved copy in the log: ", entry);
            log.add(entry);
            positions.put(EntryKey.of(entry), journal.size());
            journal.add(new Item.Logged(entry));
        }
        if (state != null) {
            journal.add(new Item.State(state));
        }
        return journal.size();
    }

    /** Cuts the log. */
    void truncate(long sequence) {
        while (last() > sequence) {
            log.removeLast();
        }
    }

    /** Queues moved copies and puts them into the map. */
    int appendMoved(List<Entry> moved) {
        for (Entry entry : moved) {
            check(entry.isMoved(), "journal", "not a moved copy: ", entry);
            journal.add(new Item.Moved(entry));
        }
        return journal.size();
    }

    /** The log restarts after a base, for which the map is right. */
    abstract int installBase(long epoch, long sequence, byte[] shardState, HardState state);

    /** Forgets everything; synced. */
    abstract void startOver(HardState state);

    /** Puts committed entries into the map. */
    abstract void apply(List<Entry> entries);

    /** The map now belongs to this applied point: the end of a step. */
    abstract void applied(long sequence);

    /** Reads blocks; null: they cannot be read. */
    abstract void read(int layer, long block, int count, Consumer<@Nullable List<Run>> done);

    /** Reads one block and checks its record. */
    abstract void copy(int layer, long block, Consumer<Copy> done);

    /** Puts another replica's copy in the place of the one here. */
    abstract boolean repair(int layer, Run copy);

    /** At most {@code most} moved copies of blocks newer than {@code since}, or about so many. */
    abstract void extents(long since, Cursor from, int most, Consumer<Extents> done);

    /** Entries of the log, at least one; empty: gone. */
    abstract List<Entry> log(long from, long through, int most);

    /**
     * Opens it at the start of a process.
     *
     * @param unclean the machine went down
     */
    abstract Recovered recover(boolean unclean);

    /** The log may be forgotten up to here, but never beyond what a checkpoint covers. */
    abstract void moveLogStart(long sequence);

    // ---- the way to disk ----

    /** The journal's end. */
    int end() {
        return journal.size();
    }

    /** How far the journal is written. */
    int writtenEnd() {
        return writtenEnd;
    }

    /** How far the journal is synced. */
    int syncedEnd() {
        return syncedEnd;
    }

    /** The operating system has the journal up to here. */
    void written(int end) {
        for (; writtenEnd < Math.min(end, journal.size()); writtenEnd++) {
            if (journal.get(writtenEnd) instanceof Item.Logged logged) {
                watcher.written(logged.entry);
            }
        }
    }

    /** The disk has the journal up to here. */
    void synced(int end) {
        for (; syncedEnd < Math.min(end, writtenEnd); syncedEnd++) {
            switch (journal.get(syncedEnd)) {
                case Item.Logged logged -> watcher.synced(logged.entry);
                case Item.State state -> syncedState = state.state;
                case Item.Base base -> syncedState = base.state;
                case Item.Cleared cleared -> syncedState = cleared.state;
                case Item.Moved _ -> {}
            }
        }
    }

    // ---- for checkers ----

    /** End of the log. */
    long last() {
        return baseSequence + log.size();
    }

    /** The log restarted after this sequence, or nothing is known here of what was before it. */
    long baseSequence() {
        return baseSequence;
    }

    /** Epoch of the entry at {@link #baseSequence}. */
    long baseEpoch() {
        return baseEpoch;
    }

    /** An entry of the log; null: the log does not reach there. */
    @Nullable Entry entry(long sequence) {
        return sequence <= baseSequence || sequence > last()
                ? null
                : log.get((int) (sequence - baseSequence - 1));
    }

    /** Whether the operating system has the log's entry at {@code sequence}, or what it led to. */
    boolean isWritten(long sequence) {
        return isThrough(sequence, writtenEnd);
    }

    /** Whether the disk has it. */
    boolean isSynced(long sequence) {
        return isThrough(sequence, syncedEnd);
    }

    private boolean isThrough(long sequence, int end) {
        Entry entry = entry(sequence);
        if (entry == null) {
            return sequence <= baseSequence;
        }
        Integer position = positions.get(EntryKey.of(entry));
        return position != null && position < end;
    }

    /** Hard state as the disk has it. */
    HardState syncedState() {
        return syncedState;
    }

    /** The map, block by block: for comparing replicas. */
    abstract SortedMap<Place, Cell> map();

    ShardId shard() {
        return shard;
    }
}
