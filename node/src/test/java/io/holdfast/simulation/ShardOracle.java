package io.holdfast.simulation;

import static io.holdfast.simulation.SimFailure.check;

import io.holdfast.node.replica.Effect;
import io.holdfast.node.replica.Effect.Role;
import io.holdfast.node.replica.ReplicaStatus;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.EntryKind;
import io.holdfast.proto.peer.ReplicaMessage;
import io.holdfast.proto.peer.ReplicaMessage.AppendReply;
import io.holdfast.proto.peer.ReplicaMessage.PromiseReply;
import io.holdfast.proto.peer.ShardId;
import io.holdfast.simulation.SimStorage.EntryKey;
import io.holdfast.simulation.SimStorage.Place;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * Sees everything that the replicas of one shard do, knows what was ever committed, and fails the
 * run at the first step that breaks a promise. What it knows comes from the log and the disks,
 * never from what a replica believes about others.
 */
final class ShardOracle {
    /** What was last seen of one replica. */
    private static final class View {
        long promised;
        long commit;
        long applied;
        long verified;

        /** Where this process's log once ended, before it was cut or begun anew. */
        long formerEnd;

        boolean voter = true;
    }

    /** On which nodes an entry is, or was until the power failed there: one bit per node. */
    private static final class Held {
        int written;
        int synced;
    }

    /**
     * After a power loss of a majority history goes on from what is left of it.
     *
     * @param time when that was first seen
     * @param epoch that it goes on in
     * @param contents what blocks held by what is left
     */
    record Loss(long time, long epoch, Map<Place, Long> contents) {}

    private final ShardId shard;
    private final SimVolume volume;
    private final SimCluster cluster;
    private final int majority;
    private final TreeMap<Integer, View> views = new TreeMap<>();
    private final TreeMap<Integer, Long> promisedOnDisk = new TreeMap<>();
    private final Map<EntryKey, Held> held = new HashMap<>();
    private final TreeMap<Long, Integer> leaders = new TreeMap<>();
    private final List<Entry> committed = new ArrayList<>();
    private final List<Loss> losses = new ArrayList<>();
    private LogModel model;
    private boolean majorityForgot;
    private long acknowledged;
    private long flushed;

    ShardOracle(ShardId shard, SimVolume volume, SimCluster cluster) {
        this.shard = shard;
        this.volume = volume;
        this.cluster = cluster;
        this.majority = cluster.options.nodes() / 2 + 1;
        this.model = new LogModel(shard, volume.exclusive, volume.history);
    }

    private View view(int node) {
        return views.computeIfAbsent(node, n -> new View());
    }

    // ---- the disks ----

    /** Notes which entries a node has on disk. */
    SimStorage.Watcher watcher(int node) {
        return new SimStorage.Watcher() {
            @Override
            public void written(Entry entry) {
                if (view(node).voter && isInLog(node, entry)) {
                    heldBy(entry).written |= 1 << node;
                }
            }

            @Override
            public void synced(Entry entry) {
                if (view(node).voter && isInLog(node, entry)) {
                    heldBy(entry).synced |= 1 << node;
                }
            }
        };
    }

    /** Whether it was not cut off again while it was on its way to the disk. */
    private boolean isInLog(int node, Entry entry) {
        SimStorage store = cluster.node(node).store(shard);
        Entry there = store.entry(entry.sequence());
        return there == null
                ? entry.sequence() <= store.baseSequence()
                : there.epoch() == entry.epoch();
    }

    /** A replica is about to forget its log after a sequence. */
    void cutting(int node, long after, SimStorage store) {
        View view = view(node);
        view.formerEnd = Math.max(view.formerEnd, store.last());
        if (majorityForgot) {
            // A leader that has not heard of the loss may still count on what it was told before.
            return;
        }
        for (long s = Math.max(after, store.baseSequence()) + 1; s <= store.last(); s++) {
            Entry entry = store.entry(s);
            if (entry != null) {
                heldBy(entry).written &= ~(1 << node);
                heldBy(entry).synced &= ~(1 << node);
            }
        }
    }

