package io.holdfast.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.holdfast.config.NodeConfig.CatchUp;
import io.holdfast.config.NodeConfig.Endpoint;
import io.holdfast.config.NodeConfig.Limits;
import io.holdfast.config.NodeConfig.Scrub;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.TreeSet;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ConfigLoaderTest {
    private static final String NODE = "node { id = node1 }";

    @TempDir Path folder;

    private Path file;

    @BeforeEach
    void place() {
        file = folder.resolve("node.conf");
    }

    private static String cluster(int nodes) {
        StringBuilder text = new StringBuilder("cluster { name = test, nodes = [\n");
        for (int number = nodes; number >= 1; number--) {
            text.append(
                    """
                    { number = %1$d, id = node%1$d, nbd = "127.0.0.1:1080%1$d"
                      http = "127.0.0.1:880%1$d", peer = "127.0.0.1:1180%1$d"
                      coordination = "127.0.0.1:1280%1$d" }
                    """
                            .formatted(number));
        }
        return text.append("] }\n").toString();
    }

    private NodeConfig load(String text) throws IOException {
        Files.writeString(file, text);
        return ConfigLoader.load(file);
    }

    private List<String> errors(String text) throws IOException {
        Files.writeString(file, text);
        ConfigException e =
                catchThrowableOfType(ConfigException.class, () -> ConfigLoader.load(file));
        assertThat(e).as("must be refused").isNotNull();
        return String.valueOf(e.getMessage()).lines().map(String::strip).toList();
    }

    @Test
    void readsTheSmallestFileWithAllDefaults() throws IOException {
        NodeConfig config = load(cluster(1) + NODE);

        assertThat(config.clusterName()).isEqualTo("test");
        assertThat(config.self().number()).isEqualTo(1);
        assertThat(config.nodes()).containsExactly(config.self());
        assertThat(config.self().nbd()).isEqualTo(new Endpoint("127.0.0.1", 10801));
        assertThat(config.dataDirectory()).isEqualTo(folder.resolve("data"));
        assertThat(config.clusterKeyFile()).isEqualTo(folder.resolve("cluster.key"));
        assertThat(config.limits())
                .isEqualTo(new Limits(64L << 20, 256L << 20, 128L << 20, 256, 64L << 20, 0));
        assertThat(config.scrub()).isEqualTo(Scrub.DEFAULT);
        assertThat(config.catchUp()).isEqualTo(CatchUp.DEFAULT);
    }

    @Test
    void readsEveryKey() throws IOException {
        NodeConfig config =
                load(
                        cluster(3)
                                + """
                                node {
                                  id = node2, data-directory = /var/lib/holdfast
                                  cluster-key-file = "../secret/key"
                                  scrub { rate = 1G, every = 36h }
                                  catch-up { rate = 2G, rate-with-clients = 1M }
                                  limits { segment-size = 128 MiB, checkpoint-size = 1G
                                    cache-size = 33554432, nbd-connections = 10
                                    in-flight-size = 32MiB, store-size = 4G }
                                }
                                """);

        assertThat(config.self().id()).isEqualTo("node2");
        assertThat(config.nodes()).extracting(NodeConfig.Member::number).containsExactly(1, 2, 3);
        assertThat(config.dataDirectory()).isEqualTo(Path.of("/var/lib/holdfast"));
        assertThat(config.clusterKeyFile()).isEqualTo(folder.resolveSibling("secret/key"));
        assertThat(config.limits())
                .isEqualTo(new Limits(128L << 20, 1L << 30, 32L << 20, 10, 32L << 20, 4L << 30));
        assertThat(config.scrub()).isEqualTo(new Scrub(1L << 30, Duration.ofHours(36)));
        assertThat(config.catchUp()).isEqualTo(new CatchUp(2L << 30, 1L << 20));
    }

    @ParameterizedTest
    @CsvSource({"1h, PT1H", "365d, PT8760H", "7 d, PT168H", "never, PT0S"})
    void readsPeriodsOfScrubs(String text, Duration period) throws IOException {
        NodeConfig config = load(cluster(1) + "node { id = node1, scrub.every = " + text + " }");
        assertThat(config.scrub().every()).isEqualTo(period);
    }

    @ParameterizedTest
    @ValueSource(strings = {"0h", "366d", "5", "30m", "7days", "-1d", "9999999d"})
    void refusesOtherPeriods(String text) throws IOException {
        assertThat(errors(cluster(1) + "node { id = node1, scrub.every = \"" + text + "\" }"))
                .last()
                .asString()
                .contains("node.scrub.every", "needs hours or days from 1h to 365d", "or never");
    }

    @Test
    void takesTheClusterFromAnIncludedFileAndPathsFromTheFileTheyStandIn() throws IOException {
        Path shared = Files.createDirectory(folder.resolve("shared"));
        Files.writeString(
                shared.resolve("cluster.conf"), cluster(3) + "node.cluster-key-file = key");

        NodeConfig config = load("include required(\"shared/cluster.conf\")\n" + NODE);

        assertThat(config.nodes()).hasSize(3);
        assertThat(config.clusterKeyFile()).isEqualTo(shared.resolve("key"));
        assertThat(config.dataDirectory()).isEqualTo(folder.resolve("data"));
        assertThat(ConfigLoader.loadCluster(shared.resolve("cluster.conf")).nodes())
                .isEqualTo(config.nodes());
    }

    @Test
    void listsAllErrorsAtOnceWithKeyValuePlaceAndRemedy() throws IOException {
        assertThat(
                        errors(
                                """
                                cluster { name = "a b", nodes = [
                                  { number = 0, id = node1, nbd = localhost, http = "h:0"
                                    peer = "h:1", coordination = "h:2" }
                                  { number = 2, id = node1, nbd = "h:1", http = "0.0.0.0:7"
                                    peer = "h:3" }
                                ] }
                                node { id = node7, data-dir = /x, limits { segment-size = 10GB
                                  nbd-connections = many, cache-size = 1K } }
                                """))
                .containsExactly(
                        "the configuration " + file + " has 14 errors:",
                        "node.data-dir = \"/x\": is not a known key:"
                                + " did you mean node.data-directory? (node.conf line 7)",
                        "cluster.name = \"a b\": " + ConfigLoader.NAME_HELP + " (node.conf line 1)",
                        "cluster.nodes[0].number = 0: needs a whole number from 1 to 65535"
                                + " (node.conf line 2)",
                        "cluster.nodes[0].nbd = \"localhost\": needs host:port with a port from 1"
                                + " to 65535, for instance 10.0.0.1:10809 (node.conf line 2)",
                        "cluster.nodes[0].http = \"h:0\": needs host:port with a port from 1"
                                + " to 65535, for instance 10.0.0.1:10809 (node.conf line 2)",
                        "cluster.nodes[1].http = \"0.0.0.0:7\": needs an address that the other"
                                + " nodes can connect to (node.conf line 4)",
                        "cluster.nodes[1].coordination: is missing: needs host:port with a port"
                                + " from 1 to 65535, for instance 10.0.0.1:10809",
                        "cluster.nodes[1].id = \"node1\": is the same as cluster.nodes[0].id:"
                                + " must be unique (node.conf line 4)",
                        "cluster.nodes[1].nbd = \"h:1\": is the same as cluster.nodes[0].peer:"
                                + " must be unique (node.conf line 4)",
                        "cluster.nodes = [...]: has 2 nodes: needs 1, 3, 5 or 7 (an even number"
                                + " survives no more failures than one node fewer)"
                                + " (node.conf line 1)",
                        "node.id = \"node7\": is not in cluster.nodes: needs one of node1, node1"
                                + " (node.conf line 7)",
                        "node.limits.segment-size = \"10GB\": the unit GB is ambiguous: write 10G"
                                + " for powers of 1024; needs a size from 16M to 1G"
                                + " (node.conf line 7)",
                        "node.limits.cache-size = \"1K\": needs a size from 16M to 64G"
                                + " (node.conf line 8)",
                        "node.limits.nbd-connections = \"many\": needs a whole number from 1 to"
                                + " 65535 (node.conf line 8)");
    }

    @Test
    void anEmptyFileLacksWhatHasNoDefault() throws IOException {
        assertThat(errors(""))
                .hasSize(4)
                .anyMatch(line -> line.startsWith("cluster.name: is missing"))
                .anyMatch(line -> line.startsWith("cluster.nodes: is missing"))
                .anyMatch(line -> line.startsWith("node.id: is missing"));
    }

    @Test
    void refusesObjectsListsAndValuesInEachOthersPlace() throws IOException {
        assertThat(errors("cluster { name = [1], nodes = 3 }\nnode = 5"))
                .anyMatch(line -> line.startsWith("cluster.name = [1]: needs 1 to 64"))
                .anyMatch(line -> line.startsWith("cluster.nodes = 3: needs a list"))
                .anyMatch(line -> line.startsWith("node = 5: needs { ... }"));
        assertThat(errors("cluster { name = a, nodes = [ 7 ] }\n" + NODE))
                .anyMatch(line -> line.startsWith("cluster.nodes[0] = 7: needs { ... }"));
    }

    @ParameterizedTest
    @CsvSource({
        "node.dataDirectory, node.data-directory",
        "node.data_directory, node.data-directory",
        "node.segment-size, node.limits.segment-size",
        "limits.cache-size, node.limits.cache-size",
        "clusster.name, cluster.name",
        "node.limits.nbd-conections, node.limits.nbd-connections",
    })
    void suggestsTheKeyThatWasMeant(String wrong, String right) throws IOException {
        assertThat(errors(cluster(1) + NODE + "\n" + wrong + " = 1"))
                .anyMatch(line -> line.contains("is not a known key: did you mean " + right + "?"));
    }

    @Test
    void suggestsNothingForAKeyThatIsLikeNoOther() throws IOException {
        assertThat(errors(cluster(1) + NODE + "\nzzzzzzzzz = 1"))
                .anyMatch(line -> line.startsWith("zzzzzzzzz = 1: is not a known key (node.conf"));
    }

    @ParameterizedTest
    @CsvSource({"2", "4", "6", "8", "9"})
    void refusesNodeCountsThatBringNothing(int nodes) throws IOException {
        assertThat(errors(cluster(nodes) + NODE))
                .anyMatch(line -> line.contains("has " + nodes + " nodes: needs 1, 3, 5 or 7"));
    }

    @Test
    void anUnreadableFileIsNamed() {
        ConfigException e =
                catchThrowableOfType(
                        ConfigException.class, () -> ConfigLoader.load(folder.resolve("none")));
        assertThat(e)
                .hasMessageContaining("cannot read the configuration")
                .hasMessageContaining("none");
    }

    @Test
    void aSyntaxErrorIsNamedWithItsLine() throws IOException {
        assertThat(errors("cluster {\n name = = 3\n}"))
                .singleElement()
                .asString()
                .contains("is not valid HOCON")
                .contains("2");
    }

    @Test
    void readsEveryKeyOfTheReferenceAndNoOther() throws IOException {
        // defaultOf throws for a key that the reference lacks, so a load proves one direction; the
        // other: leaving out or spoiling any single key of the reference must be noticed.
        for (String key : new TreeSet<>(UnknownKeys.keys(ConfigLoader.reference().root()))) {
            String spoiled =
                    key.startsWith("cluster.nodes[].")
                            ? cluster(1)
                                    .replace(
                                            key.substring("cluster.nodes[].".length()) + " =",
                                            key.substring("cluster.nodes[].".length())
                                                    + " = [] , x =")
                            : cluster(1) + key + " = []";
            String reported = key.replace("[]", "[0]") + " = []:";
            assertThat(errors(NODE + "\n" + spoiled))
                    .as("nobody reads %s", key)
                    .anyMatch(line -> line.startsWith(reported));
        }
    }

    @Test
    void everyKeyOfTheReferenceIsExplained() throws IOException {
        List<String> lines;
        try (var in =
                ConfigLoader.class.getClassLoader().getResourceAsStream(ConfigLoader.REFERENCE)) {
            assertThat(in).isNotNull();
            lines =
                    new String(in.readAllBytes(), java.nio.charset.StandardCharsets.UTF_8)
                            .lines()
                            .toList();
        }
        for (int i = 1; i < lines.size(); i++) {
            if (lines.get(i).matches(" *[a-z-]+ (= .*|\\{)")) {
                int above = i - 1;
                while (lines.get(above).isBlank()) {
                    above--;
                }
                assertThat(lines.get(above)).as(lines.get(i)).containsPattern("^ *#");
            }
        }
    }
}
