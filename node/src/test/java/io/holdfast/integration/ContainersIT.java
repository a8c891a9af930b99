package io.holdfast.integration;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Three containers of the project's image, as docker-compose.yml makes them, under stock clients on
 * the host. {@code ./holdfast test} starts an engine where none runs; where there can be none,
 * these tests are skipped and say why.
 */
@Timeout(value = 5, unit = TimeUnit.MINUTES)
class ContainersIT {
    private static final int MIB = 1 << 20;
    private static final Duration LIMIT = Duration.ofMinutes(2);
    private static final Duration IN_SYNC_LIMIT = Duration.ofSeconds(60);
    private static final Duration INTO_THE_WRITES = Duration.ofSeconds(2);
    private static final Duration PAUSE = Duration.ofSeconds(6);

    /** Docker waits 10 s by default before it kills. */
    private static final double LONGEST_STOP_SECONDS = 10;

    @TempDir static Path dir;
    private static Optional<String> obstacle;
    private static ComposeCluster cluster;

    @BeforeAll
    static void start() {
        obstacle = ComposeCluster.obstacle();
        if (obstacle.isEmpty()) {
            long began = System.nanoTime();
            cluster = ComposeCluster.start();
            System.out.printf(
                    "image made and three nodes healthy after %.1f s%n", secondsSince(began));
        }
    }

    /** Before each one: a class that is given up as a whole is reported as no test at all. */
    @BeforeEach
    void skipWhereNoEngineRuns() {
        obstacle.ifPresent(why -> Assumptions.abort("no containers on this machine: " + why));
    }

    @AfterAll
    static void stop() {
        if (cluster != null) {
            cluster.close();
        }
    }

    private static double secondsSince(long began) {
        return (System.nanoTime() - began) / 1e9;
    }

    private static void create(String volume) {
        cluster.cli("volume", "create", volume, "--size", "64M").succeeds();
    }

    private static Path randomFile(String name, int mebibytes) throws IOException {
        byte[] content = new byte[mebibytes * MIB];
        new Random(name.hashCode()).nextBytes(content);
        return Files.write(dir.resolve(name), content);
    }

    private static void assertHolds(int node, String volume, Path expected) throws IOException {
        Path copy = dir.resolve("copy");
        Tool.run(LIMIT, "nbdcopy", cluster.nbdUri(node, volume), copy.toString()).succeeds();
        assertThat(Files.mismatch(expected, copy)).isEqualTo(-1);
        Files.delete(copy);
    }

    @Test
    void stockToolsReachTheVolumeThroughEveryNode() throws IOException {
        create("seen");
        for (int node = 1; node <= 3; node++) {
            assertThat(
                            Tool.run(LIMIT, "nbdinfo", "--size", cluster.nbdUri(node, "seen"))
                                    .succeeds()
                                    .output())
                    .contains(Integer.toString(64 * MIB));
        }
        Path source = randomFile("seen", 64);
        Tool.run(LIMIT, "nbdcopy", source.toString(), cluster.nbdUri(1, "seen")).succeeds();
        assertHolds(3, "seen", source);
        cluster.assertReplicasEqual("seen");
    }

    @Test
    void commandsWorkInsideAndNothingRunsAsRootOrWritesToTheImage() {
        String status = cluster.exec(1, "holdfast", "status").succeeds().output();
        assertThat(status).contains("node1", "node2", "node3");
        assertThat(cluster.exec(1, "id", "-u").succeeds().output().strip()).isEqualTo("10001");
        assertThat(cluster.exec(1, "sh", "-c", "echo > /opt/holdfast/x").fails().output())
                .contains("Read-only file system");
    }

    @Test
    void clientOfAnotherNodeSurvivesTheKillOfTheLeader() {
        disturbed(
                "killed",
                leader -> {
                    cluster.kill(leader);
                },
                cluster::startAgain);
    }

    @Test
    void clientOfAnotherNodeSurvivesAPauseOfTheLeader() {
        disturbed(
                "paused",
                leader -> {
                    cluster.pause(leader);
                    LockSupport.parkNanos(PAUSE.toNanos());
                    cluster.unpause(leader);
                },
                leader -> {});
    }

    @Test
    void clientOfAnotherNodeSurvivesALeaderThatIsCutOff() {
        disturbed("severed", cluster::cutOff, cluster::reconnect);
    }

    private interface OnNode {
        void act(int node);
    }

    /** Does something to the leader in mid-write; fio, attached elsewhere, must see no error. */
    private static void disturbed(String volume, OnNode disturb, OnNode repair) {
        create(volume);
        int leader = cluster.leader(volume);
        int through = 1 + leader % 3;
        try (FioJob fio = FioJob.verifiedWrites(cluster.nbdUri(through, volume), 32, 1500)) {
            LockSupport.parkNanos(INTO_THE_WRITES.toNanos());
            assertThat(fio.isRunning()).as("fio still writes when the leader is hit").isTrue();
            disturb.act(leader);
            System.out.printf(
                    "node%d %s, client at node%d: longest write %.0f ms%n",
                    leader, volume, through, fio.longestWriteMillis());
        } finally {
            repair.act(leader);
        }
        cluster.assertReplicasEqual(volume);
    }

    @Test
    void containerMadeAnewFindsItsDataOrFetchesIt() throws IOException {
        create("kept");
        Path source = randomFile("kept", 64);
        Tool.run(LIMIT, "nbdcopy", source.toString(), cluster.nbdUri(1, "kept")).succeeds();
        for (boolean empty : new boolean[] {false, true}) {
            cluster.recreate(2, empty);
            cluster.awaitInSync("kept", IN_SYNC_LIMIT);
            assertHolds(2, "kept", source);
            cluster.assertReplicasEqual("kept");
        }
    }

    @Test
    void stopsCleanlyWithinDockersPatience() {
        long began = System.nanoTime();
        long exit = cluster.stop(3);
        double seconds = secondsSince(began);
        System.out.printf("node3 stopped after %.1f s%n", seconds);
        assertThat(cluster.log(3)).contains("node3: stopped");
        assertThat(exit).isZero();
        assertThat(seconds).isLessThan(LONGEST_STOP_SECONDS);
        cluster.startAgain(3);
    }
}
