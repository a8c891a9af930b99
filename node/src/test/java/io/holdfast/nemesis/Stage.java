package io.holdfast.nemesis;

import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/** What all clients of a run share. Thread-safe. */
final class Stage {
    /**
     * With a healthy majority every request ends within this time; see {@link Weather} for what is
     * asked of a node whose surroundings change. A failover takes one or two seconds; the rest is
     * for a machine whose processors are shared: with a load of 20 on two of them 20 s were seen,
     * and nodes that took a minute to start.
     */
    static final long BOUND_NANOS = 30_000_000_000L;

    /** The volumes' time-out, above the bound: a request must not fail when it could be served. */
    static final int VOLUME_TIMEOUT_SECONDS = 40;

    final List<Endpoint> endpoints;
    final Weather weather;
    final Verdict verdict;
    final Gate gate;
    private final AtomicLong nextValue = new AtomicLong(1);
    private final AtomicInteger nextConnection = new AtomicInteger(1);

    Stage(List<Endpoint> endpoints, Weather weather, Verdict verdict, Gate gate) {
        this.endpoints = List.copyOf(endpoints);
        this.weather = weather;
        this.verdict = verdict;
        this.gate = gate;
    }

    Endpoint endpoint(int node) {
        return endpoints.get(node - 1);
    }

    /** The first of {@code count} values that nobody has written. */
    long newValues(int count) {
        return nextValue.getAndAdd(count);
    }

    int newConnection() {
        return nextConnection.getAndIncrement();
    }

    /**
     * A request has ended, or its client has given up: counts it, and asks if that came in time.
     */
    void ended(Operation operation, VolumeHistory history) {
        verdict.operation(operation);
        long fair =
                weather.longestFairNanos(
                        operation.node, operation.beganNanos, operation.endedNanos);
        verdict.fairStall(fair);
        if (fair > BOUND_NANOS) {
            verdict.violation(
                    "P6, P10: a request ends in time",
                    "with a healthy majority a request to %s did not end in %.1f s"
                            .formatted(history.volume, fair / 1e9),
                    List.of(history.describe(operation)));
        }
    }
}
