package io.holdfast.integration;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.client.admin.AdminJson;
import io.holdfast.client.admin.ScrubDocument;
import io.holdfast.client.admin.ScrubDocument.Counts;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Promise P8 for data that nobody reads: a scrub finds it and repairs it, on every node. */
@Timeout(value = 10, unit = TimeUnit.MINUTES)
class ScrubIT {
    /** One call per block, so that each is a record of its own. */
    private static final String WRITE =
            """
            import os
            h.connect_uri(os.environ["URI"])
            for i in range(64):
                h.pwrite(((b"block %012d " % i) * 256)[:4096], i * 4096)
            h.flush()
            """;

    @TempDir Path dir;

    private static List<ScrubDocument> scrub(LocalCluster cluster, int exitCode) {
        Tool.Result result = cluster.cli("scrub", "data", "--json");
        assertThat(result.exit()).as(result.output()).isEqualTo(exitCode);
        String text = result.output();
        int end = text.lastIndexOf(']');
        return List.of(
                AdminJson.read(text.substring(text.indexOf('['), end + 1), ScrubDocument[].class));
    }

    private static Set<String> hashes(LocalCluster cluster) {
        return cluster.cli("debug", "hash", "data")
                .succeeds()
                .output()
                .lines()
                .filter(line -> line.startsWith("node"))
                .map(line -> line.substring(line.lastIndexOf(' ') + 1))
                .collect(Collectors.toSet());
    }

    @Test
    void damageAtRestIsFoundAndRepairedOnEveryNode() throws IOException {
        try (LocalCluster cluster = LocalCluster.start(dir.resolve("cluster"), 3)) {
            cluster.cli("volume", "create", "data", "--size", "64M", "--attach", "shared")
                    .succeeds();
            Tool.run(
                            Duration.ofMinutes(2),
                            Map.of("URI", cluster.nbdUri(1, "data")),
                            List.of(Tool.nbdsh("-c", WRITE)))
                    .succeeds();
            // A checkpoint, and with it a journal that a start does not read again: see RepairIT.
            cluster.cli("down").succeeds();
            Rot.damage(cluster, 1, 5);
            Rot.damage(cluster, 2, 6);
            Rot.damage(cluster, 2, 7);
            Rot.damage(cluster, 3, 8);
            for (int node = 1; node <= 3; node++) {
                Rot.damage(cluster, node, 40);
            }
            cluster.up();
            cluster.awaitInSync("data", Duration.ofSeconds(60));

            List<Long> repaired = new ArrayList<>();
            for (ScrubDocument node : scrub(cluster, 1)) {
                Counts counts = node.counts();
                assertThat(node.state()).isEqualTo(ScrubDocument.State.DONE);
                assertThat(counts.blocks()).isEqualTo(64);
                assertThat(counts.damaged()).isEqualTo(counts.repaired() + 1);
                assertThat(counts.unrepairable()).as("block 40").isEqualTo(1);
                assertThat(counts.differing() + counts.notCompared()).isZero();
                repaired.add(counts.repaired());
            }
            assertThat(repaired).containsExactlyInAnyOrder(1L, 2L, 1L);

            // A write brings back what nobody had.
            Tool.run(
                            Duration.ofMinutes(2),
                            Map.of("URI", cluster.nbdUri(2, "data")),
                            List.of(Tool.nbdsh("-c", WRITE)))
                    .succeeds();
            cluster.awaitInSync("data", Duration.ofSeconds(60));
            assertThat(scrub(cluster, 0))
                    .hasSize(3)
                    .allMatch(node -> node.counts().damaged() == 0)
                    .filteredOn(node -> node.counts().compared() == 64)
                    .as("the leader compares with nobody")
                    .hasSize(2);
            assertThat(hashes(cluster)).hasSize(1);
            assertThat(cluster.cli("scrub", "--show").succeeds().output())
                    .contains("COMPLETED")
                    .contains("data");
        }
    }
}
