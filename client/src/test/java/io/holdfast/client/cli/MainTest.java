package io.holdfast.client.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.holdfast.client.admin.StatusDocument.AttachMode;
import io.holdfast.client.admin.StatusDocument.DurabilityMode;
import io.holdfast.client.admin.StatusDocument.VolumeLine;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine;

class MainTest {
    private StandInNode node;
    private String out = "";
    private String err = "";

    @BeforeEach
    void start() throws IOException {
        node = new StandInNode("node1");
    }

    @AfterEach
    void stop() {
        node.close();
    }

    private int plainRun(String... args) {
        StringWriter outText = new StringWriter();
        StringWriter errText = new StringWriter();
        CommandLine commandLine =
                Main.commandLine()
                        .setOut(new PrintWriter(outText))
                        .setErr(new PrintWriter(errText));
        int exitCode = commandLine.execute(args);
        out = outText.toString();
        err = errText.toString();
        assertThat(err).doesNotContain("\tat ").doesNotContain("Exception");
        return exitCode;
    }

    /** Runs a command, words split at spaces, against the node. */
    private int run(String command) {
        return plainRun((command + " --admin " + node.address()).split(" "));
    }

    @Test
    void createsListsShowsAndDeletesAVolume() {
        assertThat(run("volume create data --size 10G")).isZero();
        assertThat(out)
                .isEqualTo(
                        "volume data is ready: 10G, exclusive, durability flush, on node1, node2\n");

        assertThat(run("volume list")).isZero();
        assertThat(out)
                .isEqualTo(
                        """
                        VOLUME  SIZE  ATTACH     DURABILITY  SHARDS  HOLDER
                        data    10G   exclusive  flush       1       -
                        """);

        assertThat(run("volume show data")).isZero();
        assertThat(out)
                .endsWith(
                        """

                        VOLUME  SHARD  LEADER  EPOCH  COMMIT  REPLICA  ROLE     STATE        APPLIED
                        data    0      node1   3      8123    node1    leader   in-sync      8123
                                                              node2    learner  catching-up  17
                        """);

        assertThat(run("volume delete data --yes")).isZero();
        assertThat(out).isEqualTo("volume data is deleted\n");
        assertThat(run("volume list")).isZero();
        assertThat(out).startsWith("no volumes");
    }

    @Test
    void sendsEveryOptionOfCreate() {
        assertThat(
                        run(
                                "volume create v1 --size 512M --durability sync --replicas 3"
                                        + " --shards 4 --attach shared --timeout 2m --json"))
                .isZero();
        VolumeLine made = Objects.requireNonNull(node.volumes.get("v1"));
        assertThat(made.sizeBytes()).isEqualTo(512L << 20);
        assertThat(made.durability()).isEqualTo(DurabilityMode.SYNC);
        assertThat(made.attach()).isEqualTo(AttachMode.SHARED);
        assertThat(out).contains("\"name\" : \"v1\"");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            value = {
                "volume create data|Missing required option: '--size=SIZE'",
                "volume create data --size 10GB|the unit GB is ambiguous: write 10G",
                "volume create data --size 10X|the unit X is not known",
                "volume create data --size 4097|size 4097 is not valid",
                "volume create data --size 1000000|a multiple of 4096 bytes from 1M to 64T",
                "volume create data --size 512K|from 1M to 64T",
                "volume create data --size 65T|from 1M to 64T",
                "volume create a@b --size 1G|volume name 'a@b' is not valid",
                "volume create data --size 1G --replicas 2|replicas 2 is not valid",
                "volume create data --size 1G --replicas x|'x' is not an int",
                "volume create data --size 1G --shards 65|shards 65 is not valid",
                "volume create data --size 1G --timeout 0s|timeout of 0 s is not valid",
                "volume create data --size 1G --timeout 1h|needs a time, for instance 30s",
                "volume create data --size 1G --durability never|expected one of [FLUSH, SYNC]",
                "volume create data --size 1G --attach all|expected one of [EXCLUSIVE, SHARED]",
                "volume show ../x|volume name '../x' is not valid",
                "volume delete data|repeat with --yes",
                "volume destroy x|Unmatched argument",
                "status --wach|Unknown option: '--wach'",
            })
    void refusesWrongUsageNamingTheValue(String command, String message) {
        assertThat(run(command)).isEqualTo(ExitCode.USAGE);
        assertThat(err).contains(message);
        assertThat(err.lines()).hasSizeLessThanOrEqualTo(2);
        assertThat(out).isEmpty();
        assertThat(node.requests).isEmpty();
    }

