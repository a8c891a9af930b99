package io.holdfast.integration;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.integration.CheckedWriter.Promise;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** All nodes die, or too many: nothing acknowledged is lost, and service comes back by itself. */
@Timeout(value = 10, unit = TimeUnit.MINUTES)
class OutageIT {
    /**
     * Three processes that start at once on two cores were seen to serve after 9 to 12 s. The goal
     * is 10 s; this bound is for a start that hangs or waits for what it need not wait for.
     */
    private static final int LONGEST_START_SECONDS = 20;

    @TempDir Path dir;

    @Test
    void everythingAcknowledgedSurvivesTheDeathOfAllNodes() throws IOException {
        try (LocalCluster cluster = LocalCluster.start(dir.resolve("cluster"), 3)) {
            cluster.cli("volume", "create", "data", "--size", "512M").succeeds();
            for (int round = 1; round <= 3; round++) {
                try (CheckedWriter writer = writer(cluster, round, "data", round)) {
                    writer.awaitAcknowledged(500 * round, Duration.ofSeconds(60));
                    cluster.kill(1, 2, 3);
                    System.out.println(writer.awaitBroken());
                }

                long began = System.nanoTime();
                cluster.up();
                double seconds = (System.nanoTime() - began) / 1e9;
                System.out.printf("all three nodes serve again after %.1f s%n", seconds);
                assertThat(seconds).isLessThan(LONGEST_START_SECONDS);
                check(cluster, 1 + round % 3, "data");
            }
            cluster.assertReplicasEqual("data");
        }
    }

    @Test
    void aNodeDoesNotStartWithAnotherKeyThanItsVolumes() throws IOException {
        try (LocalCluster cluster = LocalCluster.start(dir.resolve("cluster"), 1)) {
            cluster.cli("volume", "create", "data", "--size", "64M").succeeds();
            cluster.kill(1);
            Path key = cluster.dir().resolve("cluster.key");
            byte[] right = Files.readAllBytes(key);
            Files.writeString(key, "0123456789abcdef".repeat(4) + "\n");
            Tool.Result refused = cluster.tryUp();
            assertThat(refused.exit()).isEqualTo(1);
            assertThat(refused.output())
                    .contains("opens none of the cluster's volumes (1)")
                    .contains(key.toString());
            Files.write(key, right);
            cluster.up();
            assertThat(cluster.cli("volume", "list").succeeds().output()).contains("data");
        }
    }

    @Test
    void writesWaitForTheMajorityAndFailInTime() throws IOException {
        try (LocalCluster cluster = LocalCluster.start(dir.resolve("cluster"), 3)) {
            cluster.cli("volume", "create", "data", "--size", "512M").succeeds();
            cluster.cli("volume", "create", "hasty", "--size", "512M", "--timeout", "5s")
                    .succeeds();
            try (CheckedWriter writer = writer(cluster, 1, "data", 1)) {
                writer.awaitAcknowledged(500, Duration.ofSeconds(60));
                cluster.kill(2, 3);
                int atDeath = writer.acknowledged();
                failsInTime(cluster);
                writer.assertRunning();
                // What had a majority before their death may be answered a moment after it.
                assertThat(writer.acknowledged())
                        .isLessThanOrEqualTo(atDeath + CheckedWriter.DEPTH);
                cluster.up();
                writer.awaitAcknowledged(atDeath + 100, Duration.ofSeconds(30));
                writer.stop();
            }
            check(cluster, 3, "data");
            // What failed in time is served again by itself, on the same node.
            try (CheckedWriter writer = writer(cluster, 1, "hasty", 2)) {
                writer.awaitAcknowledged(100, Duration.ofSeconds(60));
                writer.stop();
            }
            check(cluster, 2, "hasty");
        }
    }

    private void failsInTime(LocalCluster cluster) throws IOException {
        long began = System.nanoTime();
        try (CheckedWriter hasty = writer(cluster, 1, "hasty", 1)) {
            hasty.awaitBroken();
            double seconds = (System.nanoTime() - began) / 1e9;
            assertThat(hasty.acknowledged()).isZero();
            assertThat(seconds).isBetween(4.0, 15.0);
        }
    }

    private CheckedWriter writer(LocalCluster cluster, int through, String volume, long seed)
            throws IOException {
        return CheckedWriter.start(
                cluster.nbdUri(through, volume), state(volume), seed, Promise.ACKNOWLEDGED, 0);
    }

    private void check(LocalCluster cluster, int through, String volume) {
        Tool.Result checked = CheckedWriter.check(cluster.nbdUri(through, volume), state(volume));
        System.out.println(checked.output().strip());
        checked.succeeds();
    }

    private Path state(String volume) {
        return dir.resolve(volume + ".json");
    }
}
