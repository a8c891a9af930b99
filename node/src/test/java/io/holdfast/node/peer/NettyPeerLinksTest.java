package io.holdfast.node.peer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.holdfast.config.NodeConfig.Member;
import io.holdfast.node.port.PeerLinks;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ClientRequest;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.EntryKind;
import io.holdfast.proto.peer.Hello;
import io.holdfast.proto.peer.Nonce;
import io.holdfast.proto.peer.PeerCodec;
import io.holdfast.proto.peer.PeerMessage;
import io.holdfast.proto.peer.ReplicaMessage;
import io.holdfast.proto.peer.ShardId;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.util.ResourceLeakDetector;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Real links on loopback, and plain sockets that misbehave. */
@Timeout(60)
final class NettyPeerLinksTest {
    private static final ShardId SHARD = new ShardId(1, 0);
    private static final String CLUSTER = "test";

    private static final ResourceLeakDetector.Level LEVEL_BEFORE = ResourceLeakDetector.getLevel();

    private final List<AutoCloseable> toClose = new ArrayList<>();
    private List<Member> members = List.of();

    @BeforeAll
    static void watchForLeaks() {
        ResourceLeakDetector.setLevel(ResourceLeakDetector.Level.PARANOID);
    }

    @AfterAll
    static void watchAsBefore() {
        ResourceLeakDetector.setLevel(LEVEL_BEFORE);
    }

    @BeforeEach
    void chooseAddresses() throws Exception {
        members = TestPeer.members(3);
    }

    @AfterEach
    void closeAll() throws Exception {
        for (AutoCloseable each : toClose.reversed()) {
            each.close();
        }
    }

    private TestPeer peer(int number) throws Exception {
        return peer(number, CLUSTER, TestPeer.QUICK);
    }

    private TestPeer peer(int number, String cluster, PeerLimits limits) throws Exception {
        TestPeer peer = new TestPeer(TestPeer.config(cluster, members, number), limits);
        toClose.add(peer);
        return peer;
    }

    private Socket dial(int number) throws IOException {
        Socket socket =
                new Socket(InetAddress.getLoopbackAddress(), members.get(number - 1).peer().port());
        socket.setSoTimeout(TestPeer.WAIT_SECONDS * 1000);
        toClose.add(socket);
        return socket;
    }

    private static void say(Socket socket, Hello hello) throws IOException {
        ByteBuf out = Unpooled.buffer();
        hello.encode(out);
        socket.getOutputStream().write(ByteBufUtil.getBytes(out));
    }

    private static Hello hello(int node, long incarnation) {
        return hello(node, incarnation, TestPeer.KEY_CHECK);
    }

    private static Hello hello(int node, long incarnation, long keyCheck) {
        return new Hello(
                Hello.VERSION,
                Hello.Role.NODE,
                Hello.Verdict.WELCOME,
                node,
                incarnation,
                keyCheck,
                CLUSTER);
    }

    private static Hello agent() {
        return new Hello(Hello.VERSION, Hello.Role.AGENT, Hello.Verdict.WELCOME, 0, 1, 0, CLUSTER);
    }

    private static Hello hear(Socket socket) throws IOException {
        byte[] bytes = socket.getInputStream().readNBytes(Hello.HEADER_SIZE + CLUSTER.length());
        Hello hello = Hello.decode(Unpooled.wrappedBuffer(bytes));
        if (hello == null) {
            throw new IOException("hello cut short at " + bytes.length);
        }
        return hello;
    }

    private static void say(Socket socket, PeerMessage message) throws IOException {
        socket.getOutputStream().write(bytes(message));
    }

    private static byte[] bytes(PeerMessage message) {
        ByteBuf out = Unpooled.buffer();
        PeerCodec.encode(message, out);
        return ByteBufUtil.getBytes(out);
    }