    @Test
    void asksForTheMissingPartOfACommand() {
        assertThat(plainRun()).isEqualTo(ExitCode.USAGE);
        assertThat(plainRun("volume")).isEqualTo(ExitCode.USAGE);
        assertThat(err).contains("which one: volume create").contains("volume --help");
        assertThat(plainRun("debug")).isEqualTo(ExitCode.USAGE);
    }

    @Test
    void reportsTakenNamesAndUnknownVolumesWithTheirExitCodes() {
        assertThat(run("volume create data --size 1G")).isZero();
        assertThat(run("volume create data --size 1G")).isEqualTo(ExitCode.NAME_TAKEN);
        assertThat(err)
                .isEqualTo("holdfast: volume 'data' exists already\n  choose another name\n");
        assertThat(run("volume show none")).isEqualTo(ExitCode.NO_SUCH_VOLUME);
        assertThat(run("volume delete none --yes")).isEqualTo(ExitCode.NO_SUCH_VOLUME);
        assertThat(run("debug hash none")).isEqualTo(ExitCode.NO_SUCH_VOLUME);
    }

    @Test
    void statusPrintsTheShapeThatScriptsRelyOn() throws IOException {
        assertThat(run("volume create data --size 1G")).isZero();
        assertThat(run("status --json")).isZero();

        JsonNode status = new ObjectMapper().readTree(out);
        JsonNode nodeLine = status.get("nodes").get(0);
        assertThat(nodeLine.get("id").asText()).isEqualTo("node1");
        assertThat(nodeLine.get("state").asText()).isEqualTo("alive");
        assertThat(nodeLine.get("nbd").asText()).isEqualTo("127.0.0.1:10809");
        assertThat(nodeLine.get("http").asText()).isEqualTo(node.address());
        JsonNode volume = status.get("volumes").get(0);
        assertThat(volume.get("name").asText()).isEqualTo("data");
        assertThat(volume.get("sizeBytes").asLong()).isEqualTo(1L << 30);
        JsonNode shard = volume.get("shards").get(0);
        assertThat(shard.get("leader").asText()).isEqualTo("node1");
        assertThat(shard.get("epoch").asLong()).isEqualTo(3);
        assertThat(shard.get("commit").asLong()).isEqualTo(8123);
        JsonNode replica = shard.get("replicas").get(1);
        assertThat(replica.get("node").asText()).isEqualTo("node2");
        assertThat(replica.get("role").asText()).isEqualTo("learner");
        assertThat(replica.get("state").asText()).isEqualTo("catching-up");
        assertThat(replica.get("applied").asLong()).isEqualTo(17);
    }

    @Test
    void statusPrintsTables() {
        assertThat(run("status")).isZero();
        assertThat(out).contains("NODE   STATE  NBD").contains("alive").endsWith("\nno volumes\n");
    }

    @Test
    void watchGoesOnWhileTheClusterIsAway() throws InterruptedException {
        node.failWith = 503;
        String[] seen = {""};
        Thread watcher =
                Thread.ofPlatform()
                        .start(() -> {
                            int exitCode = run("status --watch");
                            seen[0] = exitCode + " " + out;
                        });
        // Two rounds: the second shows that the first failure did not end it.
        assertThat(node.served.tryAcquire(2, 20, TimeUnit.SECONDS)).isTrue();
        watcher.interrupt();
        watcher.join();
        assertThat(seen[0]).startsWith("0 ").contains("no majority of nodes");
    }

    @Test
    void triesTheOtherNodesWhenOneIsDown() throws IOException {
        String down = unusedAddress();
        String both = down + "," + node.address();
        assertThat(plainRun("volume", "create", "data", "--size", "1G", "--admin", both)).isZero();
        assertThat(plainRun("status", "--admin", both)).isZero();
    }

    @Test
    void asksAnotherNodeWhenOneIsStillStarting() throws IOException {
        try (StandInNode starting = new StandInNode("node2")) {
            starting.failWith = 503;
            assertThat(run("status --admin " + starting.address())).isNotZero();
            assertThat(plainRun("status", "--admin", starting.address() + "," + node.address()))
                    .isZero();
        }
    }

