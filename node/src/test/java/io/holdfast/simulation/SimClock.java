package io.holdfast.simulation;

/** The monotonic clock of one node: runs a little too fast or too slow, and may be frozen. */
final class SimClock {
    private final SimQueue queue;
    private final double rate;
    private long base;
    private long since;
    private boolean frozen;

    /**
     * A running clock.
     *
     * @param rate of this clock's seconds per true second
     * @param start first reading; means nothing to anyone
     */
    SimClock(SimQueue queue, double rate, long start) {
        this.queue = queue;
        this.rate = rate;
        this.base = start;
        this.since = queue.now();
    }

    /** The reading. */
    long nanos() {
        return frozen ? base : base + (long) ((queue.now() - since) * rate);
    }

    /** True time that passes while this clock counts {@code nanos}. */
    long trueNanos(long nanos) {
        return (long) (nanos / rate);
    }

    /** Stands still from now on, as in a virtual machine that is frozen with its clock. */
    void freeze() {
        base = nanos();
        frozen = true;
    }

    /** Runs again, from where it stood, if it was frozen. */
    void thaw() {
        if (frozen) {
            since = queue.now();
            frozen = false;
        }
    }
}
