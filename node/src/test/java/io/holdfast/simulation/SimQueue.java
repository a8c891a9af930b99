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

    private final PriorityQueue<Timer> timers = new PriorityQueue<>();
    private long now;
    private long count;

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
        next.action.run();
        return true;
    }

    /** Nothing happens until {@code time}, if that is in the future. */
    void advanceTo(long time) {
        now = Math.max(now, time);
    }
}
