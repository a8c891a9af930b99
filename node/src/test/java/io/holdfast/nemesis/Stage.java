package io.holdfast.nemesis;

import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/** What all clients of a run share. Thread-safe. */
final class Stage {
    /**
     * The volumes' time-out, above {@link Judge#BOUND_NANOS}: a request must not fail when it could
     * be served.
     */
    static final int VOLUME_TIMEOUT_SECONDS = 40;

    final List<Endpoint> endpoints;
    final Judge judge;
    final Verdict verdict;
    final Gate gate;
    private final AtomicLong nextValue = new AtomicLong(1);
    private final AtomicInteger nextConnection = new AtomicInteger(1);

    Stage(List<Endpoint> endpoints, Judge judge, Verdict verdict, Gate gate) {
        this.endpoints = List.copyOf(endpoints);
        this.judge = judge;
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
     * A request has ended, or its client has given up: counts it, and asks if that was right.
     *
     * @see Judge#broken
     */
    void ended(
            Operation operation,
            VolumeHistory history,
            boolean exclusive,
            long connectedNanos,
            long provenNanos) {
        verdict.operation(operation);
        verdict.fairStall(judge.fairNanos(operation));
        judge.broken(operation, exclusive, connectedNanos, provenNanos)
                .ifPresent(broken ->
                        verdict.violation(
                                broken.promise(),
                                "volume %s: %s".formatted(history.volume, broken.what()),
                                List.of(history.describe(operation))));
    }
}
