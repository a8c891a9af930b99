package io.holdfast.nemesis;

import io.holdfast.simulation.RegisterChecker;
import java.util.Arrays;
import java.util.Locale;

/**
 * A request of a client, from its sending to its end: a line of the history. Written by its
 * client's thread; others look at it only while clients rest.
 */
final class Operation {
    /** What was asked for. */
    enum Kind {
        READ,
        WRITE,
        FLUSH
    }

    /** What became of it. */
    enum State {
        PENDING,
        DONE,
        /** The server answered with an error; a write may have taken effect all the same. */
        FAILED,
        /** No answer: the other side closed the connection, or lost it. */
        HUNG_UP,
        /** No answer: patience ended, or its client left. */
        UNKNOWN
    }

    final Kind kind;
    final String client;

    /** Which of all connections of the run. */
    final int connection;

    final int node;

    /** First register; registers {@code first} to {@code first + count - 1} are touched. */
    final int first;

    final int count;

    /** Of a write: register {@code first + i} gets {@code value + i}. */
    final long value;

    final long beganNanos;
    State state = State.PENDING;

    /** When the answer came, or hope was given up. */
    long endedNanos = RegisterChecker.NEVER;

    /** Of a failed one, the NBD error. */
    int error;

    /** Of a write without success: it has taken effect by then, or never will. */
    long settledNanos = RegisterChecker.NEVER;

    /** Of a read that is done. */
    long[] seen = {};

    Operation(
            Kind kind,
            String client,
            int connection,
            int node,
            int first,
            int count,
            long value,
            long beganNanos) {
        this.kind = kind;
        this.client = client;
        this.connection = connection;
        this.node = node;
        this.first = first;
        this.count = count;
        this.value = value;
        this.beganNanos = beganNanos;
    }

    /** Whether it is a write that may have taken effect or not. */
    boolean isInDoubt() {
        return kind == Kind.WRITE && state != State.DONE;
    }

    /** As the checker sees it at one register. */
    RegisterChecker.Operation at(int register) {
        int i = register - first;
        return switch (kind) {
            case WRITE ->
                    new RegisterChecker.Operation(
                            true,
                            value + i,
                            beganNanos,
                            state == State.DONE ? endedNanos : settledNanos,
                            state == State.DONE);
            default -> new RegisterChecker.Operation(false, seen[i], beganNanos, endedNanos, true);
        };
    }

    /** One line; times in milliseconds since {@code epochNanos}. */
    String describe(long epochNanos) {
        StringBuilder text = new StringBuilder();
        text.append(
                String.format(
                        Locale.ROOT,
                        "%12.3f .. %12s ms  %-5s %-8s node%d #%d  registers %d+%d",
                        (beganNanos - epochNanos) / 1e6,
                        endedNanos == RegisterChecker.NEVER
                                ? "-"
                                : String.format(
                                        Locale.ROOT, "%.3f", (endedNanos - epochNanos) / 1e6),
                        kind,
                        client,
                        node,
                        connection,
                        first,
                        count));
        if (kind == Kind.WRITE) {
            text.append(" value ").append(value);
        }
        if (seen.length > 0) {
            text.append(" saw ").append(Arrays.toString(seen));
        }
        text.append("  ").append(state);
        if (state == State.FAILED) {
            text.append(" (").append(NbdSession.errorName(error)).append(')');
        }
        if (settledNanos != RegisterChecker.NEVER) {
            text.append(
                    String.format(
                            Locale.ROOT,
                            ", settled by %.3f ms",
                            (settledNanos - epochNanos) / 1e6));
        }
        return text.toString();
    }
}