    /** The next message, pings skipped. */
    private static PeerMessage hearMessage(Socket socket) throws IOException {
        DataInputStream in = new DataInputStream(socket.getInputStream());
        int length = in.readInt();
        while (length == 0) {
            length = in.readInt();
        }
        byte[] rest = in.readNBytes(length);
        return PeerCodec.decode(Unpooled.buffer().writeInt(length).writeBytes(rest));
    }

    /** Reads until the other side closes or resets. */
    private static void awaitClosed(Socket socket) throws IOException {
        try {
            socket.getInputStream().transferTo(OutputStream.nullOutputStream());
        } catch (SocketTimeoutException e) {
            throw e;
        } catch (IOException reset) {
            assertThat(reset).isInstanceOf(SocketException.class);
        }
    }

    private static ReplicaMessage.HandOver numbered(long number) {
        return new ReplicaMessage.HandOver(SHARD, number);
    }

    private static ReplicaMessage.Append append(int blocks, int entries) {
        List<Entry> list = new ArrayList<>();
        for (int i = 1; i <= entries; i++) {
            list.add(
                    Entry.builder(SHARD, EntryKind.WRITE)
                            .at(1, i, 0)
                            .blocks(0, 0, blocks)
                            .sealed(new Nonce(1, 1, 0), new byte[blocks * Blocks.SEALED_SIZE])
                            .build());
        }
        return new ReplicaMessage.Append(SHARD, 1, 0, 0, 0, 0, false, 0, list);
    }

    @Test
    void threeNodesFindEachOtherInAnyOrderOfStart() throws Exception {
        TestPeer first = peer(1);
        TestPeer third = peer(3);
        TestPeer second = peer(2);
        first.await("connected 3");
        first.await("connected 2");
        third.await("connected 1");
        third.await("connected 2");
        second.await("connected 3");
        second.send(3, numbered(23));
        assertThat(third.next()).isEqualTo(numbered(23));
        assertThat(third.lastFrom.get()).isEqualTo(2);
        third.send(1, numbered(31));
        assertThat(first.next()).isEqualTo(numbered(31));
    }

    @Test
    void messagesKeepTheirOrderWhateverTheirSizes() throws Exception {
        TestPeer first = peer(1);
        TestPeer second = peer(2);
        first.await("connected 2");
        second.await("connected 1");
        Random random = new Random(5);
        int rounds = 400;
        for (int i = 1; i <= rounds; i++) {
            first.send(2, numbered(i), append(1 + random.nextInt(64), random.nextInt(4)));
        }
        for (int i = 1; i <= rounds; i++) {
            assertThat(second.next()).isEqualTo(numbered(i));
            assertThat(second.next()).isInstanceOf(ReplicaMessage.Append.class);
        }
        assertThat(first.dropped).hasValue(0);
        assertThat(second.turns.get()).isPositive();
    }

    @Test
    void theLargestFramesArriveWhole() throws Exception {
        TestPeer first = peer(1);
        TestPeer second = peer(2);
        second.await("connected 1");
        byte[] state = new byte[PeerCodec.MAX_STATE_BYTES];
        new Random(6).nextBytes(state);
        PeerMessage install = new ReplicaMessage.InstallBegin(SHARD, 1, 0, 1, 1, state);
        PeerMessage append = append(Blocks.MAX_PER_ENTRY, 15);
        second.send(1, install, append, install);
        assertThat(bytes(first.next())).isEqualTo(bytes(install));
        assertThat(bytes(first.next())).isEqualTo(bytes(append));
        assertThat(bytes(first.next())).isEqualTo(bytes(install));
    }

