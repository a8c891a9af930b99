package io.holdfast.node.runtime;

import io.holdfast.node.runtime.DataLoop.CatchUpRates;

/**
 * How fast this node brings followers forward, all together: a bucket of bytes that time fills, and
 * more slowly while clients use this node's replicas. Clients come first, but there is always a
 * rate, so that every catch-up ends.
 *
 * <p>A follower that catches up by entries has to take in what clients write meanwhile as well, in
 * the log's order. So what clients write is earned on top, for entries only: without it a limit
 * below the clients' rate would leave the follower ever further behind.
 *
 * <p>Knows no clock; owned by the data loop.
 */
final class CatchUpPace {
    /** So much of the rate may be used at once after a pause. Longer than a heartbeat's period. */
    static final long BURST_NANOS = 200_000_000L;

    /** What a part of a catch-up by extents takes at the rate, so that parts come evenly. */
    private static final long PART_NANOS = 100_000_000L;

    static final int MIN_PART_BYTES = 64 << 10;
    static final int MAX_PART_BYTES = 1 << 20;

    /** Most that is kept of what was earned. */
    static final long MAX_EARNED_BYTES = 32L << 20;

    private static final double NANOS_PER_SECOND = 1e9;

    private final CatchUpRates rates;
    private boolean clients;
    private double tokens;
    private long earned;
    private long filledNanos;

    /** A full bucket. */
    CatchUpPace(CatchUpRates rates, long nowNanos) {
        this.rates = rates;
        filledNanos = nowNanos;
        tokens = capacity();
    }

    private long rate() {
        return clients
                ? Math.min(rates.bytesPerSecondWithClients(), rates.bytesPerSecond())
                : rates.bytesPerSecond();
    }

    private double capacity() {
        // Never so small that no frame fits in.
        return Math.max(rate() * (BURST_NANOS / NANOS_PER_SECOND), 2.0 * MIN_PART_BYTES);
    }

    private void fill(long nowNanos) {
        double grown = (nowNanos - filledNanos) * (rate() / NANOS_PER_SECOND);
        tokens = Math.min(tokens + grown, capacity());
        filledNanos = nowNanos;
    }

    /** Says whether clients use replicas of this node at the moment. */
    void clients(boolean active, long nowNanos) {
        fill(nowNanos);
        clients = active;
        tokens = Math.min(tokens, capacity());
    }

    /** How long until something may be sent; 0: now. */
    long waitNanos(long nowNanos) {
        fill(nowNanos);
        return tokens > 0 ? 0 : 1 + (long) Math.ceil(-tokens * NANOS_PER_SECOND / rate());
    }

    /** Size of a part that is sent at once. */
    int partBytes() {
        double bytes = rate() * (PART_NANOS / NANOS_PER_SECOND);
        return (int) Math.clamp(bytes, MIN_PART_BYTES, MAX_PART_BYTES);
    }

    /** Takes bytes that are being sent; may leave a debt. */
    void take(long bytes) {
        tokens -= bytes;
    }

    /** Gives back what turned out to be less. */
    void giveBack(long bytes) {
        tokens += bytes;
    }

    /**
     * How many bytes of entries may be sent now; 0 until there are enough to be worth a frame. At
     * most {@link Integer#MAX_VALUE}.
     */
    int entriesBytes(long nowNanos) {
        fill(nowNanos);
        double there = tokens + earned;
        return there < MIN_PART_BYTES ? 0 : (int) Math.min(there, Integer.MAX_VALUE);
    }

    /** Takes bytes of entries that are sent, those that were earned first. */
    void takeEntries(long bytes) {
        long fromEarned = Math.min(earned, bytes);
        earned -= fromEarned;
        tokens -= bytes - fromEarned;
    }

    /** Clients have written bytes that a follower catching up by entries has to take in, too. */
    void earn(long bytes) {
        earned = Math.min(earned + bytes, MAX_EARNED_BYTES);
    }
}
