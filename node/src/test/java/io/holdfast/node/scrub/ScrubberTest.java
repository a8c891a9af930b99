package io.holdfast.node.scrub;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.node.port.Store;
import io.holdfast.node.replica.Effect;
import io.holdfast.node.runtime.MemoryNetwork;
import io.holdfast.node.runtime.TestNode;
import io.holdfast.node.scrub.Scrubber.Report;
import io.holdfast.node.scrub.Scrubber.State;
import io.holdfast.proto.catalogue.Catalogue;
import io.holdfast.proto.catalogue.Volume;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ClientRequest;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.EntryKind;
import io.holdfast.proto.peer.MalformedException;
import io.holdfast.proto.peer.Nonce;
import io.holdfast.proto.peer.ShardId;
import io.netty.channel.DefaultEventLoop;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Scrubs of three nodes with real stores, whose files rot; only the network is in memory. */
class ScrubberTest {
    private static final List<Integer> NODES = List.of(1, 2, 3);
    private static final ShardId SHARD = new ShardId(1, 0);
    private static final int LAYER = 1;
    private static final int BLOCKS = 40;
    private static final long FAST = 1L << 40;
    private static final long HOUR = 3_600_000;

    @TempDir Path directory;

    private final DefaultEventLoop eventLoop = new DefaultEventLoop();
    private final MemoryNetwork network = new MemoryNetwork();
    private final Map<Integer, TestNode> nodes = new TreeMap<>();
    private final Map<Integer, Scrubber> scrubbers = new TreeMap<>();
    private long nowMillis = 1_000_000 * HOUR;
    private int session;
    private int requests = 1;

    @BeforeEach
    void startNodes() throws Exception {
        for (int number : NODES) {
            TestNode node =
                    new TestNode(
                            number, NODES, directory.resolve("n" + number), eventLoop, network);
            nodes.put(number, node);
            scrubber(number, FAST);
        }
        nodes.values().forEach(node -> node.show(catalogue(1, Volume.State.CREATING)));
        TestNode client = leader();
        client.run(() ->
                client.send(client.number, List.of(new ClientRequest.OpenSession(SHARD, 1, 1, 0))));
        client.await("a session", () -> client.replies.size() == 1);
        session = (int) ((ClientReply.Done) client.replies.getFirst()).value();
        List<ClientRequest> burst = new ArrayList<>();
        for (int block = 0; block < BLOCKS; block++) {
            burst.add(write(block));
        }
        client.run(() -> client.send(client.number, burst));
        settled(client);
    }

    private void scrubber(int node, long rate) throws Exception {
        TestNode of = of(node);
        Scrubber made =
                new Scrubber(
                        of.loop,
                        of.store,
                        node,
                        of.keeper::catalogue,
                        new Scrubber.Options(rate, 24 * HOUR),
                        new ScrubTimes(directory.resolve("times" + node), Runnable::run),
                        () -> nowMillis,
                        () -> 0.5);
        of.run(made::start);
        scrubbers.put(node, made);
    }

    @AfterEach
    void stopNodes() throws Exception {
        for (TestNode node : nodes.values()) {
            node.run(() -> scrubberOf(node.number).stop());
            node.stop();
        }
        eventLoop.shutdownGracefully(0, 5, TimeUnit.SECONDS).sync();
    }

    private TestNode of(int node) {
        return Objects.requireNonNull(nodes.get(node));
    }

    private Scrubber scrubberOf(int node) {
        return Objects.requireNonNull(scrubbers.get(node));
    }

