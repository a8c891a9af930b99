package io.holdfast.node.peer;

import io.holdfast.proto.peer.MalformedException;
import io.holdfast.proto.peer.PeerCodec;
import io.holdfast.proto.peer.PeerMessage;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import org.jspecify.annotations.Nullable;

/**
 * Cuts a stream of bytes into messages. Frames that lie whole in one read are decoded where they
 * are; only what is left at a read's end is copied. A length field reserves no memory: the buffer
 * of an unfinished frame grows with the bytes that arrive, to {@link PeerCodec#MAX_FRAME} at most.
 *
 * <p>One per connection; not thread-safe. {@link #close} frees the unfinished frame.
 */
final class FrameParser {
    /** First size of the buffer of an unfinished frame. */
    private static final int PARTIAL_BYTES = 16 << 10;

    private final ByteBufAllocator allocator;
    private @Nullable ByteBuf partial;

    FrameParser(ByteBufAllocator allocator) {
        this.allocator = allocator;
    }

    /**
     * The next message that is whole.
     *
     * @param in bytes of the stream, in order; what is used is skipped. Call again with the same
     *     buffer until null comes back, then with the next one.
     * @return null: all of {@code in} is used up
     * @throws MalformedException the stream is broken; no further call
     */
    @Nullable PeerMessage next(ByteBuf in) {
        if (partial != null) {
            return continued(in, partial);
        }
        while (in.readableBytes() >= PeerCodec.LENGTH_SIZE) {
            int length = in.getInt(in.readerIndex());
            if (length == 0) {
                in.skipBytes(PeerCodec.LENGTH_SIZE);
                continue;
            }
            int size = PeerCodec.frameSize(length);
            if (in.readableBytes() >= size) {
                return decode(in, size);
            }
            break;
        }
        if (in.isReadable()) {
            partial = allocator.directBuffer(PARTIAL_BYTES, PeerCodec.MAX_FRAME);
            partial.writeBytes(in);
        }
        return null;
    }

    private @Nullable PeerMessage continued(ByteBuf in, ByteBuf begun) {
        take(in, begun, PeerCodec.LENGTH_SIZE);
        if (begun.readableBytes() < PeerCodec.LENGTH_SIZE) {
            return null;
        }
        int length = begun.getInt(0);
        int size = length == 0 ? PeerCodec.LENGTH_SIZE : PeerCodec.frameSize(length);
        take(in, begun, size);
        if (begun.readableBytes() < size) {
            return null;
        }
        try {
            partial = null;
            return length == 0 ? next(in) : decode(begun, size);
        } finally {
            begun.release();
        }
    }

    private static PeerMessage decode(ByteBuf in, int size) {
        int end = in.readerIndex() + size;
        PeerMessage message = PeerCodec.decode(in);
        if (in.readerIndex() != end) {
            throw new IllegalStateException("frame ends at " + in.readerIndex() + ", not " + end);
        }
        return message;
    }

    private static void take(ByteBuf from, ByteBuf to, int size) {
        int missing = size - to.readableBytes();
        if (missing > 0) {
            to.writeBytes(from, Math.min(missing, from.readableBytes()));
        }
    }

    void close() {
        if (partial != null) {
            partial.release();
            partial = null;
        }
    }
}
