package io.holdfast.config;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The configuration of docker-compose.yml is the template of {@code holdfast up}, filled in. */
class ReadyMadeConfigTest {
    private static final Path TEMPLATES = Path.of("templates");
    private static final Path COMPOSE = Path.of("compose");

    @Test
    void theComposeClusterLoadsOnEveryNode() {
        for (String id : List.of("node1", "node2", "node3")) {
            NodeConfig config = ConfigLoader.load(COMPOSE.resolve(id + ".conf"));
            assertThat(config.self().id()).isEqualTo(id);
            assertThat(config.nodes()).hasSize(3);
            assertThat(config.dataDirectory()).isEqualTo(Path.of("/var/lib/holdfast"));
            assertThat(config.clusterKeyFile()).isEqualTo(Path.of("/etc/holdfast/key/cluster.key"));
        }
    }

    @Test
    void theComposeNodesAreTheTemplateFilledIn() throws IOException {
        String template = Files.readString(TEMPLATES.resolve("node.conf"));
        for (String k : List.of("1", "2", "3")) {
            assertThat(Files.readString(COMPOSE.resolve("node" + k + ".conf")))
                    .isEqualTo(
                            template.replace("@K@", k)
                                    .replace("@CLUSTER_CONF@", "cluster.conf")
                                    .replace("@DATA@", "/var/lib/holdfast")
                                    .replace("@KEY@", "/etc/holdfast/key/cluster.key"));
        }
    }

    @Test
    void theComposeClusterIsTheTemplateFilledIn(@TempDir Path folder) throws IOException {
        Path file = folder.resolve("cluster.conf");
        StringBuilder filled = new StringBuilder();
        for (String line : Files.readAllLines(TEMPLATES.resolve("cluster.conf"))) {
            int copies = line.contains("@K@") ? 3 : 1;
            for (int k = 1; k <= copies; k++) {
                filled.append(
                                line.replace("@NAME@", "compose")
                                        .replace("@K@", "" + k)
                                        .replace("@NBD@", "172.30.86.1" + k + ":10809")
                                        .replace("@HTTP@", "172.30.86.1" + k + ":8801")
                                        .replace("@PEER@", "172.30.87.1" + k + ":11809")
                                        .replace("@COORDINATION@", "172.30.87.1" + k + ":12809"))
                        .append('\n');
            }
        }
        Files.writeString(file, filled);
        assertThat(ConfigLoader.loadCluster(COMPOSE.resolve("cluster.conf")))
                .isEqualTo(ConfigLoader.loadCluster(file));
    }
}
