package io.holdfast.proto.peer;

/**
 * Everything that travels between nodes (and between an attach agent and nodes).
 *
 * <table>
 * <caption>Who says what to whom</caption>
 * <tr><td>{@link ReplicaMessage}</td><td>replica to replica of the same shard</td></tr>
 * <tr><td>{@link ScrubMessage}</td><td>node to node, about their replicas of the same shard</td></tr>
 * <tr><td>{@link ClientRequest}</td><td>volume client to the shard's leader</td></tr>
 * <tr><td>{@link ClientReply}</td><td>leader (or any replica, to say who leads) to the client</td></tr>
 * </table>
 *
 * A message may be lost, repeated or overtaken, and never altered: the transport sees to that.
 */
public sealed interface PeerMessage
        permits ReplicaMessage, ScrubMessage, ClientRequest, ClientReply {
    /** The shard that the message is about. */
    ShardId shard();
}
