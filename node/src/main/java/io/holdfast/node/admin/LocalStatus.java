package io.holdfast.node.admin;

import io.holdfast.client.admin.StatusDocument;
import io.holdfast.client.admin.StatusDocument.AttachMode;
import io.holdfast.client.admin.StatusDocument.CatchUpKind;
import io.holdfast.client.admin.StatusDocument.CatchUpLine;
import io.holdfast.client.admin.StatusDocument.DurabilityMode;
import io.holdfast.client.admin.StatusDocument.NodeLine;
import io.holdfast.client.admin.StatusDocument.NodeState;
import io.holdfast.client.admin.StatusDocument.ReplicaLine;
import io.holdfast.client.admin.StatusDocument.ReplicaRole;
import io.holdfast.client.admin.StatusDocument.ReplicaState;
import io.holdfast.client.admin.StatusDocument.ShardLine;
import io.holdfast.client.admin.StatusDocument.VolumeLine;
import io.holdfast.config.NodeConfig;
import io.holdfast.config.NodeConfig.Member;
import io.holdfast.node.port.Coordinator;
import io.holdfast.node.port.Store;
import io.holdfast.node.replica.Effect;
import io.holdfast.node.replica.HardState;
import io.holdfast.node.replica.ReplicaStatus;
import io.holdfast.node.replica.ReplicaStatus.Follower;
import io.holdfast.node.runtime.DataLoop;
import io.holdfast.node.runtime.DataLoop.ReplicaView;
import io.holdfast.proto.catalogue.Volume;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * What this node knows by itself: its own replicas and, of shards that it leads, the others as the
 * leader sees them. Any thread.
 */
final class LocalStatus {
    private final NodeConfig config;
    private final DataLoop loop;
    private final Store store;
    private final Coordinator coordinator;
    private final Map<Integer, String> ids = new TreeMap<>();

    LocalStatus(NodeConfig config, DataLoop loop, Store store, Coordinator coordinator) {
        this.config = config;
        this.loop = loop;
        this.store = store;
        this.coordinator = coordinator;
        config.nodes().forEach(member -> ids.put(member.number(), member.id()));
    }

    /** The id that people know a node by. */
    String idOf(int node) {
        return ids.getOrDefault(node, "node#" + node);
    }

    /**
     * The document of {@code /v1/local}.
     *
     * @throws AdminRefusal 503 when the data loop gives no answer
     */
    StatusDocument document() {
        LoopAnswers.Seen seen = LoopAnswers.seen(loop);
        List<ReplicaView> replicas = seen.replicas();
        List<VolumeLine> volumes = new ArrayList<>();
        for (Volume volume : coordinator.catalogue().volumes()) {
            List<ReplicaView> here =
                    replicas.stream().filter(r -> r.shard().volume() == volume.number()).toList();
            if (!here.isEmpty()) {
                volumes.add(
                        volumeLine(
                                volume, holder(here), here.stream().map(this::shardLine).toList()));
            }
        }
        return new StatusDocument(List.of(self(seen.storeFailure())), volumes);
    }

    private NodeLine self(@Nullable Exception storeFailure) {
        Member self = config.self();
        Store.Usage usage = store.usage();
        return new NodeLine(
                self.id(),
                self.number(),
                storeFailure == null ? NodeState.ALIVE : NodeState.FAILED,
                self.nbd().toString(),
                self.http().toString(),
                usage.journalBytes(),
                usage.freeBytes(),
                storeFailure == null ? null : NodeHealth.describe(storeFailure));
    }

    /** A node that gave no answer. */
    static NodeLine silent(Member member, NodeState state) {
        return new NodeLine(
                member.id(),
                member.number(),
                state,
                member.nbd().toString(),
                member.http().toString(),
                null,
                null,
                null);
    }

