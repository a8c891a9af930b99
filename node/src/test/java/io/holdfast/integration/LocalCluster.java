package io.holdfast.integration;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/**
 * A cluster of node processes on this machine, as {@code ./holdfast up} makes it, on free ports.
 */
final class LocalCluster implements AutoCloseable {
    private static final Duration COMMAND_LIMIT = Duration.ofMinutes(4);
    private static final Duration POLL = Duration.ofMillis(50);

    private static final int FIRST_BASE_PORT = 22000;
    private static final int LAST_BASE_PORT = 28000;

    private final Path root = projectRoot();
    private final Path dir;
    private final int nodes;
    private final int basePort;

    private LocalCluster(Path dir, int nodes) {
        this.dir = dir;
        this.nodes = nodes;
        basePort = freeBasePort(nodes);
    }

    /** Starts a cluster whose files are below {@code dir}. */
    static LocalCluster start(Path dir, int nodes) {
        LocalCluster cluster = new LocalCluster(dir, nodes);
        cluster.up();
        return cluster;
    }

    private static Path projectRoot() {
        Path at = Path.of("").toAbsolutePath();
        while (!Files.isExecutable(at.resolve("holdfast"))) {
            at = at.getParent();
            if (at == null) {
                throw new AssertionError(
                        "no launcher 'holdfast' above " + Path.of("").toAbsolutePath());
            }
        }
        return at;
    }

    private static int freeBasePort(int nodes) {
        for (int base = FIRST_BASE_PORT; base < LAST_BASE_PORT; base += 10) {
            boolean free = true;
            for (int offset : new int[] {0, -2008, 1000, 2000}) {
                for (int node = 0; node < nodes; node++) {
                    free &= isFree(base + offset + node);
                }
            }
            if (free) {
                return base;
            }
        }
        throw new AssertionError("no free ports for a cluster");
    }

    private static boolean isFree(int port) {
        try (ServerSocket probe = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
            return probe.isBound();
        } catch (IOException taken) {
            return false;
        }
    }

    /** Starts whatever does not run and waits until it serves. */
    void up() {
        launcher(
                        "up",
                        "--dir",
                        dir.toString(),
                        "--nodes",
                        Integer.toString(nodes),
                        "--base-port",
                        Integer.toString(basePort))
                .succeeds();
    }

    /** A command of the launcher, for instance {@code volume list}, against this cluster. */
    Tool.Result cli(String... arguments) {
        List<String> command = new ArrayList<>(List.of(arguments));
        command.add("--dir");
        command.add(dir.toString());
        return launcher(command.toArray(String[]::new));
    }

    private Tool.Result launcher(String... arguments) {
        List<String> command = new ArrayList<>();
        command.add(root.resolve("holdfast").toString());
        command.addAll(List.of(arguments));
        return Tool.run(COMMAND_LIMIT, Map.of(), command);
    }

    Path dir() {
        return dir;
    }

    Path nodeDir(int node) {
        return dir.resolve("node-" + node);
    }

    int nbdPort(int node) {
        return basePort + node - 1;
    }

    int peerPort(int node) {
        return basePort + 1000 + node - 1;
    }

    String nbdUri(int node, String volume) {
        return "nbd://127.0.0.1:" + nbdPort(node) + "/" + volume;
    }

    long pid(int node) {
        try {
            return Long.parseLong(Files.readString(nodeDir(node).resolve("holdfast.pid")).strip());
        } catch (IOException e) {
            throw new AssertionError("node " + node + " has no pid file", e);
        }
    }

    /** Sends a signal to a node: KILL, STOP, CONT, TERM. */
    void signal(int node, String name) {
        Tool.run(Duration.ofSeconds(10), "kill", "-" + name, Long.toString(pid(node))).succeeds();
    }

    /** kill -9 of some nodes at once; waits until their processes are gone. */
    void kill(int... victims) {
        for (int node : victims) {
            signal(node, "KILL");
        }
        for (int node : victims) {
            ProcessHandle.of(pid(node)).ifPresent(LocalCluster::awaitEnd);
        }
    }

    /** The status document, from whichever node answers. */
    JsonNode status() {
        String json = cli("status", "--json").succeeds().output();
        try {
            return new ObjectMapper().readTree(json.substring(json.indexOf('{')));
        } catch (JsonProcessingException e) {
            throw new AssertionError("status is not JSON:\n" + json, e);
        }
    }

    private JsonNode firstShard(String volume) {
        for (JsonNode line : status().path("volumes")) {
            if (line.path("name").asText().equals(volume)) {
                return line.path("shards").path(0);
            }
        }
        throw new AssertionError("status does not name volume " + volume);
    }

    /** Number of the node that leads the volume's first shard; waits until one does. */
    int leader(String volume) {
        int[] found = new int[1];
        await(
                "a leader of " + volume,
                Duration.ofSeconds(20),
                () -> {
                    String id = firstShard(volume).path("leader").asText("");
                    found[0] = id.startsWith("node") ? Integer.parseInt(id.substring(4)) : 0;
                    return found[0] != 0;
                });
        return found[0];
    }

    /** Waits until all replicas are in sync at the same applied point. */
    void awaitInSync(String volume, Duration limit) {
        await(
                "all replicas of " + volume + " to be in sync",
                limit,
                () -> {
                    long applied = -1;
                    for (JsonNode replica : firstShard(volume).path("replicas")) {
                        long here = replica.path("applied").asLong();
                        if (!replica.path("state").asText().equals("in-sync")
                                || (applied >= 0 && applied != here)) {
                            return false;
                        }
                        applied = here;
                    }
                    return applied >= 0;
                });
    }

    /** Fails unless every replica holds the same blocks. */
    void assertReplicasEqual(String volume) {
        awaitInSync(volume, Duration.ofSeconds(60));
        cli("debug", "hash", volume).succeeds();
    }

    static void await(String what, Duration limit, BooleanSupplier condition) {
        long deadline = System.nanoTime() + limit.toNanos();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > deadline) {
                throw new AssertionError("waited " + limit + " in vain for " + what);
            }
            // Polling interval of an outside observer; nothing depends on its length.
            LockSupport.parkNanos(POLL.toNanos());
        }
    }

    /** Resident memory of a node, in bytes. */
    long residentBytes(int node) {
        try {
            for (String line : Files.readAllLines(Path.of("/proc/" + pid(node) + "/status"))) {
                if (line.startsWith("VmRSS:")) {
                    return Long.parseLong(line.replaceAll("\\D", "")) * 1024;
                }
            }
            throw new AssertionError("no VmRSS");
        } catch (IOException e) {
            throw new AssertionError("node " + node + " does not run", e);
        }
    }

    /** Stops the nodes. What a stopped or killed process left does not keep the others. */
    @Override
    public void close() {
        for (int node = 1; node <= nodes; node++) {
            Path pidFile = nodeDir(node).resolve("holdfast.pid");
            if (Files.exists(pidFile)) {
                Tool.run(Duration.ofSeconds(10), "kill", "-CONT", Long.toString(pid(node)));
            }
        }
        cli("down").succeeds();
    }

    private static void awaitEnd(ProcessHandle process) {
        await(
                "process " + process.pid() + " to end",
                Duration.ofSeconds(20),
                () -> !process.isAlive());
    }
}
