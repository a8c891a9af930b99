package io.holdfast.node.runtime;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.node.replica.Branch;
import io.holdfast.node.replica.Effect;
import io.holdfast.node.replica.Event;
import io.holdfast.node.replica.ReplicaStatus;
import io.holdfast.node.runtime.CatchUpProgress.By;
import io.holdfast.node.runtime.DataLoop.CatchUpRates;
import io.holdfast.proto.catalogue.Catalogue;
import io.holdfast.proto.catalogue.Volume;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ClientRequest;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.Nonce;
import io.holdfast.proto.peer.ShardId;
import io.netty.channel.DefaultEventLoop;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A follower that was cut off is brought forward by the real core and store, at a pace. */
class CatchUpsTest {
    private static final List<Integer> NODES = List.of(1, 2, 3);
    private static final ShardId SHARD = new ShardId(1, 0);
    private static final long RATE = 1 << 20;
    private static final int WRITES = 800;
    private static final long ENTRY_BYTES = Entry.HEADER_SIZE + Blocks.SEALED_SIZE;
    private static final long CHANGED_BYTES = WRITES * ENTRY_BYTES;

    /** So many entries behind, a follower is called in sync and no longer held back. */
    private static final int IN_SYNC_ENTRIES = 256;

    @TempDir Path directory;

    private final DefaultEventLoop eventLoop = new DefaultEventLoop();
    private final MemoryNetwork network = new MemoryNetwork();
    private final Map<Integer, TestNode> nodes = new TreeMap<>();

    /** Of all nodes. */
    private final Map<By, Long> sent = new EnumMap<>(By.class);

    private final Map<By, Long> received = new EnumMap<>(By.class);
    private final Set<Branch> branches = EnumSet.noneOf(Branch.class);
    private final List<CatchUpProgress> seen = new ArrayList<>();

    /** Who leads, and a follower that was cut off while the others wrote. */
    private record Pair(TestNode leader, TestNode follower) {}

    private final class Counting implements RuntimeObserver {
        @Override
        public void journalWritten(long nanos) {}

        @Override
        public void journalSynced(long nanos) {}

        @Override
        public void leadershipChanged(ShardId shard, Effect.Announce announce) {}

        @Override
        public void localMessageDropped() {}

        @Override
        public void branchTaken(Branch branch) {
            branches.add(branch);
        }

        @Override
        public void catchUpSent(By by, long bytes) {
            sent.merge(by, bytes, Long::sum);
        }

        @Override
        public void catchUpReceived(By by, long bytes) {
            received.merge(by, bytes, Long::sum);
        }
    }

    private Pair leaveAFollowerBehind(long rate) throws Exception {
        for (int number : NODES) {
            nodes.put(
                    number,
                    new TestNode(
                            number,
                            NODES,
                            directory.resolve("n" + number),
                            eventLoop,
                            network,
                            new CatchUpRates(rate, rate),
                            new Counting()));
        }
        nodes.values().forEach(node -> node.show(catalogue()));
        nodes.get(1)
                .await("a leader", () -> nodes.values().stream().anyMatch(CatchUpsTest::serves));
        TestNode leader =
                nodes.values().stream().filter(CatchUpsTest::serves).findFirst().orElseThrow();
        TestNode follower = nodes.get(leader.number % 3 + 1);
        leader.run(() ->
                leader.send(leader.number, List.of(new ClientRequest.OpenSession(SHARD, 1, 1, 0))));
        leader.await("a session", () -> leader.replies.size() == 1);
        int session = (int) ((ClientReply.Done) leader.replies.getFirst()).value();
        follower.await("all it has", () -> status(follower).applied() == status(leader).applied());
        leader.run(() -> network.cut(follower.number));
        // What is written while it answers is earned on top of the rate.
        leader.await("silence", () -> silentNanos(leader, follower) > 2_000_000_000L);
        for (int i = 0; i < WRITES; i += 100) {
            List<ClientRequest> burst = new ArrayList<>();
            for (int k = i; k < i + 100; k++) {
                burst.add(write(2 + k, session, k));
            }
            leader.run(() -> leader.send(leader.number, burst));
            int answered = 1 + i + 100;
            leader.await("writes", () -> leader.replies.size() == answered);
        }
        leader.run(() -> {
            sent.clear();
            received.clear();
        });
        return new Pair(leader, follower);
    }

    @AfterEach
    void stopNodes() throws Exception {
        for (TestNode node : nodes.values()) {
            node.stop();
        }
        eventLoop.shutdownGracefully(0, 5, TimeUnit.SECONDS).sync();
    }

