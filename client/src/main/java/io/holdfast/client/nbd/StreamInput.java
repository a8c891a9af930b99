package io.holdfast.client.nbd;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.util.ArrayDeque;
import org.jspecify.annotations.Nullable;

/**
 * Received bytes that are not used yet, as the buffers in which they came. A connection that stops
 * parsing keeps what it has here; it stops reading too, so that this is one receive buffer or two.
 */
final class StreamInput {
    /** No header that is asked for is longer, bytes. */
    private static final int MAX_HEADER = 32;

    private final ArrayDeque<ByteBuf> buffers = new ArrayDeque<>(2);

    /** Collects a header that is cut by the border between two buffers. */
    private final ByteBuf scratch = Unpooled.buffer(MAX_HEADER, MAX_HEADER);

    /** Takes over {@code buffer}. */
    void add(ByteBuf buffer) {
        buffers.add(buffer);
    }

    /**
     * Returns a buffer whose next {@code size} bytes are the next ones of the stream, or null when
     * fewer have arrived. The caller reads exactly these, before any other call.
     */
    @Nullable ByteBuf header(int size) {
        ByteBuf head = head();
        if (!scratch.isReadable()) {
            if (head == null) {
                return null;
            }
            if (head.readableBytes() >= size) {
                return head;
            }
            scratch.clear();
        }
        while (head != null && scratch.readableBytes() < size) {
            scratch.writeBytes(
                    head, Math.min(head.readableBytes(), size - scratch.readableBytes()));
            head = head();
        }
        return scratch.readableBytes() == size ? scratch : null;
    }

    /** Moves at most {@code limit} bytes, and at most one buffer's, to {@code target}. */
    int transfer(ByteBuf target, int limit) {
        ByteBuf head = head();
        if (head == null) {
            return 0;
        }
        int count = Math.min(head.readableBytes(), limit);
        target.writeBytes(head, count);
        return count;
    }

    /** Drops at most {@code limit} bytes, and at most one buffer's. */
    int skip(long limit) {
        ByteBuf head = head();
        if (head == null) {
            return 0;
        }
        int count = (int) Math.min(head.readableBytes(), limit);
        head.skipBytes(count);
        return count;
    }

    /** Gives buffers that are used up back. */
    void trim() {
        head();
    }

    /** Drops everything. */
    void release() {
        for (ByteBuf buffer = buffers.poll(); buffer != null; buffer = buffers.poll()) {
            buffer.release();
        }
        scratch.clear();
    }

    private @Nullable ByteBuf head() {
        ByteBuf head = buffers.peek();
        while (head != null && !head.isReadable()) {
            buffers.remove().release();
            head = buffers.peek();
        }
        return head;
    }
}
