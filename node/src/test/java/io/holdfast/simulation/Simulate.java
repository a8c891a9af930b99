package io.holdfast.simulation;

import io.holdfast.simulation.Simulation.Result;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.LoggerFactory;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/**
 * Runs seeds from the command line, and ends with 1 when a promise was broken, with 3 when memory
 * ran out. The launcher has the help ({@code ./holdfast simulate --help}).
 */
@Command(name = "holdfast simulate")
final class Simulate implements Callable<Integer> {
    /** One run in this many is executed twice and must match. */
    private static final int REPEAT_EVERY = 20;

    /** Exit code when memory runs out; the JVM's own, with {@code ExitOnOutOfMemoryError}. */
    private static final int OUT_OF_MEMORY = 3;

    /** Between two lines that say how far it has come. */
    private static final Duration PROGRESS = Duration.ofSeconds(30);

    private final Totals totals = new Totals();
    private final AtomicLong next = new AtomicLong();
    private long endNanos;
    private long end = Long.MAX_VALUE;

    @Spec private @Nullable CommandSpec spec;

    @Option(names = "--seed")
    private @Nullable Long seed;

    @Option(names = "--minutes")
    private long minutes = 1;

    @Option(names = "--from")
    private long from = System.currentTimeMillis() / 1000 * 100_000;

    @Option(names = "--count")
    private long count = Long.MAX_VALUE;

    @Option(names = "--bug")
    private PlantedBug bug = PlantedBug.NONE;

    public static void main(String[] args) {
        // SLF4J answers with a stand-in, and warns, when many threads ask it first.
        LoggerFactory.getILoggerFactory();
        System.exit(
                new CommandLine(new Simulate())
                        .setParameterExceptionHandler(Simulate::wrongUsage)
                        .execute(args));
    }

    private static int wrongUsage(ParameterException e, String[] args) {
        System.err.println("holdfast: " + e.getMessage() + " (holdfast simulate --help)");
        return CommandLine.ExitCode.USAGE;
    }

    @Override
    public Integer call() throws InterruptedException {
        if (seed == null && (minutes < 1 || count < 1)) {
            throw new ParameterException(
                    Objects.requireNonNull(spec).commandLine(),
                    "nothing would run: --minutes " + minutes + " --count " + count);
        }
        try {
            boolean good = seed == null ? runMany() : runOne(seed);
            return good ? 0 : 1;
        } catch (OutOfMemoryError e) {
            throw endAll(e);
        }
    }

    /** Ends the process, never returns: what runs fail of from now on is the want of memory. */
    private Error endAll(OutOfMemoryError cause) {
        System.err.println("holdfast: the simulator has run out of memory: " + cause.getMessage());
        System.err.println(
                "That breaks no promise. Runs under way count for nothing; ended were: "
                        + totals.line());
        System.err.println("More memory: JAVA_TOOL_OPTIONS=-Xmx4g ./holdfast simulate ...");
        Runtime.getRuntime().halt(OUT_OF_MEMORY);
        return cause;
    }

    private boolean runOne(long seed) {
        Result result = Simulation.run(seed, bug);
        totals.add(result);
        System.out.println(result.failed() ? result.report() : result.options());
        System.out.println(totals);
        return !result.failed();
    }

    private boolean runMany() throws InterruptedException {
        endNanos = System.nanoTime() + minutes * 60 * SimOptions.SECONDS;
        next.set(from);
        end = count > Long.MAX_VALUE - from ? Long.MAX_VALUE : from + count;
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
            try {
                workOn(seed);
            } catch (OutOfMemoryError e) {
                throw endAll(e);
            } catch (RuntimeException | Error died) {
                totals.addFailure("the simulator died");
                System.out.println("seed " + seed + " kills the simulator: " + died);
                died.printStackTrace(System.out);
            }
        }
    }

    private void workOn(long seed) {
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
            text.append("\nnever seen: ").append(counters.neverSeen());
            text.append("\nfailures: ").append(failures.all());
            return text.toString();
        }
    }
}
