package io.holdfast.integration;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.integration.CheckedWriter.Promise;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

/**
 * Promise P5 on real processes, journals and RocksDB: disks that lose power keep what was synced,
 * and of the rest some sectors, in any order (see {@code src/test/fuse/lossfs.c}).
 *
 * <p>Clients make new connections after a power loss: those of before have errors, as promised.
 */
class PowerLossIT {
    private static final int ROUNDS = Integer.getInteger("holdfast.it.powerloss.rounds", 3);
    private static final long SEED =
            Long.getLong("holdfast.it.powerloss.seed", System.nanoTime() & 0xffffff);

    /** Small, so that a round sees checkpoints, new segments, removed ones, and the cleaner. */
    private static final String SMALL_STORE =
            "node.limits { store-size = 512M, segment-size = 16M, checkpoint-size = 16M }\n";

    private static final int MEBIBYTES = 8;
    private static final int LONGEST_LOAD_MILLIS = 3000;

    private static final Duration IN_SYNC_LIMIT = Duration.ofSeconds(60);

    /** Parts of all requests. One after few writes leaves little that is not synced. */
    private static final double[] FLUSHES = {0.001, 0.01, 0.04};

    /** Every third round loses power three times; each time, nodes may take a minute to serve. */
    @RegisterExtension
    static final TimeLimit LIMIT =
            TimeLimit.of(Duration.ofMinutes(15), ROUNDS, Duration.ofMinutes(5));

    @TempDir Path dir;

    private final Map<String, Long> lost = new LinkedHashMap<>();

    /** Before each one: a class that is given up as a whole is reported as no test at all. */
    @BeforeEach
    void skipWhereNothingCanBeMounted() {
        Optional<String> obstacle = LossyDisk.obstacle();
        obstacle.ifPresent(why -> Assumptions.abort("no lossy disks on this machine: " + why));
    }

    /** All nodes lose power in every round; in every third, one node does as well, by itself. */
    @Test
    void whatWasFlushedSurvivesPowerLoss() throws IOException {
        try (LossyCluster lossy = LossyCluster.start(dir, SMALL_STORE)) {
            try {
                for (String volume : new String[] {"checked", "flushed", "load"}) {
                    lossy.cluster().cli("volume", "create", volume, "--size", "64M").succeeds();
                }
                for (int round = 1; round <= ROUNDS; round++) {
                    allLosePower(lossy, round);
                    if (round % 3 == 0) {
                        oneLosesPower(lossy, round);
                        oneOfTheKilledLosesPower(lossy, round);
                    }
                }
                lossy.cluster().assertReplicasEqual("checked");
                System.out.printf("%d rounds, seed %d: %s%n", ROUNDS, SEED, lost);
                assertThat(lost.get("sectors_lost")).isPositive();
                assertThat(lost.get("torn")).isPositive();
            } catch (IOException | RuntimeException | Error e) {
                Path kept = Tool.projectRoot().resolve("node/target/powerloss-" + SEED);
                System.out.printf("failed, seed %d; logs and disks are in %s%n", SEED, kept);
                lossy.keepEvidence(kept);
                throw e;
            }
        }
    }

    private void allLosePower(LossyCluster lossy, int round) throws IOException {
        LocalCluster cluster = lossy.cluster();
        long seed = SEED + round;
        Random random = new Random(seed);
        String uri = cluster.nbdUri(1 + round % 3, "flushed");
        String written;
        try (CheckedWriter writer =
                CheckedWriter.start(
                        cluster.nbdUri(1 + random.nextInt(3), "checked"),
                        state(),
                        seed,
                        Promise.FLUSHED,
                        FLUSHES[random.nextInt(FLUSHES.length)])) {
            writer.awaitConnected();
            try (FioJob flushed = FioJob.flushedWrites(uri, MEBIBYTES, seed)) {
                flushed.longestWriteMillis();
            }
            try (FioJob load =
                    FioJob.endlessWrites(
                            cluster.nbdUri(1 + random.nextInt(3), "load"),
                            2 * MEBIBYTES,
                            1 << random.nextInt(10),
                            500)) {
                LockSupport.parkNanos(
                        TimeUnit.MILLISECONDS.toNanos(random.nextInt(LONGEST_LOAD_MILLIS)));
                writer.assertRunning();
                assertThat(load.isRunning()).isTrue();
                cluster.kill(LossyCluster.allNodes());
                written = writer.awaitBroken();
            }
        }
        Map<String, Long> losses = lossy.losePower(seed, false, LossyCluster.allNodes());
        double seconds = lossy.restart();
        report("round " + round + ": all lost power", written, losses, seconds);
        check(cluster, 1 + random.nextInt(3));
        FioJob.checkFlushed(cluster.nbdUri(1 + random.nextInt(3), "flushed"), MEBIBYTES, seed);
    }

