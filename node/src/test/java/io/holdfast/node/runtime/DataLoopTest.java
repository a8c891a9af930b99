package io.holdfast.node.runtime;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.node.replica.Effect;
import io.holdfast.node.replica.HardState.Standing;
import io.holdfast.node.replica.ReplicaStatus;
import io.holdfast.node.runtime.DataLoop.ReplicaView;
import io.holdfast.proto.catalogue.Catalogue;
import io.holdfast.proto.catalogue.Volume;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ClientRequest;
import io.holdfast.proto.peer.Nonce;
import io.holdfast.proto.peer.ReplicaMessage;
import io.holdfast.proto.peer.ShardId;
import io.netty.channel.DefaultEventLoop;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The runtime with the real core and the real store; only the network is in memory. */
class DataLoopTest {
    private static final List<Integer> NODES = List.of(1, 2, 3);
    private static final ShardId SHARD = new ShardId(1, 0);

    @TempDir Path directory;

    private final DefaultEventLoop eventLoop = new DefaultEventLoop();
    private final MemoryNetwork network = new MemoryNetwork();
    private final Map<Integer, TestNode> nodes = new TreeMap<>();

    @BeforeEach
    void startNodes() throws Exception {
        for (int number : NODES) {
            start(number);
        }
    }

    @AfterEach
    void stopNodes() throws Exception {
        for (TestNode node : nodes.values()) {
            node.stop();
        }
        eventLoop.shutdownGracefully(0, 5, TimeUnit.SECONDS).sync();
    }

    private TestNode start(int number) throws Exception {
        TestNode node =
                new TestNode(number, NODES, directory.resolve("n" + number), eventLoop, network);
        nodes.put(number, node);
        return node;
    }

    private static Catalogue catalogue(int version, Volume.State state, long epoch) {
        Volume volume =
                new Volume(
                        1,
                        "data",
                        1 << 20,
                        Volume.DEFAULT_STRIPE_BYTES,
                        Volume.Durability.FLUSH,
                        Volume.Attach.SHARED,
                        Volume.Reads.LEASE,
                        30,
                        state,
                        1,
                        1,
                        "",
                        List.of(new Volume.Shard(0, NODES, epoch == 0 ? 0 : 1, epoch)));
        return new Catalogue(version, 2, List.of(volume));
    }

    private TestNode leader() throws Exception {
        nodes.get(1)
                .await("a leader", () -> nodes.values().stream().anyMatch(node -> isServing(node)));
        return nodes.values().stream().filter(DataLoopTest::isServing).findFirst().orElseThrow();
    }

    private static boolean isServing(TestNode node) {
        return node.loop.replicas().stream().anyMatch(r -> r.status().role() == Effect.Role.LEADER);
    }