    private Held heldBy(Entry entry) {
        return held.computeIfAbsent(EntryKey.of(entry), key -> new Held());
    }

    private int writtenOn(Entry entry) {
        return countHolders(entry, heldBy(entry).written);
    }

    private int syncedOn(Entry entry) {
        return countHolders(entry, heldBy(entry).synced);
    }

    private int countHolders(Entry entry, int holders) {
        int count = 0;
        for (int node : cluster.nodeNumbers()) {
            boolean holds = (holders & 1 << node) != 0;
            SimStorage store = cluster.node(node).store(shard);
            // A base of an older epoch may be of a log that a power loss took out of history.
            boolean beyond =
                    store.baseSequence() >= entry.sequence() && store.baseEpoch() >= entry.epoch();
            count += holds || beyond ? 1 : 0;
        }
        return count;
    }

    /** So many disks lost power or were replaced that acknowledged writes may be gone. */
    void majorityForgot() {
        majorityForgot = true;
    }

    boolean hasMajorityForgotten() {
        return majorityForgot;
    }

    /** A disk is new: nothing that this replica promised is known any more. */
    void wiped(int node) {
        promisedOnDisk.remove(node);
    }

    // ---- replicas ----

    /** A replica begins, with what its disk kept. */
    void started(int node, ReplicaStatus status, SimStorage store) {
        View view = new View();
        view.promised = status.promised();
        view.commit = status.commit();
        view.applied = status.applied();
        view.voter = status.standing().counts();
        views.put(node, view);
        if (view.voter) {
            // A tail that was cut in memory only is back.
            countAsHolder(node, store);
        }
        check(
                status.promised() >= promisedOnDisk.getOrDefault(node, 0L),
                "promise",
                "node ",
                node,
                " starts with a promise of ",
                status.promised(),
                ", its disk had ",
                promisedOnDisk.get(node));
        check(
                status.last() == store.last(),
                "status",
                "node ",
                node,
                " recovered to ",
                store.last(),
                ", says ",
                status.last());
    }

    /** A replica forgot everything on purpose. */
    void startedOver(int node) {
        View view = view(node);
        view.commit = 0;
        view.applied = 0;
        view.verified = 0;
        check(majorityForgot, "power loss", "node ", node, " starts over without any power loss");
    }

    /** The core has decided; nothing is carried out yet. A leader's commits are known by now. */
    void decided(int node, ReplicaStatus status, SimStorage store) {
        if (status.role() == Role.LEADER) {
            verify(node, Math.min(status.commit(), store.last()), store);
        }
    }

    /** The effects of a step are carried out. */
    void carriedOut(int node, ReplicaStatus status, SimStorage store) {
        View view = view(node);
        notBack(node, "promised epoch", view.promised, status.promised());
        notBack(node, "commit", view.commit, status.commit());
        notBack(node, "applied", view.applied, status.applied());
        check(
                status.applied() <= status.commit() && status.commit() <= status.last(),
                "status",
                "node ",
                node,
                " applied ",
                status.applied(),
                ", commit ",
                status.commit(),
                ", last ",
                status.last());
        // What a turn appends is handed over at its end.
        check(
                status.last() >= store.last(),
                "status",
                "node ",
                node,
                " says its log ends at ",
                status.last(),
                ", the store at ",
                store.last());
        verify(node, Math.min(status.commit(), store.last()), store);
        view.promised = status.promised();
        view.commit = status.commit();
        view.applied = status.applied();
        promisedOnDisk.merge(node, store.syncedState().promised(), Math::max);
        boolean voter = status.standing().counts();
        if (voter && !view.voter) {
            countAsHolder(node, store);
        }
        view.voter = voter;
    }

    private static void notBack(int node, String what, long before, long after) {
        check(
                after >= before,
                "monotonic",
                "node ",
                node,
                ": ",
                what,
                " went back from ",
                before,
                " to ",
                after);
    }

