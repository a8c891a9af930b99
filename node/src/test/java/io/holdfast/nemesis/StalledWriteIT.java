package io.holdfast.nemesis;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.integration.TimeLimit;
import io.holdfast.integration.Tool;
import java.io.IOException;
import java.net.SocketTimeoutException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

/**
 * The bug that P4 rules out, with real processes: a write is held up on its way, its client loses
 * patience, comes back through another node and overwrites the block; then the old write goes on.
 * It must never run. The simulator has the same as {@code
 * VolumeClientScenarioTest.stalledWriteNeverRevertsANewerOne}.
 */
class StalledWriteIT {
    private static final int ROUNDS = Integer.getInteger("holdfast.it.stalled.rounds", 2);
    private static final String VOLUME = "data";
    private static final int REGISTER = 3;

    /** Longer than {@link #TAKE_OVER_NANOS}: opening waits as well for the holder to go. */
    private static final Duration STEP = Duration.ofSeconds(45);

    /** The client's, much less than the volume's: the old write is still wanted when it goes on. */
    private static final Duration PATIENCE = Duration.ofSeconds(2);

    private static final int VOLUME_TIMEOUT_SECONDS = 60;

    /** The first attachment must be known to be gone; the README says up to 18 s. */
    private static final long TAKE_OVER_NANOS = 40_000_000_000L;

    /** A node that was cut off or frozen has connected again, and repeated what it had to. */
    private static final Duration AFTERMATH = Duration.ofSeconds(6);

    private static final long RETRY_NANOS = 200_000_000;

    @RegisterExtension
    static final TimeLimit LIMIT =
            TimeLimit.of(Duration.ofMinutes(6), ROUNDS, Duration.ofMinutes(2));

    @TempDir Path dir;

    private long value;
    private long cookie;

    /** Lost between front end and leader: it waits in the front end's TCP send queue. */
    @Test
    void writeThatWaitsOnTheWayToTheLeaderNeverRevertsANewerOne() throws Exception {
        String missing = Network.missing();
        Assumptions.assumeTrue(missing.isEmpty(), () -> "no network namespaces: " + missing);
        withCluster(
                true,
                cluster -> {
                    for (int round = 0; round < ROUNDS; round++) {
                        int leader = leader(cluster);
                        int front = 1 + (leader + round % 2) % Cluster.NODES;
                        Network network = cluster.network().orElseThrow();
                        round(
                                cluster,
                                round,
                                front,
                                () -> network.cut(front, leader),
                                () -> network.heal(leader));
                    }
                });
    }

    /** In the hands of a front end that is frozen before it has read it. */
    @Test
    void writeThatWaitsInAFrozenFrontEndNeverRevertsANewerOne() throws Exception {
        withCluster(
                false,
                cluster -> {
                    for (int round = 0; round < ROUNDS; round++) {
                        int front = 1 + (leader(cluster) + round % 2) % Cluster.NODES;
                        NodeProcess node = cluster.node(front);
                        round(cluster, round, front, node::pause, node::resume);
                    }
                });
    }

    private interface Script {
        void play(Cluster cluster) throws IOException, InterruptedException;
    }

    private void withCluster(boolean withNetwork, Script script) throws Exception {
        try (Cluster cluster =
                new Cluster(dir, Tool.projectRoot().resolve("holdfast"), withNetwork, false)) {
            cluster.prepare();
            cluster.amongClients(() -> {
                cluster.start();
                assertThat(cluster.awaitServing(Duration.ofMinutes(4))).isEmpty();
                cluster.cli(
                                "volume",
                                "create",
                                VOLUME,
                                "--size",
                                (VolumeHistory.VOLUME_BYTES >> 20) + "M",
                                "--timeout",
                                VOLUME_TIMEOUT_SECONDS + "s")
                        .succeeds();
                script.play(cluster);
                assertThat(cluster.awaitEqual(VOLUME, Duration.ofMinutes(1))).isEmpty();
            });
        }
    }

    private static int leader(Cluster cluster) throws IOException {
        long deadline = System.nanoTime() + TAKE_OVER_NANOS;
        int leader = cluster.leader(VOLUME);
        while (leader == 0 && System.nanoTime() < deadline) {
            leader = cluster.leader(VOLUME);
        }
        assertThat(leader).as("a leader").isNotZero();
        return leader;
    }

