package io.holdfast.node.coordination;

import io.holdfast.proto.catalogue.Change;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A node's coordinator in a process of its own, so that it can be killed and paused. Takes lines on
 * standard input and answers each with one line that begins with {@code >}.
 */
final class CoordinatorProcess implements AutoCloseable {
    private final Process process;
    private final BlockingQueue<String> answers = new LinkedBlockingQueue<>();

    /** Starts node {@code number}. */
    CoordinatorProcess(int number, List<Integer> ports, Path directory) throws IOException {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
                .filter(arg -> arg.startsWith("--"))
                .forEach(command::add);
        command.addAll(List.of("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"));
        command.addAll(List.of("-cp", System.getProperty("java.class.path")));
        command.add(CoordinatorProcess.class.getName());
        command.addAll(List.of(String.valueOf(number), directory.toString()));
        ports.forEach(port -> command.add(String.valueOf(port)));
        process =
                new ProcessBuilder(command)
                        .redirectError(directory.resolve("node" + number + ".log").toFile())
                        .start();
        Thread.ofVirtual().start(this::collect);
    }

    private void collect() {
        try (BufferedReader lines = process.inputReader(StandardCharsets.UTF_8)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.startsWith(">")) {
                    answers.add(line.substring(1));
                }
            }
        } catch (IOException e) {
            answers.add("gone: " + e);
        }
    }

    /** Sends a line, returns the answer. */
    String ask(String line, int seconds) throws IOException, InterruptedException {
        process.outputWriter(StandardCharsets.UTF_8).append(line).append('\n').flush();
        return next(seconds);
    }

    /** Waits for the next answer; the first says that the start is complete. */
    String next(int seconds) throws InterruptedException {
        @Nullable String answer = answers.poll(seconds, TimeUnit.SECONDS);
        if (answer == null) {
            throw new AssertionError("no answer within " + seconds + " s");
        }
        return answer;
    }

    void signal(String name) throws IOException, InterruptedException {
        new ProcessBuilder("kill", "-" + name, String.valueOf(process.pid())).start().waitFor();
    }

    /** kill -9. */
    void kill() throws InterruptedException {
        process.destroyForcibly().waitFor();
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }

    /** {@code number directory port...}. */
    public static void main(String[] args) throws Exception {
        List<Integer> ports = Arrays.stream(args).skip(2).map(Integer::valueOf).toList();
        AtomixCoordinator coordinator =
                new AtomixCoordinator(
                        TestNodes.config(Integer.parseInt(args[0]), ports, Path.of(args[1])),
                        AtomixCoordinator.CALL_TIMEOUT,
                        TestNodes.SEGMENT_BYTES);
        BufferedReader lines =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        coordinator.start().get();
        System.out.println(">started");
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", -1);
            System.out.println(">" + answer(coordinator, words));
        }
        System.exit(0);
    }

    private static String answer(AtomixCoordinator coordinator, String[] words)
            throws InterruptedException {
        try {
            return switch (words[0]) {
                case "create" ->
                        result(
                                coordinator,
                                new Change.CreateVolume(
                                        Volumes.volume(words[1], Integer.parseInt(words[2]))));
                // claim VOLUME SHARD NODE EPOCH
                case "claim" ->
                        result(
                                coordinator,
                                new Change.ClaimLeader(
                                        Integer.parseInt(words[1]),
                                        Integer.parseInt(words[2]),
                                        Integer.parseInt(words[3]),
                                        coordinator.incarnation(),
                                        Long.parseLong(words[4])));
                case "show" ->
                        new String(
                                CatalogueCodec.encode(coordinator.catalogue()),
                                StandardCharsets.UTF_8);
                case "members" -> coordinator.members().toString();
                default -> "what? " + words[0];
            };
        } catch (ExecutionException e) {
            return "failed " + e.getCause();
        }
    }

    private static String result(AtomixCoordinator coordinator, Change change)
            throws InterruptedException, ExecutionException {
        Change.Result result = coordinator.change(change).get();
        return (result.applied() ? "applied " : "refused ")
                + result.version()
                + " "
                + result.reason();
    }
}
