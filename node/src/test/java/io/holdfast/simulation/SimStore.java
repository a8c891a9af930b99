package io.holdfast.simulation;

import static io.holdfast.simulation.SimFailure.check;

import io.holdfast.node.port.Store.Copy;
import io.holdfast.node.port.Store.Extents;
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
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The disk of one shard on one node, with the semantics of the {@code Store} port and of the
 * effects that reach it, as a model: fast, and coarser than {@link JournalShard}.
 *
 * <p>The journal is a list of records. Map and log in memory run ahead of what is on disk, as they
 * do in production; a restart rebuilds them from the newest durable checkpoint and the records that
 * survived.
 */
final class SimStore extends SimStorage {
    /** Map and shard state at one position of the journal. */
    private record Checkpoint(
            int position,
            TreeMap<Place, Cell> map,
            long applied,
            long appliedEpoch,
            byte[] shardState) {
        static final Checkpoint NONE = new Checkpoint(0, new TreeMap<>(), 0, 0, new byte[0]);
    }

    /** What may have happened to a block. */
    enum Damage {
        /** Bits have turned over. */
        CORRUPT,
        UNREADABLE
    }

    private final PlantedBug bug;

    /** Entries that stand for damaged blocks in the map, by identity. Never iterated. */
    private final IdentityHashMap<Entry, Damage> damaged = new IdentityHashMap<>();

    // On disk.
    private Checkpoint checkpoint = Checkpoint.NONE;
    private HardState created;
    private long logStart;

    // In memory.
    private TreeMap<Place, Cell> map = new TreeMap<>();
    private @Nullable Checkpoint pendingCheckpoint;
    private long applied;

    /**
     * An empty disk.
     *
     * @param state hard state of the new replica, synced
     */
    SimStore(ShardId shard, HardState state, PlantedBug bug, Watcher watcher) {
        super(shard, watcher, state);
        this.created = state;
        this.bug = bug;
    }

    // ---- the port ----

    @Override
    int append(List<Entry> entries, @Nullable HardState state) {
        int end = super.append(entries, state);
        if (bug == PlantedBug.APPLY_BEFORE_COMMIT) {
            entries.stream().filter(entry -> entry.count() > 0).forEach(this::put);
        }
        return end;
    }

    @Override
    void truncate(long sequence) {
        check(sequence >= applied, "journal", "cut after ", sequence, ", applied is ", applied);
        super.truncate(sequence);
    }

    @Override
    int appendMoved(List<Entry> moved) {
        moved.forEach(this::put);
        return super.appendMoved(moved);
    }

    @Override
    int installBase(long epoch, long sequence, byte[] shardState, HardState state) {
        journal.add(new Item.Base(epoch, sequence, shardState, state, new TreeMap<>(map)));
        log.clear();
        baseSequence = sequence;
        baseEpoch = epoch;
        logStart = sequence;
        applied = sequence;
        pendingCheckpoint = null;
        return journal.size();
    }

    @Override
    void startOver(HardState state) {
        journal.add(new Item.Cleared(state));
        log.clear();
        map = new TreeMap<>();
        baseSequence = 0;
        baseEpoch = 0;
        logStart = 0;
        applied = 0;
        pendingCheckpoint = null;
        checkpoint = new Checkpoint(journal.size(), new TreeMap<>(), 0, 0, new byte[0]);
        written(journal.size());
        synced(journal.size());
    }

    @Override
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

    @Override
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

    /** {@inheritDoc} At once; runs are as long as one entry reaches. */
    @Override
    void read(int layer, long block, int count, Consumer<@Nullable List<Run>> done) {
        for (Cell cell : range(layer, block, count).values()) {
            if (damaged.get(cell.entry()) == Damage.UNREADABLE) {
                done.accept(null);
                return;
            }
        }
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
        done.accept(runs);
    }

    private static boolean sameEntry(@Nullable Cell one, @Nullable Cell other) {
        return one == null ? other == null : other != null && one.entry() == other.entry();
    }

    private static Run run(@Nullable Cell cell, long block, int count) {
        if (cell == null) {
            return new Run(block, count, 0, Nonce.NONE, new byte[0]);
        }
        return new Run(
                block,
                count,
                cell.sequence(),
                cell.entry().nonce().plus(block - cell.entry().block()),
                payload(cell.entry(), block, count));
    }

    private static byte[] payload(Entry entry, long block, int count) {
        if (entry.kind() == EntryKind.ZERO) {
            return new byte[0];
        }
        int from = (int) (block - entry.block()) * Blocks.SEALED_SIZE;
        return Arrays.copyOfRange(entry.payload(), from, from + count * Blocks.SEALED_SIZE);
    }

    @Override
    void copy(int layer, long block, Consumer<Copy> done) {
        Cell cell = map.get(new Place(layer, block));
        Damage damage = cell == null ? null : damaged.get(cell.entry());
        Run run = run(cell, block, 1);
        if (damage == Damage.UNREADABLE) {
            run = new Run(block, 1, run.sequence(), run.nonce(), new byte[0]);
        }
        done.accept(new Copy(run, damage == null, "model"));
    }

