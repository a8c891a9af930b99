package io.holdfast.integration;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What the README promises, with stock tools, on one cluster of three node processes. */
@Timeout(value = 10, unit = TimeUnit.MINUTES)
class ClusterIT {
    private static final Duration LIMIT = Duration.ofMinutes(4);
    private static final int MIB = 1 << 20;

    @TempDir static Path dir;
    private static LocalCluster cluster;

    @BeforeAll
    static void start() {
        cluster = LocalCluster.start(dir.resolve("cluster"), 3);
    }

    @AfterAll
    static void stop() {
        cluster.close();
    }

    private static Tool.Result run(String... command) {
        return Tool.run(LIMIT, command);
    }

    private static void create(String name, String size, String... more) {
        List<String> command = new ArrayList<>(List.of("volume", "create", name, "--size", size));
        command.addAll(List.of(more));
        cluster.cli(command.toArray(String[]::new)).succeeds();
    }

    @Test
    void stockToolsSeeTheVolumeThroughEveryNode() {
        create("seen", "64M");
        for (int node = 1; node <= 3; node++) {
            String list =
                    run("nbdinfo", "--list", "nbd://127.0.0.1:" + cluster.nbdPort(node))
                            .succeeds()
                            .output();
            assertThat(list).contains("seen");
            String info = run("nbdinfo", cluster.nbdUri(node, "seen")).succeeds().output();
            assertThat(info).contains("67108864").contains("can_multi_conn: true");
        }
        assertThat(cluster.cli("volume", "list").succeeds().output()).contains("seen");
    }

    @Test
    void statusHasTheDocumentedShape() {
        create("shape", "16M", "--shards", "2");
        JsonNode status = cluster.status();
        assertThat(status.path("nodes")).hasSize(3);
        for (JsonNode node : status.path("nodes")) {
            assertThat(node.path("state").asText()).isEqualTo("alive");
            assertThat(node.path("nbd").asText()).contains(":");
            assertThat(node.path("http").asText()).contains(":");
        }
        for (JsonNode volume : status.path("volumes")) {
            if (volume.path("name").asText().equals("shape")) {
                assertThat(volume.path("sizeBytes").asLong()).isEqualTo(16L * MIB);
                assertThat(volume.path("shards")).hasSize(2);
                for (JsonNode shard : volume.path("shards")) {
                    assertThat(shard.path("leader").asText()).startsWith("node");
                    assertThat(shard.path("epoch").asLong()).isPositive();
                    assertThat(shard.path("replicas")).hasSize(3);
                }
            }
        }
    }

    @Test
    void whatOneNodeWritesAnotherReads() {
        create("pattern", "64M", "--shards", "3");
        run(
                        "qemu-io",
                        "-f",
                        "raw",
                        "-c",
                        "write -P 0xa5 0 1M",
                        "-c",
                        "write -P 0x5a 12345 6789",
                        "-c",
                        "write -z 2M 1M",
                        "-c",
                        "write -P 0x77 67104768 4096",
                        "-c",
                        "flush",
                        cluster.nbdUri(1, "pattern"))
                .succeeds();
        String read =
                run(
                                "qemu-io",
                                "-r",
                                "-f",
                                "raw",
                                "-c",
                                "read -P 0xa5 0 12345",
                                "-c",
                                "read -P 0x5a 12345 6789",
                                "-c",
                                "read -P 0xa5 19134 1029442",
                                "-c",
                                "read -P 0 2M 1M",
                                "-c",
                                "read -P 0x77 67104768 4096",
                                cluster.nbdUri(2, "pattern"))
                        .succeeds()
                        .output();
        assertThat(read).doesNotContain("failed").contains("read 4096/4096");
        cluster.assertReplicasEqual("pattern");
    }

    @Test
    void gibibyteGoesInThroughOneNodeAndOutThroughAnother() throws IOException {
        create("copy", "1G");
        Path source = dir.resolve("source");
        Path copy = dir.resolve("copy");
        run("dd", "if=/dev/urandom", "of=" + source, "bs=1M", "count=1024", "status=none")
                .succeeds();
        run("nbdcopy", source.toString(), cluster.nbdUri(1, "copy")).succeeds();
        run("nbdcopy", cluster.nbdUri(3, "copy"), copy.toString()).succeeds();
        assertThat(Files.mismatch(source, copy)).isEqualTo(-1);
        cluster.assertReplicasEqual("copy");
        Files.delete(source);
        Files.delete(copy);
        cluster.cli("volume", "delete", "copy", "--yes").succeeds();
    }