    @Test
    void whatExceedsTheLimitOfQueuedBytesIsDroppedAndTheLinkStaysUp() throws Exception {
        PeerLimits patient = new PeerLimits(64L << 20, 4, 2, 1000, 600, 1000, 60_000, 20, 100);
        TestPeer second = peer(2, CLUSTER, patient);
        Socket slow = dial(2);
        say(slow, hello(1, 77));
        hear(slow);
        second.await("connected 1");
        PeerMessage large = append(Blocks.MAX_PER_ENTRY, 15);
        int sent = 0;
        int size = PeerCodec.encodedSize(large);
        while (second.dropped.get() == 0) {
            second.send(1, large);
            sent++;
            assertThat((long) sent * size).isLessThan(2 * (64L << 20));
        }
        second.send(1, large);
        assertThat(second.dropped.get()).isEqualTo(2);
        for (int i = 1; i < sent; i++) {
            assertThat(hearMessage(slow)).isInstanceOf(ReplicaMessage.Append.class);
            slow.getOutputStream().write(new byte[4]);
        }
        second.send(1, numbered(8));
        assertThat(hearMessage(slow)).isEqualTo(numbered(8));
    }

    @Test
    void messagesToNobodyAreDropped() throws Exception {
        TestPeer first = peer(1);
        first.send(2, numbered(1));
        first.send(99, numbered(1));
        first.send(PeerLinks.FIRST_AGENT, numbered(1));
        assertThat(first.dropped).hasValue(3);
        assertThatThrownBy(() -> first.send(1, numbered(1)))
                .hasRootCauseInstanceOf(IllegalStateException.class)
                .hasMessageContaining("this node itself");
    }

    @Test
    void eitherSideMayRestart() throws Exception {
        TestPeer first = peer(1);
        TestPeer second = peer(2);
        first.await("connected 2");
        second.await("connected 1");
        for (int round = 1; round <= 2; round++) {
            second.close();
            first.await("disconnected 2");
            second = peer(2);
            first.await("connected 2");
            second.await("connected 1");
            first.send(2, numbered(round));
            assertThat(second.next()).isEqualTo(numbered(round));
            first.close();
            second.await("disconnected 1");
            first = peer(1);
            second.await("connected 1");
            second.send(1, numbered(round));
            assertThat(first.next()).isEqualTo(numbered(round));
        }
    }

    @Test
    void aNewIncarnationReplacesAHalfOpenConnection() throws Exception {
        TestPeer second = peer(2);
        Socket old = dial(2);
        say(old, hello(1, 1));
        hear(old);
        second.await("connected 1");
        Socket renewed = dial(2);
        say(renewed, hello(1, 2));
        hear(renewed);
        second.await("disconnected 1");
        second.await("connected 1");
        awaitClosed(old);
        second.send(1, numbered(4));
        assertThat(hearMessage(renewed)).isEqualTo(numbered(4));
    }

    @Test
    void aHelloAndTheFirstFramesMayComeInOneReadOrByteByByte() throws Exception {
        TestPeer second = peer(2);
        ByteBuf all = Unpooled.buffer();
        hello(1, 1).encode(all);
        for (int i = 1; i <= 3; i++) {
            PeerCodec.encode(numbered(i), all);
            all.writeInt(0);
        }
        byte[] bytes = ByteBufUtil.getBytes(all);
        Socket atOnce = dial(2);
        atOnce.getOutputStream().write(bytes);
        for (int i = 1; i <= 3; i++) {
            assertThat(second.next()).isEqualTo(numbered(i));
        }
        Socket slowly = dial(2);
        slowly.setTcpNoDelay(true);
        for (byte each : bytes) {
            slowly.getOutputStream().write(each);
        }
        for (int i = 1; i <= 3; i++) {
            assertThat(second.next()).isEqualTo(numbered(i));
        }
    }

