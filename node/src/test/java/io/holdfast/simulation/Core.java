package io.holdfast.simulation;

import io.holdfast.node.replica.BlockVersions;
import io.holdfast.node.replica.Effect;
import io.holdfast.node.replica.Event;
import io.holdfast.node.replica.Recovered;
import io.holdfast.node.replica.Replica;
import io.holdfast.node.replica.ReplicaOptions;
import io.holdfast.node.replica.ReplicaStatus;
import java.util.List;

/** The replication core as the simulated driver sees it: the production one, or one in disguise. */
interface Core {
    /** See {@link Replica#step}. */
    List<Effect> step(Event event, long nowNanos);

    /** See {@link Replica#shardState}. */
    byte[] shardState();

    /** See {@link Replica#applied}. */
    long applied();

    /** See {@link Replica#appliedEpoch}. */
    long appliedEpoch();

    /** See {@link Replica#status}. */
    ReplicaStatus status(long nowNanos);

    /** A core with or without a planted bug. */
    static Core create(
            ReplicaOptions options,
            Recovered recovered,
            BlockVersions blocks,
            long nowNanos,
            PlantedBug bug) {
        Core core = new Production(new Replica(options, recovered, blocks, nowNanos));
        return switch (bug) {
            case OLD_EPOCH_COMMITTED -> new HastyLeader(core, options.replicas().size());
            case DURABLE_OVERSTATED,
                    FLUSH_ANSWERED_BY_LEADER_ALONE,
                    LEARNER_VOTES,
                    FENCING_SKIPPED,
                    CONDITION_UNCHECKED,
                    POWER_LOSS_DROPPED,
                    COPY_OF_ANOTHER_VERSION ->
                    new BuggyCore(core, blocks, bug);
            default -> core;
        };
    }

    /** The production core. */
    record Production(Replica replica) implements Core {
        @Override
        public List<Effect> step(Event event, long nowNanos) {
            return replica.step(event, nowNanos);
        }

        @Override
        public byte[] shardState() {
            return replica.shardState();
        }

        @Override
        public long applied() {
            return replica.applied();
        }

        @Override
        public long appliedEpoch() {
            return replica.appliedEpoch();
        }

        @Override
        public ReplicaStatus status(long nowNanos) {
            return replica.status(nowNanos);
        }
    }
}
