package io.holdfast.node.admin;

import io.holdfast.client.admin.Health;
import io.holdfast.node.port.Coordinator;
import io.holdfast.node.replica.ReplicaStatus;
import io.holdfast.node.runtime.DataLoop;
import io.holdfast.node.runtime.DataLoop.ReplicaView;
import io.holdfast.proto.catalogue.Volume;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Whether this node serves, and if not, what it waits for. Any thread, unless it says otherwise.
 */
public final class NodeHealth {
    private final DataLoop loop;
    private final Coordinator coordinator;
    private final int self;
    private final BooleanSupplier keyDisputed;
    private volatile boolean nbdBound;
    private volatile boolean coordinatorJoined;
    private volatile boolean stopping;

    /**
     * The health of a node that has just begun to start.
     *
     * @param keyDisputed whether this node's cluster key seems to be the wrong one; any thread
     */
    public NodeHealth(
            DataLoop loop, Coordinator coordinator, int self, BooleanSupplier keyDisputed) {
        this.loop = loop;
        this.coordinator = coordinator;
        this.self = self;
        this.keyDisputed = keyDisputed;
    }

    /** NBD clients can connect from now on. */
    public void nbdBound() {
        nbdBound = true;
    }

    /** The catalogue can be changed from here. */
    public void coordinatorJoined() {
        coordinatorJoined = true;
    }

    /** The node stops. */
    public void stopping() {
        stopping = true;
    }

    /** Whether all replicas of this node are open and have a leader. Data loop only. */
    public boolean replicasServe() {
        return missing(loop.replicas()) == null;
    }

    /** Whether this node's cluster key seems to be another one than the other nodes'. */
    boolean keyDisputed() {
        return keyDisputed.getAsBoolean();
    }

    /** The node's state, for {@code /healthz}. */
    public Health health() {
        if (stopping) {
            return new Health(Health.STARTING, "the node is stopping");
        }
        LoopAnswers.Seen seen;
        try {
            seen = LoopAnswers.seen(loop);
        } catch (AdminRefusal stuck) {
            return new Health(Health.STARTING, stuck.getMessage());
        }
        if (seen.storeFailure() != null) {
            return new Health(Health.FAILED, describe(seen.storeFailure()));
        }
        String reason = reason(seen.replicas());
        return reason == null
                ? new Health(Health.SERVING, null)
                : new Health(Health.STARTING, reason);
    }

    /** For people. */
    static String describe(Exception storeFailure) {
        String message = storeFailure.getMessage();
        return "the store has failed: " + (message == null ? storeFailure.toString() : message);
    }

    private @Nullable String reason(List<ReplicaView> replicas) {
        if (keyDisputed()) {
            return "this node's cluster key is not that of the other nodes";
        }
        if (!nbdBound) {
            return "NBD is not bound yet";
        }
        if (!coordinatorJoined && coordinator.catalogue().version() == 0) {
            return "no catalogue yet: waiting for a majority of the nodes";
        }
        return missing(replicas);
    }

    private @Nullable String missing(List<ReplicaView> replicas) {
        for (ReplicaView replica : replicas) {
            ReplicaStatus status = replica.status();
            if (status.leader() == 0) {
                return "shard " + replica.shard() + " has no leader";
            }
        }
        for (Volume volume : coordinator.catalogue().volumes()) {
            if (volume.state() != Volume.State.READY) {
                continue;
            }
            for (Volume.Shard shard : volume.shards()) {
                if (shard.replicas().contains(self)
                        && replicas.stream()
                                .noneMatch(r -> r.shard().equals(volume.shardId(shard.index())))) {
                    return "shard " + volume.shardId(shard.index()) + " is not open yet";
                }
            }
        }
        return null;
    }
}