    @Test
    void fileSystemMadeThroughOneNodeIsCleanThroughAnother() throws IOException {
        create("ext4", "256M");
        Path files = Files.createDirectories(dir.resolve("files/deep"));
        byte[] content = new byte[3 * MIB];
        new Random(1).nextBytes(content);
        Files.write(files.resolve("random"), content);
        Path mount = Files.createDirectory(dir.resolve("fuse"));
        withNbdfuse(
                mount,
                1,
                "ext4",
                image ->
                        run(
                                        "mkfs.ext4",
                                        "-q",
                                        "-F",
                                        "-d",
                                        dir.resolve("files").toString(),
                                        image.toString())
                                .succeeds());
        Path back = dir.resolve("back");
        withNbdfuse(
                mount,
                2,
                "ext4",
                image -> {
                    run("e2fsck", "-f", "-n", image.toString()).succeeds();
                    run("debugfs", "-R", "dump /deep/random " + back, image.toString()).succeeds();
                });
        assertThat(Files.readAllBytes(back)).isEqualTo(content);
    }

    private interface OnImage {
        void use(Path image) throws IOException;
    }

    private static void withNbdfuse(Path mount, int node, String volume, OnImage use)
            throws IOException {
        Path image = mount.resolve("nbd");
        try (Tool fuse = Tool.start("nbdfuse", mount.toString(), cluster.nbdUri(node, volume))) {
            LocalCluster.await(
                    "nbdfuse to mount:\n" + fuse.output(),
                    Duration.ofSeconds(20),
                    () -> Files.exists(image));
            try {
                use.use(image);
            } finally {
                run("fusermount3", "-u", mount.toString()).succeeds();
                fuse.await(Duration.ofSeconds(20));
            }
        }
    }

    @Test
    void journalsMapsAndPeerTrafficHoldNoPlaintext() throws IOException {
        String secret = "HOLDFAST-KNOWN-PLAINTEXT-0123456";
        create("secret", "16M");
        Path plain = dir.resolve("plain");
        Files.writeString(plain, secret.repeat(4 * MIB / secret.length()));
        Path capture = dir.resolve("peers.pcap");
        try (Tool tcpdump =
                Tool.start(
                        "tcpdump",
                        "-i",
                        "lo",
                        "-U",
                        "-Z",
                        "root",
                        "-s",
                        "0",
                        "-w",
                        capture.toString(),
                        "tcp and ("
                                + "port "
                                + cluster.peerPort(1)
                                + " or port "
                                + cluster.peerPort(2)
                                + " or port "
                                + cluster.peerPort(3)
                                + ")")) {
            LocalCluster.await(
                    "tcpdump to listen",
                    Duration.ofSeconds(20),
                    () -> tcpdump.output().contains("listening on"));
            run("nbdcopy", plain.toString(), cluster.nbdUri(2, "secret")).succeeds();
            run(Tool.nbdsh("-u", cluster.nbdUri(2, "secret"), "-c", "h.flush()")).succeeds();
            LocalCluster.await(
                    "the replicas' traffic to be captured",
                    Duration.ofSeconds(20),
                    () -> capture.toFile().length() > 8 * MIB);
        }
        cluster.awaitInSync("secret", Duration.ofSeconds(30));
        assertThat(Files.readString(plain)).contains(secret);
        for (String where : List.of(capture.toString(), cluster.dir().toString())) {
            Tool.Result found = run("grep", "-rlaF", "HOLDFAST-KNOWN-PLAINTEXT", where);
            assertThat(found.output()).isEmpty();
            assertThat(found.exit()).isEqualTo(1);
        }
    }

    @Test
    void wrongClientsCostNothing() throws IOException {
        create("calm", "64M");
        // First the heap takes what this load needs; what it takes from then on would be a leak.
        disturb();
        long before = cluster.residentBytes(1);
        disturb();
        long after = cluster.residentBytes(1);
        System.out.printf("memory of node1: %d MiB, then %d MiB%n", before / MIB, after / MIB);
        assertThat(after - before).isLessThan(128L * MIB);
    }