    @Test
    void whoDoesNotBelongHereIsToldAndClosed() throws Exception {
        TestPeer second = peer(2);
        List<Hello> wrong =
                List.of(
                        new Hello(
                                Hello.VERSION,
                                Hello.Role.NODE,
                                Hello.Verdict.WELCOME,
                                1,
                                1,
                                TestPeer.KEY_CHECK,
                                "prod\nforged"),
                        new Hello(9, Hello.Role.NODE, Hello.Verdict.WELCOME, 1, 1, 0, CLUSTER),
                        hello(1, 1, TestPeer.KEY_CHECK + 1),
                        hello(2, 1),
                        hello(3, 1),
                        hello(4, 1));
        List<Hello.Verdict> verdicts =
                List.of(
                        Hello.Verdict.OTHER_CLUSTER,
                        Hello.Verdict.OTHER_VERSION,
                        Hello.Verdict.OTHER_KEY,
                        Hello.Verdict.OWN_NUMBER,
                        Hello.Verdict.WRONG_DIRECTION,
                        Hello.Verdict.UNKNOWN_NODE);
        for (int i = 0; i < wrong.size(); i++) {
            Socket socket = dial(2);
            say(socket, wrong.get(i));
            assertThat(hear(socket).verdict()).isEqualTo(verdicts.get(i));
            awaitClosed(socket);
        }
        assertThat(second.refused).hasValue(wrong.size());
        assertThat(second.happened).isEmpty();
    }

    /** Of three nodes, the one whose key two others do not share is the wrong one. */
    @Test
    void aNodeWithoutAMajorityOfItsKeyKnowsThatItsKeyIsDisputed() throws Exception {
        TestPeer second = peer(2);
        assertThat(second.links.keyDisputed()).isFalse();
        Socket socket = dial(2);
        say(socket, hello(1, 1, TestPeer.KEY_CHECK + 1));
        assertThat(hear(socket).verdict()).isEqualTo(Hello.Verdict.OTHER_KEY);
        assertThat(second.links.keyDisputed()).isTrue();
        Socket corrected = dial(2);
        say(corrected, hello(1, 2));
        assertThat(hear(corrected).verdict()).isEqualTo(Hello.Verdict.WELCOME);
        assertThat(second.happened.poll(TestPeer.WAIT_SECONDS, TimeUnit.SECONDS))
                .contains("connected");
        assertThat(second.links.keyDisputed()).isFalse();
    }

    @Test
    void nodesOfDifferentClustersDoNotConnect() throws Exception {
        TestPeer first = peer(1, "blue", TestPeer.QUICK);
        TestPeer second = peer(2, "green", TestPeer.QUICK);
        while (first.refused.get() < 2 || second.refused.get() < 2) {
            Thread.onSpinWait();
        }
        assertThat(first.happened).isEmpty();
        assertThat(second.happened).isEmpty();
    }

    @Test
    void halfAHelloAndThenSilenceIsClosedInTime() throws Exception {
        TestPeer second = peer(2);
        Socket socket = dial(2);
        socket.getOutputStream().write(ByteBufUtil.decodeHexDump("484650520000"));
        awaitClosed(socket);
        assertThat(second.refused).hasValue(1);
    }

    @Test
    void tooManyConnectionsWithoutHelloPushOutTheOldest() throws Exception {
        TestPeer second = peer(2);
        Socket oldest = dial(2);
        for (int i = 0; i < TestPeer.QUICK.waiting(); i++) {
            dial(2);
        }
        awaitClosed(oldest);
        assertThat(second.refused.get()).isPositive();
        TestPeer first = peer(1);
        first.await("connected 2");
    }

    @Test
    void randomBytesCloseOnlyTheirOwnConnection() throws Exception {
        TestPeer first = peer(1);
        TestPeer second = peer(2);
        first.await("connected 2");
        Random random = new Random(7);
        for (int round = 0; round < 50; round++) {
            Socket socket = dial(2);
            byte[] noise = new byte[300];
            random.nextBytes(noise);
            if (round % 2 == 0) {
                say(socket, agent());
            }
            socket.getOutputStream().write(noise);
            awaitClosed(socket);
        }
        first.send(2, numbered(1));
        PeerMessage arrived = second.next();
        assertThat(arrived).isEqualTo(numbered(1));
        assertThat(second.malformed).hasValue(25);
    }

