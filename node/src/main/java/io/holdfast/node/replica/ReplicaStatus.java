package io.holdfast.node.replica;

import java.util.List;

/**
 * A snapshot of a replica, for status, metrics and the simulator's checkers.
 *
 * @param dependsOn node that a replica without anything to rely on has everything from, 0: none
 * @param leader node believed to lead, 0: unknown
 * @param promised newest epoch promised or followed
 * @param last end of the log (append point)
 * @param durable synced here through this sequence
 * @param generation of the newest claim, 0: never claimed
 * @param holder identity of the claim's holder, empty: not claimed
 * @param followers what the leader knows of the others; empty elsewhere
 */
public record ReplicaStatus(
        int node,
        Effect.Role role,
        HardState.Standing standing,
        int dependsOn,
        int leader,
        long promised,
        long last,
        long durable,
        long commit,
        long applied,
        long generation,
        String holder,
        List<Follower> followers) {
    public ReplicaStatus {
        followers = List.copyOf(followers);
    }

    /**
     * What a leader knows of one follower.
     *
     * @param matched the follower's log equals the leader's up to here
     * @param state as people see it
     * @param silentNanos since its last answer
     */
    public record Follower(int node, long matched, long applied, State state, long silentNanos) {}

    /** A follower's condition. */
    public enum State {
        IN_SYNC,
        CATCHING_UP,
        OFFLINE
    }
}
