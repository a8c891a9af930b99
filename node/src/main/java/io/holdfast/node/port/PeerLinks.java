package io.holdfast.node.port;

import io.holdfast.proto.peer.PeerMessage;

/**
 * Connections to the other nodes. Used on the data loop only.
 *
 * <p>{@link #send} never blocks and never throws. A message to a node that is not connected, or
 * whose connection has more than its limit of bytes waiting, is dropped and counted; the protocol
 * repeats what matters. Messages to one node keep their order as long as the connection lives.
 */
public interface PeerLinks extends AutoCloseable {
    /** Queues a message; it leaves with the next {@link #flush}. */
    void send(int to, PeerMessage message);

    /** Sends what is queued. Called once at the end of each turn. */
    void flush();

    /** Names this process to the others; random, not 0. */
    long incarnation();

    /** Whether a connection to the node is up. */
    boolean connected(int node);

    @Override
    void close();

    /** Where messages arrive. All calls on the data loop. */
    interface Receiver {
        /**
         * A message arrived.
         *
         * @param from node number, or from {@link #FIRST_AGENT} on the number of a connection that
         *     is not a node's
         */
        void received(int from, PeerMessage message);

        /** No more messages wait at the moment: the end of a turn. */
        void turnEnded();

        /**
         * A connection came up. Messages sent before may be lost.
         *
         * @param incarnation of the process at the other end, not 0; another one than before means
         *     that the node was restarted and its clients are gone
         */
        void connected(int from, long incarnation);

        /** The connection is gone; replies to it are dropped. */
        void disconnected(int from);
    }

    /** Connections of attach agents are numbered from here. */
    int FIRST_AGENT = 1 << 20;
}
