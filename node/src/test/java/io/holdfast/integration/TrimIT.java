package io.holdfast.integration;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * What is trimmed or deleted comes back to the file system under every node within a minute, with
 * all the room in the world and without further writes, and {@code status} says so.
 */
@Timeout(value = 15, unit = TimeUnit.MINUTES)
class TrimIT {
    private static final String SMALL_SEGMENTS = "node.limits { segment-size = 16M }\n";

    private static final long MIB = 1 << 20;
    private static final long SEGMENT = 16 * MIB;

    /** One that is written to, one made ahead, one that waits for its turn. */
    private static final long LEAST = 3 * SEGMENT;

    private static final Duration MINUTE = Duration.ofSeconds(60);
    private static final int NODES = 3;

    private static final String COMMON =
            """
            import os, random
            M = 1 << 20
            h.connect_uri(os.environ["URI"])

            def data(i):
                return random.Random(i).randbytes(M)

            def fill(first, end):
                for i in range(first, end):
                    h.pwrite(data(i), i * M)

            def intact(first, end):
                return all(bytes(h.pread(M, i * M)) == data(i) for i in range(first, end))
            """;

    private static final String FILL = COMMON + "fill(0, 256)\n";

    private static final String TRIM =
            COMMON
                    + """
                    for i in range(0, 240, 16):
                        h.trim(16 * M, i * M, 0)
                    assert intact(240, 256)
                    """;

    private static final String SCATTERED =
            COMMON
                    + """
                    K = 1 << 10
                    for at in range(0, 256 * M, 128 * K):
                        h.trim(64 * K, at, 0)
                    """;

    private static final String HALF_INTACT =
            COMMON
                    + """
                    K = 1 << 10
                    for i in range(256):
                        for at in range(64 * K, M, 128 * K):
                            assert bytes(h.pread(64 * K, i * M + at)) == data(i)[at:at + 64 * K]
                    """;

    @TempDir Path dir;

    @Test
    void whatIsTrimmedOrDeletedIsFreeWithinAMinute() throws IOException {
        try (LocalCluster cluster = LocalCluster.start(dir.resolve("cluster"), NODES)) {
            cluster.cli("down").succeeds();
            for (int node = 1; node <= NODES; node++) {
                Files.writeString(
                        cluster.nodeDir(node).resolve("node.conf"),
                        SMALL_SEGMENTS,
                        StandardOpenOption.APPEND);
            }
            cluster.up();
            cluster.cli("volume", "create", "data", "--size", "1G").succeeds();

            nbdsh(cluster, FILL);
            assertThat(journalBytes(cluster)).isGreaterThan(256 * MIB);
            nbdsh(cluster, TRIM);
            awaitFree(cluster, "trim of 240 of 256 MiB", 16 * MIB * 9 / 8 + LEAST);

            nbdsh(cluster, FILL);
            nbdsh(cluster, SCATTERED);
            awaitFree(cluster, "trim of every second 64 KiB", 128 * MIB * 9 / 8 + LEAST);
            nbdsh(cluster, HALF_INTACT);
            cluster.assertReplicasEqual("data");

            cluster.cli("volume", "delete", "data", "--yes").succeeds();
            awaitFree(cluster, "delete of 128 MiB", LEAST);
        }
    }

    private static void nbdsh(LocalCluster cluster, String script) {
        Tool.run(
                        Duration.ofMinutes(5),
                        Map.of("URI", cluster.nbdUri(2, "data")),
                        List.of(Tool.nbdsh("-c", script)))
                .succeeds();
    }

    private static void awaitFree(LocalCluster cluster, String what, long most) {
        long before = journalBytes(cluster);
        long start = System.nanoTime();
        TestCluster.await(
                what + " to be free, at most " + most + " bytes",
                MINUTE,
                () -> journalBytes(cluster) <= most);
        System.out.printf(
                "%s: of %d MiB %d left after %d s%n",
                what,
                before / MIB,
                journalBytes(cluster) / MIB,
                TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - start));
        for (JsonNode node : cluster.status().path("nodes")) {
            assertThat(node.path("usedBytes").asLong()).as("%s", node).isBetween(1L, most);
        }
    }

    /** What the journals take of the file system, on the node where it is most. */
    private static long journalBytes(LocalCluster cluster) {
        long most = 0;
        for (int node = 1; node <= NODES; node++) {
            Path journal = cluster.nodeDir(node).resolve("data").resolve("journal");
            String said =
                    Tool.run(
                                    Duration.ofSeconds(20),
                                    "du",
                                    "--summarize",
                                    "--block-size=1",
                                    journal.toString())
                            .output();
            // It complains of files that go while it counts; the line with the sum is the last.
            String sum = said.strip().lines().reduce((_, line) -> line).orElse("0");
            most = Math.max(most, Long.parseLong(sum.split("\\s", 2)[0]));
        }
        return most;
    }
}
