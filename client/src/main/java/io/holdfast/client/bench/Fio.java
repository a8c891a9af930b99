package io.holdfast.client.bench;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/** Runs fio with its nbd engine. */
public final class Fio {
    /** What fio may take beyond the job's own time before it counts as hung. */
    private static final int GRACE_SECONDS = 120;

    /** Longest fill of a volume. */
    private static final int FILL_SECONDS = 3600;

    /** Of what a failing fio said. */
    private static final int MAX_LINES = 8;

    private final int seconds;
    private final int connections;
    private final LongSupplier cpuMicros;
    private @Nullable Process running;
    private boolean closed;

    /**
     * A runner of timed jobs.
     *
     * @param seconds each job takes
     * @param connections each job uses; the depth is per connection
     * @param cpuMicros reads the processor time that the server has spent so far
     */
    public Fio(int seconds, int connections, LongSupplier cpuMicros) {
        this.seconds = seconds;
        this.connections = connections;
        this.cpuMicros = cpuMicros;
    }

    /**
     * Writes the whole volume once, so that later reads find data.
     *
     * @throws IOException when fio is missing or fails
     */
    public void fill(String uri) throws IOException, InterruptedException {
        run(uri, FILL_SECONDS, List.of("--rw=write", "--bs=1m", "--iodepth=8"));
    }

    /**
     * Runs one job.
     *
     * @param through for the table: which node the client is attached to
     * @throws IOException when fio is missing or fails
     */
    public Measurement run(Job job, String uri, String through)
            throws IOException, InterruptedException {
        List<String> options = new ArrayList<>(job.options());
        options.add("--time_based");
        options.add("--runtime=" + seconds);
        options.add("--numjobs=" + connections);
        options.add("--group_reporting");
        long before = cpuMicros.getAsLong();
        JsonNode result = run(uri, seconds + GRACE_SECONDS, options);
        return Measurement.of(job, through, result, cpuMicros.getAsLong() - before);
    }

    /** Ends the job that runs, and lets no other begin; any thread. */
    public void stop() {
        Process stopped;
        synchronized (this) {
            closed = true;
            stopped = running;
        }
        if (stopped != null) {
            stopped.destroy();
        }
    }

    private JsonNode run(String uri, int limitSeconds, List<String> options)
            throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of("fio", "--name=bench", "--ioengine=nbd"));
        command.add("--uri=" + uri);
        command.addAll(options);
        command.add("--randrepeat=0");
        command.add("--output-format=json");
        Path log = Files.createTempFile("holdfast-bench", ".json");
        try {
            Process fio = start(command, log.toFile());
            try {
                if (!fio.waitFor(limitSeconds, TimeUnit.SECONDS)) {
                    throw new IOException("fio did not end within " + limitSeconds + " s");
                }
            } finally {
                fio.destroyForcibly();
            }
            String said = Files.readString(log);
            if (fio.exitValue() != 0 || said.indexOf('{') < 0) {
                throw new IOException(
                        "fio failed (exit code %d): %s".formatted(fio.exitValue(), useful(said)));
            }
            // Warnings of fio may stand before the document.
            return new ObjectMapper().readTree(said.substring(said.indexOf('{'))).at("/jobs/0");
        } finally {
            Files.deleteIfExists(log);
        }
    }

    /** What fio says outside of its document, as far as a person wants to read it. */
    static String useful(String said) {
        List<String> lines = new ArrayList<>();
        boolean inDocument = false;
        for (String line : said.lines().toList()) {
            // The document's outer braces stand at the beginning of their lines.
            inDocument |= line.startsWith("{");
            if (!inDocument && !line.isBlank() && !lines.contains(line.strip())) {
                lines.add(line.strip());
            }
            inDocument &= !line.startsWith("}");
        }
        if (lines.isEmpty()) {
            return "it said nothing else";
        }
        return String.join("\n  ", lines.subList(0, Math.min(lines.size(), MAX_LINES)));
    }

    private synchronized Process start(List<String> command, File log) throws IOException {
        if (closed) {
            throw new IOException("the run was broken off");
        }
        try {
            Process started =
                    new ProcessBuilder(command)
                            .redirectErrorStream(true)
                            .redirectInput(new File("/dev/null"))
                            .redirectOutput(log)
                            .start();
            running = started;
            return started;
        } catch (IOException e) {
            throw new IOException("fio could not be started; install it: apt-get install fio", e);
        }
    }
}
