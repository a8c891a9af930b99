package io.holdfast.integration;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Promise P8: bytes change in segment files, while nodes run and while they are down, and clients
 * notice nothing as long as one replica has the block.
 */
@Timeout(value = 10, unit = TimeUnit.MINUTES)
class RepairIT {
    private static final String CONTENT =
            """
            import os, sys
            h.connect_uri(os.environ["URI"])
            def content(i):
                return ((b"block %012d " % i) * 256)[:4096]
            """;

    /** One call per block, so that each is a record of its own. */
    private static final String WRITE =
            """
            for i in range(64):
                h.pwrite(content(i), i * 4096)
            h.flush()
            """;

    private static final String VERIFY =
            """
            bad = [int(b) for b in os.environ["BAD"].split()]
            for i in range(64):
                try:
                    assert bytes(h.pread(4096, i * 4096)) == content(i), "block %d" % i
                    assert i not in bad, "block %d should fail" % i
                except nbd.Error as e:
                    assert e.errno == "EIO", e
                    assert i in bad, "block %d: %s" % (i, e)
            if not bad:
                assert bytes(h.pread(64 * 4096, 0)) == b"".join(content(i) for i in range(64))
            """;

    @TempDir Path dir;

    private static void nbdsh(LocalCluster cluster, int node, String script, String bad) {
        Tool.run(
                        Duration.ofMinutes(2),
                        Map.of("URI", cluster.nbdUri(node, "data"), "BAD", bad),
                        List.of(Tool.nbdsh("-c", CONTENT + script)))
                .succeeds();
    }

    /** Blocks that a node has repaired since it was started. */
    private static long repaired(LocalCluster cluster, int node) {
        String metrics =
                Tool.run(
                                Duration.ofSeconds(20),
                                "curl",
                                "-sS",
                                "http://127.0.0.1:" + cluster.httpPort(node) + "/metrics")
                        .succeeds()
                        .output();
        return metrics.lines()
                .filter(line -> line.startsWith("holdfast_store_repaired_blocks"))
                .mapToLong(line -> (long) Double.parseDouble(line.split(" ", -1)[1]))
                .findFirst()
                .orElseThrow(() -> new AssertionError("no such metric in\n" + metrics));
    }

    private static int otherThan(int node) {
        return 1 + node % 3;
    }

    @Test
    void damagedBlocksAreReadFromAnotherReplicaAndRepaired() throws IOException {
        try (LocalCluster cluster = LocalCluster.start(dir.resolve("cluster"), 3)) {
            cluster.cli("volume", "create", "data", "--size", "64M", "--attach", "shared")
                    .succeeds();
            nbdsh(cluster, 1, WRITE, "");
            // An orderly stop takes a checkpoint: what a start reads lies behind the blocks now. In
            // there it refuses damage, see RecoveryTest.
            cluster.cli("down").succeeds();
            cluster.up();
            cluster.awaitInSync("data", Duration.ofSeconds(60));

            // While the nodes run: the leader's copies, and those of followers, which lead later.
            for (int node = 1; node <= 3; node++) {
                Rot.damage(cluster, node, node);
                Rot.damage(cluster, node, 10 + node);
            }
            int leader = cluster.leader("data");
            nbdsh(cluster, otherThan(leader), VERIFY, "");
            assertThat(repaired(cluster, leader)).isEqualTo(2);
            nbdsh(cluster, leader, VERIFY, "");
            assertThat(repaired(cluster, leader)).as("repaired once").isEqualTo(2);

            // Failover to a node with bad copies; only one other has them.
            cluster.kill(leader);
            int front = otherThan(leader);
            nbdsh(cluster, front, VERIFY, "");
            int next = cluster.leader("data");
            assertThat(next).isNotEqualTo(leader);
            assertThat(repaired(cluster, next)).isEqualTo(2);
            cluster.up();
            cluster.awaitInSync("data", Duration.ofSeconds(60));

            // At rest.
            cluster.cli("down").succeeds();
            for (int node = 1; node <= 3; node++) {
                Rot.damage(cluster, node, 20 + node);
            }
            cluster.up();
            nbdsh(cluster, 1, VERIFY, "");
            assertThat(repaired(cluster, cluster.leader("data"))).isPositive();

            // No replica has it: an error for just that block, and a write brings it back.
            for (int node = 1; node <= 3; node++) {
                Rot.damage(cluster, node, 40);
            }
            nbdsh(cluster, 2, VERIFY, "40");
            nbdsh(cluster, 2, "h.pwrite(content(40), 40 * 4096)", "");
            nbdsh(cluster, 3, VERIFY, "");
        }
    }
}
