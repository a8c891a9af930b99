package io.holdfast.nemesis;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.HttpURLConnection;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** One node: its process and what it says of itself. */
final class NodeProcess {
    private static final int HTTP_MILLIS = 3000;
    private static final long END_SECONDS = 20;

    final int number;
    final Endpoint endpoint;
    private final List<String> command;
    private final Path folder;
    private @Nullable Process process;
    private boolean over;

    /**
     * A node that does not run yet.
     *
     * @param command starts it and becomes it
     * @param folder where its log goes
     */
    NodeProcess(int number, Endpoint endpoint, List<String> command, Path folder) {
        this.number = number;
        this.endpoint = endpoint;
        this.command = command;
        this.folder = folder;
    }

    synchronized void start() {
        if (over || isAlive()) {
            return;
        }
        try {
            process =
                    new ProcessBuilder(command)
                            .directory(folder.toFile())
                            .redirectInput(new File("/dev/null"))
                            .redirectErrorStream(true)
                            .redirectOutput(
                                    ProcessBuilder.Redirect.appendTo(
                                            folder.resolve("holdfast.log").toFile()))
                            .start();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    synchronized boolean isAlive() {
        return process != null && process.isAlive();
    }

    void pause() {
        signal("STOP");
    }

    void resume() {
        signal("CONT");
    }

    private synchronized void signal(String name) {
        if (process != null && process.isAlive()) {
            Shell.tries("kill", "-" + name, Long.toString(process.pid()));
        }
    }

    /** kill -9; {@link #awaitEnd} waits for it. */
    synchronized void kill() {
        if (process != null) {
            process.destroyForcibly();
        }
    }

    /** Kills it, and nobody starts it again. */
    synchronized void end() {
        over = true;
        kill();
    }

    synchronized void awaitEnd() throws InterruptedException {
        if (process != null && !process.waitFor(END_SECONDS, TimeUnit.SECONDS)) {
            throw new IllegalStateException("node" + number + " does not die of kill -9");
        }
    }

    /** "serving", or why it does not serve. */
    String health() {
        if (!isAlive()) {
            return "no process";
        }
        HttpURLConnection http = null;
        try {
            http =
                    (HttpURLConnection)
                            URI.create("http://" + endpoint.httpAddress() + "/healthz")
                                    .toURL()
                                    .openConnection();
            http.setConnectTimeout(HTTP_MILLIS);
            http.setReadTimeout(HTTP_MILLIS);
            if (http.getResponseCode() == HttpURLConnection.HTTP_OK) {
                return "serving";
            }
            return new String(http.getErrorStream().readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            return "no answer: " + e.getMessage();
        } finally {
            if (http != null) {
                http.disconnect();
            }
        }
    }

    Path folder() {
        return folder;
    }
}
