package io.holdfast.node.replica;

import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/** Which nodes' clients are there, or gone for good, as far as this replica was told. */
final class Liveness {
    private final Set<Integer> connected = new TreeSet<>();
    private final Set<Integer> dead = new TreeSet<>();
    private final Map<Integer, Long> incarnations = new TreeMap<>();

    void onLost(int node) {
        connected.remove(node);
    }

    void onDead(int node) {
        connected.remove(node);
        dead.add(node);
    }

    void onAlive(int node, long incarnation) {
        dead.remove(node);
        connected.add(node);
        incarnations.put(node, incarnation);
    }

    /** The running process of a node, 0: not known. */
    long incarnation(int node) {
        return incarnations.getOrDefault(node, 0L);
    }

    boolean isConnected(int node) {
        return connected.contains(node);
    }

    /** Whether the holder is there now, as far as its node's link tells. */
    boolean isConnected(Claim claim) {
        return isConnected(claim.node()) && !isGone(claim);
    }

    /**
     * Whether the holder cannot be there any more: its node is dead, or another process runs there,
     * perhaps since a moment when nobody watched (all nodes restarted at once).
     */
    boolean isGone(Claim claim) {
        long running = incarnation(claim.node());
        return dead.contains(claim.node())
                || (running != 0 && claim.incarnation() != 0 && running != claim.incarnation());
    }
}
