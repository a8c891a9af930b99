package io.holdfast.config;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The parts of the launcher that need no node: its functions, sourced into a shell. */
class LauncherTest {
    private static final Path LAUNCHER = Path.of("..", "holdfast").toAbsolutePath().normalize();

    @TempDir Path folder;

    private Path dir;
    private String output = "";

    @BeforeEach
    void place() {
        dir = folder.resolve("cluster");
    }

    /** Runs a script after the launcher's functions; the build is taken as done. */
    private int bash(String script) throws IOException, InterruptedException {
        return run(
                List.of(
                        "bash",
                        "-c",
                        "source '" + LAUNCHER + "'; ensure_built() { DIST=/none; };\n" + script));
    }

    private int run(List<String> command) throws IOException, InterruptedException {
        Process process =
                new ProcessBuilder(command)
                        .directory(folder.toFile())
                        .redirectErrorStream(true)
                        .start();
        process.getOutputStream().close();
        output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
        return process.exitValue();
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    @Test
    void helpListsEveryCommandAndTheExitCodes() throws Exception {
        assertThat(run(List.of(LAUNCHER.toString(), "--help"))).isZero();
        assertThat(output)
                .contains("holdfast up [--nodes N] [--dir DIR] [--base-port P]")
                .contains("holdfast down [--dir DIR] [--wipe]")
                .contains("holdfast node --config FILE")
                .contains("holdfast volume create")
                .contains("holdfast status")
                .contains("holdfast test")
                .contains("Exit codes: 0 done");
    }

    @Test
    void worksThroughASymbolicLink() throws Exception {
        Path link = Files.createSymbolicLink(folder.resolve("hf"), LAUNCHER);
        assertThat(run(List.of(link.toString(), "up", "--nodes", "2"))).isEqualTo(2);
        assertThat(output).contains("--nodes 2: needs 1, 3, 5 or 7");
        assertThat(run(List.of("bash", "-c", "source '" + link + "'; echo \"$ROOT\""))).isZero();
        assertThat(output.strip()).isEqualTo(String.valueOf(LAUNCHER.getParent()));
    }

    @Test
    void writesAClusterThatLoadsWithAKeyThatOnlyItsOwnerReads() throws Exception {
        assertThat(bash("NODES=3 BASE=10809; write_cluster " + dir)).isZero();

        for (int k = 1; k <= 3; k++) {
            Path node = dir.resolve("node-" + k);
            NodeConfig config = ConfigLoader.load(node.resolve("node.conf"));
            assertThat(config.self().number()).isEqualTo(k);
            assertThat(config.self().nbd()).hasToString("127.0.0.1:" + (10808 + k));
            assertThat(config.self().http()).hasToString("127.0.0.1:" + (8800 + k));
            assertThat(config.self().peer()).hasToString("127.0.0.1:" + (11808 + k));
            assertThat(config.self().coordination()).hasToString("127.0.0.1:" + (12808 + k));
            assertThat(config.dataDirectory()).isEqualTo(node.resolve("data"));
            assertThat(config.clusterKeyFile()).isEqualTo(dir.resolve("cluster.key"));
        }
        Path key = dir.resolve("cluster.key");
        assertThat(Files.readString(key)).matches("[0-9a-f]{64}\n");
        assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(key)))
                .isEqualTo("rw-------");
    }

    @Test
    void keepsKeyAndConfigurationOfAnExistingCluster() throws Exception {
        assertThat(bash("NODES=1 BASE=10809; write_cluster " + dir)).isZero();
        String key = Files.readString(dir.resolve("cluster.key"));
        Path conf = dir.resolve("node-1").resolve("node.conf");
        Files.writeString(conf, Files.readString(conf) + "node.limits.segment-size = 32M\n");
        String edited = Files.readString(conf);

        assertThat(bash("NODES=1 BASE=10809; write_cluster " + dir)).isZero();
        assertThat(Files.readString(dir.resolve("cluster.key"))).isEqualTo(key);
        assertThat(Files.readString(conf)).isEqualTo(edited);
    }

    @Test
    void doesNotMakeANewKeyForDataOfALostOne() throws Exception {
        assertThat(bash("NODES=1 BASE=10809; write_cluster " + dir)).isZero();
        Files.createDirectory(dir.resolve("node-1").resolve("data"));
        Files.delete(dir.resolve("cluster.key"));

        assertThat(bash("NODES=1 BASE=10809; write_cluster " + dir)).isEqualTo(1);
        assertThat(output).contains("cluster.key is missing").contains("Bring the key back");
        assertThat(dir.resolve("cluster.key")).doesNotExist();
    }

    @Test
    void refusesAnotherShapeThanTheClusterHas() throws Exception {
        assertThat(bash("NODES=3 BASE=20809; write_cluster " + dir)).isZero();
        assertThat(bash("up --dir " + dir + " --nodes 1")).isEqualTo(2);
        assertThat(output).contains("--nodes 1: the cluster in " + dir + " has 3 nodes");
        assertThat(bash("up --dir " + dir + " --base-port 10809")).isEqualTo(2);
        assertThat(output).contains("--base-port 10809: the cluster in " + dir + " has 20809");
    }

    @Test
    void touchesNoFolderThatIsNotItsOwn() throws Exception {
        Files.createDirectories(dir.resolve("node-1"));
        Files.writeString(dir.resolve("cluster.key"), "mine");

        assertThat(bash("up --dir " + dir)).isEqualTo(2);
        assertThat(output).contains("was not made by 'holdfast up'");
        assertThat(bash("down --wipe --dir " + dir)).isEqualTo(2);
        assertThat(output).contains("nothing is touched");
        assertThat(dir.resolve("cluster.key")).hasContent("mine");
    }

    @Test
    void refusesWrongOptionsNamingThem() throws Exception {
        assertThat(bash("up --node 3")).isEqualTo(2);
        assertThat(output).contains("up does not know --node");
        assertThat(bash("up --nodes")).isEqualTo(2);
        assertThat(output).contains("--nodes needs a value");
        assertThat(bash("up --base-port 80")).isEqualTo(2);
        assertThat(output).contains("--base-port 80: needs a port from 3032 to 63500");
        assertThat(bash("down --force")).isEqualTo(2);
        assertThat(bash("run_node")).isEqualTo(2);
        assertThat(output).contains("node needs --config FILE");
    }

    @Test
    void namesThePortThatAnotherProcessUses() throws Exception {
        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            int port = taken.getLocalPort();
            // The taken port is the peer port of node 1, NBD is 1000 below it.
            assertThat(bash("check_ports 1 " + (port - 1000))).isEqualTo(1);
            assertThat(output)
                    .contains("port " + port + " (tcp), node1's peer (cluster.nodes[0].peer)")
                    .contains("is in use by another process")
                    .contains("--base-port");
        }
        assertThat(bash("port_taken " + freePort() + " tcp")).isEqualTo(1);
    }

    @Test
    void aPidFileWithAStrangersPidIsNotBelieved() throws Exception {
        assertThat(bash("NODES=1 BASE=10809; write_cluster " + dir)).isZero();
        Path pidFile = dir.resolve("node-1").resolve("holdfast.pid");
        Process stranger = new ProcessBuilder("sleep", "60").start();
        try {
            Files.writeString(pidFile, stranger.pid() + "\n");
            assertThat(bash("node_pid " + dir + "/node-1")).isZero();
            assertThat(output).isEmpty();
            assertThat(bash("down --dir " + dir)).isZero();
            assertThat(output).contains("is down: 0 nodes stopped");
            assertThat(stranger.isAlive()).isTrue();
        } finally {
            stranger.destroyForcibly().waitFor();
        }
    }

    @Test
    void findsANodeByItsCommandLineStopsItAndWipesWhatItMade() throws Exception {
        assertThat(bash("NODES=1 BASE=10809; write_cluster " + dir)).isZero();
        Files.createDirectory(dir.resolve("node-1").resolve("data"));
        String conf = dir.resolve("node-1").resolve("node.conf").toString();
        // The same last three arguments as a node; no pid file.
        List<String> likeANode = new ArrayList<>(List.of("bash", "-c", "read -r -t 60 _ <> <(:)"));
        likeANode.addAll(List.of("io.holdfast.node.Main", "--config", conf));
        Process process = new ProcessBuilder(likeANode).start();
        try {
            assertThat(bash("down --wipe --dir " + dir)).isZero();
            assertThat(output)
                    .contains("stopping node-1 (pid " + process.pid() + ")")
                    .contains("1 node stopped")
                    .contains("removing " + dir + "/node-1/")
                    .contains("removing " + dir + "/cluster.key");
            assertThat(process.waitFor(10, TimeUnit.SECONDS)).isTrue();
            assertThat(dir).doesNotExist();
        } finally {
            process.destroyForcibly().waitFor();
        }
    }

    @Test
    void saysWhatToInstallWhenThereIsNoJdk() throws Exception {
        assertThat(bash("jdk_version() { echo 17; }; find_jdk")).isEqualTo(1);
        assertThat(output)
                .contains("needs a JDK 25 or newer; found:")
                .contains("(17)")
                .contains("temurin-25-jdk");
    }
}
