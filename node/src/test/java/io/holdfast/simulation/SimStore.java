package io.holdfast.simulation;

import static io.holdfast.simulation.SimFailure.check;

import io.holdfast.node.port.Store.Extents;
import io.holdfast.node.replica.BlockVersions;
import io.holdfast.node.replica.HardState;
import io.holdfast.node.replica.Recovered;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.ClientReply.Run;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.EntryKind;
import io.holdfast.proto.peer.Nonce;
import io.holdfast.proto.peer.ReplicaMessage.Cursor;
import io.holdfast.proto.peer.ShardId;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * The disk of one shard on one node, with the semantics of the {@code Store} port and of the
 * effects that reach it.
 *
 * <p>The journal is a list of records. Each goes from queued (lost when the process dies) over
 * written (page cache: lost when power fails) to synced. Map and log in memory run ahead of that,
 * as they do in production; a restart rebuilds them from the newest durable checkpoint and the
 * records that survived.
 */
final class SimStore implements BlockVersions {
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

        /** The log restarts here, with the map as it stood then. */
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

    /** Map and shard state at one position of the journal. */
    private record Checkpoint(
            int position,
            TreeMap<Place, Cell> map,
            long applied,
            long appliedEpoch,
            byte[] shardState) {
        static final Checkpoint NONE = new Checkpoint(0, new TreeMap<>(), 0, 0, new byte[0]);
    }

    /** Hears of the journal's way to disk. */
    interface Watcher {
        void written(Entry entry);

        void synced(Entry entry);
    }

    private final ShardId shard;
    private final PlantedBug bug;
    private final Watcher watcher;

    // On disk.
    private final ArrayList<Item> journal = new ArrayList<>();
    private final Map<EntryKey, Integer> positions = new HashMap<>();
    private int writtenEnd;
    private int syncedEnd;
    private Checkpoint checkpoint = Checkpoint.NONE;
    private HardState created;
    private long logStart;
    private HardState syncedState;

    // In memory.
    private final ArrayList<Entry> log = new ArrayList<>();
    private TreeMap<Place, Cell> map = new TreeMap<>();
    private long baseSequence;
    private @Nullable Checkpoint pendingCheckpoint;
    private long applied;

