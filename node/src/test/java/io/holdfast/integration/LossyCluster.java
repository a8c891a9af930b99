package io.holdfast.integration;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.stream.IntStream;

/**
 * Three node processes, each with its data on a disk of its own that can lose power.
 *
 * <p>A node takes a restart for a power loss by the machine's boot id. Nothing in the product is
 * made for this test: each node runs in a mount namespace of its own in which another file lies
 * over {@code /proc/sys/kernel/random/boot_id}.
 */
final class LossyCluster implements AutoCloseable {
    static final int NODES = 3;

    private static final Duration COPY_LIMIT = Duration.ofMinutes(1);
    private static final Duration EXEC_LIMIT = Duration.ofSeconds(20);

    private static final String START =
            """
            mount --bind "$1" /proc/sys/kernel/random/boot_id
            cd "$2"
            umask 077
            echo $$ >holdfast.pid
            exec "$3" node --config "$2/node.conf" >>holdfast.log 2>&1
            """;

    private final Path dir;
    private final List<LossyDisk> disks = new ArrayList<>();
    private final LocalCluster cluster;

    /** All processes ever started, so that the last ones are closed. */
    private final Map<Integer, Tool> processes = new LinkedHashMap<>();

    private LossyCluster(Path dir, LocalCluster cluster) {
        this.dir = dir;
        this.cluster = cluster;
    }

    /**
     * Starts a cluster.
     *
     * @param settings further lines of each node's configuration
     */
    static LossyCluster start(Path dir, String settings) throws IOException {
        Path program = LossyDisk.compile(dir);
        // The launcher writes the configuration when it starts nodes; they are started again on
        // the lossy disks, where they find nothing of what they were.
        LossyCluster lossy = new LossyCluster(dir, LocalCluster.start(dir.resolve("cluster"), 3));
        try {
            lossy.cluster.kill(allNodes());
            for (int node = 1; node <= NODES; node++) {
                LossyDisk disk = LossyDisk.mount(program, dir.resolve("disk-" + node));
                lossy.disks.add(disk);
                Files.writeString(
                        lossy.cluster.nodeDir(node).resolve("node.conf"),
                        "node.data-directory = \""
                                + disk.path().resolve("data")
                                + "\"\n"
                                + settings,
                        StandardOpenOption.APPEND);
                lossy.newBoot(node);
            }
            lossy.restart();
        } catch (IOException | RuntimeException | Error e) {
            lossy.close();
            throw e;
        }
        return lossy;
    }

    static int[] allNodes() {
        return IntStream.rangeClosed(1, NODES).toArray();
    }

    LocalCluster cluster() {
        return cluster;
    }

    LossyDisk disk(int node) {
        return disks.get(node - 1);
    }

    private Path bootId(int node) {
        return dir.resolve("boot-" + node);
    }

    private void newBoot(int node) throws IOException {
        Files.writeString(bootId(node), UUID.randomUUID() + "\n");
    }

    /**
     * The machine of a killed node loses power and is booted again; each node's disk draws from
     * {@code seed} in its own way.
     *
     * @return what was lost, summed over the nodes
     */
    Map<String, Long> losePower(long seed, boolean dropAll, int... nodes) throws IOException {
        Map<String, Long> sum = new LinkedHashMap<>();
        for (int node : nodes) {
            disk(node)
                    .losePower(seed * NODES + node, dropAll)
                    .forEach((name, count) -> sum.merge(name, count, Long::sum));
            newBoot(node);
        }
        return sum;
    }

    /**
     * Starts the nodes that do not run and waits until all serve. Nothing else is done to them:
     * this is the start-up that needs no hand.
     *
     * @return how long it took, in seconds
     */
    double restart() throws IOException {
        long began = System.nanoTime();
        for (int node = 1; node <= NODES; node++) {
            Tool before = processes.get(node);
            if (before == null || !before.isRunning()) {
                if (before != null) {
                    before.close();
                }
                processes.put(node, startNode(node));
            }
        }
        cluster.up();
        return (System.nanoTime() - began) / 1e9;
    }

    private Tool startNode(int node) throws IOException {
        Path pidFile = cluster.nodeDir(node).resolve("holdfast.pid");
        Files.deleteIfExists(pidFile);
        Tool started =
                Tool.start(
                        "unshare",
                        "--mount",
                        // An unmounted disk must not live on in there.
                        "--propagation",
                        "slave",
                        "sh",
                        "-ec",
                        START,
                        "start-node",
                        bootId(node).toString(),
                        cluster.nodeDir(node).toString(),
                        Tool.projectRoot().resolve("holdfast").toString());
        // The launcher starts nodes that it does not see; so it must see this one.
        TestCluster.await(
                "node " + node + " to be a Java process",
                EXEC_LIMIT,
                () -> (Files.exists(pidFile) && isNode(started)) || !started.isRunning());
        return started;
    }

    private static boolean isNode(Tool process) {
        return process.commandLine().contains("io.holdfast.node.Main");
    }

    /** Puts the nodes' logs and data where they outlive the test. */
    void keepEvidence(Path into) {
        for (int node = 1; node <= NODES; node++) {
            Path kept = into.resolve("node-" + node);
            Tool.run(COPY_LIMIT, "mkdir", "-p", kept.toString());
            Tool.run(
                    COPY_LIMIT,
                    "cp",
                    "-a",
                    "--sparse=always",
                    cluster.nodeDir(node).resolve("holdfast.log").toString(),
                    disk(node).path().toString(),
                    kept.toString());
        }
    }

    @Override
    public void close() {
        try {
            cluster.close();
        } finally {
            processes.values().forEach(Tool::close);
            disks.forEach(LossyDisk::close);
        }
    }
}