    @Override
    boolean repair(int layer, Run copy) {
        Cell cell = map.get(new Place(layer, copy.block()));
        if (cell == null
                || copy.payload().length == 0
                || (bug != PlantedBug.COPY_OF_ANOTHER_VERSION && !isOfSameWrite(cell, copy))) {
            return false;
        }
        appendMoved(
                List.of(
                        Entry.builder(shard(), EntryKind.WRITE)
                                .at(cell.entry().epoch(), cell.sequence(), 0)
                                .blocks(layer, copy.block(), 1)
                                .sealed(copy.nonce(), copy.payload())
                                .flags(Entry.FLAG_MOVED)
                                .build()));
        return true;
    }

    private static boolean isOfSameWrite(Cell cell, Run copy) {
        Run own = run(cell, copy.block(), 1);
        return own.sequence() == copy.sequence() && own.nonce().equals(copy.nonce());
    }

    @Override
    void extents(long since, Cursor from, int most, Consumer<Extents> done) {
        List<Entry> moved = new ArrayList<>();
        for (Map.Entry<Place, Cell> one :
                map.tailMap(new Place(from.layer(), from.block())).entrySet()) {
            Place place = one.getKey();
            if (moved.size() == most) {
                done.accept(new Extents(moved, new Cursor(place.layer(), place.block()), false));
                return;
            }
            Entry entry = one.getValue().entry();
            boolean skipped =
                    bug == PlantedBug.CATCH_UP_SKIPS_ZEROES && entry.kind() == EntryKind.ZERO;
            if (entry.sequence() > since && !skipped) {
                moved.add(clip(entry, place.block()));
            }
        }
        done.accept(new Extents(moved, Cursor.START, true));
    }

    private static Entry clip(Entry entry, long block) {
        return Entry.builder(entry.shard(), entry.kind())
                .at(entry.epoch(), entry.sequence(), entry.commit())
                .blocks(entry.layer(), block, 1)
                .sealed(entry.nonce().plus(block - entry.block()), payload(entry, block, 1))
                .flags((entry.isTrim() ? Entry.FLAG_TRIM : 0) | Entry.FLAG_MOVED)
                .build();
    }

    @Override
    List<Entry> log(long from, long through, int most) {
        if (from <= logStart || from <= baseSequence || from > last()) {
            return List.of();
        }
        int first = (int) (from - baseSequence - 1);
        int end = (int) (Math.min(Math.min(through, last()), from + most - 1) - baseSequence);
        return List.copyOf(log.subList(first, end));
    }

    // ---- the way to disk ----

    /** {@inheritDoc} And with it a checkpoint that waited for that. */
    @Override
    void synced(int end) {
        super.synced(end);
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

    @Override
    void moveLogStart(long sequence) {
        logStart = Math.max(logStart, Math.min(sequence, checkpoint.applied));
    }

    /** The applied point of the newest durable checkpoint. */
    long checkpointed() {
        return checkpoint.applied;
    }

    // ---- faults ----

    /** The block of the map at {@code place}, which is not zeroes, goes bad on this disk. */
    void damage(Place place, Damage how, SimRandom random) {
        Cell cell = map.get(place);
        if (cell == null || cell.entry().kind() != EntryKind.WRITE) {
            throw new IllegalArgumentException("nothing to damage at " + place);
        }
        byte[] payload = payload(cell.entry(), place.block(), 1);
        payload[random.between(0, payload.length - 1)] ^= (byte) (1 << random.between(0, 7));
        Entry bad =
                Entry.builder(shard(), EntryKind.WRITE)
                        .at(cell.entry().epoch(), cell.sequence(), cell.entry().commit())
                        .blocks(place.layer(), place.block(), 1)
                        .sealed(run(cell, place.block(), 1).nonce(), payload)
                        .flags(Entry.FLAG_MOVED)
                        .build();
        damaged.put(bad, how);
        map.put(place, new Cell(bad));
        if (cell.equals(checkpoint.map.get(place))) {
            checkpoint.map.put(place, new Cell(bad));
        }
    }

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
     * {@inheritDoc} Rebuilds map and log from what survived, and syncs it, since the replica will
     * rely on it.
     */
    @Override
    Recovered recover(boolean unclean) {
        log.clear();
        positions.clear();
        map = new TreeMap<>(checkpoint.map);
        baseSequence = 0;
        baseEpoch = 0;
        applied = checkpoint.applied;
        long appliedEpoch = checkpoint.appliedEpoch;
        byte[] shardState = checkpoint.shardState;
        HardState state = created;
        for (int i = 0; i < journal.size(); i++) {
            switch (journal.get(i)) {
                case Item.Logged logged -> replay(logged.entry(), i);
                case Item.State newer -> state = newer.state();
                case Item.Moved moved -> {
                    if (i >= checkpoint.position) {
                        put(moved.entry());
                    }
                }
                case Item.Cleared cleared -> {
                    state = cleared.state();
                    log.clear();
                    baseSequence = 0;
                    baseEpoch = 0;
                }
                case Item.Base base -> {
                    state = base.state();
                    log.clear();
                    baseSequence = base.sequence();
                    baseEpoch = base.epoch();
                    if (i >= checkpoint.position) {
                        map = new TreeMap<>(base.map());
                        applied = base.sequence();
                        appliedEpoch = base.epoch();
                        shardState = base.shardState();
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

    @Override
    SortedMap<Place, Cell> map() {
        return map;
    }
}
