package io.holdfast.node.replica;

/**
 * Times of the replication protocol, in nanoseconds.
 *
 * @param tickNanos how often the driver ticks
 * @param heartbeatNanos how often a leader says that it lives
 * @param silenceNanos without a leader's word for this long, a follower campaigns
 * @param pausedNanos the same while the link to the leader's node stands: a process that was killed
 *     loses its links at once, so this one is paused or starved, and may be back before a new
 *     leader would serve
 * @param staggerNanos added to the silence per place in the campaign order, so that followers do
 *     not campaign at once
 * @param leaseNanos how long a leader reads alone after the sending of a heartbeat that a majority
 *     acknowledged
 * @param guardNanos how long a replica gives no promise after it acknowledged a heartbeat: longer
 *     than {@code leaseNanos} by the drift margin
 */
public record Timing(
        long tickNanos,
        long heartbeatNanos,
        long silenceNanos,
        long pausedNanos,
        long staggerNanos,
        long leaseNanos,
        long guardNanos) {
    private static final long MS = 1_000_000;

    /** Defaults of design section 8, for promise P10. */
    public static final Timing DEFAULT =
            new Timing(20 * MS, 100 * MS, 300 * MS, 600 * MS, 100 * MS, 250 * MS, 290 * MS);

    public Timing {
        if (leaseNanos >= guardNanos
                || guardNanos > silenceNanos
                || silenceNanos > pausedNanos
                || heartbeatNanos >= leaseNanos) {
            throw new IllegalArgumentException(
                    "needs heartbeat < lease < guard <= silence <= paused, got "
                            + heartbeatNanos
                            + ", "
                            + leaseNanos
                            + ", "
                            + guardNanos
                            + ", "
                            + silenceNanos
                            + ", "
                            + pausedNanos);
        }
    }
}
