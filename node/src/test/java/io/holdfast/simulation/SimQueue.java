package io.holdfast.simulation;

import java.util.PriorityQueue;

/**
 * What is going to happen, ordered by time and, at one time, by when it was put in; and the true
 * time, in nanoseconds from the start of the run. Nodes see it through their {@link SimClock}.
 */
final class SimQueue {
    private record Timer(long time, long number, Runnable action) implements Comparable<Timer> {
        @Override
        public int compareTo(Timer other) {
            int byTime = Long.compare(time, other.time);
            return byTime != 0 ? byTime : Long.compare(number, other.number);
        }
    }

    /** So many in one simulated second are no work any more: something goes in a circle. */
    private static final int MOST_PER_SECOND = 1_000_000;

    private final PriorityQueue<Timer> timers = new PriorityQueue<>();
    private long now;
    private long count;
    private long second;
    private int inSecond;

    /** The true time. */
    long now() {
        return now;
    }

    /** Runs {@code action} at a time, at the earliest now. */
    void at(long time, Runnable action) {
        timers.add(new Timer(Math.max(time, now), count++, action));
    }

    /** Runs {@code action} in {@code delayNanos}. */
    void after(long delayNanos, Runnable action) {
        at(now + delayNanos, action);
    }

    /** Lets the next thing happen, unless it lies after {@code limit}; false: nothing does. */
    boolean runNext(long limit) {
        Timer next = timers.peek();
        if (next == null || next.time > limit) {
            return false;
        }
        timers.remove();
        now = next.time;
        happens();
        next.action.run();
        return true;
    }

    /** Something happens: it does not forever without any time passing. */
    void happens() {
        if (now / SimOptions.SECONDS != second) {
            second = now / SimOptions.SECONDS;
            inSecond = 0;
        }
        inSecond++;
        SimFailure.check(
                inSecond <= MOST_PER_SECOND,
                "endless",
                "more than ",
                MOST_PER_SECOND,
                " events within simulated second ",
                second);
    }

    /** Nothing happens until {@code time}, if that is in the future. */
    void advanceTo(long time) {
        now = Math.max(now, time);
    }
}
