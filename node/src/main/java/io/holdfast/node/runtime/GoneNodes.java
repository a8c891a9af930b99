package io.holdfast.node.runtime;

import io.holdfast.node.port.Coordinator.NodeState;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Decides when the clients behind a node are gone for good, so that claims they hold may be broken.
 * One sign alone is not enough soon: a link breaks in a short partition, and gossip suspects a node
 * that is only slow. A link that stays down for {@link #GONE_NANOS} is enough alone.
 *
 * <p>Of a node that was never connected since this process started, or that gossip has not met
 * since, gossip's word means nothing: both have just been started, and links come up first. Gossip
 * calls everyone dead whom it does not know.
 *
 * <p>Being wrong costs a client its claim, never data: its late requests are fenced.
 *
 * <p>No clock, no threads: owned by the data loop.
 */
final class GoneNodes {
    /** A link that is down for this long means that the node is dead, whatever gossip says. */
    static final long GONE_NANOS = 10_000_000_000L;

    /** Gossip's word counts after the link has been down for this long: dialling takes a moment. */
    static final long CONFIRM_NANOS = 2_000_000_000L;

    private final Map<Integer, Peer> peers = new TreeMap<>();

    private static final class Peer {
        boolean up;
        boolean dead;

        /** It was connected since this process started. */
        boolean known;

        /** Gossip has met it since this process started. */
        boolean gossiped;

        long downSinceNanos;

        boolean isGone(NodeState gossip, long nowNanos) {
            long downNanos = nowNanos - downSinceNanos;
            return !up
                    && (downNanos > GONE_NANOS
                            || (known
                                    && gossiped
                                    && gossip == NodeState.DEAD
                                    && downNanos > CONFIRM_NANOS));
        }
    }

    /**
     * Nobody is connected yet; {@link #start} starts the clock.
     *
     * @param others all configured nodes but this one
     */
    GoneNodes(List<Integer> others) {
        others.forEach(other -> peers.put(other, new Peer()));
    }

    /** The clock starts now: what went before was this node's own slow start. */
    void start(long nowNanos) {
        peers.values().forEach(peer -> peer.downSinceNanos = nowNanos);
    }

    /** The link came up. */
    void connected(int node) {
        Peer peer = peers.get(node);
        if (peer != null) {
            peer.up = true;
            peer.known = true;
            peer.dead = false;
        }
    }

    /** The link went down. */
    void disconnected(int node, long nowNanos) {
        Peer peer = peers.get(node);
        if (peer != null && peer.up) {
            peer.up = false;
            peer.downSinceNanos = nowNanos;
        }
    }

    /** Nodes that have to be declared dead now; each is returned once per death. */
    List<Integer> newlyDead(Map<Integer, NodeState> gossip, long nowNanos) {
        List<Integer> dead = new ArrayList<>();
        peers.forEach((node, peer) -> {
            NodeState said = gossip.getOrDefault(node, NodeState.SUSPECT);
            peer.gossiped |= gossip.getOrDefault(node, NodeState.DEAD) != NodeState.DEAD;
            if (!peer.dead && peer.isGone(said, nowNanos)) {
                peer.dead = true;
                dead.add(node);
            }
        });
        return dead;
    }

    /** Nodes declared dead and not seen since. */
    List<Integer> dead() {
        List<Integer> dead = new ArrayList<>();
        peers.forEach((node, peer) -> {
            if (peer.dead) {
                dead.add(node);
            }
        });
        return dead;
    }
}
