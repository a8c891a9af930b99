package io.holdfast.node.runtime;

import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ShardId;

/** The volume clients inside this node. All calls on the data loop. */
public interface LocalClients {
    /**
     * A reply arrived.
     *
     * @param from node that sent it
     */
    void onReply(int from, ClientReply reply);

    /**
     * A replica of this node has learned who leads its shard.
     *
     * @param leader node number, 0: nobody at the moment
     * @param epoch in which it leads
     */
    void onLeader(ShardId shard, int leader, long epoch);

    /** Requests have a chance to reach the node from now on. */
    void onConnected(int node);

    /** Requests can no longer reach the node; those under way may be lost. */
    void onDisconnected(int node);
}
