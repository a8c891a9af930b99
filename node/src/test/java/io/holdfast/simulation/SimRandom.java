package io.holdfast.simulation;

import java.util.List;
import java.util.SplittableRandom;

/**
 * A generator that others can be derived from by name. What a child draws depends on the root seed
 * and the names only, so that one more draw in one component does not shift the rest of a run.
 */
final class SimRandom {
    private final long seed;
    private final SplittableRandom random;

    SimRandom(long seed) {
        this.seed = seed;
        this.random = new SplittableRandom(seed);
    }

    /** The generator of a component; the same for the same name. */
    SimRandom child(String name) {
        long mixed = seed;
        for (int i = 0; i < name.length(); i++) {
            mixed = (mixed ^ name.charAt(i)) * 0x100000001b3L;
            mixed ^= mixed >>> 29;
        }
        return new SimRandom(mixed);
    }

    /** True with a probability of 0 to 1. */
    boolean chance(double probability) {
        return probability > 0 && random.nextDouble() < probability;
    }

    /** From {@code low} to {@code high}, both included. */
    long between(long low, long high) {
        return low >= high ? low : random.nextLong(low, high + 1);
    }

    /** From {@code low} to {@code high}, both included. */
    int between(int low, int high) {
        return low >= high ? low : random.nextInt(low, high + 1);
    }

    /** One of the list, which is not empty. */
    <T> T pick(List<T> list) {
        return list.get(random.nextInt(list.size()));
    }
}
