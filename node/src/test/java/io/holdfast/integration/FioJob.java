package io.holdfast.integration;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** fio over its nbd engine, writing at random places and verifying what it wrote. */
final class FioJob implements AutoCloseable {
    /** Far above any round's length: a hang is a failure. */
    private static final Duration LIMIT = Duration.ofMinutes(3);

    private final Tool fio;

    private FioJob(Tool fio) {
        this.fio = fio;
    }

    /**
     * Writes {@code mebibytes} in blocks of 4 KiB at random places, each once, 16 at a time, at
     * most {@code perSecond}; then reads everything back and compares checksums.
     */
    static FioJob verifiedWrites(String uri, int mebibytes, int perSecond) {
        return new FioJob(
                randomWrites(
                        "verified",
                        uri,
                        mebibytes,
                        "--bs=4k",
                        "--iodepth=16",
                        "--rate_iops=" + perSecond,
                        "--verify=crc32c",
                        "--verify_fatal=1",
                        "--do_verify=1",
                        "--verify_state_save=0",
                        "--randrepeat=0",
                        "--output-format=json"));
    }

    /**
     * Writes {@code mebibytes} in blocks of 4 KiB at random places, each once, with a flush after
     * every eighth and after the last. {@link #checkFlushed} finds out whether they are there.
     *
     * @param seed tells these blocks from those of another run
     */
    static FioJob flushedWrites(String uri, int mebibytes, long seed) {
        return new FioJob(
                flushed(uri, mebibytes, seed, "--fsync=8", "--end_fsync=1", "--do_verify=0"));
    }

    /** Fails unless all that {@link #flushedWrites} wrote is there. */
    static void checkFlushed(String uri, int mebibytes, long seed) {
        try (Tool fio = flushed(uri, mebibytes, seed, "--verify_only", "--verify_fatal=1")) {
            fio.await(LIMIT).succeeds();
        }
    }

    private static Tool flushed(String uri, int mebibytes, long seed, String... more) {
        List<String> options =
                new ArrayList<>(
                        List.of(
                                "--bs=4k",
                                "--iodepth=8",
                                "--verify=crc32c",
                                "--verify_state_save=0",
                                "--randseed=" + seed,
                                "--output-format=json"));
        options.addAll(List.of(more));
        return randomWrites("flushed", uri, mebibytes, options.toArray(String[]::new));
    }

    /** Writes until it is killed or its connection breaks, with a flush after every few. */
    static FioJob endlessWrites(String uri, int mebibytes, int writesPerFlush, int perSecond) {
        return new FioJob(
                randomWrites(
                        "endless",
                        uri,
                        mebibytes,
                        "--bsrange=4k-64k",
                        "--iodepth=16",
                        "--fsync=" + writesPerFlush,
                        "--rate_iops=" + perSecond,
                        "--time_based",
                        "--runtime=" + LIMIT.toSeconds()));
    }

    /**
     * Writes blocks of 4 KiB at random places, 8 at a time, for so long.
     *
     * @param perSecond at most, 0: as many as it can
     */
    static FioJob timedWrites(String uri, int mebibytes, int perSecond, int seconds) {
        return new FioJob(
                randomWrites(
                        "timed",
                        uri,
                        mebibytes,
                        "--bs=4k",
                        "--iodepth=8",
                        "--rate_iops=" + perSecond,
                        "--time_based",
                        "--runtime=" + seconds,
                        "--output-format=json"));
    }

    private static Tool randomWrites(String name, String uri, int mebibytes, String... more) {
        List<String> command =
                new ArrayList<>(
                        List.of(
                                "fio",
                                "--name=" + name,
                                "--ioengine=nbd",
                                "--uri=" + uri,
                                "--rw=randwrite",
                                "--size=" + mebibytes + "m"));
        command.addAll(List.of(more));
        return Tool.start(command.toArray(String[]::new));
    }

    boolean isRunning() {
        return fio.isRunning();
    }

    /** Waits for the end; fails on any I/O or verify error. Returns the longest write, in ms. */
    double longestWriteMillis() {
        return result().at("/write/clat_ns/max").asDouble() / 1e6;
    }

    /** Waits for the end; fails on any I/O error. Returns the median of the writes, in ms. */
    double medianWriteMillis() {
        return result().at("/write/clat_ns/percentile/50.000000").asDouble() / 1e6;
    }

    private JsonNode result() {
        String output = fio.await(LIMIT).succeeds().output();
        JsonNode job;
        try {
            job = new ObjectMapper().readTree(output.substring(output.indexOf('{'))).at("/jobs/0");
        } catch (JsonProcessingException e) {
            throw new AssertionError("fio said:\n" + output, e);
        }
        if (job.path("error").asInt(-1) != 0 || job.at("/write/total_ios").asLong() == 0) {
            throw new AssertionError("fio failed:\n" + output);
        }
        return job;
    }

    @Override
    public void close() {
        fio.close();
    }
}