    private static Catalogue catalogue() {
        Volume volume =
                new Volume(
                        1,
                        "data",
                        4 << 20,
                        Volume.DEFAULT_STRIPE_BYTES,
                        Volume.Durability.FLUSH,
                        Volume.Attach.SHARED,
                        Volume.Reads.LEASE,
                        30,
                        Volume.State.CREATING,
                        1,
                        1,
                        "",
                        List.of(new Volume.Shard(0, NODES, 0, 0)));
        return new Catalogue(1, 2, List.of(volume));
    }

    private static boolean serves(TestNode node) {
        return node.loop.replicas().stream().anyMatch(r -> r.status().role() == Effect.Role.LEADER);
    }

    private static ReplicaStatus status(TestNode node) {
        return node.loop.replicas().getFirst().status();
    }

    private static long silentNanos(TestNode leader, TestNode follower) {
        return status(leader).followers().stream()
                .filter(each -> each.node() == follower.number)
                .findFirst()
                .orElseThrow()
                .silentNanos();
    }

    private static ClientRequest write(int request, int session, int block) {
        return new ClientRequest.Write(
                SHARD,
                1,
                request,
                session,
                1,
                0,
                1,
                block,
                1,
                new Nonce(1, session, request),
                ClientRequest.UNCONDITIONAL,
                false,
                new byte[Blocks.SEALED_SIZE]);
    }

    private boolean isInSync(TestNode leader, TestNode follower) {
        seen.addAll(leader.loop.replicas().getFirst().catchUps());
        return status(follower).applied() == status(leader).applied()
                && leader.loop.replicas().getFirst().catchUps().isEmpty();
    }

    private double secondsToInSync(Pair pair) throws Exception {
        long began = System.nanoTime();
        pair.leader.await("the follower in sync", () -> isInSync(pair.leader, pair.follower));
        return (System.nanoTime() - began) / 1e9;
    }

    private void assertPaced(double seconds, By by, TestNode follower) {
        long free = by == By.ENTRIES ? IN_SYNC_ENTRIES * ENTRY_BYTES : 0;
        // What a burst allows comes at once, and a part or frame may leave a debt.
        double atLeast = (CHANGED_BYTES - free) / (double) RATE - 3 * CatchUpPace.BURST_NANOS / 1e9;
        assertThat(seconds).isGreaterThan(atLeast);
        assertThat(sent.get(by)).isGreaterThanOrEqualTo(CHANGED_BYTES);
        // A follower that hears nothing of its leader for a while, since the machine is busy, gives
        // up its catch-up by extents; it begins anew.
        if (!branches.contains(Branch.CATCH_UP_REPEATED)) {
            assertThat(sent.get(by)).isLessThan(CHANGED_BYTES * 11 / 10);
        }
        assertThat(received).isEqualTo(sent);
        assertThat(seen).isNotEmpty().allMatch(each -> each.node() == follower.number);
        double shown = 0;
        for (CatchUpProgress each : seen) {
            assertThat(each.percent()).isBetween(shown, 99.9);
            shown = each.percent();
        }
        assertThat(shown).as("the last that was seen").isGreaterThan(50);
        assertThat(seen).anyMatch(each -> each.secondsLeft().isPresent());
    }

    @Test
    void byEntriesAtTheRateAndNothingTwice() throws Exception {
        Pair pair = leaveAFollowerBehind(RATE);
        pair.leader.run(() -> network.heal(pair.follower.number));
        assertPaced(secondsToInSync(pair), By.ENTRIES, pair.follower);
        assertThat(seen).allMatch(each -> each.by() == By.ENTRIES);
    }

    @Test
    void byExtentsAtTheRateAndNothingTwice() throws Exception {
        Pair pair = leaveAFollowerBehind(RATE);
        pair.leader.run(() -> {
            network.heal(pair.follower.number);
            pair.leader.loop.tell(SHARD, new Event.EntriesGone(pair.follower.number));
        });
        assertPaced(secondsToInSync(pair), By.EXTENTS, pair.follower);
        assertThat(sent).containsOnlyKeys(By.EXTENTS);
        assertThat(seen)
                .filteredOn(each -> each.by() == By.EXTENTS && each.totalBytes().isPresent())
                .isNotEmpty()
                .allMatch(each -> each.totalBytes().getAsLong() >= CHANGED_BYTES);
    }

    @Test
    void nothingIsHeldBackWhenClientsWaitForTheFollower() throws Exception {
        Pair pair = leaveAFollowerBehind(RATE / 16);
        TestNode third =
                nodes.values().stream()
                        .filter(node -> node != pair.leader && node != pair.follower)
                        .findFirst()
                        .orElseThrow();
        pair.leader.run(() -> {
            network.cut(third.number);
            network.heal(pair.follower.number);
        });
        assertThat(secondsToInSync(pair))
                .as("at the rate it would take %d s", CHANGED_BYTES * 16 / RATE)
                .isLessThan(CHANGED_BYTES * 8 / (double) RATE);
    }
}
