package io.holdfast.nemesis;

import io.holdfast.simulation.Commit;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.function.Consumer;

/**
 * {@code ./holdfast nemesis}: one run with the options of the command line. Exit codes: 0 no
 * promise was broken, 1 one was or the run could not be made, 2 wrong usage.
 */
final class Nemesis {
    private Nemesis() {}

    /** The launcher gives its own path as first argument. */
    public static void main(String[] args) throws InterruptedException {
        try {
            Options options = Options.parse(Arrays.copyOfRange(args, 1, args.length));
            Report report = run(options, Path.of(args[0]), System.err::println);
            System.out.print(options.json() ? report.json() + "\n" : report.text());
            System.exit(report.verdict().violation() == null ? 0 : 1);
        } catch (Options.Wrong wrong) {
            System.err.println("holdfast: " + wrong.getMessage());
            System.exit(2);
        } catch (IOException | RuntimeException e) {
            System.err.println("holdfast: nemesis: " + e.getMessage());
            System.exit(1);
        }
    }

    /** Runs, cleans up whatever happens, and keeps the files if something was wrong. */
    static Report run(Options options, Path launcher, Consumer<String> log)
            throws IOException, InterruptedException, Options.Wrong {
        Path dir = options.dir();
        if (dir == null) {
            dir = Files.createTempDirectory("holdfast-nemesis-");
        } else {
            Files.createDirectories(dir);
            try (var files = Files.list(dir)) {
                if (files.findAny().isPresent()) {
                    throw new Options.Wrong("--dir " + dir + ": is not empty");
                }
            }
        }
        String commit = Commit.of(launcher.toAbsolutePath().getParent());
        Run run = new Run(options, launcher, dir, log);
        Thread cleaner = new Thread(run::close, "clean-up");
        Runtime.getRuntime().addShutdownHook(cleaner);
        Report report;
        try (run) {
            Verdict verdict = run.run();
            report =
                    new Report(
                            options,
                            commit,
                            run.seconds(),
                            run.faultsDone(),
                            run.checksDone(),
                            verdict,
                            run.leftOut(),
                            dir);
        } catch (IOException | RuntimeException e) {
            log.accept("the nodes' logs (node-K/holdfast.log) are kept in " + dir);
            throw e;
        }
        Runtime.getRuntime().removeShutdownHook(cleaner);
        if (report.verdict().violation() == null && !options.keep()) {
            Run.remove(dir);
        }
        return report;
    }
}
