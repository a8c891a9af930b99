package io.holdfast.simulation;

import io.holdfast.simulation.Simulation.Result;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Runs seeds from the command line: {@code --seed N} one, {@code --minutes M} new ones on all
 * cores, {@code --from N} the first of them, {@code --bug NAME} with a planted bug. Exits with 1
 * when a promise was broken.
 */
final class Simulate {
    /** One run in this many is executed twice and must match. */
    private static final int REPEAT_EVERY = 20;

    /** Between two lines that say how far it has come. */
    private static final Duration PROGRESS = Duration.ofSeconds(30);

    private final long endNanos;
    private final PlantedBug bug;
    private final AtomicLong next;
    private final long end;
    private final Totals totals = new Totals();

    private Simulate(long minutes, long from, long count, PlantedBug bug) {
        this.endNanos = System.nanoTime() + minutes * 60 * SimOptions.SECONDS;
        this.next = new AtomicLong(from);
        this.end = count == Long.MAX_VALUE ? count : from + count;
        this.bug = bug;
    }

    public static void main(String[] args) throws InterruptedException {
        long seed = -1;
        long minutes = 1;
        long from = System.currentTimeMillis() / 1000 * 100_000;
        long count = Long.MAX_VALUE;
        PlantedBug bug = PlantedBug.NONE;
        for (int i = 0; i + 1 < args.length; i += 2) {
            String value = args[i + 1];
            switch (args[i]) {
                case "--seed" -> seed = Long.parseLong(value);
                case "--minutes" -> minutes = Long.parseLong(value);
                case "--from" -> from = Long.parseLong(value);
                case "--count" -> count = Long.parseLong(value);
                case "--bug" -> bug = PlantedBug.valueOf(value);
                default -> throw new IllegalArgumentException("unknown option " + args[i]);
            }
        }
        boolean good =
                seed >= 0 ? runOne(seed, bug) : new Simulate(minutes, from, count, bug).runMany();
        System.exit(good ? 0 : 1);
    }

    private static boolean runOne(long seed, PlantedBug bug) {
        Totals totals = new Totals();
        Result result = Simulation.run(seed, bug);
        totals.add(result);
        System.out.println(result.failed() ? result.report() : result.options());
        System.out.println(totals);
        return !result.failed();
    }

    private boolean runMany() throws InterruptedException {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < Runtime.getRuntime().availableProcessors(); i++) {
            threads.add(Thread.ofPlatform().name("simulate-" + i).start(this::work));
        }
        for (Thread thread : threads) {
            while (!thread.join(PROGRESS)) {
                System.err.println(totals.line());
            }
        }
        System.out.println(totals);
        return totals.failures() == 0;
    }

    private void work() {
        while (System.nanoTime() < endNanos) {
            long seed = next.getAndIncrement();
            if (seed >= end) {
                return;
            }
            Result result = Simulation.run(seed, bug);
            totals.add(result);
            if (result.failed()) {
                System.out.println(result.report());
            } else if (seed % REPEAT_EVERY == 0) {
                long again = Simulation.run(seed, bug).hash();
                if (again != result.hash()) {
                    totals.addFailure("determinism");
                    System.out.println("seed " + seed + " runs differently the second time");
                }
            }
        }
    }

    /** Sums over runs. Thread-safe. */
    static final class Totals {
        private final Counters counters = new Counters();
        private final Counters failures = new Counters();
        private long runs;
        private long simulatedNanos;
        private long events;
        private long operations;

        synchronized void add(Result result) {
            runs++;
            simulatedNanos += result.simulatedNanos();
            events += result.events();
            operations += result.operations();
            counters.addAll(result.counters());
            if (result.failed()) {
                failures.add(result.checker(), 1);
            }
        }

        synchronized void addFailure(String kind) {
            failures.add(kind, 1);
        }

        synchronized long failures() {
            return failures.all().values().stream().mapToLong(Long::longValue).sum();
        }

        /** How far it has come, in a line. */
        synchronized String line() {
            return "%d runs, %.2f simulated hours, %d operations, %d events, %d failures"
                    .formatted(runs, simulatedNanos / 3.6e12, operations, events, failures());
        }

        @Override
        public synchronized String toString() {
            StringBuilder text = new StringBuilder(line());
            counters.all()
                    .forEach((what, count) -> text.append("\n  %,12d %s".formatted(count, what)));
            text.append("\nnever taken: ").append(counters.neverTaken());
            text.append("\nfailures: ").append(failures.all());
            return text.toString();
        }
    }
}
