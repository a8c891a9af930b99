package io.holdfast.client.nbd;

import io.holdfast.proto.nbd.NbdProtocol;
import java.time.Duration;

/**
 * What a peer may cost at most. Memory per connection is bounded by {@code maxBytesInFlight} plus
 * one request, {@code outboundHighBytes} plus one reply, and one receive buffer.
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
        Duration shutdownGrace) {

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
                    Duration.ofSeconds(10));

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
