package io.holdfast.client;

/**
 * The clock and the alarm of everything in this package; the event loop in a node, the simulated
 * clock in tests. All calls and all tasks on the one thread that the volume clients run on.
 */
public interface Timers {
    /** A monotonic clock in nanoseconds, as {@link System#nanoTime}. */
    long nanoTime();

    /**
     * Runs a task once, later; never before this method has returned.
     *
     * @param delayNanos from now, at least 0
     */
    Handle schedule(long delayNanos, Runnable task);

    /** A task that may still be called off. */
    @FunctionalInterface
    interface Handle {
        /** The task will not run, if it has not run yet. */
        void cancel();
    }
}