    @Test
    void doesNotRepeatAChangeThatMayHaveHappened() throws IOException {
        try (StandInNode second = new StandInNode("node2")) {
            node.failWith = 503;
            assertThat(
                            plainRun(
                                    "volume",
                                    "create",
                                    "data",
                                    "--size",
                                    "1G",
                                    "--admin",
                                    node.address() + "," + second.address()))
                    .isEqualTo(ExitCode.FAILED);
            assertThat(err).isEqualTo("holdfast: no majority of nodes\n  start the others\n");
            assertThat(second.requests).isEmpty();
        }
    }

    @Test
    void namesAllAddressesWhenNoNodeAnswers() throws IOException {
        String down = unusedAddress();
        assertThat(plainRun("status", "--admin", down)).isEqualTo(ExitCode.UNREACHABLE);
        assertThat(err)
                .startsWith("holdfast: no node answers: " + down + " (connection refused)\n  start")
                .contains("holdfast up");
    }

    @Test
    void findsTheClusterByItsFolder(@TempDir Path dir) throws IOException {
        Files.writeString(
                dir.resolve("cluster.conf"),
                """
                cluster { name = local, nodes = [ { number = 1, id = node1, nbd = "127.0.0.1:1"
                  http = "%s", peer = "127.0.0.1:2", coordination = "127.0.0.1:3" } ] }
                """
                        .formatted(node.address()));
        assertThat(plainRun("status", "--dir", dir.toString())).isZero();
    }

    @Test
    void saysThatThereIsNoClusterInTheFolder(@TempDir Path dir) {
        assertThat(plainRun("status", "--dir", dir.toString())).isEqualTo(ExitCode.UNREACHABLE);
        assertThat(err).contains("there is no cluster in " + dir).contains("holdfast up");
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "8801", "a:b", "127.0.0.1:0", "127.0.0.1:8801,"})
    void refusesWhatIsNoAddress(String address) {
        assertThat(plainRun("status", "--admin", address)).isEqualTo(ExitCode.USAGE);
        assertThat(err).contains("is not an address").contains("HOST:PORT");
    }

    @Test
    void comparesTheReplicasOfAllNodes() throws IOException {
        try (StandInNode second = new StandInNode("node2")) {
            assertThat(run("volume create data --size 1G")).isZero();
            second.volumes.putAll(node.volumes);
            String both = node.address() + "," + second.address();

            assertThat(plainRun("debug", "hash", "data", "--admin", both)).isZero();
            assertThat(out).contains("node1  0      42       abab").contains("node2  0");

            second.sha256 = "cd".repeat(32);
            assertThat(plainRun("debug", "hash", "data", "--admin", both))
                    .isEqualTo(ExitCode.FAILED);
            assertThat(err).isEqualTo("holdfast: replicas of volume 'data', shard 0 differ\n");
            assertThat(plainRun("debug", "hash", "data", "--admin", both, "--node", "node2"))
                    .isZero();
            assertThat(out).doesNotContain("node1");
            assertThat(plainRun("debug", "hash", "data", "--admin", both, "--node", "node9"))
                    .isEqualTo(ExitCode.USAGE);
        }
    }

    @Test
    void saysWhenSomethingElseAnswers() throws IOException {
        node.failWith = 418;
        assertThat(run("status")).isEqualTo(ExitCode.FAILED);
    }

    @Test
    void printsVersions() {
        assertThat(run("version")).isZero();
        assertThat(out).matches("holdfast [0-9]+\\.[0-9]+\\.[0-9]+\nnode1 0\\.1\\.0\n");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "volume create",
                "volume list",
                "volume show",
                "volume delete",
                "status",
                "debug hash",
                "version"
            })
    void helpOfEveryCommandHasExamples(String command) {
        assertThat(plainRun((command + " --help").split(" "))).isZero();
        assertThat(out)
                .contains("Usage: holdfast " + command)
                .contains("Examples:")
                .contains("--dir")
                .contains("--admin")
                .contains("--json");
    }

    private static String unusedAddress() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return "127.0.0.1:" + socket.getLocalPort();
        }
    }
}
