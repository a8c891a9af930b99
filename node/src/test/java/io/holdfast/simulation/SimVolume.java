package io.holdfast.simulation;

import static io.holdfast.simulation.SimFailure.check;

import io.holdfast.proto.catalogue.Volume;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.ShardId;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;

/**
 * One volume: its shards, which every node holds, and what its users asked and were answered.
 * Volumes share nodes and journals, and nothing else: numbers of sessions, claims and nonces are
 * each volume's own.
 */
final class SimVolume {
    final int number;

    /** One client at a time may write. */
    final boolean exclusive;

    final History history;

    private final SimCluster cluster;
    private final List<ShardId> shards = new ArrayList<>();
    private final TreeMap<Integer, Integer> sessions = new TreeMap<>();

    SimVolume(SimCluster cluster, int number, boolean exclusive) {
        this.cluster = cluster;
        this.number = number;
        this.exclusive = exclusive;
        this.history = new History(number);
        for (int i = 0; i < cluster.options.shards(); i++) {
            shards.add(new ShardId(number, i));
        }
    }

    List<ShardId> shards() {
        return shards;
    }

    /** The volume as the catalogue has it, which may be old news. */
    Volume inCatalogue(int timeoutSeconds) {
        SimOptions options = cluster.options;
        List<Volume.Shard> homes = new ArrayList<>();
        for (ShardId shard : shards) {
            homes.add(
                    new Volume.Shard(
                            shard.index(),
                            cluster.nodeNumbers(),
                            cluster.coordinator().leader(shard),
                            0));
        }
        return new Volume(
                number,
                "sim" + number,
                (long) options.blocks() * Blocks.SIZE,
                (long) options.stripeBlocks() * Blocks.SIZE,
                options.syncWrites() ? Volume.Durability.SYNC : Volume.Durability.FLUSH,
                exclusive ? Volume.Attach.EXCLUSIVE : Volume.Attach.SHARED,
                options.quorumReads() ? Volume.Reads.QUORUM : Volume.Reads.LEASE,
                timeoutSeconds,
                Volume.State.READY,
                SealedBlocks.LAYER,
                SealedBlocks.key().id(),
                "",
                homes);
    }

    /** Where a block is. */
    ShardId shardOf(long block) {
        return shards.get((int) (block / cluster.options.stripeBlocks() % shards.size()));
    }

    /** Blocks from one on that are in its shard together with it, at most so many. */
    int blocksFrom(long block, int most) {
        int count = 1;
        while (count < most
                && block + count < cluster.options.blocks()
                && shardOf(block + count).equals(shardOf(block))) {
            count++;
        }
        return count;
    }

    /** Whether a call covers blocks of a shard. */
    boolean touches(SimCall call, ShardId shard) {
        for (long block = 0; block < cluster.options.blocks(); block++) {
            if (call.touches(block) && shardOf(block).equals(shard)) {
                return true;
            }
        }
        return false;
    }

    /** A session number was granted; it must never be granted again, or nonces would repeat. */
    void granted(int session, int client) {
        Integer before = sessions.put(session, client);
        check(
                before == null,
                "session numbers",
                "session ",
                session,
                " granted to clients ",
                before,
                " and ",
                client);
    }

    @Override
    public String toString() {
        return "volume " + number;
    }
}