    /** A replica votes from now on: what it holds counts. */
    private void countAsHolder(int node, SimStorage store) {
        for (long s = store.baseSequence() + 1; s <= store.last(); s++) {
            Entry entry = store.entry(s);
            if (entry != null && store.isWritten(s)) {
                heldBy(entry).written |= 1 << node;
            }
            if (entry != null && store.isSynced(s)) {
                heldBy(entry).synced |= 1 << node;
            }
        }
    }

    // ---- what is committed ----

    /** Compares a replica's committed entries with everybody's, and learns of new ones. */
    private void verify(int node, long commit, SimStorage store) {
        View view = view(node);
        for (long s = view.verified + 1; s <= commit; s++) {
            Entry entry = store.entry(s);
            if (entry == null) {
                if (s > committed.size()
                        && !losses.isEmpty()
                        && losses.getLast().epoch > store.baseEpoch()) {
                    // Like isOutOfHistory, for what is only in the map.
                    return;
                }
                check(
                        s <= committed.size(),
                        "committed",
                        "node ",
                        node,
                        " builds on a base at ",
                        store.baseSequence(),
                        ", committed is ",
                        committed.size());
                continue;
            }
            if (s <= committed.size() && !same(entry, committed.get((int) s - 1))) {
                if (isOutOfHistory(entry)) {
                    // It survived the power loss and does not know yet: an acknowledgement from
                    // before let it commit this. It starts over once it hears of the new epoch.
                    return;
                }
                lose(node, s, commit, store);
            }
            if (s > committed.size()) {
                commit(node, entry);
            }
        }
        view.verified = Math.max(view.verified, commit);
    }

    /** Whether a power loss took an entry out of history, or kept it from ever getting there. */
    private boolean isOutOfHistory(Entry entry) {
        return !losses.isEmpty()
                && losses.getLast().epoch > entry.epoch()
                && entry.sequence() <= committed.size();
    }

    private static boolean same(Entry one, Entry other) {
        return Arrays.equals(one.header(), other.header());
    }

    private void commit(int node, Entry entry) {
        check(
                writtenOn(entry) >= majority,
                "majority",
                "node ",
                node,
                " commits ",
                entry,
                ", which is on ",
                writtenOn(entry),
                " nodes");
        check(
                !cluster.options.syncWrites() || syncedOn(entry) >= majority,
                "majority",
                "node ",
                node,
                " commits ",
                entry,
                " with durability=sync, synced on ",
                syncedOn(entry),
                " nodes");
        check(
                entry.kind() != EntryKind.POWER_LOSS || majorityForgot,
                "power loss",
                "node ",
                node,
                " commits ",
                entry,
                ", but no majority lost power");
        if (entry.kind() == EntryKind.POWER_LOSS) {
            cluster.counters.add("power losses committed", 1);
        }
        model.apply(entry);
        committed.add(entry);
        if (entry.kind() == EntryKind.POWER_LOSS) {
            losses.add(new Loss(cluster.queue.now(), entry.epoch(), model.contents()));
        }
    }

    /**
     * A replica has committed something else than was committed before. Right only after a majority
     * lost power, if it says so in the log, and if nothing that was flushed is gone.
     */
    private void lose(int node, long from, long commit, SimStorage store) {
        Entry before = committed.get((int) from - 1);
        boolean said = false;
        for (long s = from; s <= commit; s++) {
            Entry entry = store.entry(s);
            said |=
                    entry != null
                            && entry.kind() == EntryKind.POWER_LOSS
                            && entry.epoch() > committed.getLast().epoch();
        }
        check(
                said && majorityForgot,
                "committed",
                "node ",
                node,
                " commits ",
                store.entry(from),
                ", but committed was ",
                before,
                majorityForgot ? "; no entry tells of the power loss" : "");
        check(
                from > flushed,
                "flushed",
                "node ",
                node,
                " commits ",
                store.entry(from),
                " instead of ",
                before,
                ", but everything through ",
                flushed,
                " was flushed");
        cluster.counters.add("writes lost with power", committed.size() - from + 1);
        committed.subList((int) from - 1, committed.size()).clear();
        LogModel rest = new LogModel(shard, volume.exclusive, volume.history);
        committed.forEach(rest::apply);
        model = rest;
        acknowledged = Math.min(acknowledged, from - 1);
    }

