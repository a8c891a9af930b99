package io.holdfast.nemesis;

import static io.holdfast.proto.nbd.NbdProtocol.NBD_EINVAL;
import static io.holdfast.proto.nbd.NbdProtocol.NBD_EIO;
import static io.holdfast.proto.nbd.NbdProtocol.NBD_ENOSPC;
import static io.holdfast.proto.nbd.NbdProtocol.NBD_EPERM;

import java.util.Optional;

/**
 * Which promise the end of a request breaks, if any. Requests that wait too long, and those that
 * fail although nothing was wrong: a server that fails everything at once is not a good one.
 *
 * <p>On an <b>exclusive</b> volume EPERM, EIO and a connection that is closed also mean that the
 * node was taken for dead and another took its claim. What the client knows of that: once a write
 * of this connection was done, the node had the claim; it cannot have lost it while it was fair
 * ever since. Before, the node may still act for an older connection, which has been fenced.
 *
 * <p>Thread-safe.
 */
final class Judge {
    /**
     * With a healthy majority every request ends within this time; see {@link Weather} for what is
     * asked of a node whose surroundings change. A failover takes one or two seconds; the rest is
     * for a machine whose processors are shared: with a load of 20 on two of them 20 s were seen,
     * and nodes that took a minute to start.
     */
    static final long BOUND_NANOS = 30_000_000_000L;

    /** A leader looks at its disk at each tick; it says no for a moment after there is room. */
    static final long ROOM_NANOS = 2_000_000_000L;

    /** Of a connection through which no write has been done. */
    static final long NO_PROOF = Long.MAX_VALUE;

    /** A broken promise. */
    record Broken(String promise, String what) {}

    private final Weather weather;

    Judge(Weather weather) {
        this.weather = weather;
    }

    /**
     * Judges a request that has ended.
     *
     * @param exclusive whether the volume is
     * @param connectedNanos when the client began to open the connection
     * @param provenNanos when the client began the newest write that was done through the
     *     connection before the request ended; or {@link #NO_PROOF}
     */
    Optional<Broken> broken(
            Operation operation, boolean exclusive, long connectedNanos, long provenNanos) {
        long fair = fairNanos(operation);
        if (fair > BOUND_NANOS) {
            return Optional.of(
                    new Broken(
                            "P6, P10: a request ends in time",
                            "with a healthy majority a request through node%d did not end in %.1f s"
                                    .formatted(operation.node, fair / 1e9)));
        }
        return switch (operation.state) {
            case FAILED -> failed(operation, exclusive, provenNanos);
            case HUNG_UP -> hungUp(operation, exclusive, connectedNanos, provenNanos);
            // Done; or the client's choice, and in time.
            case DONE, UNKNOWN, PENDING -> Optional.empty();
        };
    }

    /** For how long the request should have ended and did not. */
    long fairNanos(Operation operation) {
        return weather.longestFairNanos(operation.node, operation.beganNanos, operation.endedNanos);
    }

    private Optional<Broken> failed(Operation operation, boolean exclusive, long provenNanos) {
        int error = operation.error;
        if (error == NBD_EINVAL || (error == NBD_EPERM && !exclusive)) {
            return Optional.of(
                    new Broken(
                            "NBD: errors mean what they say",
                            "a request that is well-formed and allowed was refused"));
        }
        if (error == NBD_ENOSPC) {
            return wasFair(operation, operation.beganNanos)
                            && weather.hadRoom(
                                    operation.beganNanos - ROOM_NANOS, operation.endedNanos)
                    ? Optional.of(
                            new Broken(
                                    "P9: a full disk gives ENOSPC",
                                    "a request failed with ENOSPC, and no disk was full"))
                    : Optional.empty();
        }
        boolean fencing = exclusive && (error == NBD_EIO || error == NBD_EPERM);
        return wasFair(operation, fencing ? provenNanos : operation.beganNanos)
                ? Optional.of(
                        new Broken(
                                "P6: what can be served does not fail",
                                "with a healthy majority a request through node%d failed with %s"
                                        .formatted(operation.node, NbdSession.errorName(error))))
                : Optional.empty();
    }

    /** A connection that has been through foul weather may be given up long after it. */
    private Optional<Broken> hungUp(
            Operation operation, boolean exclusive, long connectedNanos, long provenNanos) {
        boolean fair =
                wasFair(operation, connectedNanos)
                        && (!exclusive || wasFair(operation, provenNanos));
        return fair
                ? Optional.of(
                        new Broken(
                                "P6: what can be served does not fail",
                                "with a healthy majority node%d closed a connection with requests"
                                        .formatted(operation.node)))
                : Optional.empty();
    }

    private boolean wasFair(Operation operation, long since) {
        return since != NO_PROOF
                && weather.wasFair(
                        operation.node,
                        Math.min(since, operation.beganNanos),
                        operation.endedNanos);
    }
}
