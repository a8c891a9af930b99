package io.holdfast.nemesis;

import java.util.List;
import java.util.Random;

/** Does faults to a cluster and takes them back. For one thread. */
final class Faults {
    /** Takes a fault back. */
    interface Heal {
        void heal() throws InterruptedException;
    }

    private static final long MEBIBYTE = 1L << 20;

    private final Cluster cluster;
    private final Weather weather;
    private final Verdict verdict;

    Faults(Cluster cluster, Weather weather, Verdict verdict) {
        this.cluster = cluster;
        this.weather = weather;
        this.verdict = verdict;
    }

    /**
     * Does a fault to a node.
     *
     * @param random which other node, how much
     */
    Heal inflict(Fault fault, int victim, Random random) throws InterruptedException {
        int other = 1 + (victim + random.nextInt(Cluster.NODES - 1)) % Cluster.NODES;
        verdict.fault(fault.word);
        return switch (fault) {
            case KILL -> kill(List.of(cluster.node(victim)));
            case KILL_ALL -> kill(cluster.nodes());
            case PAUSE -> pause(cluster.node(victim));
            case ISOLATE -> {
                cutOff(victim);
                yield this::heal;
            }
            case UNPLUG -> {
                hide(victim);
                cutOff(victim);
                yield this::heal;
            }
            case ONE_WAY -> {
                cut(victim, other);
                yield this::heal;
            }
            case PAIR -> {
                cut(victim, other);
                cut(other, victim);
                yield this::heal;
            }
            case CLIENTS -> {
                hide(victim);
                yield this::heal;
            }
            case DISK -> fill(victim, List.of(0L, 8L, 40L).get(random.nextInt(3)) * MEBIBYTE);
        };
    }

    private void cutOff(int victim) {
        for (NodeProcess node : cluster.nodes()) {
            if (node.number != victim) {
                cut(victim, node.number);
                cut(node.number, victim);
            }
        }
    }

    private Heal kill(List<NodeProcess> victims) throws InterruptedException {
        for (NodeProcess victim : victims) {
            weather.running(victim.number, false);
            victim.kill();
        }
        for (NodeProcess victim : victims) {
            victim.awaitEnd();
        }
        return () -> victims.forEach(NodeProcess::start);
    }

    private Heal pause(NodeProcess victim) {
        weather.running(victim.number, false);
        victim.pause();
        return victim::resume;
    }

    private void cut(int from, int to) {
        weather.cut(from, to, true);
        cluster.network().orElseThrow().cut(from, to);
    }

    private void hide(int node) {
        weather.hidden(node, true);
        cluster.network().orElseThrow().cutClients(node);
    }

    private void heal() {
        Network network = cluster.network().orElseThrow();
        for (NodeProcess node : cluster.nodes()) {
            network.heal(node.number);
        }
        for (NodeProcess node : cluster.nodes()) {
            weather.hidden(node.number, false);
            for (NodeProcess other : cluster.nodes()) {
                weather.cut(other.number, node.number, false);
            }
        }
    }

    /**
     * Of a node without room nothing is asked, and it may end: the promise is that it can be
     * restarted when there is room again.
     */
    private Heal fill(int victim, long leaveBytes) {
        NodeProcess node = cluster.node(victim);
        SmallDisk disk = cluster.disk(victim);
        weather.running(victim, false);
        weather.full(victim, true);
        disk.fill(leaveBytes);
        return () -> {
            disk.free();
            if (!node.isAlive() || node.health().contains("\"failed\"")) {
                verdict.note("stores that failed of a full disk, nodes restarted", 1);
                node.kill();
                node.awaitEnd();
                node.start();
            }
        };
    }
}