    private static Catalogue catalogue(int version, Volume.State state) {
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
                        List.of(new Volume.Shard(0, NODES, 0, 0)));
        return new Catalogue(version, 2, List.of(volume));
    }

    private static boolean isServing(TestNode node) {
        return node.loop.replicas().stream().anyMatch(r -> r.status().role() == Effect.Role.LEADER);
    }

    private TestNode leader() throws Exception {
        of(1).await("a leader", () -> nodes.values().stream().anyMatch(ScrubberTest::isServing));
        return nodes.values().stream().filter(ScrubberTest::isServing).findFirst().orElseThrow();
    }

    private TestNode follower() throws Exception {
        return of(leader().number % 3 + 1);
    }

    private ClientRequest write(int block) {
        byte[] payload = new byte[Blocks.SEALED_SIZE];
        requests++;
        Arrays.fill(payload, (byte) (block + requests));
        return new ClientRequest.Write(
                SHARD,
                1,
                requests,
                session,
                1,
                0,
                LAYER,
                block,
                1,
                new Nonce(1, session, requests),
                ClientRequest.UNCONDITIONAL,
                false,
                payload);
    }

    private static long applied(TestNode node) {
        return node.loop.replicas().getFirst().status().applied();
    }

    /** All writes are answered and in every map. */
    private void settled(TestNode client) throws Exception {
        client.await("all writes answered", () -> client.replies.size() == requests);
        long applied = applied(client);
        for (TestNode node : nodes.values()) {
            node.await("applied everywhere", () -> applied(node) >= applied);
        }
    }

    private Report scrub(TestNode node) throws Exception {
        Scrubber scrubber = scrubberOf(node.number);
        node.run(() -> scrubber.request(null));
        node.await("the scrub's end", () -> scrubber.report().state() != State.RUNNING);
        return scrubber.report();
    }

    private Store.Copy copy(TestNode node, long block) throws Exception {
        List<Store.Copy> got = new ArrayList<>();
        node.run(() -> node.store.copy(SHARD, LAYER, block, got::add));
        node.await("a copy", () -> !got.isEmpty());
        return got.getFirst();
    }

    /** Turns a bit over in every copy of a block in a node's journal. */
    private void rot(TestNode node, long block) throws IOException {
        int changed = 0;
        try (Stream<Path> files = Files.list(directory.resolve("n" + node.number + "/journal"))) {
            for (Path file : (Iterable<Path>) files::iterator) {
                ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(file));
                try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
                    for (int at = 0; at + Entry.HEADER_SIZE <= bytes.limit(); at += 8) {
                        Entry entry = entryAt(bytes, at);
                        if (entry != null
                                && entry.kind() == EntryKind.WRITE
                                && entry.block() == block) {
                            int byteAt = at + Entry.HEADER_SIZE + 1234;
                            byte turned = (byte) (bytes.get(byteAt) ^ 0x10);
                            channel.write(ByteBuffer.wrap(new byte[] {turned}), byteAt);
                            changed++;
                        }
                    }
                }
            }
        }
        assertThat(changed).isPositive();
    }

    private static @Nullable Entry entryAt(ByteBuffer bytes, int at) {
        if (bytes.getInt(at) != Entry.MAGIC) {
            return null;
        }
        try {
            return Entry.decode(bytes.duplicate().position(at));
        } catch (MalformedException e) {
            return null;
        }
    }

    @Test
    void healthyReplicasAreFoundHealthy() throws Exception {
        for (TestNode node : nodes.values()) {
            Report report = scrub(node);
            Counts counts = report.counts();
            assertThat(report.state()).isEqualTo(State.DONE);
            assertThat(report.scheduled()).isFalse();
            assertThat(counts.blocks()).isEqualTo(BLOCKS);
            assertThat(counts.bytes()).isEqualTo((long) BLOCKS * Blocks.SEALED_SIZE);
            assertThat(counts.compared()).isEqualTo(node == leader() ? 0 : BLOCKS);
            assertThat(counts.damaged() + counts.differing() + counts.notCompared()).isZero();
            assertThat(report.volumes().getFirst().name()).isEqualTo("data");
            assertThat(report.volumes().getFirst().completedMillis()).hasValue(nowMillis);
        }
    }

    @Test
    void rotAtAnyReplicaIsReplacedByAnothersCopy() throws Exception {
        for (TestNode node : List.of(follower(), leader())) {
            rot(node, 3);
            rot(node, 7);
            Counts counts = scrub(node).counts();
            assertThat(counts.damaged()).isEqualTo(2);
            assertThat(counts.repaired()).isEqualTo(2);
            assertThat(counts.unrepairable()).isZero();
            assertThat(copy(node, 3).intact()).isTrue();
            assertThat(copy(node, 7).intact()).isTrue();
            assertThat(copy(node, 7).run().payload())
                    .isEqualTo(copy(of(node.number % 3 + 1), 7).run().payload());
            assertThat(scrub(node).counts().damaged()).as("repaired once").isZero();
        }
    }

    @Test
    void whatNobodyHasIsReportedAndAWriteBringsItBack() throws Exception {
        for (TestNode node : nodes.values()) {
            rot(node, 5);
        }
        for (TestNode node : nodes.values()) {
            Counts counts = scrub(node).counts();
            assertThat(counts.damaged()).isEqualTo(1);
            assertThat(counts.repaired()).isZero();
            assertThat(counts.unrepairable()).isEqualTo(1);
        }
        TestNode client = leader();
        client.run(() -> client.send(client.number, List.of(write(5))));
        settled(client);
        for (TestNode node : nodes.values()) {
            assertThat(scrub(node).counts().damaged()).isZero();
        }
    }

    @Test
    void aReplicaThatCannotBeAskedIsPassedOver() throws Exception {
        TestNode node = follower();
        int third = 6 - node.number - leader().number;
        node.run(() -> network.cut(third));
        rot(node, 3);
        assertThat(scrub(node).counts().repaired()).isEqualTo(1);
    }

    /** As if the map had lost a write: the leader is given one with a number long since applied. */
    @Test
    void aWriteThatAFollowerLacksIsTakenFromTheLeader() throws Exception {
        TestNode leader = leader();
        TestNode node = follower();
        byte[] payload = new byte[Blocks.SEALED_SIZE];
        Arrays.fill(payload, (byte) 99);
        Entry newer =
                Entry.builder(SHARD, EntryKind.WRITE)
                        .at(1, BLOCKS, 0)
                        .blocks(LAYER, 3, 1)
                        .sealed(new Nonce(1, 77, 7), payload)
                        .flags(Entry.FLAG_MOVED)
                        .build();
        Entry zeroes =
                Entry.builder(SHARD, EntryKind.ZERO)
                        .at(1, BLOCKS, 0)
                        .blocks(LAYER, 100_000, 5000)
                        .flags(Entry.FLAG_MOVED | Entry.FLAG_TRIM)
                        .build();
        leader.run(() -> leader.store.appendMoved(SHARD, List.of(newer, zeroes)));
        Counts counts = scrub(node).counts();
        assertThat(counts.differing()).isEqualTo(5001);
        assertThat(counts.repaired()).isEqualTo(5001);
        assertThat(copy(node, 3).run()).usingRecursiveComparison().isEqualTo(copy(leader, 3).run());
        assertThat(copy(node, 104_999).run().sequence()).isEqualTo(BLOCKS);
        assertThat(scrub(node).counts().differing()).isZero();
    }

    @Test
    void otherBytesUnderTheSameWriteAreReportedAndLeftAlone() throws Exception {
        TestNode node = follower();
        Store.Copy good = copy(node, 3);
        byte[] other = good.run().payload().clone();
        other[17] ^= 1;
        node.run(() ->
                node.store.repair(
                        SHARD,
                        LAYER,
                        new ClientReply.Run(
                                3, 1, good.run().sequence(), good.run().nonce(), other)));
        Counts counts = scrub(node).counts();
        assertThat(counts.damaged()).isZero();
        assertThat(counts.differing()).isEqualTo(1);
        assertThat(counts.unrepairable()).isEqualTo(1);
        assertThat(copy(node, 3).run().payload()).isEqualTo(other);
    }

    @Test
    void writesGoOnMeanwhileAndAreNoDifferences() throws Exception {
        TestNode client = leader();
        TestNode node = follower();
        for (int round = 0; round < 20; round++) {
            List<ClientRequest> burst = new ArrayList<>();
            for (int block = 0; block < BLOCKS; block++) {
                burst.add(write(block));
            }
            client.run(() -> client.send(client.number, burst));
            Counts counts = scrub(node).counts();
            assertThat(counts.differing() + counts.damaged()).isZero();
        }
        settled(client);
        assertThat(scrub(node).counts().compared()).isEqualTo(BLOCKS);
    }

    @Test
    void withoutALeaderChecksumsAreVerifiedAndNothingIsCompared() throws Exception {
        TestNode node = follower();
        node.run(() -> network.cut(node.number));
        rot(node, 3);
        Counts counts = scrub(node).counts();
        assertThat(counts.blocks()).isEqualTo(BLOCKS);
        assertThat(counts.notCompared()).isEqualTo(BLOCKS);
        assertThat(counts.damaged()).isEqualTo(1);
        assertThat(counts.unrepairable()).isEqualTo(1);
    }

    @Test
    void whoAsksDuringARunJoinsIt() throws Exception {
        TestNode node = follower();
        Scrubber scrubber = scrubberOf(node.number);
        List<Report> reports = new ArrayList<>();
        node.run(() -> {
            reports.add(scrubber.request(1));
            nowMillis += 5;
            reports.add(scrubber.request(null));
        });
        assertThat(reports).allMatch(report -> report.state() == State.RUNNING);
        assertThat(reports.get(1).startedMillis()).isEqualTo(reports.get(0).startedMillis());
        node.await("the scrub's end", () -> scrubber.report().state() == State.DONE);
        assertThat(scrubber.report().counts().blocks()).isEqualTo(BLOCKS);
    }

    @Test
    void aVolumeThatIsDeletedEndsItsScrub() throws Exception {
        TestNode node = follower();
        Scrubber scrubber = scrubberOf(node.number);
        node.run(() -> scrubber.request(null));
        nodes.values().forEach(each -> each.show(new Catalogue(2, 2, List.of())));
        node.await("the scrub's end", () -> scrubber.report().state() == State.STOPPED);
        assertThat(scrubber.isRunning()).isFalse();
        node.await("nothing to scrub", () -> node.loop.shards().isEmpty());
        assertThat(scrub(node).state()).isEqualTo(State.DONE);
    }

    @Test
    void theScheduleComesOnceInAPeriodAndSurvivesARestart() throws Exception {
        TestNode node = follower();
        Scrubber scrubber = scrubberOf(node.number);
        node.run(scrubber::look);
        assertThat(scrubber.report().state())
                .as("first seen half a period ago")
                .isEqualTo(State.NEVER);
        nowMillis += 11 * HOUR;
        node.run(scrubber::look);
        assertThat(scrubber.report().state()).isEqualTo(State.NEVER);
        node.run(scrubber::stop);
        scrubber(node.number, FAST);
        Scrubber second = scrubberOf(node.number);
        nowMillis += HOUR;
        node.run(second::look);
        node.await("a scheduled scrub's end", () -> second.report().state() == State.DONE);
        assertThat(second.report().scheduled()).isTrue();
        node.run(second::stop);
        scrubber(node.number, FAST);
        Scrubber third = scrubberOf(node.number);
        nowMillis += 23 * HOUR;
        node.run(third::look);
        assertThat(third.report().state()).isEqualTo(State.NEVER);
        nowMillis += HOUR;
        node.run(third::look);
        assertThat(third.report().state()).isNotEqualTo(State.NEVER);
    }
}
