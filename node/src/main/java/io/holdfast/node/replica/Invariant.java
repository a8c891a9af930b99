package io.holdfast.node.replica;

/**
 * Checks that are always on. A broken one means that this program is wrong about its own state, so
 * the replica must stop: going on could lose or revert data.
 */
public final class Invariant {
    private Invariant() {}

    /**
     * Fails unless {@code condition} holds.
     *
     * @param rule what must hold, in words
     * @param values what it was instead
     */
    public static void check(boolean condition, String rule, long... values) {
        if (!condition) {
            throw broken(rule, values);
        }
    }

    /** The error for a place that must not be reached. */
    public static BrokenInvariantError broken(String rule, long... values) {
        return new BrokenInvariantError(rule + ", but " + java.util.Arrays.toString(values));
    }

    /** Thrown by {@link #check}. */
    public static final class BrokenInvariantError extends Error {
        private static final long serialVersionUID = 1L;

        BrokenInvariantError(String message) {
            super(message);
        }
    }
}
