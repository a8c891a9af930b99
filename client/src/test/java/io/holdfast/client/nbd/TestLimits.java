package io.holdfast.client.nbd;

import io.holdfast.client.nbd.NbdLimits.Payloads;
import java.time.Duration;

/** Limits that tests change; the others are the usual ones. */
final class TestLimits {
    private static final NbdLimits USUAL = NbdLimits.DEFAULT;

    private TestLimits() {}

    static NbdLimits ofServer(int connections, Duration grace, Payloads payloads) {
        return of(
                connections,
                USUAL.maxRequestsInFlight(),
                USUAL.maxBytesInFlight(),
                grace,
                payloads);
    }

    static NbdLimits ofConnection(int requests, long bytes, Duration grace) {
        return of(USUAL.maxConnections(), requests, bytes, grace, USUAL.payloads());
    }

    private static NbdLimits of(
            int connections, int requests, long bytes, Duration grace, Payloads payloads) {
        return new NbdLimits(
                connections,
                USUAL.handshakeTimeout(),
                USUAL.maxOptions(),
                USUAL.maxOptionBytes(),
                USUAL.maxDrainedBytes(),
                requests,
                bytes,
                USUAL.outboundHighBytes(),
                grace,
                payloads);
    }
}
