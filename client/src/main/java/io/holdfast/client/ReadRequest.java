package io.holdfast.client;

import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ClientRequest;

/** A read of blocks in a row, whatever is done with them. */
abstract class ReadRequest extends Request {
    private final VolumeClient client;
    private final long first;
    private final int count;
    private final int copy;

    /**
     * A read that has not begun.
     *
     * @param copy {@link ClientRequest#OWN_COPY}, or the node whose copy of one block is wanted
     */
    ReadRequest(
            VolumeClient client,
            ShardChannel channel,
            long deadlineNanos,
            long first,
            int count,
            int copy) {
        super(channel, deadlineNanos);
        this.client = client;
        this.first = first;
        this.count = count;
        this.copy = copy;
    }

    @Override
    final boolean sequenced() {
        return false;
    }

    @Override
    final int sizeBytes() {
        return count * Blocks.SEALED_SIZE;
    }

    @Override
    final ClientRequest make(long newNumber, long lowWater) {
        return new ClientRequest.Read(
                channel.id, client.number(), newNumber, client.layer(), first, count, copy);
    }

    @Override
    final boolean accepts(ClientReply reply) {
        return VolumeClient.isAnswer(reply, first, count);
    }
}
