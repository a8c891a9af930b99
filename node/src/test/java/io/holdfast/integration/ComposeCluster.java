package io.holdfast.integration;

import com.github.dockerjava.api.DockerClient;
import com.github.dockerjava.api.command.InspectContainerResponse;
import com.github.dockerjava.api.model.ContainerNetwork;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.testcontainers.DockerClientFactory;
import org.testcontainers.containers.ComposeContainer;
import org.testcontainers.containers.wait.strategy.Wait;

/** The project's docker-compose.yml, with ports and a project name of its own. */
final class ComposeCluster extends TestCluster {
    private static final int NODES = 3;
    private static final String IMAGE = "holdfast:test";
    private static final String BASE_IMAGE = "holdfast-base:test";

    private static final Duration BUILD_LIMIT = Duration.ofMinutes(4);
    private static final Duration COMPOSE_LIMIT = Duration.ofMinutes(2);
    private static final Duration HEALTHY_LIMIT = Duration.ofMinutes(2);

    private final DockerClient docker = DockerClientFactory.lazyClient();
    private final Map<String, String> environment = new HashMap<>();
    private final int[] nbdPorts = freePorts();
    private final int[] httpPorts = freePorts();
    private final ComposeContainer compose;
    private final String project;

    private ComposeCluster() {
        environment.putAll(buildEnvironment());
        for (int node = 1; node <= NODES; node++) {
            environment.put("HOLDFAST_NBD_" + node, Integer.toString(nbdPort(node)));
            environment.put("HOLDFAST_HTTP_" + node, Integer.toString(httpPorts[node - 1]));
        }
        compose =
                new ComposeContainer("holdfast", composeFile().toFile())
                        .withEnv(environment)
                        .withPull(false)
                        .withBuild(false)
                        .withRemoveVolumes(true);
        for (int node = 1; node <= NODES; node++) {
            compose.waitingFor(
                    service(node), Wait.forHealthcheck().withStartupTimeout(HEALTHY_LIMIT));
        }
        compose.start();
        project =
                Optional.ofNullable(inspect(1).getConfig().getLabels())
                        .map(labels -> labels.get("com.docker.compose.project"))
                        .orElseThrow();
    }

    /** Why no cluster can be started here; empty when one can. */
    static Optional<String> obstacle() {
        String why = System.getenv("HOLDFAST_NO_ENGINE");
        if (why != null && !why.isBlank()) {
            return Optional.of(why);
        }
        for (String command : List.of("docker version", "docker compose version")) {
            try {
                Tool.Result result = Tool.run(Duration.ofSeconds(30), command.split(" "));
                if (result.exit() != 0) {
                    return Optional.of(command + " says: " + result.output().strip());
                }
            } catch (AssertionError noProgram) {
                return Optional.of("there is no program docker");
            }
        }
        return Optional.empty();
    }

    /**
     * Makes the image from what this build has made, without a registry, and starts three nodes.
     */
    static ComposeCluster start() {
        Path module = Tool.projectRoot().resolve("node");
        Path image = module.resolve("target/image");
        run(Map.of(), module.resolve("src/test/docker/engine").toString(), "base");
        run(Map.of(), "rm", "-rf", image.toString());
        run(
                Map.of("JAVA_HOME", System.getProperty("java.home")),
                module.resolve("src/main/docker/assemble").toString(),
                image.toString());
        run(
                buildEnvironment(),
                "docker",
                "compose",
                "--file",
                composeFile().toString(),
                "build",
                "--quiet");
        return new ComposeCluster();
    }

    private static Map<String, String> buildEnvironment() {
        return Map.of(
                "HOLDFAST_IMAGE", IMAGE,
                "HOLDFAST_BUILT", "host",
                "HOLDFAST_BUILD_IMAGE", BASE_IMAGE,
                "HOLDFAST_RUNTIME_IMAGE", BASE_IMAGE);
    }

    private static Path composeFile() {
        return Tool.projectRoot().resolve("docker-compose.yml");
    }

    private static void run(Map<String, String> environment, String... command) {
        Tool.run(BUILD_LIMIT, environment, List.of(command)).succeeds();
    }

