package io.holdfast.node.replica;

import io.holdfast.node.replica.Effect.Outbound;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.EntryKind;
import io.holdfast.proto.peer.ReplicaMessage;
import io.holdfast.proto.peer.ReplicaMessage.Append;
import io.holdfast.proto.peer.ReplicaMessage.AppendReply;
import io.holdfast.proto.peer.ReplicaMessage.Cursor;
import io.holdfast.proto.peer.ReplicaMessage.InstallBegin;
import io.holdfast.proto.peer.ReplicaMessage.InstallExtents;
import io.holdfast.proto.peer.ReplicaMessage.PromiseReply;
import io.holdfast.proto.peer.ReplicaMessage.PromiseRequest;
import io.holdfast.proto.peer.Room;
import io.holdfast.proto.peer.Voice;
import java.util.ArrayList;
import java.util.List;

/**
 * One replica, node 3, as it is found at a start. The test plays the other nodes and the disk: what
 * the replica wants done is given back, and nobody does it.
 */
final class LoneReplica {
    static final int SELF = 3;

    private static final Timing TIMING = Timing.DEFAULT;

    private final ReplicaOptions options;
    private final Replica replica;
    private long nowNanos = TIMING.guardNanos();

    /** Past the guard that a replica begins with. */
    LoneReplica(int replicas, HardState state, List<Entry> log) {
        options = options(replicas);
        replica =
                new Replica(
                        options,
                        new Recovered(state, 0, 0, new byte[0], log),
                        (layer, block, count) -> 0,
                        0);
    }

    private static ReplicaOptions options(int replicas) {
        List<Integer> nodes = new ArrayList<>();
        for (int node = 1; node <= replicas; node++) {
            nodes.add(node);
        }
        return new ReplicaOptions(
                ReplicaGroup.SHARD,
                SELF,
                nodes,
                ReplicaGroup.LAYER,
                ReplicaGroup.BLOCKS,
                false,
                false,
                false,
                TIMING,
                Limits.DEFAULT,
                Branch.Listener.NONE);
    }

    /** The leader of three, in epoch 1, with an empty entry that node 1 holds, too. */
    static LoneReplica leading() {
        LoneReplica leader = new LoneReplica(3, HardState.FRESH, List.of());
        leader.isElected();
        return leader;
    }

    /** Node 1 elects it, and holds its log. */
    void isElected() {
        long epoch = status().promised() + 1;
        takes(new Event.Campaign());
        hears(1, granted(epoch, true, Voice.VOTER));
        allIsSynced();
        hears(1, granted(epoch, false, Voice.VOTER));
        isFollowed();
    }

    /** What it has appended is on the disks here and of node 1; what is done about that. */
    List<Effect> isFollowed() {
        allIsSynced();
        ReplicaStatus status = status();
        return hears(1, accepted(status.promised(), status.last(), 0));
    }

    ReplicaStatus status() {
        return replica.status(nowNanos);
    }

    byte[] shardState() {
        return replica.shardState();
    }

    /** All that happens in one turn. */
    List<Effect> turn(Event... events) {
        List<Effect> effects = new ArrayList<>();
        for (Event event : events) {
            effects.addAll(replica.step(event, nowNanos));
        }
        effects.addAll(replica.step(new Event.TurnEnd(), nowNanos));
        return effects;
    }

    List<Effect> takes(Event event) {
        return turn(event);
    }

    List<Effect> hears(int from, ReplicaMessage message) {
        return turn(new Event.FromPeer(from, message));
    }

    /** The disk has done everything that was asked of it. */
    void allIsSynced() {
        takes(new Event.Synced(Long.MAX_VALUE));
    }

    /** Time passes without a tick. */
    void waits(long nanos) {
        nowNanos += nanos;
    }

    /** A heartbeat's time passes; what the leader sends then. */
    List<Effect> beats() {
        waits(TIMING.heartbeatNanos());
        return takes(new Event.Tick());
    }

    /** No heartbeat is under the guard any more. */
    void waitsOutTheGuard() {
        waits(TIMING.guardNanos());
    }

