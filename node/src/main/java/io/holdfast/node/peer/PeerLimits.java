package io.holdfast.node.peer;

/**
 * Bounds of the links. Times in milliseconds, all from 1.
 *
 * @param queuedBytes most bytes waiting on one connection; further messages are dropped
 * @param waiting most accepted connections that have not said hello; the oldest gives way
 * @param agents most agents connected at once
 * @param connectMillis a dial without success is given up
 * @param helloMillis a connection without a whole hello is closed
 * @param pingMillis a connection on which nothing was sent for so long is pinged
 * @param silenceMillis a connection on which nothing arrived for so long is dead; at least twice
 *     {@code pingMillis}
 * @param redialLeastMillis pause before the first redial; doubles up to the next
 * @param redialMostMillis longest pause between dials
 */
public record PeerLimits(
        long queuedBytes,
        int waiting,
        int agents,
        int connectMillis,
        int helloMillis,
        int pingMillis,
        int silenceMillis,
        int redialLeastMillis,
        int redialMostMillis) {
    /** What a node uses. */
    public static final PeerLimits DEFAULT =
            new PeerLimits(64L << 20, 64, 1024, 1000, 3000, 1000, 5000, 50, 1000);

    public PeerLimits {
        if (queuedBytes < 1
                || waiting < 1
                || agents < 0
                || connectMillis < 1
                || helloMillis < 1
                || pingMillis < 1
                || silenceMillis < 2L * pingMillis
                || redialLeastMillis < 1
                || redialMostMillis < redialLeastMillis) {
            throw new IllegalArgumentException("peer limits do not fit each other");
        }
    }
}