    // ---- what replicas say ----

    /** A message is about to leave. */
    void sending(int node, int to, ReplicaMessage message, SimStorage store) {
        switch (message) {
            // What waited for its sync while a newer leader cut the log speaks of what was there
            // before: it is as if it had left then, and been late.
            case AppendReply reply
                    when reply.accepted() && reply.epoch() >= view(node).promised -> {
                check(
                        reply.matched() > store.last()
                                ? reply.matched() <= view(node).formerEnd
                                : store.isWritten(reply.matched()),
                        "acknowledgement",
                        "node ",
                        node,
                        " acknowledges ",
                        reply.matched(),
                        ", which is not in its journal");
                check(
                        reply.durable() > store.last()
                                ? reply.durable() <= view(node).formerEnd
                                : store.isSynced(reply.durable()),
                        "acknowledgement",
                        "node ",
                        node,
                        " acknowledges ",
                        reply.durable(),
                        " as durable, which is not synced");
            }
            case PromiseReply reply when reply.granted() && !reply.preliminary() -> {
                check(
                        store.syncedState().promised() >= reply.epoch(),
                        "promise",
                        "node ",
                        node,
                        " promises ",
                        reply.epoch(),
                        " to ",
                        to,
                        ", its disk has ",
                        store.syncedState());
            }
            default -> {}
        }
    }

    /** A replica has told of its role. */
    void announced(int node, Effect.Announce announce, SimStorage store) {
        if (announce.role() != Role.LEADER) {
            return;
        }
        Integer other = leaders.putIfAbsent(announce.epoch(), node);
        check(
                other == null || other == node,
                "one leader",
                "nodes ",
                other,
                " and ",
                node,
                " lead in epoch ",
                announce.epoch());
        check(
                store.syncedState().promised() >= announce.epoch(),
                "promise",
                "node ",
                node,
                " leads in ",
                announce.epoch(),
                ", its disk has ",
                store.syncedState());
        check(
                !committed.isEmpty() && committed.getLast().epoch() >= announce.epoch(),
                "one leader",
                "node ",
                node,
                " serves in ",
                announce.epoch(),
                " before an entry of it is committed");
        cluster.counters.add("leaders", other == null ? 1 : 0);
    }

    /** A client is about to be answered. */
    void replying(int node, ClientReply reply, ReplicaStatus status) {
        if (!(reply instanceof ClientReply.Done done)) {
            return;
        }
        SimOp op = volume.history.asked(done.client(), done.request());
        if (op == null) {
            return;
        }
        if (op.isChange()) {
            long sequence = model.sequenceOf(op.session, op.request);
            check(
                    sequence > 0 || isVoid(op),
                    "acknowledgement",
                    "node ",
                    node,
                    " answers ",
                    op,
                    ", which is not committed; ",
                    status);
            check(
                    done.value() == 0 || sequence == 0 || done.value() == sequence,
                    "acknowledgement",
                    "node ",
                    node,
                    " answers ",
                    op,
                    " with sequence ",
                    done.value());
            if (op.fua && sequence > 0) {
                mustBeSynced(node, op, sequence);
            }
        } else if (op.kind == SimOp.Kind.FLUSH && op.barrier > 0) {
            boolean there =
                    op.barrier <= committed.size()
                            && committed.get((int) op.barrier - 1).epoch() == op.barrierEpoch;
            check(
                    there || !isVoid(op),
                    "power loss",
                    "node ",
                    node,
                    " answers ",
                    op,
                    ", but something acknowledged before it is lost");
            if (there) {
                mustBeSynced(node, op, op.barrier);
            }
        }
    }

    /** Whether a power loss has ended the session of a request. */
    private boolean isVoid(SimOp op) {
        return !losses.isEmpty() && op.sessionSince < losses.getLast().time;
    }

