package io.holdfast.proto.peer;

/**
 * What a volume client asks of a shard's leader. (client, request) names the request towards the
 * connection that it came from; (session, request) names it for exactly-once, through any
 * connection. A client repeats a request under the same number until it is answered.
 */
public sealed interface ClientRequest extends PeerMessage {
    /** Number of the volume client within its process; only echoed in the reply. */
    int client();

    /** Number of the request within its client, from 1, rising. */
    long request();

    /**
     * The same request with what is settled by now; requests without a low water stay as they are.
     */
    default ClientRequest withLowWater(long lowWater) {
        return this;
    }

    /**
     * Opens a session. With {@code session == 0} the shard (index 0 of the volume) grants a number
     * that was never granted before; the other shards are told the number granted there.
     */
    record OpenSession(ShardId shard, int client, long request, int session)
            implements ClientRequest {}

    /**
     * Ends a session: everything of it that is still under way somewhere is refused from now on.
     */
    record CloseSession(ShardId shard, int client, long request, int session)
            implements ClientRequest {}

    /**
     * Claims an exclusive volume for {@code identity}.
     *
     * @param session the first one of the attachment that claims; it orders a client's attachments
     * @param generation 0: the shard (index 0) grants the next one, unless a newer attachment of
     *     the same client has claimed before; else the generation granted there, told to another
     *     shard, or to index 0 to learn whether it still stands
     * @param force end another's claim first: whoever asks is sure that it is dead
     */
    record Claim(
            ShardId shard,
            int client,
            long request,
            int session,
            String identity,
            long generation,
            boolean force)
            implements ClientRequest {}

    /** Ends the claim with this generation; no error if it has ended already. */
    record Release(ShardId shard, int client, long request, int session, long generation)
            implements ClientRequest {}

    /**
     * Writes sealed blocks.
     *
     * @param lowWater all requests of the session below this are settled at the client and must not
     *     run any more
     * @param generation of the claim, 0 for a shared volume
     * @param expectedSequence {@link #UNCONDITIONAL}, or the write (of one block) happens only if
     *     this is still the block's sequence (0: never written)
     * @param fua answer only when a majority has synced it
     */
    record Write(
            ShardId shard,
            int client,
            long request,
            int session,
            long lowWater,
            long generation,
            int layer,
            long block,
            int count,
            Nonce nonce,
            long expectedSequence,
            boolean fua,
            byte[] payload)
            implements ClientRequest {
        @Override
        public Write withLowWater(long newLowWater) {
            return new Write(
                    shard,
                    client,
                    request,
                    session,
                    newLowWater,
                    generation,
                    layer,
                    block,
                    count,
                    nonce,
                    expectedSequence,
                    fua,
                    payload);
        }
    }

    /** Zeroes blocks; {@code trim} says that their space is not needed. */
    record Zero(
            ShardId shard,
            int client,
            long request,
            int session,
            long lowWater,
            long generation,
            int layer,
            long block,
            int count,
            boolean trim,
            boolean fua)
            implements ClientRequest {
        @Override
        public Zero withLowWater(long newLowWater) {
            return new Zero(
                    shard,
                    client,
                    request,
                    session,
                    newLowWater,
                    generation,
                    layer,
                    block,
                    count,
                    trim,
                    fua);
        }
    }

    /** Answered when a majority has synced everything acknowledged before it. */
    record Flush(ShardId shard, int client, long request, int session) implements ClientRequest {}

    /**
     * Reads {@code count} blocks; needs no session.
     *
     * @param copy {@link #OWN_COPY}: the leader's own; else the node whose copy of the (one) block
     *     is wanted, because the others that were read are corrupt (promise P8)
     */
    record Read(ShardId shard, int client, long request, int layer, long block, int count, int copy)
            implements ClientRequest {}

    /** Who holds the volume? Answered by the leader with {@link ClientReply.Holder}. */
    record AskHolder(ShardId shard, int client, long request) implements ClientRequest {}

    /** A read of what the leader has itself. */
    int OWN_COPY = 0;

    /** No condition on a write. */
    long UNCONDITIONAL = -1;
}