    private static ClientRequest write(int request, int session, int block) {
        byte[] payload = new byte[Blocks.SEALED_SIZE];
        Arrays.fill(payload, (byte) (block + 1));
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
                payload);
    }

    /** Opens a session from {@code client} at {@code leader} and returns its number. */
    private static int openSession(TestNode client, int leader) throws Exception {
        client.run(
                () -> client.send(leader, List.of(new ClientRequest.OpenSession(SHARD, 1, 1, 0))));
        client.await("a session", () -> client.replies.size() == 1);
        return (int) ((ClientReply.Done) client.replies.getFirst()).value();
    }

    /** Opens a session at the leader's own node and writes; returns the session's number. */
    private static int writeOne(TestNode leader) throws Exception {
        int session = openSession(leader, leader.number);
        leader.run(() -> leader.send(leader.number, List.of(write(2, session, 3))));
        leader.await("the write", () -> leader.replies.size() == 2);
        return session;
    }

    @Test
    void writesThroughAFollowersNodeAreCommittedAndRead() throws Exception {
        nodes.values().forEach(node -> node.show(catalogue(1, Volume.State.CREATING, 0)));
        int leader = leader().number;
        TestNode client = nodes.get(leader % 3 + 1);
        int session = openSession(client, leader);
        List<ClientRequest> burst = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            burst.add(write(2 + i, session, i));
        }
        client.run(() -> client.send(leader, burst));
        client.await("all writes answered", () -> client.replies.size() == 41);
        assertThat(client.replies)
                .allSatisfy(r -> assertThat(r).isInstanceOf(ClientReply.Done.class));
        client.run(() ->
                client.send(leader, List.of(new ClientRequest.Read(SHARD, 1, 50, 1, 0, 41, 0))));
        client.await("the read answered", () -> client.replies.size() == 42);
        ClientReply.Data data = (ClientReply.Data) client.replies.getLast();
        assertThat(data.runs().stream().mapToInt(ClientReply.Run::count).sum()).isEqualTo(41);
        assertThat(data.runs().getLast().isZero()).isTrue();
        for (TestNode node : nodes.values()) {
            node.await("applied everywhere", () -> status(node).applied() >= 42);
        }
    }

    private static ReplicaStatus status(TestNode node) {
        return node.loop.replicas().getFirst().status();
    }

    @Test
    void anotherNodeLeadsAndHasEverythingWhenTheLeaderIsCutOff() throws Exception {
        nodes.values().forEach(node -> node.show(catalogue(1, Volume.State.CREATING, 0)));
        TestNode first = leader();
        TestNode client = nodes.get(first.number % 3 + 1);
        int session = openSession(client, first.number);
        client.run(() -> client.send(first.number, List.of(write(2, session, 7))));
        client.await("the write", () -> client.replies.size() == 2);
        first.run(() -> network.cut(first.number));
        client.await(
                "another leader",
                () -> nodes.values().stream().anyMatch(n -> n != first && isServing(n)));
        int second =
                nodes.values().stream()
                        .filter(n -> n != first && isServing(n))
                        .findFirst()
                        .orElseThrow()
                        .number;
        // The same request again: it was committed, so it is answered and not run.
        client.run(() ->
                client.send(
                        second,
                        List.of(
                                write(2, session, 7),
                                new ClientRequest.Read(SHARD, 1, 3, 1, 7, 1, 0))));
        client.await("both answers", () -> client.replies.size() == 4);
        assertThat(client.replies.get(2)).isInstanceOf(ClientReply.Done.class);
        ClientReply.Data data = (ClientReply.Data) client.replies.get(3);
        assertThat(data.runs().getFirst().payload()[0]).isEqualTo((byte) 8);
        first.run(() -> network.heal(first.number));
        first.await("the old leader follows", () -> status(first).leader() == second);
    }

    @Test
    void localRepliesNeverArriveInsideTheCallThatAsked() throws Exception {
        nodes.values().forEach(node -> node.show(catalogue(1, Volume.State.CREATING, 0)));
        TestNode leader = leader();
        // TestNode throws when it is called back while it sends.
        int session = openSession(leader, leader.number);
        leader.onReply =
                () -> {
                    if (leader.replies.size() < 20) {
                        leader.send(
                                leader.number,
                                List.of(write(leader.replies.size() + 1, session, 1)));
                    }
                };
        leader.run(() -> leader.send(leader.number, List.of(write(2, session, 1))));
        leader.await("a chain of writes", () -> leader.replies.size() == 20);
    }

    @Test
    void aBurstOfRequestsCostsOneFlush() throws Exception {
        nodes.values().forEach(node -> node.show(catalogue(1, Volume.State.CREATING, 0)));
        TestNode leader = leader();
        int session = openSession(leader, leader.number);
        List<ClientRequest> burst = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            burst.add(write(2 + i, session, i));
        }
        int[] before = new int[1];
        leader.run(() -> {
            before[0] = network.flushes();
            leader.send(leader.number, burst);
        });
        leader.await("all answered", () -> leader.replies.size() == 101);
        leader.run(() -> assertThat(network.flushes() - before[0]).isLessThan(20));
    }

    @Test
    void refusesRequestsForShardsThatAreNotHere() throws Exception {
        TestNode node = nodes.get(1);
        node.run(() -> node.send(1, List.of(new ClientRequest.AskHolder(new ShardId(9, 0), 1, 1))));
        node.await("a refusal", () -> !node.replies.isEmpty());
        assertThat(((ClientReply.Refused) node.replies.getFirst()).why())
                .isEqualTo(ClientReply.Refusal.UNKNOWN_SHARD);
    }

    @Test
    void aRestartedNodeFindsItsReplicaAgain() throws Exception {
        nodes.values().forEach(node -> node.show(catalogue(1, Volume.State.CREATING, 0)));
        TestNode leader = leader();
        writeOne(leader);
        int number = leader.number % 3 + 1;
        TestNode old = nodes.get(number);
        old.await("applied", () -> status(old).applied() >= 3);
        old.stop();
        TestNode again = start(number);
        again.show(catalogue(2, Volume.State.READY, 1));
        again.await("the replica", () -> !again.loop.shards().isEmpty());
        assertThat(again.thread.submit(() -> status(again)).get(5, TimeUnit.SECONDS))
                .satisfies(found -> {
                    assertThat(found.last()).isGreaterThanOrEqualTo(3);
                    assertThat(found.standing()).isEqualTo(Standing.VOTER);
                });
    }

    @Test
    void aDiskThatFailsWhileAReplicaStartsOverTakesTheReplicaOutAndNotTheNode() throws Exception {
        nodes.values().forEach(node -> node.show(catalogue(1, Volume.State.CREATING, 0)));
        TestNode leader = leader();
        int session = writeOne(leader);
        TestNode follower = nodes.get(leader.number % 3 + 1);
        follower.await("applied", () -> status(follower).applied() >= 3);
        follower.run(() -> {
            // A leader whose past is another one where this replica has committed: it starts over.
            ReplicaStatus here = status(follower);
            ReplicaMessage.Append other =
                    new ReplicaMessage.Append(
                            SHARD, here.promised(), 999, 2, 2, 0, false, 1, List.of());
            // The journal's files break off writes and syncs of a thread that is interrupted.
            Thread.currentThread().interrupt();
            follower.loop.received(leader.number, other);
            assertThat(Thread.interrupted()).isTrue();
        });
        follower.await("out of service", () -> follower.loop.storeFailure() != null);
        leader.run(() -> leader.send(leader.number, List.of(write(3, session, 4))));
        leader.await("a write by the others", () -> leader.replies.size() == 3);
        assertThat(leader.replies.getLast()).isInstanceOf(ClientReply.Done.class);
    }

    @Test
    void aReplicaWithoutAPastOfAVolumeInUseMayNotVote() throws Exception {
        TestNode node = nodes.get(1);
        node.show(catalogue(1, Volume.State.READY, 4));
        node.await("the replica", () -> !node.loop.shards().isEmpty());
        List<ReplicaView> views =
                node.thread.submit(() -> node.loop.replicas()).get(5, TimeUnit.SECONDS);
        assertThat(views.getFirst().status().standing()).isNotEqualTo(Standing.VOTER);
    }

    @Test
    void aVolumeInCreationThatHasHadALeaderIsInUse() throws Exception {
        TestNode node = nodes.get(1);
        node.show(catalogue(1, Volume.State.CREATING, 1));
        node.await("the replica", () -> !node.loop.shards().isEmpty());
        List<ReplicaView> views =
                node.thread.submit(() -> node.loop.replicas()).get(5, TimeUnit.SECONDS);
        assertThat(views.getFirst().status().standing()).isNotEqualTo(Standing.VOTER);
    }

    @Test
    void dropsReplicasOfDeletedVolumesOnly() throws Exception {
        TestNode node = nodes.get(1);
        node.show(catalogue(1, Volume.State.CREATING, 0));
        node.await("the replica", () -> !node.loop.shards().isEmpty());
        // A catalogue that has not given the number out yet knows nothing of the volume.
        node.show(new Catalogue(2, 1, List.of()));
        node.await("taken", () -> node.keeper.catalogue().version() == 2);
        assertThat(node.thread.submit(() -> node.loop.shards()).get(5, TimeUnit.SECONDS))
                .containsExactly(SHARD);
        node.show(new Catalogue(3, 2, List.of()));
        node.await("dropped", () -> node.loop.shards().isEmpty());
        assertThat(node.thread.submit(() -> node.store.shards()).get(5, TimeUnit.SECONDS))
                .isEmpty();
    }
}
