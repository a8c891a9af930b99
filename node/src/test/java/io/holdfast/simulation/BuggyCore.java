package io.holdfast.simulation;

import io.holdfast.node.replica.BlockVersions;
import io.holdfast.node.replica.Effect;
import io.holdfast.node.replica.Effect.Outbound;
import io.holdfast.node.replica.Event;
import io.holdfast.proto.peer.ClientRequest;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.EntryKind;
import io.holdfast.proto.peer.ReplicaMessage;
import io.holdfast.proto.peer.ReplicaMessage.AppendReply;
import io.holdfast.proto.peer.ReplicaMessage.FetchedBlock;
import io.holdfast.proto.peer.ReplicaMessage.PromiseReply;
import io.holdfast.proto.peer.Voice;
import java.util.List;

/** Falsifies what goes into a core and what comes out of it. */
final class BuggyCore extends DisguisedCore {
    private final BlockVersions blocks;
    private final PlantedBug bug;

    BuggyCore(Core core, BlockVersions blocks, PlantedBug bug) {
        super(core);
        this.blocks = blocks;
        this.bug = bug;
    }

    @Override
    public List<Effect> step(Event event, long nowNanos) {
        return core.step(falsify(event, nowNanos), nowNanos).stream().map(this::falsify).toList();
    }

    private Event falsify(Event event, long nowNanos) {
        return switch (event) {
            case Event.FromClient(int origin, ClientRequest.Write write) ->
                    new Event.FromClient(origin, falsify(write, nowNanos));
            case Event.FromPeer(int from, FetchedBlock copy)
                    when bug == PlantedBug.COPY_OF_ANOTHER_VERSION ->
                    new Event.FromPeer(from, falsify(copy));
            case Event.FromPeer(int from, AppendReply reply)
                    when bug == PlantedBug.FLUSH_ANSWERED_BY_LEADER_ALONE ->
                    new Event.FromPeer(from, withDurable(reply, reply.matched()));
            default -> event;
        };
    }

    private FetchedBlock falsify(FetchedBlock copy) {
        return new FetchedBlock(
                copy.shard(),
                copy.epoch(),
                copy.fetch(),
                copy.layer(),
                copy.block(),
                blocks.newestSequence(copy.layer(), copy.block(), 1),
                copy.nonce(),
                copy.intact(),
                copy.payload());
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
        return switch (effect) {
            case Effect.Persist persist ->
                    new Effect.Persist(
                            persist.ticket(),
                            persist.entries().stream().map(this::falsify).toList(),
                            persist.state(),
                            persist.sync(),
                            persist.thenSend().stream().map(this::falsify).toList());
            case Effect.Send send -> new Effect.Send(send.to(), falsify(send.message()));
            default -> effect;
        };
    }

    private Entry falsify(Entry entry) {
        return bug == PlantedBug.POWER_LOSS_DROPPED && entry.kind() == EntryKind.POWER_LOSS
                ? Entry.builder(entry.shard(), EntryKind.NOOP)
                        .at(entry.epoch(), entry.sequence(), entry.commit())
                        .build()
                : entry;
    }

    private Outbound falsify(Outbound outbound) {
        return new Outbound(outbound.to(), falsify(outbound.message()));
    }

    private ReplicaMessage falsify(ReplicaMessage message) {
        return switch (message) {
            case AppendReply reply when bug == PlantedBug.DURABLE_OVERSTATED ->
                    withDurable(reply, reply.matched());
            case PromiseReply reply when bug == PlantedBug.LEARNER_VOTES -> asVoter(reply);
            default -> message;
        };
    }

    private static PromiseReply asVoter(PromiseReply reply) {
        return new PromiseReply(
                reply.shard(),
                reply.epoch(),
                reply.preliminary(),
                reply.granted(),
                reply.promised(),
                Voice.VOTER,
                reply.lastEpoch(),
                reply.lastSequence());
    }

    private static AppendReply withDurable(AppendReply reply, long durable) {
        return new AppendReply(
                reply.shard(),
                reply.epoch(),
                reply.accepted(),
                reply.matched(),
                durable,
                reply.last(),
                reply.applied(),
                reply.learner(),
                reply.room(),
                reply.sentNanos());
    }
}
