package io.holdfast.simulation;

import io.holdfast.node.replica.Branch;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;

/** How often things happened: faults, and branches that are rare. */
final class Counters {
    /** Name of a branch of the core. */
    static String core(Branch branch) {
        return "core: " + branch.name().toLowerCase(Locale.ROOT).replace('_', ' ');
    }

    private final TreeMap<String, Long> counts = new TreeMap<>();

    void add(String what, long count) {
        counts.merge(what, count, Long::sum);
    }

    void add(Rare what) {
        add(what, 1);
    }

    void add(Rare what, long count) {
        add(what.counter(), count);
    }

    void addAll(Counters others) {
        others.counts.forEach(this::add);
    }

    long get(String what) {
        return counts.getOrDefault(what, 0L);
    }

    /** Branches that were never taken, and faults that never happened. */
    List<String> neverSeen() {
        return Stream.of(
                        Arrays.stream(Branch.values()).map(Counters::core),
                        Rare.counters().stream(),
                        Arrays.stream(Fault.values()).map(Fault::counter))
                .flatMap(names -> names)
                .filter(name -> get(name) == 0)
                .toList();
    }

    Map<String, Long> all() {
        return counts;
    }
}
