package io.holdfast.config;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

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
                .contains("holdfast down [--dir DIR] [--wipe [--yes]]")
                .contains("holdfast node --config FILE")
                .contains("holdfast volume create")
                .contains("holdfast status")
                .contains("holdfast store inspect DIR [--json]")
                .contains("holdfast store verify DIR [--json]")
                .contains("holdfast test")
                .contains("Exit codes: 0 done");
    }

    @ParameterizedTest
    @ValueSource(strings = {"up", "down", "node", "test", "simulate", "nemesis"})
    void helpOfTheLaunchersOwnCommandsNeedsNoBuildAndNoMaven(String command) throws Exception {
        String noBuild =
                "ensure_built() { die 1 built; }; need_maven() { die 1 maven; }; main "
                        + command
                        + " --nodes 3 --help";
        assertThat(bash(noBuild)).isZero();
        assertThat(output)
                .startsWith("Usage: holdfast " + command)
                .contains("Examples:\n  holdfast " + command)
                .contains("Exit codes:");
    }

    @Test
    void helpOfTheOtherCommandsWorksBeforeTheFirstBuild() throws Exception {
        String noBuild = "ROOT=" + folder + "; ensure_built() { die 1 built; }; ";
        assertThat(bash(noBuild + "main status --help")).isZero();
        assertThat(output).contains("holdfast status [--watch]").contains("Nothing is built yet");
        assertThat(bash(noBuild + "main status")).isEqualTo(1);
    }

    @ParameterizedTest
    @CsvSource({
        "stats, Did you mean 'status'?",
        "vol, Did you mean 'volume'?",
        "dwon, Did you mean 'down'?",
        "create, Did you mean 'volume create'?",
        "frobnicate, there is no command 'frobnicate'.",
        "--frob, there is no command '--frob'.",
    })
    void namesTheNearestCommandAndListsAll(String typed, String answer) throws Exception {
        assertThat(bash("ensure_built() { die 1 built; }; main " + typed)).isEqualTo(2);
        assertThat(output)
                .contains(answer)
                .contains(
                        "Commands: up down node test simulate nemesis volume status scrub"
                                + " debug bench store version");
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
        assertThat(modes(key)).isEqualTo("rw-------");
    }

    @Test
    void onlyTheOwnerGetsIntoAClustersFolder() throws Exception {
        Files.createDirectory(dir);
        assertThat(bash("umask 022; NODES=1 BASE=10809; write_cluster " + dir)).isZero();
        assertThat(modes(dir)).isEqualTo("rwx------");
        assertThat(modes(dir.resolve("node-1"))).isEqualTo("rwx------");
        assertThat(modes(dir.resolve("cluster.conf"))).isEqualTo("rw-------");

        // What a node writes: here a node is a program that ends.
        assertThat(
                        bash(
                                "exec {LOCK}</dev/null; umask 022; node_command() { COMMAND=(touch made); }; start_node "
                                        + dir
                                        + "/node-1; wait; timeout 20 bash -c 'until [[ -e "
                                        + dir
                                        + "/node-1/made ]]; do sleep 0.05; done'"))
                .isZero();
        assertThat(modes(dir.resolve("node-1").resolve("made"))).isEqualTo("rw-------");
        assertThat(modes(dir.resolve("node-1").resolve("holdfast.log"))).isEqualTo("rw-------");
    }

    private static String modes(Path file) throws IOException {
        return PosixFilePermissions.toString(Files.getPosixFilePermissions(file));
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
    void asksAPersonAtATerminalBeforeItWipes() throws Exception {
        assertThat(bash("NODES=1 BASE=10809; write_cluster " + dir)).isZero();
        assertThat(onTerminal("no")).isEqualTo(1);
        assertThat(output).contains("Type yes").contains("nothing was touched");
        assertThat(dir.resolve("cluster.key")).exists();

        assertThat(onTerminal(dir.toString())).isZero();
        assertThat(dir).doesNotExist();

        assertThat(bash("NODES=1 BASE=10809; write_cluster " + dir)).isZero();
        assertThat(bash("down --wipe --dir " + dir)).isZero();
        assertThat(dir).doesNotExist();
    }

    /** Runs {@code down --wipe} on a terminal, where somebody types an answer. */
    private int onTerminal(String answer) throws IOException, InterruptedException {
        return bash(
                "echo '%s' | script -qec '%s down --wipe --dir %s' /dev/null"
                        .formatted(answer, LAUNCHER, dir));
    }

    @Test
    void wipesOnlyTheNodeFoldersItMade() throws Exception {
        assertThat(bash("NODES=3 BASE=10809; write_cluster " + dir)).isZero();
        List<Path> others = new ArrayList<>();
        for (String name : List.of("node-backup", "node-4", "node-1-old", "node-01")) {
            others.add(Files.createDirectory(dir.resolve(name)));
        }
        assertThat(bash("down --wipe --yes --dir " + dir)).isZero();
        assertThat(output).contains("has other files in it and stays");
        try (Stream<Path> left = Files.list(dir)) {
            assertThat(left).containsExactlyInAnyOrderElementsOf(others);
        }
    }

    @Test
    void aStartThatFailsLeavesNothingBehind() throws Exception {
        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            int base = taken.getLocalPort() - 1000;
            assertThat(bash("up --nodes 1 --dir " + dir + " --base-port " + base)).isEqualTo(1);
            assertThat(output).contains("is in use by another process");
            assertThat(dir).doesNotExist();
        }
    }

    @Test
    void aNodeWhoseStoreHasFailedEndsTheWaitAtOnce() throws Exception {
        assertThat(bash("NODES=1 BASE=10809; write_cluster " + dir)).isZero();
        assertThat(
                        bash(
                                "health() { echo 'failed: the store has failed: no space'; };"
                                        + " NODES=1 BASE=10809; await_serving "
                                        + dir))
                .isEqualTo(1);
        assertThat(output)
                .contains("node1: the store has failed: no space")
                .contains("restart the node");
    }

    @Test
    void tellsAFailedNodeFromOneThatStarts() throws Exception {
        String said = "{\"status\":\"%s\",\"reason\":\"why\"}";
        assertThat(healthOf(said.formatted("failed"))).isEqualTo("failed: why");
        assertThat(healthOf(said.formatted("starting"))).isEqualTo("why");
    }

    private String healthOf(String body) throws Exception {
        HttpServer server =
                HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext(
                "/healthz",
                exchange -> {
                    byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
                    exchange.sendResponseHeaders(503, bytes.length);
                    exchange.getResponseBody().write(bytes);
                    exchange.close();
                });
        server.start();
        try {
            assertThat(bash("health " + server.getAddress().getPort())).isZero();
            return output.strip();
        } finally {
            server.stop(0);
        }
    }

    @Test
    void countsTheTestsThatRanSinceItsStart() throws Exception {
        Path reports = Files.createDirectories(folder.resolve("surefire-reports"));
        Path stamp = Files.createFile(folder.resolve("stamp"));
        Path old = report(reports.resolve("TEST-Old.xml"), 7, 0);
        Files.setLastModifiedTime(old, FileTime.fromMillis(0));
        Files.setLastModifiedTime(stamp, FileTime.fromMillis(1000));
        String count = "count_tests " + stamp + " " + folder + " /nonexistent";
        assertThat(bash(count)).isZero();
        assertThat(output.strip()).isEqualTo("0 0");

        report(reports.resolve("TEST-A.xml"), 5, 2);
        report(
                Files.createDirectories(folder.resolve("failsafe-reports")).resolve("TEST-B.xml"),
                3,
                0);
        assertThat(bash(count)).isZero();
        assertThat(output.strip()).isEqualTo("6 2");
    }

    private static Path report(Path file, int tests, int skipped) throws IOException {
        return Files.writeString(
                file,
                """
                <?xml version="1.0" encoding="UTF-8"?>
                <testsuite xmlns:xsi="x" name="A" time="0.1" tests="%d" errors="0" skipped="%d">
                  <system-out>tests="99"</system-out>
                </testsuite>
                """
                        .formatted(tests, skipped));
    }

    @ParameterizedTest
    @CsvSource({
        "true, 5 0, 0, 'all tests passed: 5 ran, 0 skipped'",
        "true, 0 3, 1, no test ran (3 skipped)",
        "false, 5 0, 1, the tests FAILED",
    })
    void saysThatTestsPassedOnlyWhenTestsRan(
            String maven, String counted, int exitCode, String message) throws Exception {
        String noTools =
                "need_maven() { :; }; need_test_packages() { :; }; start_engine() { :; };"
                        + "find_jdk() { JAVA_HOME=x; }; mkdir target; ROOT="
                        + folder
                        + "; mvn() { "
                        + maven
                        + "; }; count_tests() { echo "
                        + counted
                        + "; }; ";
        // The launcher replaces its subshell by Maven; a function cannot be that.
        assertThat(bash(noTools + "exec() { \"$@\"; }; run_tests")).isEqualTo(exitCode);
        assertThat(output).contains(message);
    }

    @Test
    void refusesWrongOptionsNamingThem() throws Exception {
        assertThat(bash("up --node 3")).isEqualTo(2);
        assertThat(output).contains("up does not know --node");
        assertThat(bash("up --nodes")).isEqualTo(2);
        assertThat(output).contains("--nodes needs a value");
        assertThat(bash("up --base-port 80")).isEqualTo(2);
        assertThat(output).contains("--base-port 80: needs a port from 3032 to 63500");
        assertThat(bash("up --base-port 08809")).isEqualTo(2);
        assertThat(output)
                .contains(
                        "--base-port 08809: needs a port from 3032 to 63500, without leading zeroes");
        assertThat(bash("up --base-port 05000")).isEqualTo(2);
        assertThat(bash("up --nodes 03")).isEqualTo(2);
        assertThat(output).contains("--nodes 03: needs 1, 3, 5 or 7");
        assertThat(bash("down --force")).isEqualTo(2);
        assertThat(bash("run_node")).isEqualTo(2);
        assertThat(output).contains("node needs --config FILE");
        assertThat(bash("run_node --config nowhere.conf")).isEqualTo(2);
        assertThat(output).contains("--config nowhere.conf: there is no such file");
    }

    @ParameterizedTest
    @CsvSource({
        "up, --dir",
        "up, --nodes",
        "up, --base-port",
        "down, --dir",
        "run_node, --config",
    })
    void anEmptyValueIsWrongUsageOfItsOption(String command, String option) throws Exception {
        assertThat(bash(command + " " + option + " ''")).isEqualTo(2);
        assertThat(output.strip())
                .isEqualTo(
                        "holdfast: %s '': needs a value that is not empty (holdfast --help)"
                                .formatted(option));
    }

    @Test
    void refusesAPlaceThatCannotBeAFolderBeforeItBuilds() throws Exception {
        Path file = Files.createFile(folder.resolve("file"));
        String noBuild = "ensure_built() { die 1 built; }; ";
        assertThat(bash(noBuild + "up --dir file/x/y --base-port " + freeBase())).isEqualTo(2);
        assertThat(output).contains("--dir " + file + "/x/y: " + file + " is not a folder");
    }

    @Test
    void saysThatItWaitsForAnotherBuildOrAnotherUp() throws Exception {
        Path target = Files.createDirectory(folder.resolve("target"));
        Files.createDirectories(folder.resolve("node/target/run/current"));
        // The lock is free again once somebody has read that this one waits, or after 20 s.
        String heldUntilSaid =
                """
                exec 7>%s; flock 7
                (exec 7>&-; %s) 2>&1 | {
                  while read -r -t 20 line; do
                    echo "$line"
                    flock -u 7
                  done
                  flock -u 7
                }
                """;
        String build =
                "ROOT=%s; find_jdk() { :; }; stale() { true; }; need_maven() { :; };"
                                .formatted(folder)
                        + " build() { say it builds; }; ensure_built";
        String script = heldUntilSaid.formatted(target.resolve("build.lock"), build);
        // Not with bash(): the build's lock is what is tested.
        assertThat(run(List.of("bash", "-c", "source '" + LAUNCHER + "'\n" + script))).isZero();
        assertThat(output)
                .containsSubsequence("waiting for another holdfast to finish its build", "builds");

        Files.createDirectory(dir);
        String lock = "cluster_lock " + dir + "; say locked";
        assertThat(bash(heldUntilSaid.formatted(dir.resolve(".lock"), lock))).isZero();
        assertThat(output).containsSubsequence("waiting for another 'holdfast up'", "locked");
    }

    /** A base port whose four ports were free a moment ago. */
    private int freeBase() throws Exception {
        assertThat(bash("free_base")).isZero();
        return Integer.parseInt(output.strip());
    }

    @Test
    void ofAClusterThatIsThereTheNodesWithFreePortsStart() throws Exception {
        int base = freeBase();
        assertThat(bash("NODES=3 BASE=" + base + "; write_cluster " + dir)).isZero();
        String noNodes =
                "taken_port() { [[ %s != *$1* ]] || echo \"port $1 is taken\"; };"
                        + " start_node() { say \"started ${1##*/}\"; };"
                        + " health() { echo serving; }; up --dir "
                        + dir;
        assertThat(bash(noNodes.formatted("2"))).isEqualTo(1);
        assertThat(output)
                .contains("node2 cannot start: port 2 is taken")
                .contains("started node-1", "started node-3", "node3: serving")
                .doesNotContain("started node-2", "node2: serving")
                .contains("not started, as a port of theirs is in use (see above): node2\n");
        // Two of three cannot: nothing can serve, so nothing is waited for.
        assertThat(bash(noNodes.formatted("23"))).isEqualTo(1);
        assertThat(output)
                .contains("started node-1", "(see above): node2 node3\n")
                .doesNotContain("serving");
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
            assertThat(bash("down --wipe --yes --dir " + dir)).isZero();
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
