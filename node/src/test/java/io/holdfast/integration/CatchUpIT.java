package io.holdfast.integration;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.config.ByteSize;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * A follower that was away gets what has changed, whatever the size of the volume; says how far it
 * is; and leaves clients most of their throughput.
 *
 * <p>{@code -Dholdfast.it.catchup.size=10G -Dholdfast.it.catchup.changed=256M} is the form of the
 * promise; it needs some 45 GiB of disk. Rates of catch-ups grow with what has changed.
 */
@Timeout(value = 60, unit = TimeUnit.MINUTES)
class CatchUpIT {
    private static final long SIZE = bytes("size", "256M");
    private static final long CHANGED = bytes("changed", "32M");

    /** So that a catch-up takes some seconds, and can be interrupted. */
    private static final long RATE = CHANGED / 10;

    private static final int INTERRUPTIONS = 5;
    private static final double MOST_MOVED = 1.2;
    private static final double LEAST_THROUGHPUT = 0.6;
    private static final Duration LIMIT = Duration.ofMinutes(30);
    private static final Duration START_LIMIT = Duration.ofSeconds(90);

    @TempDir Path dir;

    private static long bytes(String name, String usual) {
        return ByteSize.parse(System.getProperty("holdfast.it.catchup." + name, usual));
    }

    private LocalCluster start(String configuration) throws IOException {
        LocalCluster cluster = LocalCluster.start(dir.resolve("cluster"), 3);
        if (!configuration.isEmpty()) {
            cluster.cli("down").succeeds();
            for (int node = 1; node <= 3; node++) {
                Files.writeString(
                        config(cluster, node), configuration + "\n", StandardOpenOption.APPEND);
            }
            cluster.up();
        }
        return cluster;
    }

    private static Path config(LocalCluster cluster, int node) {
        return cluster.nodeDir(node).resolve("node.conf");
    }

    /** A node that {@code down} does not know; closing is kill -9. */
    private static Tool startNode(LocalCluster cluster, int node) {
        return Tool.start(
                Tool.projectRoot().resolve("holdfast").toString(),
                "node",
                "--config",
                config(cluster, node).toString());
    }

    private static void fio(LocalCluster cluster, int node, String... more) {
        Tool.run(LIMIT, command(cluster, node, more)).succeeds();
    }

    private static String[] command(LocalCluster cluster, int node, String... more) {
        List<String> command =
                new ArrayList<>(
                        List.of(
                                "fio",
                                "--name=catch-up",
                                "--ioengine=nbd",
                                "--uri=" + cluster.nbdUri(node, "data"),
                                "--randrepeat=0"));
        command.addAll(List.of(more));
        return command.toArray(String[]::new);
    }

    private static void fill(LocalCluster cluster, int node, long size) {
        fio(cluster, node, "--rw=write", "--bs=256k", "--iodepth=8", "--size=" + size);
    }

    /** Each place once. */
    private static void change(LocalCluster cluster, int node, long within, long bytes) {
        fio(
                cluster,
                node,
                "--rw=randwrite",
                "--bs=16k",
                "--iodepth=16",
                "--size=" + within,
                "--io_size=" + bytes);
    }

    /**
     * Starts the follower and kills it in the middle of its catch-up, again and again; then lets it
     * come to the end.
     *
     * @return bytes moved, and those of them in the last, undisturbed life
     */
    private static long[] catchUp(
            LocalCluster cluster, CatchUpWatch watch, int leader, int follower, String by) {
        long began = watch.sentBytes(leader);
        for (int i = 1; i <= INTERRUPTIONS; i++) {
            long before = watch.sentBytes(leader);
            long enough = CHANGED / (2 * INTERRUPTIONS);
            try (Tool process = startNode(cluster, follower)) {
                TestCluster.await(
                        "catch-up number " + i + " to be under way",
                        START_LIMIT,
                        () -> {
                            assertThat(process.isRunning()).as(process.output()).isTrue();
                            CatchUpWatch.Seen seen = watch.look(leader, follower);
                            return seen.isCatchingUp()
                                    && seen.by().equals(by)
                                    && watch.sentBytes(leader) - before > enough;
                        });
            }
            assertThat(watch.look(leader, follower).isInSync())
                    .as("interrupted before its end, number %d", i)
                    .isFalse();
        }
        long last = watch.sentBytes(leader);
        Tool process = startNode(cluster, follower);
        try {
            TestCluster.await(
                    "the end of the catch-up",
                    LIMIT,
                    () -> watch.look(leader, follower).isInSync());
            System.out.printf(
                    "%d interruptions, percent seen %d times, from %.1f to %.1f%n",
                    INTERRUPTIONS,
                    watch.percents().size(),
                    watch.percents().getFirst(),
                    watch.percents().getLast());
        } finally {
            process.close();
        }
        // As the launcher starts it, so that the cluster's end knows of it.
        cluster.up();
        cluster.assertReplicasEqual("data");
        assertNeverBackwards(watch.percents());
        assertThat(watch.percents().getLast() - watch.percents().getFirst()).isGreaterThan(30);
        long end = watch.sentBytes(leader);
        return new long[] {end - began, end - last};
    }

    private static void assertNeverBackwards(List<Double> percents) {
        assertThat(percents).isSorted().allMatch(percent -> percent >= 0 && percent < 100);
    }

