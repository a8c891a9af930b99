package io.holdfast.node.runtime;

/**
 * Lets some lines of a kind pass, so that a disk full of damage does not fill the log. One thread.
 */
public final class LogPace {
    private static final int LINES = 20;
    private static final long PERIOD_NANOS = 60_000_000_000L;

    private long since;
    private int lines;

    /** Whether another line may be logged now. */
    public boolean mayLog(long nowNanos) {
        if (lines == 0 || nowNanos - since >= PERIOD_NANOS) {
            since = nowNanos;
            lines = 0;
        }
        lines++;
        return lines <= LINES;
    }
}
