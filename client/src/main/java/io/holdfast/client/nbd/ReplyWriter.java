package io.holdfast.client.nbd;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelOutboundBuffer;
import org.jspecify.annotations.Nullable;

/**
 * Gathers what one connection sends, so that a burst of replies costs one system call: short pieces
 * are copied into one buffer, long ones are passed on as they are. {@link #flush} is due at the end
 * of a read burst; a reply outside of one schedules it for the end of the loop's turn.
 *
 * <p>Also keeps the data of READs charged to the budget until the client has taken them. Usually
 * the socket takes everything at once, which {@link #flush} sees. If not, an empty buffer goes
 * after what waits: when that is "sent", all before it was taken.
 */
final class ReplyWriter {
    /** From this length on data is gathered instead of copied, bytes (measured). */
    static final int COPY_LIMIT = 32 << 10;

    /** Size of a burst buffer, bytes; the largest that Netty's thread-local caches keep. */
    private static final int BURST_SIZE = 32 << 10;

    /**
     * Replies beyond the data in the budget that may wait for the client, bytes; then nothing is
     * parsed. As many simple replies as 4096 requests get.
     */
    static final int PLAIN_LIMIT = 64 << 10;

    private final Channel channel;
    private final PayloadBudget budget;
    private final Runnable onUnclogged;
    private final Runnable scheduledFlush = this::onScheduledFlush;
    private @Nullable ByteBuf burst;
    private boolean reading;
    private boolean flushScheduled;

    /** Something was written to the channel since its last flush. */
    private boolean dirty;

    /** Everything ever given to the channel. */
    private long handedBytes;

    /** Given to the channel and not known to be taken, of which {@link #owed} is in the budget. */
    private long unsentBytes;

    private long owedSmall;
    private long owedLarge;

    /** Stays until a settlement ends it, so that whoever stopped for it hears of the end. */
    private boolean clogged;

    /** A mark is on its way, and what these counts were when it was written. */
    private boolean marked;

    private long markedBytes;
    private long markedSmall;
    private long markedLarge;

    /** The client was seen to leave data waiting; the rest is how it did since. */
    private boolean watched;

    private long mostTaken;
    private long movedNanos;
    private long windowTaken;
    private long windowNanos;

    /**
     * @param onUnclogged called when {@link #clogged} has ended
     */
    ReplyWriter(Channel channel, PayloadBudget budget, Runnable onUnclogged) {
        this.channel = channel;
        this.budget = budget;
        this.onUnclogged = onUnclogged;
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
        write(data);
        scheduleFlush();
    }

    /**
     * The {@code bytes} that the next data took from the budget go back once these are sent. Called
     * before the data are passed on.
     */
    void owe(long bytes) {
        if (budget.pool(bytes) == budget.small()) {
            owedSmall += bytes;
        } else {
            owedLarge += bytes;
        }
    }

    /** Whether too many replies wait that no budget bounds. */
    boolean clogged() {
        return clogged;
    }

    /**
     * Says what is wrong with a client that leaves data waiting, or null if nothing is. Called once
     * in a while.
     */
    @Nullable String slowness(long nowNanos, NbdLimits.Payloads limits) {
        ChannelOutboundBuffer pending = channel.unsafe().outboundBuffer();
        if (owed() == 0 || pending == null) {
            watched = false;
            return null;
        }
        long taken = handedBytes - pending.totalPendingWriteBytes() + pending.currentProgress();
        if (!watched) {
            watched = true;
            mostTaken = taken;
            movedNanos = nowNanos;
            windowTaken = taken;
            windowNanos = nowNanos;
            return null;
        }
        if (taken > mostTaken) {
            mostTaken = taken;
            movedNanos = nowNanos;
        }
        if (nowNanos - movedNanos >= limits.stallLimit().toNanos()) {
            return "took nothing for %d ms of %d bytes of data that wait for it"
                    .formatted(limits.stallLimit().toMillis(), owed());
        }
        long window = nowNanos - windowNanos;
        if (window < limits.pressureGrace().toNanos()) {
            return null;
        }
        long moved = taken - windowTaken;
        windowTaken = taken;
        windowNanos = nowNanos;
        return pressed() && limits.tooSlow(owed(), moved, window)
                ? "took %d bytes in %d ms of %d bytes of data, and others wait"
                        .formatted(moved, window / 1_000_000, owed())
                : null;
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
            settle();
        }
    }

    /** Drops what is not handed to the channel yet; the client is gone. */
    void release() {
        ByteBuf current = burst;
        if (current != null) {
            burst = null;
            current.release();
        }
        settled(unsentBytes, owedSmall, owedLarge);
    }

    private void scheduleFlush() {
        if (!reading && !flushScheduled) {
            flushScheduled = true;
            channel.eventLoop().execute(scheduledFlush);
        }
    }

    private void writeBurst(ByteBuf current) {
        burst = null;
        write(current);
    }

    private void write(ByteBuf data) {
        dirty = true;
        int bytes = data.readableBytes();
        handedBytes += bytes;
        unsentBytes += bytes;
        clogged |= unsentBytes - owed() >= PLAIN_LIMIT;
        var _ = channel.write(data, channel.voidPromise());
    }

    /**
     * Finds out what the socket took, after a flush. The flush may have made the client's next
     * requests run and reply; then their flush comes here again.
     */
    private void settle() {
        if (dirty || burst != null) {
            return;
        }
        ChannelOutboundBuffer pending = channel.unsafe().outboundBuffer();
        if (pending == null || pending.isEmpty()) {
            watched = false;
            settled(unsentBytes, owedSmall, owedLarge);
        } else if (!marked) {
            marked = true;
            markedBytes = unsentBytes;
            markedSmall = owedSmall;
            markedLarge = owedLarge;
            channel.writeAndFlush(Unpooled.EMPTY_BUFFER)
                    .addListener(sent -> onMark(sent.isSuccess()));
        }
    }

    /** If the mark failed the channel is closed, and {@link #release} gives everything back. */
    private void onMark(boolean sent) {
        marked = false;
        if (sent) {
            settled(markedBytes, markedSmall, markedLarge);
            settle();
        }
    }

    private void settled(long bytes, long small, long large) {
        unsentBytes -= bytes;
        owedSmall -= small;
        owedLarge -= large;
        // What was settled while a mark was on its way must not be settled by it once more.
        markedBytes = Math.max(0, markedBytes - bytes);
        markedSmall = Math.max(0, markedSmall - small);
        markedLarge = Math.max(0, markedLarge - large);
        if (small > 0) {
            budget.small().release(small);
        }
        if (large > 0) {
            budget.large().release(large);
        }
        if (clogged && unsentBytes - owed() < PLAIN_LIMIT) {
            clogged = false;
            onUnclogged.run();
        }
    }

    private long owed() {
        return owedSmall + owedLarge;
    }

    private boolean pressed() {
        return (owedSmall > 0 && budget.small().pressed())
                || (owedLarge > 0 && budget.large().pressed());
    }

    private void onScheduledFlush() {
        flushScheduled = false;
        flush();
    }
}
