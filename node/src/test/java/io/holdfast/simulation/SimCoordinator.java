package io.holdfast.simulation;

import io.holdfast.node.replica.Effect;
import io.holdfast.node.replica.Effect.Role;
import io.holdfast.node.replica.Event;
import io.holdfast.proto.peer.ShardId;
import java.util.TreeMap;

/**
 * Names leaders and tells who is there, as the catalogue would: with luck, late, twice, or not at
 * all. Nothing that keeps data safe may hang on it.
 */
final class SimCoordinator {
    /** How it behaves in a run. */
    enum Mode {
        /** Names nobody: replicas campaign by themselves. */
        SILENT,
        /** Names one whenever nobody has led for a while. */
        STEADY,
        /** Names anybody at any time. */
        FLAPPING,
        /** Names two at once. */
        DOUBLE,
        /** Asks leaders to hand over to another. */
        MOVING
    }

    private final SimCluster cluster;
    private final SimRandom random;
    private final TreeMap<ShardId, Integer> leaders = new TreeMap<>();
    private boolean healed;

    SimCoordinator(SimCluster cluster, SimRandom random) {
        this.cluster = cluster;
        this.random = random;
        if (cluster.options.coordinator() != Mode.SILENT) {
            for (ShardId shard : cluster.shards()) {
                cluster.queue.after(random.between(0, SimOptions.SECONDS), () -> steer(shard));
            }
        }
    }

    /** From now on it only helps. */
    void heal() {
        healed = true;
    }

    /** A replica has told of its role. */
    void announced(ShardId shard, int node, Effect.Announce announce) {
        if (announce.role() == Role.LEADER) {
            leaders.put(shard, node);
        } else {
            leaders.remove(shard, node);
        }
    }

    /** The node that was last heard to lead, 0: none. */
    int leader(ShardId shard) {
        return leaders.getOrDefault(shard, 0);
    }

    private void steer(ShardId shard) {
        int leader = leader(shard);
        boolean led = leader != 0 && cluster.node(leader).isRunning();
        Mode mode = healed ? Mode.STEADY : cluster.options.coordinator();
        switch (mode) {
            case SILENT -> {}
            case STEADY -> {
                if (!led) {
                    name(shard, anyNode());
                }
            }
            case FLAPPING -> name(shard, anyNode());
            case DOUBLE -> {
                name(shard, anyNode());
                name(shard, anyNode());
            }
            case MOVING -> {
                if (led) {
                    tell(leader, shard, new Event.StepAside(anyNode()));
                } else {
                    name(shard, anyNode());
                }
            }
        }
        cluster.queue.after(random.between(300, 4000) * SimOptions.MILLIS, () -> steer(shard));
    }

    private int anyNode() {
        return random.pick(cluster.nodeNumbers());
    }

    private void name(ShardId shard, int node) {
        cluster.counters.add("leaders named", 1);
        tell(node, shard, new Event.Campaign());
    }

    private void tell(int node, ShardId shard, Event event) {
        cluster.queue.after(
                random.between(0, 20) * SimOptions.MILLIS,
                () -> cluster.node(node).tell(shard, event));
    }

    /** A node is dead for good, or said to be; others hear of it one by one. */
    void nodeDead(int node) {
        toOthers(node, new Event.NodeDead(node));
    }

    /** A node's process died, and its connections with it; others notice one by one. */
    void linksLost(int node) {
        toOthers(node, new Event.NodeLost(node));
    }

    /** A node's process is there; it and the others learn which one, one by one. */
    void nodeAlive(int node) {
        Event alive = alive(node);
        toOthers(node, alive);
        for (ShardId shard : cluster.shards()) {
            cluster.node(node).tell(shard, alive);
            for (SimNode other : cluster.nodes()) {
                if (other.number != node && other.isUp()) {
                    tell(node, shard, alive(other.number));
                }
            }
        }
    }

    private Event alive(int node) {
        return new Event.NodeAlive(node, cluster.node(node).incarnation());
    }

    private void toOthers(int node, Event event) {
        for (int other : cluster.nodeNumbers()) {
            if (other != node) {
                for (ShardId shard : cluster.shards()) {
                    tell(other, shard, event);
                }
            }
        }
    }
}