    /** The answer to a candidate. */
    PromiseReply answers(int candidate, PromiseRequest request) {
        return messages(hears(candidate, request)).stream()
                .map(Outbound::message)
                .filter(PromiseReply.class::isInstance)
                .map(PromiseReply.class::cast)
                .findFirst()
                .orElseThrow();
    }

    /** Where the log of a leader came from, as a catch-up says it. */
    byte[] history(EpochHistory epochs, long applied) {
        return new ShardState(options).encode(epochs, applied);
    }

    // ---- what is in effects

    /** All that leaves, at once or when the disk has something. */
    static List<Outbound> messages(List<Effect> effects) {
        List<Outbound> messages = new ArrayList<>();
        for (Effect effect : effects) {
            switch (effect) {
                case Effect.Send send -> messages.add(new Outbound(send.to(), send.message()));
                case Effect.SendEntries send -> messages.add(new Outbound(send.to(), send.frame()));
                case Effect.Persist persist -> messages.addAll(persist.thenSend());
                case Effect.StoreExtents extents -> messages.addAll(extents.thenSend());
                case Effect.InstallBase base -> messages.addAll(base.thenSend());
                default -> {}
            }
        }
        return messages;
    }

    /** Messages of a kind to a node. */
    static <M extends ReplicaMessage> List<M> sent(List<Effect> effects, int to, Class<M> kind) {
        return messages(effects).stream()
                .filter(outbound -> outbound.to() == to)
                .map(Outbound::message)
                .filter(kind::isInstance)
                .map(kind::cast)
                .toList();
    }

    /** What leaves before the disk has synced anything. */
    static List<Outbound> leavingUnsynced(List<Effect> effects) {
        return messages(
                effects.stream()
                        .filter(effect -> !(effect instanceof Effect.Persist p && p.sync()))
                        .filter(effect -> !(effect instanceof Effect.InstallBase))
                        .toList());
    }

    /** The state that a turn leaves on disk. */
    static HardState persisted(List<Effect> effects) {
        return effects.stream()
                .filter(Effect.Persist.class::isInstance)
                .map(effect -> ((Effect.Persist) effect).state())
                .filter(HardState.class::isInstance)
                .reduce((older, newer) -> newer)
                .orElseThrow();
    }

    // ---- messages and entries

    static PromiseRequest request(long epoch, long lastEpoch, long last) {
        return new PromiseRequest(ReplicaGroup.SHARD, epoch, false, false, lastEpoch, last, false);
    }

    static PromiseReply granted(long epoch, boolean preliminary, Voice voice) {
        return new PromiseReply(ReplicaGroup.SHARD, epoch, preliminary, true, 0, voice, 0, 0);
    }

    /** A voter's answer to the newest heartbeat. */
    static AppendReply accepted(long epoch, long matched, long applied) {
        return new AppendReply(
                ReplicaGroup.SHARD,
                epoch,
                true,
                matched,
                matched,
                matched,
                applied,
                false,
                Room.ENOUGH,
                Long.MAX_VALUE);
    }

    static Append append(long epoch, long previousEpoch, long previous, List<Entry> entries) {
        return new Append(
                ReplicaGroup.SHARD, epoch, previousEpoch, previous, 0, 0, false, 1, entries);
    }

    static InstallBegin catchUp(
            long epoch, long since, long baseEpoch, long base, byte[] shardState) {
        return new InstallBegin(ReplicaGroup.SHARD, epoch, since, baseEpoch, base, shardState);
    }

    /** All of a catch-up in one part, without any extents. */
    static InstallExtents lastPart(long epoch, long base) {
        return new InstallExtents(
                ReplicaGroup.SHARD, epoch, base, Cursor.START, Cursor.START, true, List.of());
    }

    /** Empty entries of one epoch, made when nothing was committed yet. */
    static List<Entry> entries(long epoch, long first, long last) {
        List<Entry> entries = new ArrayList<>();
        for (long sequence = first; sequence <= last; sequence++) {
            entries.add(
                    Entry.builder(ReplicaGroup.SHARD, EntryKind.NOOP)
                            .at(epoch, sequence, 0)
                            .build());
        }
        return entries;
    }
}