    @Test
    void aFrameOfTwoGibibytesIsRefusedAtItsLength() throws Exception {
        TestPeer second = peer(2);
        for (int length : new int[] {Integer.MAX_VALUE, -1, 1, PeerCodec.MAX_FRAME}) {
            Socket socket = dial(2);
            say(socket, hello(1, 1));
            socket.getOutputStream().write(ByteBufUtil.getBytes(Unpooled.copyInt(length)));
            awaitClosed(socket);
        }
        assertThat(second.malformed).hasValue(4);
    }

    @Test
    void aSilentPeerIsClosedAndAnIdleOneIsKeptByPings() throws Exception {
        PeerLimits limits = new PeerLimits(1 << 20, 4, 2, 1000, 600, 50, 700, 20, 100);
        TestPeer second = peer(2, CLUSTER, limits);
        Socket silent = dial(2);
        say(silent, hello(1, 1));
        hear(silent);
        second.await("connected 1");
        long from = System.nanoTime();
        awaitClosed(silent);
        assertThat(System.nanoTime() - from).isGreaterThan(TimeUnit.MILLISECONDS.toNanos(500));
        second.await("disconnected 1");
        TestPeer first = peer(1, CLUSTER, limits);
        first.await("connected 2");
        assertThat(first.happened.poll(1500, TimeUnit.MILLISECONDS)).isNull();
    }

    @Test
    void agentsAreAnsweredOverTheirOwnConnection() throws Exception {
        TestPeer second = peer(2);
        second.reaction =
                (peer, message) -> {
                    if (message instanceof ClientRequest request) {
                        peer.links.send(
                                (int) peer.lastFrom.get(),
                                new ClientReply.Done(
                                        SHARD, request.client(), request.request(), 5));
                    }
                };
        Socket one = dial(2);
        say(one, agent());
        assertThat(hear(one).node()).isEqualTo(2);
        second.await("connected " + PeerLinks.FIRST_AGENT);
        Socket two = dial(2);
        say(two, agent());
        hear(two);
        second.await("connected " + (PeerLinks.FIRST_AGENT + 1));
        say(two, new ClientRequest.AskHolder(SHARD, 2, 20));
        say(one, new ClientRequest.AskHolder(SHARD, 1, 10));
        assertThat(hearMessage(one)).isEqualTo(new ClientReply.Done(SHARD, 1, 10, 5));
        assertThat(hearMessage(two)).isEqualTo(new ClientReply.Done(SHARD, 2, 20, 5));
        Socket third = dial(2);
        say(third, agent());
        assertThat(hear(third).verdict()).isEqualTo(Hello.Verdict.TOO_MANY);
        say(one, numbered(1));
        awaitClosed(one);
        second.await("disconnected " + PeerLinks.FIRST_AGENT);
        assertThat(second.malformed).hasValue(1);
    }

    @Test
    void aTakenAddressFailsTheStart() throws Exception {
        peer(2);
        assertThatThrownBy(() -> peer(2)).hasMessageContaining("cannot bind");
    }

    @Test
    void oneTurnEndsAfterAllMessagesOfARead() throws Exception {
        TestPeer first = peer(1);
        TestPeer second = peer(2);
        first.await("connected 2");
        second.await("connected 1");
        second.onLoop(() -> {});
        int before = second.turns.get();
        AtomicInteger count = new AtomicInteger();
        second.reaction = (_, _) -> count.incrementAndGet();
        PeerMessage[] burst = new PeerMessage[500];
        for (int i = 0; i < burst.length; i++) {
            burst[i] = numbered(i);
        }
        first.send(2, burst);
        while (count.get() < burst.length) {
            Thread.onSpinWait();
        }
        second.onLoop(() -> {});
        assertThat(second.turns.get() - before).isBetween(1, 3);
    }
}
