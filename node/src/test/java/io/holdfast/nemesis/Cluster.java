package io.holdfast.nemesis;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.holdfast.integration.Tool;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Three nodes, each with its network namespace and its small disk where this machine lets us; else
 * on the loopback interface, with their data in a folder. Only {@link #amongClients} can talk to
 * them.
 */
final class Cluster implements AutoCloseable {
    static final int NODES = 3;

    private static final Duration COMMAND_LIMIT = Duration.ofMinutes(2);
    private static final long POLL_NANOS = 100_000_000;
    private static final int KEY_BYTES = 32;
    private static final int FIRST_PORT = 29000;
    private static final int LAST_PORT = 31900;

    /** Small, so that little room is full and free again soon. */
    private static final String LIMITS =
            "node.limits { segment-size = 16M, checkpoint-size = 32M }\n";

    private final Path dir;
    private final Path launcher;
    private final boolean withNetwork;
    private final boolean withDisks;
    private @Nullable Network network;
    private final List<SmallDisk> disks = new ArrayList<>();
    private final List<NodeProcess> nodes = new ArrayList<>();
    private boolean closed;

    /**
     * A cluster whose files are below {@code dir}. Nothing is made before {@link #prepare}.
     *
     * @param launcher the project's
     */
    Cluster(Path dir, Path launcher, boolean withNetwork, boolean withDisks) {
        this.dir = dir;
        this.launcher = launcher;
        this.withNetwork = withNetwork;
        this.withDisks = withDisks;
    }

    /** Makes network, disks and configuration. {@link #close} removes what there is of it. */
    synchronized void prepare() throws IOException {
        if (closed) {
            throw new IllegalStateException("closed");
        }
        if (withNetwork) {
            network = new Network(NODES);
        }
        List<Endpoint> endpoints = endpoints();
        writeCommonFiles(endpoints);
        for (int node = 1; node <= NODES; node++) {
            Path folder = Files.createDirectories(dir.resolve("node-" + node));
            if (withDisks) {
                SmallDisk disk = new SmallDisk(folder.resolve("disk.img"), folder.resolve("disk"));
                disks.add(disk);
                disk.mount();
            }
            Path conf = folder.resolve("node.conf");
            Files.writeString(
                    conf,
                    """
                    include required("../cluster.conf")
                    node { id = node%d, data-directory = "disk/data", cluster-key-file = "../cluster.key" }
                    %s\
                    """
                            .formatted(node, LIMITS));
            nodes.add(new NodeProcess(node, endpoints.get(node - 1), command(node, conf), folder));
        }
    }

    private void writeCommonFiles(List<Endpoint> endpoints) throws IOException {
        StringBuilder conf = new StringBuilder("cluster {\n  name = nemesis\n  nodes = [\n");
        for (int node = 1; node <= NODES; node++) {
            conf.append(endpoints.get(node - 1).configLine(node));
        }
        Files.writeString(dir.resolve("cluster.conf"), conf.append("  ]\n}\n"));
        byte[] key = new byte[KEY_BYTES];
        new SecureRandom().nextBytes(key);
        Path keyFile = dir.resolve("cluster.key");
        Files.createFile(
                keyFile,
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
        Files.writeString(keyFile, HexFormat.of().formatHex(key) + "\n");
    }

    /** A session of its own: Ctrl-C on the terminal is not for the nodes. */
    private List<String> command(int node, Path conf) {
        List<String> command = new ArrayList<>(List.of("setsid"));
        if (network != null) {
            command.addAll(List.of("nsenter", network.netOption(node)));
        }
        command.addAll(List.of(launcher.toString(), "node", "--config", conf.toString()));
        return command;
    }

    private List<Endpoint> endpoints() {
        List<Endpoint> endpoints = new ArrayList<>();
        if (network != null) {
            for (int node = 1; node <= NODES; node++) {
                endpoints.add(new Endpoint(Network.address(node), 10809, 8801, 11809, 12809));
            }
            return endpoints;
        }
        int port = FIRST_PORT;
        for (int node = 1; node <= NODES; node++) {
            int[] ports = new int[4];
            for (int i = 0; i < ports.length; i++, port++) {
                while (!isFree(port)) {
                    port++;
                }
                ports[i] = port;
            }
            endpoints.add(new Endpoint("127.0.0.1", ports[0], ports[1], ports[2], ports[3]));
        }
        return endpoints;
    }

    private static boolean isFree(int port) {
        if (port > LAST_PORT) {
            throw new IllegalStateException("no free ports from " + FIRST_PORT + " on");
        }
        try (ServerSocket probe = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
            return probe.isBound();
        } catch (IOException taken) {
            return false;
        }
    }

    /** What is done in a place. */
    interface Work {
        void run() throws IOException, InterruptedException;
    }

    /**
     * Does something where the clients are, in a thread of its own, and waits for its end: sockets,
     * threads and processes that it makes are in the clients' namespace.
     */
    void amongClients(Work work) throws InterruptedException {
        Throwable[] failure = new Throwable[1];
        Thread thread =
                Thread.ofPlatform()
                        .name("among-clients")
                        .start(() -> {
                            try {
                                if (network != null) {
                                    Namespaces.enter(network.clients());
                                }
                                work.run();
                            } catch (Throwable e) {
                                failure[0] = e;
                            }
                        });
        thread.join();
        if (failure[0] instanceof Error error) {
            throw error;
        } else if (failure[0] != null) {
            throw new IllegalStateException(failure[0].getMessage(), failure[0]);
        }
    }

    NodeProcess node(int number) {
        return nodes.get(number - 1);
    }

    List<NodeProcess> nodes() {
        return nodes;
    }

    /** Present where nodes have namespaces. */
    Optional<Network> network() {
        return Optional.ofNullable(network);
    }

    SmallDisk disk(int node) {
        return disks.get(node - 1);
    }

    void start() {
        nodes.forEach(NodeProcess::start);
    }

    /**
     * Waits until all nodes serve.
     *
     * @return why one does not, when the time is over
     */
    Optional<String> awaitServing(Duration limit) {
        long deadline = System.nanoTime() + limit.toNanos();
        for (NodeProcess node : nodes) {
            String health = node.health();
            while (!health.equals("serving")) {
                if (System.nanoTime() > deadline) {
                    return Optional.of("node" + node.number + " does not serve: " + health.strip());
                }
                // Polling interval of an outside observer.
                LockSupport.parkNanos(POLL_NANOS);
                health = node.health();
            }
        }
        return Optional.empty();
    }

    /** A command of the launcher against this cluster. */
    Tool.Result cli(String... arguments) {
        List<String> command = new ArrayList<>();
        command.add(launcher.toString());
        command.addAll(Arrays.asList(arguments));
        command.add("--admin");
        command.add(
                nodes.stream()
                        .map(node -> node.endpoint.httpAddress())
                        .collect(Collectors.joining(",")));
        return Tool.run(COMMAND_LIMIT, command.toArray(String[]::new));
    }

    /** The node that leads a volume's first shard; 0: none. */
    int leader(String volume) throws IOException {
        String json = cli("status", "--json").succeeds().output();
        JsonNode status = new ObjectMapper().readTree(json.substring(json.indexOf('{')));
        for (JsonNode line : status.path("volumes")) {
            if (line.path("name").asText().equals(volume)) {
                String leader = line.path("shards").path(0).path("leader").asText("");
                return leader.startsWith("node") ? Integer.parseInt(leader.substring(4)) : 0;
            }
        }
        return 0;
    }

    /**
     * Waits until all replicas of a volume hold the same.
     *
     * @return what they hold, when the time is over
     */
    Optional<String> awaitEqual(String volume, Duration limit) {
        long deadline = System.nanoTime() + limit.toNanos();
        for (; ; ) {
            Tool.Result result = cli("debug", "hash", volume);
            if (result.exit() == 0) {
                return Optional.empty();
            }
            if (System.nanoTime() > deadline) {
                return Optional.of(
                        "replicas of " + volume + " differ for " + limit + ":\n" + result.output());
            }
            LockSupport.parkNanos(POLL_NANOS);
        }
    }

    Path dir() {
        return dir;
    }

    /** Kills the nodes and removes namespaces and mounts. Any thread; more than once. */
    @Override
    public synchronized void close() {
        if (closed) {
            return;
        }
        closed = true;
        nodes.forEach(NodeProcess::end);
        try {
            for (NodeProcess node : nodes) {
                node.awaitEnd();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            disks.forEach(SmallDisk::close);
            if (network != null) {
                network.close();
            }
        }
    }
}
