package io.holdfast.node.replica;

import io.holdfast.proto.peer.ShardId;
import java.util.List;

/**
 * What a replica is told at its creation.
 *
 * @param self this node's number
 * @param replicas node numbers of all replicas, {@code self} among them, in campaign order
 * @param syncWrites durability=sync: a write commits when a majority has synced it
 * @param quorumReads reads=quorum: every batch of reads is confirmed by a majority instead of by
 *     the lease
 * @param exclusive attach=exclusive: writes need the current claim
 * @param branches hears of rare branches taken
 */
public record ReplicaOptions(
        ShardId shard,
        int self,
        List<Integer> replicas,
        boolean syncWrites,
        boolean quorumReads,
        boolean exclusive,
        Timing timing,
        Limits limits,
        Branch.Listener branches) {
    public ReplicaOptions {
        replicas = List.copyOf(replicas);
        if (!replicas.contains(self)) {
            throw new IllegalArgumentException("node " + self + " is not among " + replicas);
        }
    }

    void taken(Branch branch) {
        branches.taken(branch);
    }

    int majority() {
        return replicas.size() / 2 + 1;
    }
}
