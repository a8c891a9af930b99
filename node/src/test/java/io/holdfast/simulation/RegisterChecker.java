package io.holdfast.simulation;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/**
 * Decides whether the history of one register, every value of which is written at most once, is
 * linearizable. Exact, in n log n (Gibbons and Korach, "Testing shared memories", 1997, section 4).
 *
 * <p>A write and the reads that saw it form a cluster. In any order that explains the history a
 * cluster's operations stand together, so only the order of clusters is open. Let {@code first} be
 * when the first operation of a cluster has ended, {@code last} when its last one began. Cluster A
 * must stand before B exactly when an operation of A ended before one of B began: {@code A.first <
 * B.last}. The history is linearizable if and only if no read ended before its write began, and no
 * two clusters must each stand before the other; longer circles always contain such a pair.
 *
 * <p>A cluster with {@code first < last} keeps the register for that time, a forward zone; the
 * others are backward zones. So: forward zones must not overlap, and no backward zone may lie
 * within a forward one. (Two backward zones never conflict.)
 */
public final class RegisterChecker {
    private RegisterChecker() {}

    /** The time at which an operation that never ended has ended. */
    public static final long NEVER = Long.MAX_VALUE;

    /**
     * A write or a read.
     *
     * @param began before {@code ended}, or at the same time
     * @param ended {@link #NEVER} for a write in doubt; it need not have taken effect then
     * @param certain an acknowledged write; one that is not and that nobody read is left out
     */
    public record Operation(boolean write, long value, long began, long ended, boolean certain) {}

    private static final class Cluster {
        final long value;
        boolean written;
        boolean certain;
        int reads;
        long began;
        long firstReadEnd = NEVER;
        long first = NEVER;
        long last = Long.MIN_VALUE;

        Cluster(long value) {
            this.value = value;
        }

        boolean isForward() {
            return first < last;
        }

        @Override
        public String toString() {
            return "value "
                    + value
                    + " (first operation ended at "
                    + first / 1000
                    + " us, last began at "
                    + last / 1000
                    + " us)";
        }
    }

    /**
     * Checks a history.
     *
     * @param initial what the register held before everything; nobody writes that value
     * @return what is wrong; empty: linearizable
     */
    public static Optional<String> check(long initial, List<Operation> history) {
        TreeMap<Long, Cluster> clusters = new TreeMap<>();
        Cluster start = new Cluster(initial);
        start.written = true;
        start.certain = true;
        start.began = Long.MIN_VALUE;
        start.first = Long.MIN_VALUE;
        clusters.put(initial, start);
        for (Operation operation : history) {
            Cluster cluster = clusters.computeIfAbsent(operation.value, Cluster::new);
            if (operation.write) {
                if (cluster.written) {
                    return Optional.of("value " + operation.value + " is written twice");
                }
                cluster.written = true;
                cluster.certain = operation.certain;
                cluster.began = operation.began;
            } else {
                cluster.reads++;
                cluster.firstReadEnd = Math.min(cluster.firstReadEnd, operation.ended);
            }
            cluster.first = Math.min(cluster.first, operation.ended);
            cluster.last = Math.max(cluster.last, operation.began);
        }
        List<Cluster> forward = new ArrayList<>();
        List<Cluster> backward = new ArrayList<>();
        for (Map.Entry<Long, Cluster> one : clusters.entrySet()) {
            Cluster cluster = one.getValue();
            if (!cluster.written) {
                return Optional.of("nobody wrote what was read: value " + cluster.value);
            }
            if (cluster.firstReadEnd < cluster.began) {
                return Optional.of("read before it was written: " + cluster);
            }
            if (cluster.certain || cluster.reads > 0) {
                (cluster.isForward() ? forward : backward).add(cluster);
            }
        }
        return conflict(forward, backward);
    }

    private static Optional<String> conflict(List<Cluster> forward, List<Cluster> backward) {
        forward.sort(Comparator.comparingLong(c -> c.first));
        TreeMap<Long, Cluster> byFirst = new TreeMap<>();
        Cluster before = null;
        for (Cluster cluster : forward) {
            if (before != null && cluster.first < before.last) {
                return Optional.of(each(before, cluster));
            }
            byFirst.put(cluster.first, cluster);
            before = cluster;
        }
        for (Cluster cluster : backward) {
            // Forward zones do not overlap, so only the last that begins before can contain this.
            Map.Entry<Long, Cluster> around = byFirst.lowerEntry(cluster.last);
            if (around != null && cluster.first < around.getValue().last) {
                return Optional.of(each(around.getValue(), cluster));
            }
        }
        return Optional.empty();
    }

    private static String each(Cluster one, Cluster other) {
        return "each must come before the other: " + one + ", " + other;
    }
}
