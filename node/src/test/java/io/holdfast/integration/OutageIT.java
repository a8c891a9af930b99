package io.holdfast.integration;

import static org.assertj.core.api.Assertions.assertThat;

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
    private static final int ENDLESS = 65536;

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
                Path acked = dir.resolve("acked" + round);
                int target = 500 * round;
                try (NbdWriter writer =
                        NbdWriter.start(
                                cluster.nbdUri(round, "data"),
                                acked,
                                (round - 1) * ENDLESS / 2,
                                ENDLESS / 2)) {
                    LocalCluster.await(
                            "writes to be acknowledged",
                            Duration.ofSeconds(60),
                            () -> {
                                writer.assertRunning();
                                return writer.acknowledged() >= target;
                            });
                    cluster.kill(1, 2, 3);
                    assertThat(writer.await(Duration.ofSeconds(60)).exit()).isEqualTo(3);
                }

                long began = System.nanoTime();
                cluster.up();
                double seconds = (System.nanoTime() - began) / 1e9;
                System.out.printf("all three nodes serve again after %.1f s%n", seconds);
                assertThat(seconds).isLessThan(LONGEST_START_SECONDS);
                NbdWriter.assertAllThere(cluster.nbdUri(1 + round % 3, "data"), acked);
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
            Path acked = dir.resolve("acked");
            try (NbdWriter writer = NbdWriter.start(cluster.nbdUri(1, "data"), acked, 0, 20000)) {
                LocalCluster.await(
                        "writes to be acknowledged",
                        Duration.ofSeconds(60),
                        () -> {
                            writer.assertRunning();
                            return writer.acknowledged() >= 500;
                        });
                cluster.kill(2, 3);
                int atDeath = writer.acknowledged();
                failsInTime(cluster);
                writer.assertRunning();
                assertThat(writer.acknowledged()).isLessThanOrEqualTo(atDeath + 1);
                cluster.up();
                LocalCluster.await(
                        "writes to go on",
                        Duration.ofSeconds(30),
                        () -> writer.acknowledged() > atDeath + 100);
                writer.await(Duration.ofMinutes(3)).succeeds();
            }
            NbdWriter.assertAllThere(cluster.nbdUri(3, "data"), acked);
            // What failed in time is served again by itself, on the same node.
            Path later = dir.resolve("later");
            try (NbdWriter writer = NbdWriter.start(cluster.nbdUri(1, "hasty"), later, 0, 100)) {
                writer.await(Duration.ofSeconds(60)).succeeds();
            }
            NbdWriter.assertAllThere(cluster.nbdUri(2, "hasty"), later);
        }
    }

    private void failsInTime(LocalCluster cluster) {
        Path none = dir.resolve("none");
        long began = System.nanoTime();
        try (NbdWriter hasty = NbdWriter.start(cluster.nbdUri(1, "hasty"), none, 0, 1)) {
            Tool.Result result = hasty.await(Duration.ofSeconds(30));
            double seconds = (System.nanoTime() - began) / 1e9;
            assertThat(result.exit()).as(result.output()).isEqualTo(3);
            assertThat(seconds).isBetween(4.0, 15.0);
        }
    }
}
