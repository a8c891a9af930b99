package io.holdfast.integration;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

/**
 * The leader dies or freezes in mid-write, again and again, under a client attached to another node
 * that verifies every block.
 */
class KillIT {
    private static final int ROUNDS = Integer.getInteger("holdfast.it.rounds", 8);
    private static final Duration PAUSE = Duration.ofSeconds(20);
    private static final Duration INTO_THE_WRITES = Duration.ofSeconds(2);

    /**
     * Of a write when the leader dies, and when it freezes. Measured: 360 to 775 ms and 682 to 1062
     * ms, on a loaded machine up to 1.6 s. The promises, one and two seconds, are for machines with
     * processors to spare; this bound is for stalls that no load explains, such as a follower that
     * waits for a time-out or for Atomix (0.5 to 17 s) before it leads.
     */
    private static final double LONGEST_STALL_MILLIS = 5000;

    /** fio's and the cluster's own limits end a round that hangs before. */
    @RegisterExtension
    static final TimeLimit LIMIT =
            TimeLimit.of(Duration.ofMinutes(10), ROUNDS, Duration.ofMinutes(4));

    @TempDir Path dir;

    @Test
    void clientOfASurvivingNodeNoticesNoMoreThanAShortStall() {
        double worst = 0;
        try (LocalCluster cluster = LocalCluster.start(dir, 3)) {
            cluster.cli("volume", "create", "data", "--size", "512M").succeeds();
            for (int round = 1; round <= ROUNDS; round++) {
                int leader = cluster.leader("data");
                int through =
                        1 + (leader + round) % 3 == leader
                                ? 1 + leader % 3
                                : 1 + (leader + round) % 3;
                boolean freeze = round % 2 == 0;
                double longest = round(cluster, leader, through, freeze);
                worst = Math.max(worst, longest);
                String what =
                        String.format(
                                "round %d: node%d %s, client at node%d, longest write %.0f ms",
                                round, leader, freeze ? "frozen" : "killed", through, longest);
                System.out.println(what);
                assertThat(longest).as(what).isLessThan(LONGEST_STALL_MILLIS);
            }
            cluster.assertReplicasEqual("data");
        }
        System.out.printf("worst write stall of %d rounds: %.0f ms%n", ROUNDS, worst);
    }

    private double round(LocalCluster cluster, int leader, int through, boolean freeze) {
        try (FioJob fio = FioJob.verifiedWrites(cluster.nbdUri(through, "data"), 128, 5000)) {
            LockSupport.parkNanos(INTO_THE_WRITES.toNanos());
            assertThat(fio.isRunning()).as("fio still writes when the leader goes").isTrue();
            if (freeze) {
                cluster.signal(leader, "STOP");
                LockSupport.parkNanos(PAUSE.toNanos());
                cluster.signal(leader, "CONT");
            } else {
                cluster.kill(leader);
            }
            double longest = fio.longestWriteMillis();
            cluster.up();
            cluster.awaitInSync("data", Duration.ofSeconds(60));
            return longest;
        }
    }
}
