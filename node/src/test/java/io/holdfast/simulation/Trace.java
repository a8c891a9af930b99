package io.holdfast.simulation;

import java.util.ArrayDeque;
import java.util.List;

/** What happened: the last events in words, and a hash over all of them. */
final class Trace {
    private static final int KEPT = 50;

    private record Line(long time, String who, String what) {
        @Override
        public String toString() {
            return "%,15d us  %-9s %s".formatted(time / 1000, who, what);
        }
    }

    private final SimQueue queue;
    private final ArrayDeque<Line> last = new ArrayDeque<>();
    private long hash = 0xcbf29ce484222325L;
    private long count;

    Trace(SimQueue queue) {
        this.queue = queue;
    }

    /** Notes an event. */
    void add(String who, String what) {
        long now = queue.now();
        hash = (hash ^ now) * 0x100000001b3L;
        hash = (hash ^ who.hashCode()) * 0x100000001b3L;
        hash = (hash ^ what.hashCode()) * 0x100000001b3L;
        count++;
        if (last.size() == KEPT) {
            last.removeFirst();
        }
        last.addLast(new Line(now, who, what));
    }

    long hash() {
        return hash;
    }

    long count() {
        return count;
    }

    /** The last events, oldest first. */
    List<String> last() {
        return last.stream().map(Line::toString).toList();
    }
}