    /** The others go on without it, and nothing that was acknowledged may be missing (P5). */
    private void oneLosesPower(LossyCluster lossy, int round) throws IOException {
        LocalCluster cluster = lossy.cluster();
        long seed = SEED + 1000L * round;
        Random random = new Random(seed);
        int victim = 1 + random.nextInt(3);
        String written;
        Map<String, Long> losses;
        double seconds;
        try (CheckedWriter writer =
                CheckedWriter.start(
                        cluster.nbdUri(1 + victim % 3, "checked"),
                        state(),
                        seed,
                        Promise.ACKNOWLEDGED,
                        FLUSHES[random.nextInt(FLUSHES.length)])) {
            writer.awaitConnected();
            pause(random);
            cluster.kill(victim);
            losses = lossy.losePower(seed, false, victim);
            pause(random);
            seconds = lossy.restart();
            cluster.awaitInSync("flushed", IN_SYNC_LIMIT);
            written = writer.stop();
        }
        report("node" + victim + " lost power, the others ran", written, losses, seconds);
        check(cluster, victim);
        cluster.assertReplicasEqual("checked");
    }

    /** All processes die; two find their page caches again, and in them what was acknowledged. */
    private void oneOfTheKilledLosesPower(LossyCluster lossy, int round) throws IOException {
        LocalCluster cluster = lossy.cluster();
        long seed = SEED + 2000L * round;
        Random random = new Random(seed);
        int victim = 1 + random.nextInt(3);
        String written;
        try (CheckedWriter writer =
                CheckedWriter.start(
                        cluster.nbdUri(1 + random.nextInt(3), "checked"),
                        state(),
                        seed,
                        Promise.ACKNOWLEDGED,
                        FLUSHES[random.nextInt(FLUSHES.length)])) {
            writer.awaitConnected();
            pause(random);
            cluster.kill(LossyCluster.allNodes());
            written = writer.awaitBroken();
        }
        Map<String, Long> losses = lossy.losePower(seed, false, victim);
        double seconds = lossy.restart();
        report("node" + victim + " lost power, the others were killed", written, losses, seconds);
        check(cluster, 1 + random.nextInt(3));
        cluster.assertReplicasEqual("checked");
    }

    /** The proof that the checks can fail: journals whose syncs do nothing lose flushed data. */
    @Test
    void syncsThatDoNothingAreFoundOut() throws IOException {
        try (LossyCluster lossy = LossyCluster.start(dir, "")) {
            LocalCluster cluster = lossy.cluster();
            cluster.cli("volume", "create", "checked", "--size", "64M").succeeds();
            for (int node = 1; node <= LossyCluster.NODES; node++) {
                lossy.disk(node).ignoreSyncs(".seg");
            }
            try (CheckedWriter writer =
                    CheckedWriter.start(
                            cluster.nbdUri(1, "checked"), state(), SEED, Promise.FLUSHED, 0.04)) {
                writer.awaitFlushed();
                cluster.kill(LossyCluster.allNodes());
                System.out.println(writer.awaitBroken());
            }
            lossy.losePower(SEED, true, LossyCluster.allNodes());
            lossy.restart();
            Tool.Result found = CheckedWriter.check(cluster.nbdUri(2, "checked"), state());
            System.out.println(found.output().lines().reduce("", (before, line) -> line));
            assertThat(found.exit()).as(found.output()).isEqualTo(1);
            assertThat(found.output()).contains("blocks lost");
        }
    }

    private static void pause(Random random) {
        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(random.nextInt(LONGEST_LOAD_MILLIS)));
    }

    private Path state() {
        return dir.resolve("checked.json");
    }

    private void check(LocalCluster cluster, int through) {
        Tool.Result checked = CheckedWriter.check(cluster.nbdUri(through, "checked"), state());
        System.out.println("  " + checked.output().strip());
        checked.succeeds();
    }

    private void report(String what, String written, Map<String, Long> losses, double seconds) {
        losses.forEach((name, count) -> lost.merge(name, count, Long::sum));
        System.out.printf("%s; %s%n  %s; served after %.1f s%n", what, written, losses, seconds);
    }
}
