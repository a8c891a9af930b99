package io.holdfast.node.replica;

import io.holdfast.proto.peer.ShardId;
import java.util.List;

/**
 * What a replica is told at its creation.
 *
 * @param self this node's number
 * @param replicas node numbers of all replicas, {@code self} among them, in campaign order
 * @param layer of the volume's blocks; requests for another are refused
 * @param blocks of the volume; requests for what lies behind them are refused
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
        int layer,
        long blocks,
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

    /** Whether there are such blocks. */
    boolean has(int ofLayer, long block, int count) {
        return ofLayer == layer && block <= blocks - count;
    }

    void taken(Branch branch) {
        branches.taken(branch);
    }

    int majority() {
        return replicas.size() / 2 + 1;
    }
}