    /**
     * An empty disk.
     *
     * @param state hard state of the new replica, synced
     */
    SimStore(ShardId shard, HardState state, PlantedBug bug, Watcher watcher) {
        this.shard = shard;
        this.created = state;
        this.syncedState = state;
        this.bug = bug;
        this.watcher = watcher;
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
            if (bug == PlantedBug.APPLY_BEFORE_COMMIT && entry.count() > 0) {
                put(entry);
            }
        }
        if (state != null) {
            journal.add(new Item.State(state));
        }
        return journal.size();
    }

    /** Cuts the log. */
    void truncate(long sequence) {
        check(sequence >= applied, "journal", "cut after ", sequence, ", applied is ", applied);
        while (last() > sequence) {
            log.removeLast();
        }
    }

    /** Queues moved copies and puts them into the map. */
    int appendMoved(List<Entry> moved) {
        for (Entry entry : moved) {
            check(entry.isMoved(), "journal", "not a moved copy: ", entry);
            journal.add(new Item.Moved(entry));
            put(entry);
        }
        return journal.size();
    }

    /** The log restarts after a base, for which the map is right. */
    int installBase(long epoch, long sequence, byte[] shardState, HardState state) {
        journal.add(new Item.Base(epoch, sequence, shardState, state, new TreeMap<>(map)));
        log.clear();
        baseSequence = sequence;
        logStart = sequence;
        applied = sequence;
        pendingCheckpoint = null;
        return journal.size();
    }

    /** Forgets everything; synced. */
    void startOver(HardState state) {
        journal.add(new Item.Cleared(state));
        log.clear();
        map = new TreeMap<>();
        baseSequence = 0;
        logStart = 0;
        applied = 0;
        pendingCheckpoint = null;
        checkpoint = new Checkpoint(journal.size(), new TreeMap<>(), 0, 0, new byte[0]);
        written(journal.size());
        synced(journal.size());
    }

    /** Puts committed entries into the map. */
    void apply(List<Entry> entries) {
        for (Entry entry : entries) {
            Entry logged = entry(entry.sequence());
            check(
                    logged != null && logged.epoch() == entry.epoch(),
                    "journal",
                    "applies ",
                    entry,
                    ", the log has ",
                    logged);
            check(entry.count() > 0, "journal", "applies ", entry);
            put(entry);
        }
    }

    /** The map now belongs to this applied point. */
    void applied(long sequence) {
        applied = sequence;
    }

    private void put(Entry entry) {
        put(map, entry);
    }

    private static void put(SortedMap<Place, Cell> map, Entry entry) {
        for (int i = 0; i < entry.count(); i++) {
            Place place = new Place(entry.layer(), entry.block() + i);
            Cell old = map.get(place);
            if (old == null || old.sequence() <= entry.sequence()) {
                map.put(place, new Cell(entry));
            }
        }
    }

    @Override
    public long newestSequence(int layer, long block, int count) {
        long newest = 0;
        for (Cell cell : range(layer, block, count).values()) {
            newest = Math.max(newest, cell.sequence());
        }
        return newest;
    }

    private Map<Place, Cell> range(int layer, long block, int count) {
        return map.subMap(new Place(layer, block), new Place(layer, block + count));
    }

    /** Reads blocks; runs are as long as one entry reaches. */
    List<Run> read(int layer, long block, int count) {
        List<Run> runs = new ArrayList<>();
        long at = block;
        while (at < block + count) {
            Cell cell = map.get(new Place(layer, at));
            long end = at + 1;
            while (end < block + count && sameEntry(cell, map.get(new Place(layer, end)))) {
                end++;
            }
            runs.add(run(cell, at, (int) (end - at)));
            at = end;
        }
        return runs;
    }

    private static boolean sameEntry(@Nullable Cell one, @Nullable Cell other) {
        return one == null ? other == null : other != null && one.entry == other.entry;
    }

    private static Run run(@Nullable Cell cell, long block, int count) {
        if (cell == null) {
            return new Run(block, count, 0, Nonce.NONE, new byte[0]);
        }
        return new Run(
                block,
                count,
                cell.sequence(),
                cell.entry.nonce().plus(block - cell.entry.block()),
                payload(cell.entry, block, count));
    }

    private static byte[] payload(Entry entry, long block, int count) {
        if (entry.kind() == EntryKind.ZERO) {
            return new byte[0];
        }
        int from = (int) (block - entry.block()) * Blocks.SEALED_SIZE;
        return Arrays.copyOfRange(entry.payload(), from, from + count * Blocks.SEALED_SIZE);
    }

    /** At most {@code most} moved copies of blocks newer than {@code since}. */
    Extents extents(long since, Cursor from, int most) {
        List<Entry> moved = new ArrayList<>();
        for (Map.Entry<Place, Cell> one :
                map.tailMap(new Place(from.layer(), from.block())).entrySet()) {
            Place place = one.getKey();
            if (moved.size() == most) {
                return new Extents(moved, new Cursor(place.layer, place.block), false);
            }
            Entry entry = one.getValue().entry;
            boolean skipped =
                    bug == PlantedBug.CATCH_UP_SKIPS_ZEROES && entry.kind() == EntryKind.ZERO;
            if (entry.sequence() > since && !skipped) {
                moved.add(clip(entry, place.block));
            }
        }
        return new Extents(moved, Cursor.START, true);
    }

    private static Entry clip(Entry entry, long block) {
        return Entry.builder(entry.shard(), entry.kind())
                .at(entry.epoch(), entry.sequence(), entry.commit())
                .blocks(entry.layer(), block, 1)
                .sealed(entry.nonce().plus(block - entry.block()), payload(entry, block, 1))
                .flags((entry.isTrim() ? Entry.FLAG_TRIM : 0) | Entry.FLAG_MOVED)
                .build();
    }

    /** Entries of the log, at least one; empty: gone. */
    List<Entry> log(long from, long through, int most) {
        if (from <= logStart || from <= baseSequence || from > last()) {
            return List.of();
        }
        int first = (int) (from - baseSequence - 1);
        int end = (int) (Math.min(Math.min(through, last()), from + most - 1) - baseSequence);
        return List.copyOf(log.subList(first, end));
    }

    // ---- the way to disk ----

    /** The journal's end. */
    int end() {
        return journal.size();
    }

    /** How far the journal is written. */
    int writtenEnd() {
        return writtenEnd;
    }

    /** The operating system has the journal up to here. */
    void written(int end) {
        for (; writtenEnd < Math.min(end, journal.size()); writtenEnd++) {
            if (journal.get(writtenEnd) instanceof Item.Logged logged) {
                watcher.written(logged.entry);
            }
        }
    }

    /** The disk has the journal up to here, and with it a checkpoint that waited for that. */
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
        Checkpoint due = pendingCheckpoint;
        if (due != null && due.position <= syncedEnd) {
            checkpoint = due;
            pendingCheckpoint = null;
        }
    }

    /** Starts a checkpoint; it is durable once the journal is synced as far as it is now. */
    void startCheckpoint(long appliedNow, long appliedEpoch, byte[] shardState) {
        byte[] state = bug == PlantedBug.SESSIONS_NOT_IN_CHECKPOINT ? new byte[0] : shardState;
        pendingCheckpoint =
                new Checkpoint(journal.size(), new TreeMap<>(map), appliedNow, appliedEpoch, state);
    }

    /** The log may be forgotten up to here, but never beyond what a checkpoint covers. */
    void moveLogStart(long sequence) {
        logStart = Math.max(logStart, Math.min(sequence, checkpoint.applied));
    }

    /** The applied point of the newest durable checkpoint. */
    long checkpointed() {
        return checkpoint.applied;
    }

    // ---- faults ----

    /** The process died: what was not written is gone, all but a torn part of the last write. */
    void crash(SimRandom random) {
        int keep = random.between(writtenEnd, journal.size());
        cut(keep);
        if (bug == PlantedBug.PROMISE_NOT_PERSISTED) {
            forgetPromises();
        }
        written(journal.size());
    }

    /** Power failed: what was not synced is gone, all but some of what happened to be written. */
    void powerLoss(SimRandom random) {
        cut(random.between(syncedEnd, writtenEnd));
        synced(journal.size());
    }

    private void cut(int keep) {
        while (journal.size() > keep) {
            journal.removeLast();
        }
        writtenEnd = Math.min(writtenEnd, keep);
        pendingCheckpoint = null;
    }

    private void forgetPromises() {
        for (int i = 0; i < journal.size(); i++) {
            if (journal.get(i) instanceof Item.State) {
                journal.set(i, new Item.State(created));
            }
        }
        syncedState = created;
    }

    /** The disk is a new one. */
    void wipe(HardState state) {
        journal.clear();
        positions.clear();
        writtenEnd = 0;
        syncedEnd = 0;
        checkpoint = Checkpoint.NONE;
        pendingCheckpoint = null;
        logStart = 0;
        created = state;
        syncedState = state;
    }

    /**
     * Rebuilds map and log from what survived, and syncs it, since the replica will rely on it.
     *
     * @param unclean the machine went down: a voter starts as a learner
     */
    Recovered recover(boolean unclean) {
        log.clear();
        positions.clear();
        map = new TreeMap<>(checkpoint.map);
        baseSequence = 0;
        applied = checkpoint.applied;
        long appliedEpoch = checkpoint.appliedEpoch;
        byte[] shardState = checkpoint.shardState;
        HardState state = created;
        for (int i = 0; i < journal.size(); i++) {
            switch (journal.get(i)) {
                case Item.Logged logged -> replay(logged.entry, i);
                case Item.State newer -> state = newer.state;
                case Item.Moved moved -> {
                    if (i >= checkpoint.position) {
                        put(moved.entry);
                    }
                }
                case Item.Cleared cleared -> {
                    state = cleared.state;
                    log.clear();
                    baseSequence = 0;
                }
                case Item.Base base -> {
                    state = base.state;
                    log.clear();
                    baseSequence = base.sequence;
                    if (i >= checkpoint.position) {
                        map = new TreeMap<>(base.map);
                        applied = base.sequence;
                        appliedEpoch = base.epoch;
                        shardState = base.shardState;
                    }
                }
            }
        }
        logStart = Math.max(logStart, baseSequence);
        check(applied <= last(), "journal", "recovered to ", last(), ", applied is ", applied);
        if (unclean && !state.equals(state.afterPowerLoss())) {
            state = state.afterPowerLoss();
            journal.add(new Item.State(state));
        }
        written(journal.size());
        synced(journal.size());
        int first = (int) (applied - baseSequence);
        return new Recovered(
                state,
                appliedEpoch,
                applied,
                shardState,
                List.copyOf(log.subList(first, log.size())));
    }

    /**
     * A record takes the place of another of its sequence, and everything after that is cut:
     * records are in the order in which they came, and an entry of a newer leader's log may well be
     * of an older epoch than the one it replaces. The very same entry again changes nothing.
     */
    private void replay(Entry entry, int position) {
        if (entry.sequence() <= baseSequence) {
            return;
        }
        check(entry.sequence() <= last() + 1, "journal", "gap before ", entry, " at ", last());
        Entry old = entry(entry.sequence());
        if (old != null) {
            if (old.epoch() == entry.epoch() || bug == PlantedBug.OLD_TAIL_RECOVERED) {
                return;
            }
            while (last() >= entry.sequence()) {
                log.removeLast();
            }
        }
        log.add(entry);
        positions.put(EntryKey.of(entry), position);
    }

    // ---- for checkers ----

    /** End of the log. */
    long last() {
        return baseSequence + log.size();
    }

    /** The log restarted after this sequence. */
    long baseSequence() {
        return baseSequence;
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
    SortedMap<Place, Cell> map() {
        return map;
    }

    ShardId shard() {
        return shard;
    }
}
