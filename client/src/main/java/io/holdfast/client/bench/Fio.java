package io.holdfast.client.bench;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/** Runs fio with its nbd engine. */
public final class Fio {
    /** What fio may take beyond the job's own time before it counts as hung. */
    private static final int GRACE_SECONDS = 120;

    /** Longest fill of a volume. */
    private static final int FILL_SECONDS = 3600;

    private final int seconds;
    private final int connections;
    private final LongSupplier cpuMicros;

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

    private static JsonNode run(String uri, int limitSeconds, List<String> options)
            throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of("fio", "--name=bench", "--ioengine=nbd"));
        command.add("--uri=" + uri);
        command.addAll(options);
        command.add("--randrepeat=0");
        command.add("--output-format=json");
        File log = File.createTempFile("holdfast-bench", ".json");
        try {
            Process fio = start(command, log);
            if (!fio.waitFor(limitSeconds, TimeUnit.SECONDS)) {
                fio.destroyForcibly();
                throw new IOException("fio did not end within " + limitSeconds + " s");
            }
            String said =
                    new String(
                            java.nio.file.Files.readAllBytes(log.toPath()), StandardCharsets.UTF_8);
            if (fio.exitValue() != 0 || said.indexOf('{') < 0) {
                throw new IOException("fio failed (" + fio.exitValue() + "): " + said.strip());
            }
            // Warnings of fio may stand before the document.
            return new ObjectMapper().readTree(said.substring(said.indexOf('{'))).at("/jobs/0");
        } finally {
            if (!log.delete()) {
                log.deleteOnExit();
            }
        }
    }

    private static Process start(List<String> command, File log) throws IOException {
        try {
            return new ProcessBuilder(command)
                    .redirectErrorStream(true)
                    .redirectInput(new File("/dev/null"))
                    .redirectOutput(log)
                    .start();
        } catch (IOException e) {
            throw new IOException("fio could not be started; install it: apt-get install fio", e);
        }
    }
}
