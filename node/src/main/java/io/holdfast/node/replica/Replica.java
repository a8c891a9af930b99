package io.holdfast.node.replica;

import java.util.List;

/** One copy of one shard: see the package comment. */
public final class Replica {
    private final ReplicaOptions options;
    private final long applied;

    /**
     * A replica as it was found at start. It serves nothing before it has heard from the others.
     *
     * @param nowNanos clock reading at creation
     * @param blocks the map that {@link Effect.Apply} goes to
     */
    public Replica(
            ReplicaOptions options, Recovered recovered, BlockVersions blocks, long nowNanos) {
        this.options = options;
        this.applied = recovered.applied();
    }

    /**
     * Takes one event and tells what is to be done about it.
     *
     * @param nowNanos monotonic clock; never goes back between calls
     */
    public List<Effect> step(Event event, long nowNanos) {
        return List.of();
    }

    /** Sessions, claims and epochs at the applied point, for a checkpoint. */
    public byte[] shardState() {
        return new byte[0];
    }

    /** The map holds exactly the entries up to here once all Apply effects are carried out. */
    public long applied() {
        return applied;
    }

    /** Epoch of the entry at {@link #applied}. */
    public long appliedEpoch() {
        return 0;
    }

    /** What to show people of this replica. */
    public ReplicaStatus status(long nowNanos) {
        return new ReplicaStatus(
                options.self(),
                Effect.Role.FOLLOWER,
                HardState.Standing.VOTER,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                "",
                List.of());
    }
}