    static VolumeLine volumeLine(Volume volume, @Nullable String holder, List<ShardLine> shards) {
        return new VolumeLine(
                volume.name(),
                volume.sizeBytes(),
                volume.shards().getFirst().replicas().size(),
                volume.timeoutSeconds(),
                switch (volume.attach()) {
                    case EXCLUSIVE -> AttachMode.EXCLUSIVE;
                    case SHARED -> AttachMode.SHARED;
                },
                switch (volume.durability()) {
                    case FLUSH -> DurabilityMode.FLUSH;
                    case SYNC -> DurabilityMode.SYNC;
                },
                holder,
                shards);
    }

    /** The claim is granted by the volume's first shard. */
    private static @Nullable String holder(List<ReplicaView> here) {
        return here.stream()
                .filter(r -> r.shard().index() == 0 && !r.outOfService())
                .filter(r -> !r.status().holder().isEmpty())
                .map(r -> r.status().holder())
                .findFirst()
                .orElse(null);
    }

    private ShardLine shardLine(ReplicaView replica) {
        ReplicaStatus status = replica.status();
        List<ReplicaLine> lines = new ArrayList<>();
        lines.add(
                new ReplicaLine(
                        idOf(status.node()),
                        roleOf(replica),
                        stateOf(replica),
                        replica.outOfService() ? null : status.applied(),
                        null));
        // What a leader knew when its disk failed is of the past.
        for (Follower follower :
                replica.outOfService() ? List.<Follower>of() : status.followers()) {
            lines.add(
                    new ReplicaLine(
                            idOf(follower.node()),
                            ReplicaRole.FOLLOWER,
                            switch (follower.state()) {
                                case IN_SYNC -> ReplicaState.IN_SYNC;
                                case CATCHING_UP -> ReplicaState.CATCHING_UP;
                                case OFFLINE -> ReplicaState.OFFLINE;
                            },
                            follower.state() == ReplicaStatus.State.OFFLINE
                                    ? null
                                    : follower.applied(),
                            catchUp(replica, follower)));
        }
        lines.sort(Comparator.comparing(ReplicaLine::node));
        return new ShardLine(
                replica.shard().index(),
                status.leader() == 0 || replica.outOfService() ? null : idOf(status.leader()),
                status.promised(),
                replica.outOfService() ? null : status.commit(),
                lines);
    }

    private static @Nullable CatchUpLine catchUp(ReplicaView replica, Follower follower) {
        if (follower.state() != ReplicaStatus.State.CATCHING_UP) {
            return null;
        }
        return replica.catchUps().stream()
                .filter(progress -> progress.node() == follower.node())
                .map(progress ->
                        new CatchUpLine(
                                switch (progress.by()) {
                                    case EXTENTS -> CatchUpKind.EXTENTS;
                                    case ENTRIES -> CatchUpKind.ENTRIES;
                                },
                                progress.percent(),
                                progress.doneBytes(),
                                orNull(progress.totalBytes()),
                                progress.bytesPerSecond(),
                                orNull(progress.secondsLeft())))
                .findFirst()
                .orElse(null);
    }

    private static @Nullable Long orNull(OptionalLong value) {
        return value.isPresent() ? value.getAsLong() : null;
    }

    private static ReplicaRole roleOf(ReplicaView replica) {
        ReplicaStatus status = replica.status();
        if (!status.standing().counts()) {
            return ReplicaRole.LEARNER;
        }
        // A leader whose disk has failed does nothing any more.
        return status.role() == Effect.Role.LEADER && !replica.outOfService()
                ? ReplicaRole.LEADER
                : ReplicaRole.FOLLOWER;
    }

    /** As far as a replica can judge itself; its leader knows better. */
    private static ReplicaState stateOf(ReplicaView replica) {
        ReplicaStatus status = replica.status();
        if (replica.outOfService()) {
            return ReplicaState.OFFLINE;
        }
        return status.standing() == HardState.Standing.VOTER && status.applied() >= status.commit()
                ? ReplicaState.IN_SYNC
                : ReplicaState.CATCHING_UP;
    }
}
