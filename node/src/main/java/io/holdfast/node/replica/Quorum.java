package io.holdfast.node.replica;

import java.util.Arrays;

/** Arithmetic of majorities. */
final class Quorum {
    private Quorum() {}

    /**
     * The highest value that at least {@code majority} of the values reach. Replicas that do not
     * count are given as {@link Long#MIN_VALUE}.
     */
    static long reachedBy(int majority, long[] values) {
        long[] sorted = values.clone();
        Arrays.sort(sorted);
        return sorted[sorted.length - majority];
    }
}