    private void mustBeSynced(int node, SimOp op, long sequence) {
        Entry entry = committed.get((int) sequence - 1);
        check(
                syncedOn(entry) >= majority,
                "flush",
                "node ",
                node,
                " answers ",
                op,
                ", but ",
                entry,
                " is synced on ",
                syncedOn(entry),
                " nodes");
    }

    // ---- what clients learn ----

    /** A client has its answer. */
    void acknowledged(SimOp op) {
        if (op.isChange()) {
            long sequence = model.sequenceOf(op.session, op.request);
            acknowledged = Math.max(acknowledged, sequence);
            if (op.fua || cluster.options.syncWrites()) {
                flushed = Math.max(flushed, sequence);
            }
        } else if (op.kind == SimOp.Kind.FLUSH && op.barrier <= acknowledged) {
            flushed = Math.max(flushed, op.barrier);
        }
    }

    /** A volume client's user is told that everything through {@code barrier} is flushed. */
    void flushed(SimCall call, long barrier) {
        boolean cut = !losses.isEmpty() && losses.getLast().time > call.invoked;
        check(
                cut || barrier <= flushed,
                "flush",
                call,
                " ends, ",
                barrier,
                " was acknowledged before it, through ",
                flushed,
                " is flushed");
    }

    /** Everything acknowledged so far lies at or below this sequence. */
    long acknowledged() {
        return acknowledged;
    }

    /** Epoch of a committed entry, 0 for none. */
    long epochAt(long sequence) {
        return sequence == 0 ? 0 : committed.get((int) sequence - 1).epoch();
    }

    /** The log as far as it is committed anywhere. */
    long committed() {
        return committed.size();
    }

    // ---- the end ----

    /** Compares a replica that has applied everything with what the log adds up to. */
    void checkMap(int node, SimStorage store, boolean mayBeDamaged) {
        Map<Place, Long> expected = new TreeMap<>(model.contents());
        Map<Place, Long> found = new TreeMap<>();
        store.map()
                .forEach((place, cell) -> {
                    boolean damaged =
                            mayBeDamaged
                                    && mayBeDamaged(store, place, cell)
                                    && !volume.history.isIntact(cell.entry(), place.block());
                    if (damaged) {
                        cluster.counters.add("blocks of followers damaged in the end", 1);
                        expected.remove(place);
                    } else {
                        found.put(place, volume.history.valueOf(cell.entry(), place.block()));
                    }
                });
        check(
                expected.equals(found),
                "replicas equal",
                "node ",
                node,
                " holds ",
                found,
                ", the log says ",
                expected);
    }

    private static boolean mayBeDamaged(SimStorage store, Place place, SimStorage.Cell cell) {
        return !(store instanceof JournalShard real)
                || real.isDoubtful(place.block(), cell.sequence());
    }

    /** Checks that every acknowledged change is in the log, and every block's history. */
    void checkHistory(int blocks) {
        for (SimOp op : volume.history.operations()) {
            if (op.shard.equals(shard)
                    && op.isChange()
                    && op.state == SimOp.State.DONE
                    && !isVoid(op)) {
                check(op.sequence > 0, "acknowledged", "not in the log: ", op);
            }
        }
        for (long block = 0; block < blocks; block++) {
            if (!volume.shardOf(block).equals(shard)) {
                continue;
            }
            long from = Long.MIN_VALUE;
            long initial = 0;
            for (Loss loss : losses) {
                volume.history.checkLinearizable(shard, block, initial, from, loss.time);
                long before = from;
                from = loss.time;
                initial = contents(loss, block);
                volume.history.checkDurable(
                        shard, block, initial, before, from, cluster.options.syncWrites());
            }
            volume.history.checkLinearizable(shard, block, initial, from, SimOp.NEVER);
        }
    }

    private static long contents(Loss loss, long block) {
        @Nullable Long value = loss.contents.get(new Place(0, block));
        return value == null ? 0 : value;
    }
}
