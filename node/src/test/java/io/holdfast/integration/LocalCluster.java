package io.holdfast.integration;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * A cluster of node processes on this machine, as {@code ./holdfast up} makes it, on free ports.
 */
final class LocalCluster extends TestCluster {
    private static final int FIRST_BASE_PORT = 22000;
    private static final int LAST_BASE_PORT = 28000;
    private static final Duration SIGNAL_LIMIT = Duration.ofSeconds(10);

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
        tryUp().succeeds();
    }

    /** The same, and it may fail. */
    Tool.Result tryUp() {
        return launcher(
                "up",
                "--dir",
                dir.toString(),
                "--nodes",
                Integer.toString(nodes),
                "--base-port",
                Integer.toString(basePort));
    }

    @Override
    Tool.Result cli(String... arguments) {
        List<String> command = new ArrayList<>(List.of(arguments));
        command.add("--dir");
        command.add(dir.toString());
        return launcher(command.toArray(String[]::new));
    }

    Path dir() {
        return dir;
    }

    Path nodeDir(int node) {
        return dir.resolve("node-" + node);
    }

    @Override
    int nbdPort(int node) {
        return basePort + node - 1;
    }

    int peerPort(int node) {
        return basePort + 1000 + node - 1;
    }

    int coordinationPort(int node) {
        return basePort + 2000 + node - 1;
    }

    int httpPort(int node) {
        return basePort - 2008 + node - 1;
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
        Tool.run(SIGNAL_LIMIT, "kill", "-" + name, Long.toString(pid(node))).succeeds();
    }

    /** kill -9 of some nodes at once; waits until their processes are gone. */
    void kill(int... victims) {
        List<String> command = new ArrayList<>(List.of("kill", "-KILL"));
        for (int node : victims) {
            command.add(Long.toString(pid(node)));
        }
        Tool.run(SIGNAL_LIMIT, command.toArray(String[]::new)).succeeds();
        for (int node : victims) {
            ProcessHandle.of(pid(node)).ifPresent(LocalCluster::awaitEnd);
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
