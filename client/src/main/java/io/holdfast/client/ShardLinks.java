package io.holdfast.client;

import io.holdfast.proto.peer.ClientRequest;

/**
 * How a volume client reaches the nodes. In a node, requests to itself go to its own replica
 * without a wire. Everything on one thread.
 *
 * <p>{@link #send} never blocks or throws; a request may be lost, repeated or overtaken, and so may
 * its reply. The client repeats what is unanswered.
 */
public interface ShardLinks {
    /** Sends a request to a node. */
    void send(int node, ClientRequest request);

    /** Whether messages have a chance to reach the node now. */
    boolean connected(int node);
}
