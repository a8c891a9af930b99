package io.holdfast.client.nbd;

import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import org.jspecify.annotations.Nullable;

/**
 * Gathers what one connection sends, so that a burst of replies costs one system call: short pieces
 * are copied into one buffer, long ones are passed on as they are. {@link #flush} is due at the end
 * of a read burst; a reply outside of one schedules it for the end of the loop's turn.
 */
final class ReplyWriter {
    /** From this length on data is gathered instead of copied, bytes (measured). */
    static final int COPY_LIMIT = 32 << 10;

    /** Size of a burst buffer, bytes; the largest that Netty's thread-local caches keep. */
    private static final int BURST_SIZE = 32 << 10;

    private final Channel channel;
    private final Runnable scheduledFlush = this::onScheduledFlush;
    private @Nullable ByteBuf burst;
    private boolean reading;
    private boolean flushScheduled;

    /** Something was written to the channel since its last flush. */
    private boolean dirty;

    ReplyWriter(Channel channel) {
        this.channel = channel;
    }

    /** A read burst begins: its end will flush. */
    void onReadStart() {
        reading = true;
    }

    /** The read burst is over. */
    void onReadEnd() {
        reading = false;
        flush();
    }

    /** Returns the buffer to append up to {@code bytes} to, before any other call. */
    ByteBuf room(int bytes) {
        ByteBuf current = burst;
        if (current != null && current.writableBytes() < bytes) {
            writeBurst(current);
            current = null;
        }
        if (current == null) {
            current = channel.alloc().directBuffer(Math.max(BURST_SIZE, bytes));
            burst = current;
        }
        scheduleFlush();
        return current;
    }

    /** Sends {@code data} after what was appended so far, and takes it over. */
    void gather(ByteBuf data) {
        ByteBuf current = burst;
        if (current != null) {
            writeBurst(current);
        }
        dirty = true;
        var _ = channel.write(data, channel.voidPromise());
        scheduleFlush();
    }

    /** Hands everything to the socket. */
    void flush() {
        ByteBuf current = burst;
        if (current != null) {
            writeBurst(current);
        }
        if (dirty) {
            dirty = false;
            channel.flush();
        }
    }

    /** Drops what is not handed to the channel yet; the client is gone. */
    void release() {
        ByteBuf current = burst;
        if (current != null) {
            burst = null;
            current.release();
        }
    }

    private void scheduleFlush() {
        if (!reading && !flushScheduled) {
            flushScheduled = true;
            channel.eventLoop().execute(scheduledFlush);
        }
    }

    private void writeBurst(ByteBuf current) {
        burst = null;
        dirty = true;
        var _ = channel.write(current, channel.voidPromise());
    }

    private void onScheduledFlush() {
        flushScheduled = false;
        flush();
    }
}
