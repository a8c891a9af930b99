package io.holdfast.node.replica;

/**
 * How much a replica keeps waiting. Tests make these small, since what happens at a limit is rare
 * otherwise.
 *
 * @param window entries under way to one follower; a slower one lags instead of filling memory
 * @param uncommitted entries numbered but not committed; beyond it clients are told BUSY
 * @param unappliedBytes of entries numbered but not applied; beyond it clients are told BUSY
 * @param parked requests waiting for leadership to be confirmed, or for the write that broke their
 *     condition; beyond it clients are told BUSY
 * @param syncWaiters requests waiting for a sync; beyond it clients are told BUSY
 * @param numberSpan from a session's smallest unsettled request number to its newest; beyond it
 *     clients are told BUSY. At most {@link CompletedRequests#MAX_SPAN}
 * @param fetches of blocks from other replicas under way; beyond it clients are told BUSY
 * @param sessions of a shard; one more and the oldest is forgotten, and its client fenced. The same
 *     on all replicas
 */
public record Limits(
        int window,
        int uncommitted,
        long unappliedBytes,
        int parked,
        int syncWaiters,
        int numberSpan,
        int fetches,
        int sessions) {
    /** What production uses. */
    public static final Limits DEFAULT =
            new Limits(128, 8192, 128L << 20, 8192, 8192, CompletedRequests.MAX_SPAN, 256, 1024);
}
