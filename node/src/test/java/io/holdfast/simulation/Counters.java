package io.holdfast.simulation;

import java.util.Map;
import java.util.TreeMap;

/** How often things happened: faults, and branches that are rare. */
final class Counters {
    private final TreeMap<String, Long> counts = new TreeMap<>();

    void add(String what, long count) {
        counts.merge(what, count, Long::sum);
    }

    void addAll(Counters others) {
        others.counts.forEach(this::add);
    }

    long get(String what) {
        return counts.getOrDefault(what, 0L);
    }

    Map<String, Long> all() {
        return counts;
    }
}
