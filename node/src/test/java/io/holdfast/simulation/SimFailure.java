package io.holdfast.simulation;

import org.jspecify.annotations.Nullable;

/** A checker found a promise broken. */
final class SimFailure extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final String checker;

    /**
     * A broken promise.
     *
     * @param checker name of the checker, for statistics
     */
    SimFailure(String checker, String message) {
        super(checker + ": " + message);
        this.checker = checker;
    }

    String checker() {
        return checker;
    }

    /** Fails unless {@code condition}; the message is put together from its parts only then. */
    static void check(boolean condition, String checker, @Nullable Object... parts) {
        if (!condition) {
            StringBuilder message = new StringBuilder();
            for (Object part : parts) {
                message.append(part);
            }
            throw new SimFailure(checker, message.toString());
        }
    }
}