    private static void assertMoved(String how, long moved, long changed) {
        double share = moved / (double) changed;
        System.out.printf(
                "%s: moved %s for %s changed in a volume of %s: %.2fx%n",
                how,
                ByteSize.format(moved),
                ByteSize.format(changed),
                ByteSize.format(SIZE),
                share);
        assertThat(share).isBetween(1.0, MOST_MOVED);
    }

    @Test
    void whatChangedIsMovedOnceThoughInterrupted() throws IOException {
        try (LocalCluster cluster = start(rates());
                CatchUpWatch watch = new CatchUpWatch(cluster)) {
            cluster.cli("volume", "create", "data", "--size", Long.toString(SIZE)).succeeds();
            int leader = cluster.leader("data");
            int follower = leader % 3 + 1;
            fill(cluster, leader, SIZE);
            cluster.awaitInSync("data", LIMIT);
            cluster.kill(follower);
            change(cluster, leader, SIZE, CHANGED);
            long[] moved = catchUp(cluster, watch, leader, follower, "entries");
            assertMoved("entries, all lives", moved[0], CHANGED);
        }
    }

    private static String rates() {
        return "node.catch-up { rate = %d, rate-with-clients = %d }".formatted(RATE, RATE);
    }

    /** The log is gone, since the store is small and much was written: what counts is what is. */
    @Test
    void whatIsWrittenAgainAndAgainIsMovedOnce() throws IOException {
        long size = 96L << 20;
        long changed = 32L << 20;
        try (LocalCluster cluster =
                        start(
                                rates()
                                        + "\nnode.limits { store-size = 512M, segment-size = 16M,"
                                        + " checkpoint-size = 16M }");
                CatchUpWatch watch = new CatchUpWatch(cluster)) {
            cluster.cli("volume", "create", "data", "--size", Long.toString(size)).succeeds();
            int leader = cluster.leader("data");
            int follower = leader % 3 + 1;
            fill(cluster, leader, size);
            cluster.awaitInSync("data", LIMIT);
            cluster.kill(follower);
            for (int i = 0; i < 16; i++) {
                change(cluster, leader, changed, changed);
            }
            long[] moved = catchUp(cluster, watch, leader, follower, "extents");
            assertMoved("extents, last life", moved[1], changed);
        }
    }

    @Test
    void clientsKeepMostOfTheirThroughput() throws IOException {
        try (LocalCluster cluster = start("");
                CatchUpWatch watch = new CatchUpWatch(cluster)) {
            cluster.cli("volume", "create", "data", "--size", Long.toString(SIZE)).succeeds();
            int leader = cluster.leader("data");
            int follower = leader % 3 + 1;
            fill(cluster, leader, SIZE);
            cluster.awaitInSync("data", LIMIT);
            double before;
            double without;
            double during;
            Tool process = null;
            try {
                try (Tool load = Tool.start(endlessWrites(cluster, leader))) {
                    // The first seconds go into compiling.
                    writesPerSecond(watch, leader, 5, () -> true);
                    before = writesPerSecond(watch, leader, 5, () -> true);
                    cluster.kill(follower);
                    without = writesPerSecond(watch, leader, 5, () -> true);
                    process = startNode(cluster, follower);
                    TestCluster.await(
                            "the catch-up to begin",
                            START_LIMIT,
                            () -> watch.look(leader, follower).isCatchingUp());
                    during =
                            writesPerSecond(
                                    watch,
                                    leader,
                                    10,
                                    () -> watch.look(leader, follower).isCatchingUp());
                    assertThat(load.isRunning()).as(load.output()).isTrue();
                }
                TestCluster.await(
                        "the end of the catch-up",
                        LIMIT,
                        () -> watch.look(leader, follower).isInSync());
            } finally {
                if (process != null) {
                    process.close();
                }
            }
            System.out.printf(
                    "writes per second: %.0f in sync, %.0f without the follower, %.0f during"
                            + " its catch-up: %.0f %%; percent %s%n",
                    before, without, during, 100 * during / before, watch.percents());
            assertThat(during / before).isGreaterThan(LEAST_THROUGHPUT);
            assertNeverBackwards(watch.percents());
            cluster.up();
            cluster.assertReplicasEqual("data");
        }
    }

    private static String[] endlessWrites(LocalCluster cluster, int node) {
        return command(
                cluster,
                node,
                "--rw=randwrite",
                "--bs=4k",
                "--iodepth=16",
                "--size=" + SIZE,
                "--time_based",
                "--runtime=600");
    }

    /** Over so many seconds, or fewer if {@code goesOn} ends. */
    private static double writesPerSecond(
            CatchUpWatch watch, int node, int seconds, BooleanSupplier goesOn) {
        String name = "holdfast_nbd_requests_seconds_count{kind=\"write\"";
        long began = System.nanoTime();
        double first = watch.counter(node, name);
        long end = began + TimeUnit.SECONDS.toNanos(seconds);
        TestCluster.await(
                "time to pass",
                START_LIMIT,
                () -> System.nanoTime() >= end || !goesOn.getAsBoolean());
        double last = watch.counter(node, name);
        return (last - first) * 1e9 / (System.nanoTime() - began);
    }
}
