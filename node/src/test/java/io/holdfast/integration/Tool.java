package io.holdfast.integration;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** Runs a program, bounded in time, and keeps what it said. */
public final class Tool implements AutoCloseable {
    /** How a program ended. */
    public record Result(int exit, String output) {
        public Result succeeds() {
            if (exit != 0) {
                throw new AssertionError("exit code " + exit + ":\n" + output);
            }
            return this;
        }

        Result fails() {
            if (exit == 0) {
                throw new AssertionError("succeeded, but should have failed:\n" + output);
            }
            return this;
        }
    }

    private final String name;
    private final Process process;
    private final Path log;

    private Tool(List<String> command, Map<String, String> environment) {
        name = String.join(" ", command);
        try {
            log = Files.createTempFile("holdfast-tool", ".log");
            ProcessBuilder builder =
                    new ProcessBuilder(command)
                            .redirectErrorStream(true)
                            .redirectInput(new File("/dev/null"))
                            .redirectOutput(log.toFile());
            builder.environment().putAll(environment);
            process = builder.start();
        } catch (IOException e) {
            throw new AssertionError(
                    command.getFirst()
                            + " could not be started; ./holdfast test installs what the tests need",
                    e);
        }
    }

    /** The folder of the launcher. */
    public static Path projectRoot() {
        Path at = Path.of("").toAbsolutePath();
        while (!Files.isExecutable(at.resolve("holdfast"))) {
            at = at.getParent();
            if (at == null) {
                throw new AssertionError(
                        "no launcher 'holdfast' above " + Path.of("").toAbsolutePath());
            }
        }
        return at;
    }

    /** Whether this process is root's, whatever that user is called. */
    public static boolean isRoot() {
        try {
            return Integer.valueOf(0).equals(Files.getAttribute(Path.of("/proc/self"), "unix:uid"));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static Tool start(Map<String, String> environment, String... command) {
        return new Tool(List.of(command), environment);
    }

    /** Starts a program. Closing kills it. */
    static Tool start(String... command) {
        return new Tool(Arrays.asList(command), Map.of());
    }

    /**
     * The command that runs libnbd's Python shell: what the distribution's nbdsh does, with the
     * distribution's Python, whatever other one comes first on the path.
     */
    static String[] nbdsh(String... arguments) {
        List<String> command = new ArrayList<>(List.of("/usr/bin/python3", "-m", "nbd"));
        command.addAll(List.of(arguments));
        return command.toArray(String[]::new);
    }

    /** Runs a program to its end. */
    public static Result run(Duration limit, String... command) {
        return run(limit, Map.of(), Arrays.asList(command));
    }

    static Result run(Duration limit, Map<String, String> environment, List<String> command) {
        try (Tool tool = new Tool(new ArrayList<>(command), environment)) {
            return tool.await(limit);
        }
    }

    boolean isRunning() {
        return process.isAlive();
    }

    /** What the process runs now; empty when it has ended. */
    String commandLine() {
        return process.info().commandLine().orElse("");
    }

    String output() {
        try {
            return Files.readString(log, StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new AssertionError("cannot read what " + name + " said", e);
        }
    }

    /** Waits for the end. */
    Result await(Duration limit) {
        try {
            if (!process.waitFor(limit.toMillis(), TimeUnit.MILLISECONDS)) {
                throw new AssertionError(name + " still runs after " + limit + ":\n" + output());
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError("interrupted while waiting for " + name, e);
        }
        return new Result(process.exitValue(), output());
    }

    @Override
    public void close() {
        process.descendants().forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly();
        try {
            process.waitFor(10, TimeUnit.SECONDS);
            Files.deleteIfExists(log);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }
}
