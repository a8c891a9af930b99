package io.holdfast.simulation;

import io.holdfast.node.replica.ReplicaStatus;

/** A core with a planted bug in {@link #step}; about itself it says what the real one says. */
abstract class DisguisedCore implements Core {
    final Core core;

    DisguisedCore(Core core) {
        this.core = core;
    }

    @Override
    public byte[] shardState() {
        return core.shardState();
    }

    @Override
    public long applied() {
        return core.applied();
    }

    @Override
    public long appliedEpoch() {
        return core.appliedEpoch();
    }

    @Override
    public ReplicaStatus status(long nowNanos) {
        return core.status(nowNanos);
    }
}