    /** Wrong clients of every kind beside one that verifies what it writes. */
    private static void disturb() throws IOException {
        try (FioJob others = FioJob.verifiedWrites(cluster.nbdUri(1, "calm"), 32, 1500)) {
            Random random = new Random(7);
            for (int i = 0; i < 200; i++) {
                byte[] noise = new byte[1 + random.nextInt(4096)];
                random.nextBytes(noise);
                say(noise);
            }
            byte[] optionHead =
                    ByteBuffer.allocate(20)
                            .putInt(3)
                            .putLong(0x49484156454F5054L)
                            .putInt(7)
                            .putInt(100 * MIB)
                            .array();
            for (int i = 0; i < 20; i++) {
                sayThenFlood(optionHead, 100 * MIB);
                say(Arrays.copyOf(optionHead, 1 + i));
            }
            // Out of range, and gone in mid-payload: with libnbd's strict mode off.
            Tool.Result illegal =
                    run(
                            Tool.nbdsh(
                                    "-c",
                                    "h.set_strict_mode(0)",
                                    "-u",
                                    cluster.nbdUri(1, "calm"),
                                    "-c",
                                    """
                                    errors = 0
                                    for offset in (64 << 20, (64 << 20) - 1, 1 << 62):
                                        try:
                                            h.pread(4096, offset)
                                        except nbd.Error as e:
                                            errors += e.errno == "EINVAL"
                                        try:
                                            h.pwrite(b"x" * 4096, offset)
                                        except nbd.Error as e:
                                            errors += e.errno in ("EINVAL", "ENOSPC")
                                    assert errors == 6, errors
                                    h.pread(4096, 0)
                                    """));
            illegal.succeeds();
            others.longestWriteMillis();
        }
    }

    private static void say(byte[] bytes) throws IOException {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), cluster.nbdPort(1))) {
            socket.getOutputStream().write(bytes);
        } catch (SocketException refused) {
            // The server may hang up on noise while it is still being said.
            assertThat(refused).hasMessageMatching("(?i).*(broken pipe|reset).*");
        }
    }

    private static void sayThenFlood(byte[] head, int bytes) throws IOException {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), cluster.nbdPort(1))) {
            OutputStream out = socket.getOutputStream();
            out.write(head);
            byte[] zeroes = new byte[MIB];
            for (int sent = 0; sent < bytes; sent += zeroes.length) {
                out.write(zeroes);
            }
        } catch (SocketException refused) {
            assertThat(refused).hasMessageMatching("(?i).*(broken pipe|reset).*");
        }
    }

    @Test
    void aVolumeThatIsWrittenToIsDeletedByForceOnly() throws IOException {
        create("held", "1G");
        try (CheckedWriter writer =
                CheckedWriter.start(
                        cluster.nbdUri(1, "held"),
                        dir.resolve("held.json"),
                        1,
                        CheckedWriter.Promise.ACKNOWLEDGED,
                        0)) {
            writer.awaitAcknowledged(1, Duration.ofSeconds(20));
            Tool.Result refused = cluster.cli("volume", "delete", "held", "--yes");
            assertThat(refused.exit()).isEqualTo(6);
            assertThat(refused.output()).contains("127.0.0.1@node1 holds it").contains("--force");
            writer.assertRunning();
            cluster.cli("volume", "delete", "held", "--yes", "--force").succeeds();
        }
    }

    @Test
    void badCommandsNameTheValueAndTheRemedy() {
        assertThat(cluster.cli("volume", "create", "bad/name", "--size", "1G").fails().output())
                .contains("bad/name")
                .doesNotContain("Exception");
        assertThat(cluster.cli("volume", "create", "odd", "--size", "1000").fails().output())
                .contains("1000")
                .doesNotContain("Exception");
        assertThat(cluster.cli("volume", "show", "nobody").fails().output()).contains("nobody");
        create("twice", "16M");
        assertThat(cluster.cli("volume", "create", "twice", "--size", "16M").fails().output())
                .contains("twice");
        assertThat(cluster.cli("volume", "delete", "twice").fails().output()).contains("--yes");
    }
}
