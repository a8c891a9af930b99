package io.holdfast.simulation;

import io.holdfast.node.replica.Effect;
import io.holdfast.node.replica.Event;
import io.holdfast.proto.peer.ReplicaMessage;
import io.holdfast.proto.peer.ReplicaMessage.Append;
import io.holdfast.proto.peer.ReplicaMessage.AppendReply;
import java.util.List;
import java.util.TreeMap;

/**
 * A leader that tells its followers that an entry is committed as soon as a majority holds it,
 * whatever its epoch: what section 5.4.2 of the Raft paper warns of.
 */
final class HastyLeader extends DisguisedCore {
    private final int replicas;
    private final TreeMap<Integer, Long> matched = new TreeMap<>();
    private long epoch;

    HastyLeader(Core core, int replicas) {
        super(core);
        this.replicas = replicas;
    }

    @Override
    public List<Effect> step(Event event, long nowNanos) {
        if (event instanceof Event.FromPeer(int from, AppendReply reply)
                && reply.accepted()
                && reply.epoch() == epoch) {
            matched.merge(from, reply.matched(), Math::max);
        }
        return core.step(event, nowNanos).stream().map(this::falsify).toList();
    }

    private Effect falsify(Effect effect) {
        return switch (effect) {
            case Effect.Send send -> new Effect.Send(send.to(), falsify(send.message()));
            case Effect.SendEntries send ->
                    new Effect.SendEntries(send.to(), falsify(send.frame()), send.through());
            default -> effect;
        };
    }

    private ReplicaMessage falsify(ReplicaMessage message) {
        return message instanceof Append frame ? falsify(frame) : message;
    }

    private Append falsify(Append frame) {
        if (frame.epoch() != epoch) {
            epoch = frame.epoch();
            matched.clear();
        }
        return new Append(
                frame.shard(),
                frame.epoch(),
                frame.previousEpoch(),
                frame.previousSequence(),
                Math.max(frame.commit(), heldByMajority()),
                frame.syncThrough(),
                frame.promote(),
                frame.sentNanos(),
                frame.entries());
    }

    private long heldByMajority() {
        // The leader itself is one of them.
        int others = replicas / 2;
        List<Long> rising = matched.values().stream().sorted().toList();
        return others == 0 || rising.size() < others ? 0 : rising.get(rising.size() - others);
    }
}
