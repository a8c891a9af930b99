package io.holdfast.integration;

import static org.assertj.core.api.Assertions.assertThat;

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

/** Promise P9: a full store gives "no space", and a trim is enough to bring writes back. */
@Timeout(value = 10, unit = TimeUnit.MINUTES)
class FullDiskIT {
    private static final String SMALL_STORE =
            "node.limits { store-size = 512M, segment-size = 16M, checkpoint-size = 32M }\n";

    private static final String FILL =
            """
            import errno, os, sys, time
            M = 1 << 20
            data = os.urandom(M)
            h.connect_uri(os.environ["URI"])

            def write(at):
                try:
                    h.pwrite(data, at * M)
                    return 0
                except nbd.Error as e:
                    return e.errno

            def intact(first, end):
                return all(bytes(h.pread(M, i * M)) == data for i in range(first, end))

            n = 0
            error = write(n)
            while not error:
                n += 1
                error = write(n)
            assert error == "ENOSPC", error
            assert n > 256, n
            assert intact(0, n), "reads of a full store"
            assert write(n) == "ENOSPC"
            h.trim(n // 2 * M, 0)
            began = time.monotonic()
            while write(n):
                assert time.monotonic() - began < 60, "writes do not come back"
            assert intact(n // 2, n + 1), "what was not trimmed"
            print("full after %d MiB, back %.1f s after a trim" % (n, time.monotonic() - began))
            """;

    @TempDir Path dir;

    @Test
    void aFullStoreRefusesWritesServesReadsAndComesBackByATrim() throws IOException {
        try (LocalCluster cluster = LocalCluster.start(dir.resolve("cluster"), 3)) {
            cluster.cli("down").succeeds();
            for (int node = 1; node <= 3; node++) {
                Files.writeString(
                        cluster.nodeDir(node).resolve("node.conf"),
                        SMALL_STORE,
                        StandardOpenOption.APPEND);
            }
            cluster.up();
            cluster.cli("volume", "create", "data", "--size", "1G").succeeds();
            Tool.Result filled =
                    Tool.run(
                                    Duration.ofMinutes(5),
                                    Map.of("URI", cluster.nbdUri(2, "data")),
                                    List.of(Tool.nbdsh("-c", FILL)))
                            .succeeds();
            System.out.print(filled.output());
            cluster.assertReplicasEqual("data");
            cluster.kill(1, 2, 3);
            cluster.up();
            cluster.assertReplicasEqual("data");
            assertThat(cluster.cli("volume", "delete", "data", "--yes").succeeds().exit()).isZero();
        }
    }
}
