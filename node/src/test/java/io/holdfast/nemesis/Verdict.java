package io.holdfast.nemesis;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** What a run saw, and the first promise that was broken. Thread-safe. */
final class Verdict {
    /** A broken promise, and what it takes to understand it. */
    record Violation(String promise, String what, List<String> details) {}

    private final Map<String, Long> operations = new TreeMap<>();
    private final Map<String, Long> writesDone = new TreeMap<>();
    private final Map<String, Long> faults = new TreeMap<>();
    private final Map<String, Long> notes = new TreeMap<>();
    private long worstAnswerNanos;
    private long worstFairStallNanos;
    private @Nullable Violation violation;

    synchronized void operation(Operation operation) {
        String outcome =
                switch (operation.state) {
                    case DONE -> "done";
                    case FAILED -> NbdSession.errorName(operation.error);
                    case HUNG_UP -> "hung up";
                    case UNKNOWN -> "no answer";
                    case PENDING -> "pending";
                };
        operations.merge(operation.kind + " " + outcome, 1L, Long::sum);
        if (operation.state == Operation.State.DONE) {
            if (operation.kind == Operation.Kind.WRITE) {
                writesDone.merge(operation.client, 1L, Long::sum);
            }
            worstAnswerNanos =
                    Math.max(worstAnswerNanos, operation.endedNanos - operation.beganNanos);
        }
    }

    /** For how long a request did not end although it should have. */
    synchronized void fairStall(long nanos) {
        worstFairStallNanos = Math.max(worstFairStallNanos, nanos);
    }

    synchronized void fault(String kind) {
        faults.merge(kind, 1L, Long::sum);
    }

    synchronized void note(String what, long count) {
        notes.merge(what, count, Long::sum);
    }

    /** Only the first counts: what follows may come of it. */
    synchronized void violation(String promise, String what, List<String> details) {
        if (violation == null) {
            violation = new Violation(promise, what, new ArrayList<>(details));
        }
    }

    synchronized @Nullable Violation violation() {
        return violation;
    }

    synchronized Map<String, Long> operations() {
        return new TreeMap<>(operations);
    }

    /** Writes that were done, by client; none for a client without any. */
    synchronized Map<String, Long> writesDone() {
        return new TreeMap<>(writesDone);
    }

    /** Which of these clients have no more writes done than at {@code before}. */
    List<String> withoutWrite(List<String> clients, Map<String, Long> before) {
        Map<String, Long> now = writesDone();
        return clients.stream()
                .filter(client -> now.getOrDefault(client, 0L) <= before.getOrDefault(client, 0L))
                .toList();
    }

    synchronized Map<String, Long> faults() {
        return new TreeMap<>(faults);
    }

    synchronized Map<String, Long> notes() {
        return new TreeMap<>(notes);
    }

    synchronized long total() {
        return operations.values().stream().mapToLong(Long::longValue).sum();
    }

    synchronized double worstAnswerSeconds() {
        return worstAnswerNanos / 1e9;
    }

    synchronized double worstFairStallSeconds() {
        return worstFairStallNanos / 1e9;
    }
}
