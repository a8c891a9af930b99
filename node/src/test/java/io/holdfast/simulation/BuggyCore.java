package io.holdfast.simulation;

import io.holdfast.node.replica.Effect;
import io.holdfast.node.replica.Effect.Outbound;
import io.holdfast.node.replica.Event;
import io.holdfast.proto.peer.ClientRequest;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.EntryKind;
import io.holdfast.proto.peer.ReplicaMessage.AppendReply;
import java.util.List;

/** Falsifies what goes into a core and what comes out of it. */
final class BuggyCore extends DisguisedCore {
    private final PlantedBug bug;

    BuggyCore(Core core, PlantedBug bug) {
        super(core);
        this.bug = bug;
    }

    @Override
    public List<Effect> step(Event event, long nowNanos) {
        Event falsified =
                event instanceof Event.FromClient(int origin, ClientRequest.Write write)
                        ? new Event.FromClient(origin, falsify(write, nowNanos))
                        : event;
        return core.step(falsified, nowNanos).stream().map(this::falsify).toList();
    }

    private ClientRequest falsify(ClientRequest.Write write, long nowNanos) {
        return new ClientRequest.Write(
                write.shard(),
                write.client(),
                write.request(),
                write.session(),
                write.lowWater(),
                bug == PlantedBug.FENCING_SKIPPED
                        ? core.status(nowNanos).generation()
                        : write.generation(),
                write.layer(),
                write.block(),
                write.count(),
                write.nonce(),
                bug == PlantedBug.CONDITION_UNCHECKED
                        ? ClientRequest.UNCONDITIONAL
                        : write.expectedSequence(),
                write.fua(),
                write.payload());
    }

    private Effect falsify(Effect effect) {
        if (!(effect instanceof Effect.Persist persist)) {
            return effect;
        }
        return new Effect.Persist(
                persist.ticket(),
                persist.entries().stream().map(this::falsify).toList(),
                persist.state(),
                persist.sync(),
                persist.thenSend().stream().map(this::falsify).toList());
    }

    private Entry falsify(Entry entry) {
        return bug == PlantedBug.POWER_LOSS_DROPPED && entry.kind() == EntryKind.POWER_LOSS
                ? Entry.builder(entry.shard(), EntryKind.NOOP)
                        .at(entry.epoch(), entry.sequence(), entry.commit())
                        .build()
                : entry;
    }

    private Outbound falsify(Outbound outbound) {
        return bug == PlantedBug.DURABLE_OVERSTATED
                        && outbound.message() instanceof AppendReply reply
                ? new Outbound(
                        outbound.to(),
                        new AppendReply(
                                reply.shard(),
                                reply.epoch(),
                                reply.accepted(),
                                reply.matched(),
                                reply.matched(),
                                reply.last(),
                                reply.applied(),
                                reply.learner(),
                                reply.room(),
                                reply.sentNanos()))
                : outbound;
    }
}