    private static int[] freePorts() {
        int[] ports = new int[NODES];
        List<ServerSocket> held = new ArrayList<>();
        try {
            for (int i = 0; i < NODES; i++) {
                ServerSocket probe = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                held.add(probe);
                ports[i] = probe.getLocalPort();
            }
            for (ServerSocket probe : held) {
                probe.close();
            }
        } catch (IOException e) {
            throw new AssertionError("no free port", e);
        }
        return ports;
    }

    @Override
    int nbdPort(int node) {
        return nbdPorts[node - 1];
    }

    @Override
    Tool.Result cli(String... arguments) {
        List<String> admin = new ArrayList<>();
        for (int port : httpPorts) {
            admin.add("127.0.0.1:" + port);
        }
        List<String> command = new ArrayList<>(List.of(arguments));
        command.add("--admin");
        command.add(String.join(",", admin));
        return launcher(command.toArray(String[]::new));
    }

    private static String service(int node) {
        return "node" + node;
    }

    private String container(int node) {
        return project + "-" + service(node) + "-1";
    }

    InspectContainerResponse inspect(int node) {
        String id = compose.getContainerByServiceName(service(node)).orElseThrow().getContainerId();
        return docker.inspectContainerCmd(id).exec();
    }

    /** A program in a node's container. */
    Tool.Result exec(int node, String... command) {
        List<String> all = new ArrayList<>(List.of("docker", "exec", container(node)));
        all.addAll(List.of(command));
        return Tool.run(COMPOSE_LIMIT, Map.of(), all);
    }

    void kill(int node) {
        docker.killContainerCmd(container(node)).exec();
    }

    /** Stops a node as {@code docker stop} does; returns its exit code. */
    long stop(int node) {
        docker.stopContainerCmd(container(node)).withTimeout(20).exec();
        return Optional.ofNullable(
                        docker.inspectContainerCmd(container(node))
                                .exec()
                                .getState()
                                .getExitCodeLong())
                .orElseThrow();
    }

    void startAgain(int node) {
        docker.startContainerCmd(container(node)).exec();
        awaitHealthy(node);
    }

    void pause(int node) {
        docker.pauseContainerCmd(container(node)).exec();
    }

    void unpause(int node) {
        docker.unpauseContainerCmd(container(node)).exec();
    }

    /** Cuts a node off from the other nodes; its clients stay connected. */
    void cutOff(int node) {
        docker.disconnectFromNetworkCmd()
                .withNetworkId(project + "_cluster")
                .withContainerId(container(node))
                .exec();
    }

    void reconnect(int node) {
        docker.connectToNetworkCmd()
                .withNetworkId(project + "_cluster")
                .withContainerId(container(node))
                .withContainerNetwork(
                        new ContainerNetwork()
                                .withIpamConfig(
                                        new ContainerNetwork.Ipam()
                                                .withIpv4Address("172.30.87.1" + node)))
                .exec();
    }

    /** Makes a node's container anew, over its volume or over an empty one. */
    void recreate(int node, boolean empty) {
        compose("rm", "--stop", "--force", service(node));
        if (empty) {
            docker.removeVolumeCmd(project + "_data" + node).exec();
        }
        compose("up", "--detach", "--no-build", "--no-deps", service(node));
        awaitHealthy(node);
    }

    private void compose(String... arguments) {
        List<String> command =
                new ArrayList<>(
                        List.of(
                                "docker",
                                "compose",
                                "--project-name",
                                project,
                                "--file",
                                composeFile().toString()));
        command.addAll(List.of(arguments));
        Tool.run(COMPOSE_LIMIT, environment, command).succeeds();
    }

    private void awaitHealthy(int node) {
        await(
                container(node) + " to be healthy",
                HEALTHY_LIMIT,
                () ->
                        "healthy"
                                .equals(
                                        docker.inspectContainerCmd(container(node))
                                                .exec()
                                                .getState()
                                                .getHealth()
                                                .getStatus()));
    }

    /** The end of a node's log. */
    String log(int node) {
        return Tool.run(COMPOSE_LIMIT, "docker", "logs", "--tail", "50", container(node)).output();
    }

    /** Removes containers, networks and volumes. */
    @Override
    public void close() {
        compose.stop();
    }
}