    private void round(Cluster cluster, int round, int front, Runnable hold, Runnable release)
            throws IOException {
        int elsewhere = otherThan(front, cluster.leader(VOLUME));
        boolean closed = round % 2 == 0;
        try (NbdSession old = attach(cluster, front)) {
            assertThat(errorOf(old, write(old))).as("before the trouble").isZero();
            hold.run();
            long stalled = write(old);
            assertThat(isAnswered(old, PATIENCE)).as("a write that is held up").isFalse();
            if (closed) {
                old.hangUp();
            }
            long began = System.nanoTime();
            try (NbdSession now = attach(cluster, elsewhere)) {
                assertThat(errorOf(now, write(now))).as("the newer write").isZero();
                long newest = value;
                double seconds = (System.nanoTime() - began) / 1e9;
                release.run();
                if (!closed) {
                    assertRefused(old, stalled);
                }
                LockSupport.parkNanos(AFTERMATH.toNanos());
                for (NodeProcess node : cluster.nodes()) {
                    assertThat(read(cluster, node.number))
                            .as("round %d, through node%d", round, node.number)
                            .isEqualTo(newest);
                }
                assertThat(errorOf(now, write(now))).as("the newer client goes on").isZero();
                System.out.printf(
                        "round %d: held up at node%d (%s), taken over through node%d after %.1f s%n",
                        round, front, closed ? "closed" : "left open", elsewhere, seconds);
            }
        }
    }

    private static int otherThan(int one, int two) {
        for (int node = 1; node <= Cluster.NODES; node++) {
            if (node != one && node != two) {
                return node;
            }
        }
        throw new AssertionError("no third node");
    }

    /** Attaches for writing: waits until who held the volume is known to be gone. */
    private static NbdSession attach(Cluster cluster, int node) throws IOException {
        long deadline = System.nanoTime() + TAKE_OVER_NANOS;
        for (; ; ) {
            NbdSession session =
                    NbdSession.open(cluster.node(node).endpoint.nbdAddress(), VOLUME, STEP);
            if (!session.isReadOnly()) {
                return session;
            }
            session.close();
            assertThat(System.nanoTime()).as("the volume is free in time").isLessThan(deadline);
            LockSupport.parkNanos(RETRY_NANOS);
        }
    }

    /** Sends a write of a new {@link #value}; returns its cookie. */
    private long write(NbdSession session) throws IOException {
        value++;
        cookie++;
        session.write(
                cookie,
                VolumeHistory.offset(REGISTER),
                BlockContents.of(REGISTER, value, 1),
                false);
        return cookie;
    }

    private static int errorOf(NbdSession session, long cookie) throws IOException {
        NbdSession.Reply reply = session.reply(System.nanoTime() + TAKE_OVER_NANOS);
        assertThat(reply.cookie()).isEqualTo(cookie);
        return reply.error();
    }

    private static boolean isAnswered(NbdSession session, Duration limit) throws IOException {
        try {
            session.reply(System.nanoTime() + limit.toNanos());
            return true;
        } catch (SocketTimeoutException e) {
            return false;
        }
    }

    /** It fails, or its connection is closed; it is never acknowledged. */
    private static void assertRefused(NbdSession session, long cookie) {
        try {
            assertThat(errorOf(session, cookie)).as("error of the old write").isNotZero();
        } catch (SocketTimeoutException e) {
            throw new AssertionError("the old write was never answered", e);
        } catch (IOException closed) {
            assertThat(closed).isNotNull();
        }
    }

    private static long read(Cluster cluster, int node) throws IOException {
        try (NbdSession session =
                NbdSession.open(cluster.node(node).endpoint.nbdAddress(), VOLUME, STEP)) {
            session.read(1, VolumeHistory.offset(REGISTER), VolumeHistory.BLOCK_BYTES);
            NbdSession.Reply reply = session.reply(System.nanoTime() + STEP.toNanos());
            assertThat(reply.error()).isZero();
            return BlockContents.valuesOf(REGISTER, session.data(VolumeHistory.BLOCK_BYTES))[0];
        } catch (BlockContents.TornBlock e) {
            throw new AssertionError(e);
        }
    }
}
