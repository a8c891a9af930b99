package io.holdfast.client.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.holdfast.client.admin.AdminJson;
import io.holdfast.client.admin.ScrubDocument.Counts;
import io.holdfast.client.admin.StatusDocument;
import io.holdfast.client.admin.StatusDocument.AttachMode;
import io.holdfast.client.admin.StatusDocument.DurabilityMode;
import io.holdfast.client.admin.StatusDocument.NodeLine;
import io.holdfast.client.admin.StatusDocument.NodeState;
import io.holdfast.client.admin.StatusDocument.ReplicaLine;
import io.holdfast.client.admin.StatusDocument.ReplicaRole;
import io.holdfast.client.admin.StatusDocument.ReplicaState;
import io.holdfast.client.admin.StatusDocument.ShardLine;
import io.holdfast.client.admin.StatusDocument.VolumeLine;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
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
                        VOLUME  SIZE  ATTACH     DURABILITY  SHARDS  REPLICAS  TIMEOUT  HOLDER
                        data    10G   exclusive  flush       1       3         30s      -
                        """);

        assertThat(run("volume show data")).isZero();
        assertThat(out)
                .endsWith(
                        """

                        VOLUME  SHARD  LEADER  EPOCH  COMMIT  REPLICA  ROLE     STATE        APPLIED
                        data    0      node1   3      8123    node1    leader   in-sync      8123
                                                              node2    learner  catching-up  17
                        data shard 0 to node2: [=======>............] 37.2% (3.8/10.0 GiB) 112.0 MiB/s, 55 s left
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
                                        + " --shards 4 --attach SHARED --timeout 1h --json"))
                .isZero();
        VolumeLine made = Objects.requireNonNull(node.volumes.get("v1"));
        assertThat(made.sizeBytes()).isEqualTo(512L << 20);
        assertThat(made.durability()).isEqualTo(DurabilityMode.SYNC);
        assertThat(made.attach()).isEqualTo(AttachMode.SHARED);
        assertThat(made.timeoutSeconds()).isEqualTo(3600);
        assertThat(out)
                .contains("\"name\" : \"v1\"")
                .contains("\"replicas\" : 3")
                .contains("\"timeoutSeconds\" : 3600");
        assertThat(run("volume show v1")).isZero();
        assertThat(out).contains("REPLICAS  TIMEOUT").contains("3600s");
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
                "volume create data --size 5k|size 5k is not valid",
                "volume create data --size 1000000|needs to be a multiple of 4096 bytes from 1M to 64T.",
                "volume create data --size 512K|from 1M to 64T",
                "volume create data --size 65T|size 65T is not valid",
                "volume create -x|Unknown option: '-x'",
                "volume create --sise 10G|did you mean '--size'?",
                "volume create --size=10G|Missing required parameter: 'NAME'",
                "volume create a@b --size 1G|volume name 'a@b' is not valid",
                "volume create data --size 1G --replicas 2|replicas 2 is not valid",
                "volume create data --size 1G --replicas x|'x' is not a whole number",
                "volume create data --size 1G --shards 65|shards 65 is not valid",
                "volume create data --size 1G --timeout 0s|timeout of 0 s is not valid",
                "volume create data --size 1G --timeout 2h|timeout of 7200 s is not valid",
                "volume create data --size 1G --timeout 1d|'1d' is not a time as in 30s, 2m or 1h",
                "volume create data --size 1G --durability never|'never' is not one of flush, sync",
                "volume create data --size 1G --attach all|'all' is not one of exclusive, shared",
                "volume show ../x|volume name '../x' is not valid",
                "volume delete data|repeat with --yes if",
                "volume delete data --force|repeat with --yes --force if",
                "volume destroy x|Unmatched argument",
                "volume crate x|did you mean 'create'?",
                "status --wach|Unknown option: '--wach'; did you mean '--watch'?",
                "bench --seconds 0|--seconds 0 is not valid",
                "bench --seconds 3601|a number from 1 to 3600",
                "bench --seconds x|'x' is not a whole number",
                "bench --connections 0|--connections 0 is not valid",
                "bench --connections 65|a number from 1 to 64",
                "bench --size 0|size 0 is not valid",
                "bench --size 2T|at most 1T",
                "bench aging --minutes 0|--minutes 0 is not valid",
                "bench aging --minutes x|'x' is not a whole number",
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
    void scrubsWaitsAndTellsWhatWasFound() {
        assertThat(run("volume create data --size 1G")).isZero();
        assertThat(run("scrub data")).isZero();
        assertThat(out)
                .isEqualTo(
                        "NODE   VOLUME  STATE  BLOCKS  DAMAGED  DIFFERING  REPAIRED  UNREPAIRABLE"
                                + "  UNCOMPARED  COMPLETED\n"
                                + "node1  data    done   262144  2        1          3         0     "
                                + "        0           -\n");
        assertThat(node.requests).endsWith("POST /v1/scrub", "GET /v1/scrub", "GET /v1/scrub");
        assertThat(run("scrub --no-wait")).isZero();
        assertThat(out)
                .startsWith("NODE   SCRUBBED  OF  PERCENT  RATE   ENDS AT\n")
                .contains("node1  512M      1G  50%      32M/s  ");
        assertThat(run("scrub --show --json")).isZero();
        assertThat(out).contains("\"state\" : \"running\"").contains("\"secondsLeft\" : 16");
        assertThat(run("scrub none")).isEqualTo(ExitCode.NO_SUCH_VOLUME);
        assertThat(run("scrub data --show")).isEqualTo(ExitCode.USAGE);
    }

    @Test
    void aScrubThatLeavesSomethingFails() throws IOException {
        node.scrubbed = new Counts(10, 10, 0, 2, 1, 1, 2);
        assertThat(run("scrub")).isEqualTo(ExitCode.FAILED);
        assertThat(err).contains("2 blocks of node1 cannot be repaired");
        node.scrubbed = new Counts(10, 3, 7, 0, 0, 0, 0);
        assertThat(run("scrub")).isEqualTo(ExitCode.FAILED);
        assertThat(err).contains("7 blocks of node1 were not compared");
        node.scrubbed = new Counts(10, 10, 0, 0, 0, 0, 0);
        assertThat(run("scrub")).isZero();
        String both = node.address() + "," + unusedAddress();
        assertThat(plainRun("scrub", "--admin", both)).isEqualTo(ExitCode.FAILED);
        assertThat(err).contains("not known of the node at 127.0.0.1:");
        assertThat(plainRun("scrub", "--admin", unusedAddress())).isEqualTo(ExitCode.UNREACHABLE);
    }

    @Test
    void warnsOfAVolumeThatIsLargerThanWhatIsFreeAndOfASingleReplica() throws IOException {
        node.freeBytes = 1L << 30;
        assertThat(run("volume create data --size 10G")).isZero();
        assertThat(out).contains("volume data is ready");
        assertThat(err)
                .isEqualTo(
                        "warning: volume data is thin: its 10G on node1 are larger than what is"
                                + " free there (1G)\n");
        assertThat(run("volume create small --size 1G --replicas 1")).isZero();
        assertThat(err).startsWith("warning: volumes may grow to 11G on node1, which has room for");
        assertThat(run("status")).isZero();
        assertThat(out).contains("warning: volumes may grow to 11G on node1");
        node.freeBytes = 1L << 40;
        assertThat(run("volume create another --size 1G --replicas 1")).isZero();
        assertThat(err).isEmpty();
        node.others.add(down("node2", unusedAddress()));
        assertThat(run("volume create single --size 1G --replicas 1")).isZero();
        assertThat(err).contains("warning: volume single has one replica only");
    }

    private static NodeLine down(String id, String address) {
        return new NodeLine(id, 2, NodeState.DEAD, "127.0.0.1:1", address, null, null, null);
    }

    @Test
    void deletesAVolumeThatAClientHoldsOnlyByForce() {
        assertThat(run("volume create data --size 1G")).isZero();
        node.volumes.computeIfPresent(
                "data", (_, volume) -> StandInNode.held(volume, "10.0.0.7@node2"));
        assertThat(run("volume rm data --yes")).isEqualTo(ExitCode.IN_USE);
        assertThat(err).contains("10.0.0.7@node2");
        assertThat(run("volume ls")).isZero();
        assertThat(out).contains("10.0.0.7@node2");
        assertThat(run("volume delete data --yes --force")).isZero();
    }

    @Test
    void benchRefusesALeftoverAndTooLittleSpaceBeforeItMakesAnything() {
        node.freeBytes = 1L << 30;
        assertThat(run("bench --size 2G")).isEqualTo(ExitCode.FAILED);
        assertThat(err).contains("2G of space are needed at least, node1 has 1G free");
        assertThat(node.requests).noneMatch(request -> request.startsWith("POST"));

        assertThat(run("volume create bench-run --size 1M")).isZero();
        assertThat(run("bench --size 1M")).isEqualTo(ExitCode.NAME_TAKEN);
        assertThat(err)
                .contains("leftover")
                .contains("holdfast volume delete bench-run --yes --force --admin ");
        assertThat(node.volumes).containsKey("bench-run");
    }

    /** The stand-in's NBD address leads nowhere. */
    @Test
    void benchDeletesItsVolumeWhenFioFails() {
        assertThat(run("bench --size 1M --seconds 1")).isEqualTo(ExitCode.FAILED);
        assertThat(err).contains("fio");
        assertThat(err.lines().count()).isLessThan(15);
        assertThat(node.requests).contains("POST /v1/volumes");
        assertThat(node.volumes).isEmpty();
    }

    @Test
    void benchAgingRefusesALargerStoreOrALeftoverAndDeletesItsVolumeWhenFioFails() {
        assertThat(run("bench aging --store 1G")).isEqualTo(ExitCode.FAILED);
        assertThat(err).contains("may grow to 1T").contains("node.limits.store-size = 1G");
        assertThat(node.requests).noneMatch(request -> request.startsWith("POST"));

        node.freeBytes = 1L << 30;
        assertThat(run("bench aging --store 1G --minutes 1")).isEqualTo(ExitCode.FAILED);
        assertThat(err).contains("filling 716M").contains("fio");
        assertThat(node.requests).contains("POST /v1/volumes");
        assertThat(node.volumes).isEmpty();

        assertThat(run("volume create bench-aging --size 1M")).isZero();
        assertThat(run("bench aging --store 1G")).isEqualTo(ExitCode.NAME_TAKEN);
        assertThat(err).contains("leftover").contains("volume delete bench-aging --yes --force");
        assertThat(node.volumes).containsKey("bench-aging");
    }

    @Test
    void showsWhatIsNotKnownAsADashAndAFailedStoreWithItsReason() {
        VolumeLine volume =
                new VolumeLine(
                        "data",
                        1 << 20,
                        3,
                        30,
                        AttachMode.EXCLUSIVE,
                        DurabilityMode.FLUSH,
                        null,
                        List.of(
                                new ShardLine(
                                        0,
                                        null,
                                        3,
                                        null,
                                        List.of(
                                                new ReplicaLine(
                                                        "node1",
                                                        ReplicaRole.FOLLOWER,
                                                        ReplicaState.OFFLINE,
                                                        null,
                                                        null)))));
        NodeLine failed =
                new NodeLine(
                        "node1",
                        1,
                        NodeState.FAILED,
                        "a:1",
                        "a:2",
                        3L << 20,
                        0L,
                        "the store has failed: no space");
        StatusDocument document = new StatusDocument(List.of(failed), List.of(volume));
        assertThat(StatusTables.all(document))
                .isEqualTo(
                        """
                        NODE   STATE   NBD  ADMIN  USED  FREE  PROMISED
                        node1  failed  a:1  a:2    3M    0B    1M
                        node1: the store has failed: no space

                        VOLUME  SIZE  ATTACH     DURABILITY  SHARDS  REPLICAS  TIMEOUT  HOLDER
                        data    1M    exclusive  flush       1       3         30s      -

                        VOLUME  SHARD  LEADER  EPOCH  COMMIT  REPLICA  ROLE      STATE    APPLIED
                        data    0      -       3      -       node1    follower  offline  -
                        """);
        StatusDocument read = AdminJson.read(AdminJson.write(document), StatusDocument.class);
        assertThat(read).isEqualTo(document);
    }

    @Test
    void saysWhenTheAddressIsAnNbdPort() throws Exception {
        try (ServerSocket nbd = new ServerSocket(0, 8, InetAddress.getLoopbackAddress())) {
            // Ends when the socket is closed.
            var _ =
                    Thread.ofVirtual()
                            .start(() -> {
                                while (true) {
                                    try (Socket client = nbd.accept()) {
                                        client.getOutputStream()
                                                .write("NBDMAGICIHAVEOPT\0\3".getBytes(UTF_8));
                                        // Its flags, which make no sense: the end.
                                        client.getInputStream().readNBytes(4);
                                    } catch (IOException e) {
                                        if (nbd.isClosed()) {
                                            return;
                                        }
                                    }
                                }
                            });
            String address = "127.0.0.1:" + nbd.getLocalPort();
            assertThat(plainRun("status", "--admin", address)).isEqualTo(ExitCode.UNREACHABLE);
            assertThat(err).contains("this is an NBD port");
            assertThat(plainRun("volume", "create", "data", "--size", "1G", "--admin", address))
                    .isEqualTo(ExitCode.UNREACHABLE);
            assertThat(err).contains("this is an NBD port").doesNotContain("not known whether");
        }
    }

    @Test
    void hashesGoOnWithoutANodeThatIsDownAndNameIt() throws IOException {
        String gone = unusedAddress();
        node.others.add(down("node2", gone));
        assertThat(run("volume create data --size 1G")).isZero();
        String both = gone + "," + node.address();
        assertThat(plainRun("debug", "hash", "data", "--admin", both)).isEqualTo(ExitCode.FAILED);
        assertThat(out).contains("node1  0      42       abab");
        assertThat(err).contains("not hashed: the replicas of node2 (").contains(gone);
        assertThat(plainRun("debug", "hash", "data", "--admin", both, "--node", "node1")).isZero();
        assertThat(plainRun("debug", "hash", "none", "--admin", both))
                .isEqualTo(ExitCode.NO_SUCH_VOLUME);
        assertThat(plainRun("debug", "hash", "data", "--admin", gone))
                .isEqualTo(ExitCode.UNREACHABLE);
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
                "scrub",
                "debug hash",
                "bench",
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

    @Test
    void anEmptyFolderNameIsWrongUsage() {
        assertThat(plainRun("status", "--dir", "")).isEqualTo(ExitCode.USAGE);
        assertThat(err).contains("--dir '' names no folder");
    }

    private static String unusedAddress() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return "127.0.0.1:" + socket.getLocalPort();
        }
    }
}
