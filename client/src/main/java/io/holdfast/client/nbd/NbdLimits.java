package io.holdfast.client.nbd;

import io.holdfast.proto.nbd.NbdProtocol;
import java.time.Duration;

/**
 * What clients may cost at most. The data of requests is bounded for all connections together, by
 * {@link Payloads#budgetBytes}. Beyond that a connection holds a receive buffer or two, one option
 * of its handshake, and replies without data ({@link ReplyWriter#PLAIN_LIMIT}).
 *
 * @param maxConnections open at once, from 1; further ones are closed at once
 * @param handshakeTimeout from accepting a connection to the transmission phase
 * @param maxOptions options in one handshake, from 1; then the connection is closed
 * @param maxOptionBytes data of one option that is taken in, bytes; more is drained and answered
 *     with NBD_REP_ERR_TOO_BIG
 * @param maxDrainedBytes data drained in one handshake, bytes; then the connection is closed
 * @param maxRequestsInFlight requests of one connection handed to the device at once, from 1;
 *     reading pauses until half are done
 * @param maxBytesInFlight data of these requests, bytes, from 1; likewise. The request that crosses
 *     the limit is still taken, so that the largest payload fits whatever the limit is
 * @param outboundHighBytes replies waiting for the socket at which reading pauses, bytes; it goes
 *     on at half
 * @param shutdownGrace how long {@link NbdServer#close} waits for requests under way
 * @param payloads of all connections together
 */
public record NbdLimits(
        int maxConnections,
        Duration handshakeTimeout,
        int maxOptions,
        int maxOptionBytes,
        long maxDrainedBytes,
        int maxRequestsInFlight,
        long maxBytesInFlight,
        int outboundHighBytes,
        Duration shutdownGrace,
        Payloads payloads) {

    /**
     * What the data of requests may hold, and how slow a client may be that holds some. The rules
     * that mention pressure count only while another request of that class waits for the budget;
     * without pressure, a client on a bad line may take its time.
     *
     * @param budgetBytes data of READs and WRITEs of all connections, from its header until it is
     *     written or the client has taken it, bytes; at least {@link #MIN_BUDGET}. A request that
     *     does not fit waits
     * @param stallLimit a payload of which no byte came for so long ends its connection, and so do
     *     data that wait for a client which took no byte for so long; long, because the client may
     *     be a machine that was suspended
     * @param pressureGrace under pressure, what is younger is not judged
     * @param pressureBytesPerSecond under pressure, a client that sends or takes its data more
     *     slowly loses its connection; from 1
     * @param pressureTime under pressure, so does one that would need longer for all of it
     */
    public record Payloads(
            long budgetBytes,
            Duration stallLimit,
            Duration pressureGrace,
            int pressureBytesPerSecond,
            Duration pressureTime) {

        /** So that the part for large requests takes the largest, bytes. */
        public static final long MIN_BUDGET =
                (long) NbdProtocol.MAX_PAYLOAD
                                * PayloadBudget.SMALL_SHARE
                                / (PayloadBudget.SMALL_SHARE - 1)
                        + 1;

        /** Checks per {@link #pressureGrace}: how late a slow client goes. */
        private static final int CHECKS_PER_GRACE = 4;

        /** The volume clients hold sealed copies, and the rest of a node needs its memory too. */
        private static final int HEAP_SHARE = 4;

        /** For a heap of 1 GiB. */
        public static final Payloads DEFAULT =
                new Payloads(
                        (1L << 30) / HEAP_SHARE,
                        Duration.ofMinutes(10),
                        Duration.ofSeconds(2),
                        64 << 10,
                        Duration.ofSeconds(30));

        public Payloads {
            if (budgetBytes < MIN_BUDGET) {
                throw new IllegalArgumentException(
                        "budgetBytes must be at least %d: %d".formatted(MIN_BUDGET, budgetBytes));
            }
            positive(stallLimit.toMillis(), "stallLimit in ms");
            positive(pressureGrace.toMillis() / CHECKS_PER_GRACE, "a quarter of pressureGrace, ms");
            positive(pressureBytesPerSecond, "pressureBytesPerSecond");
            positive(pressureTime.toMillis(), "pressureTime in ms");
        }

        /**
         * The usual limits with a quarter of the heap as budget, but at least {@link #MIN_BUDGET}.
         *
         * @param heapBytes the most that the heap grows to
         */
        public static Payloads forHeap(long heapBytes) {
            return new Payloads(
                    Math.max(MIN_BUDGET, heapBytes / HEAP_SHARE),
                    DEFAULT.stallLimit,
                    DEFAULT.pressureGrace,
                    DEFAULT.pressureBytesPerSecond,
                    DEFAULT.pressureTime);
        }

        /** How often slow clients are looked for while data are held. */
        Duration checkPeriod() {
            return pressureGrace.dividedBy(CHECKS_PER_GRACE);
        }

        /**
         * Whether a client is too slow while others wait.
         *
         * @param bytes what it is to send or take in all
         * @param movedBytes what it has sent or taken within {@code nanos}
         */
        boolean tooSlow(long bytes, long movedBytes, long nanos) {
            double rate = Math.max(pressureBytesPerSecond, bytes * 1e9 / pressureTime.toNanos());
            return nanos >= pressureGrace.toNanos() && movedBytes < rate * nanos / 1e9;
        }
    }

    /** Limits for a node. */
    public static final NbdLimits DEFAULT =
            new NbdLimits(
                    1024,
                    Duration.ofSeconds(30),
                    1024,
                    64 << 10,
                    256L << 20,
                    256,
                    NbdProtocol.MAX_PAYLOAD,
                    4 << 20,
                    Duration.ofSeconds(10),
                    Payloads.DEFAULT);

    public NbdLimits {
        positive(maxConnections, "maxConnections");
        positive(handshakeTimeout.toMillis(), "handshakeTimeout in ms");
        positive(maxOptions, "maxOptions");
        positive(maxOptionBytes, "maxOptionBytes");
        positive(maxDrainedBytes, "maxDrainedBytes");
        positive(maxRequestsInFlight, "maxRequestsInFlight");
        positive(maxBytesInFlight, "maxBytesInFlight");
        positive(outboundHighBytes, "outboundHighBytes");
        positive(shutdownGrace.toMillis(), "shutdownGrace in ms");
    }

    private static void positive(long value, String name) {
        if (value < 1) {
            throw new IllegalArgumentException(name + " must be at least 1: " + value);
        }
    }
}
