package io.holdfast.client.nbd;

import static io.holdfast.proto.nbd.NbdProtocol.*;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.holdfast.client.ClientIdentity;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.PooledByteBufAllocator;
import io.netty.buffer.Unpooled;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.nio.NioIoHandler;
import java.io.EOFException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What needs real sockets: listening, limits on connections, back-pressure, shutdown. */
@Timeout(120)
class NbdServerTest {
    private static final int SIZE = 64 << 20;

    /** Turns of the loop after which it has seen whatever the kernel had for it. */
    private static final int SETTLING_TURNS = 200;

    @Test
    void connectionsBeyondTheLimitAreClosedAtOnce() throws Exception {
        try (var server = server(limits(2, Duration.ofSeconds(10)), NbdEvents.NONE)) {
            var first = SocketClient.open(server.port, "a");
            try (var second = SocketClient.open(server.port, "a")) {
                try (var third = new SocketClient(server.port)) {
                    assertThat(endOfStream(third)).isTrue();
                }
                first.close();
                second.request(NBD_CMD_FLUSH, 1, 0, 0);
                assertThat(second.reply(1)).isZero();
                boolean served = false;
                while (!served) { // until the server has seen that the first one left
                    try (var next = new SocketClient(server.port)) {
                        served = !endOfStream(next);
                    }
                }
            }
        }
    }

    @Test
    void unixSocketsServeTheSame(@TempDir Path dir) throws Exception {
        Path path = dir.resolve("nbd.sock");
        try (var server = server(NbdLimits.DEFAULT, NbdEvents.NONE)) {
            server.server.bind(path).get(20, TimeUnit.SECONDS);
            try (var client = SocketChannel.open(UnixDomainSocketAddress.of(path))) {
                ByteBuffer greeting = ByteBuffer.allocate(18);
                while (greeting.hasRemaining()) {
                    assertThat(client.read(greeting)).isPositive();
                }
                assertThat(greeting.getLong(0)).isEqualTo(NBDMAGIC);
            }
            assertThat(path).exists();
        }
        assertThat(Files.exists(path)).isFalse();
    }

    @Test
    void bindTellsWhyItFailed() throws Exception {
        try (var server = server(NbdLimits.DEFAULT, NbdEvents.NONE)) {
            CompletableFuture<Integer> second = server.server.bind("127.0.0.1", server.port);
            assertThatThrownBy(() -> second.get(20, TimeUnit.SECONDS))
                    .hasCauseInstanceOf(IOException.class);
        }
    }

    @Test
    void onlyEpollLoopsAreTaken() {
        var nio = new MultiThreadIoEventLoopGroup(1, NioIoHandler.newFactory());
        assertThatThrownBy(() ->
                        new NbdServer(
                                nio.next(),
                                new MemoryExports(),
                                NbdLimits.DEFAULT,
                                _ -> new ClientIdentity("x"),
                                NbdEvents.NONE))
                .isInstanceOf(IllegalArgumentException.class);
        var _ = nio.shutdownGracefully(0, 1, TimeUnit.SECONDS);
    }

    @Test
    void aClientThatDoesNotTakeItsRepliesIsNotReadFurther() throws Exception {
        int requests = 4000;
        int length = 128 << 10;
        var done = new AtomicInteger();
        var events =
                new NbdEvents() {
                    @Override
                    public void requestDone(
                            String export, Kind kind, long lengthBytes, long nanos, int error) {
                        done.incrementAndGet();
                    }
                };
        try (var server = server(NbdLimits.DEFAULT, events);
                var client = SocketClient.open(server.port, "a")) {
            ByteBuf burst = Unpooled.buffer();
            for (int cookie = 0; cookie < requests; cookie++) {
                burst.writeBytes(EmbeddedClient.header(0, NBD_CMD_READ, cookie, 0, length));
            }
            client.send(burst);
            for (int turn = 0; turn < SETTLING_TURNS; turn++) {
                server.onLoop(() -> {});
            }
            // The watermark, what the kernel buffers, and the reply that crossed the mark.
            assertThat((long) done.get() * length).isLessThan(64L << 20);
            var data = new byte[length];
            for (int cookie = 0; cookie < requests; cookie++) {
                assertThat(client.reply(cookie)).isZero();
                client.in.readFully(data);
            }
        }
    }

    @Test
    void hostileConnectionsLeaveNoMemoryBehind() throws Exception {
        var random = new Random(11);
        try (var server = server(NbdLimits.DEFAULT, NbdEvents.NONE)) {
            for (int i = 0; i < 50; i++) {
                try (var client = SocketClient.open(server.port, "a")) {
                    client.request(NBD_CMD_READ, 1, 0, 4 << 20);
                    client.request(NBD_CMD_WRITE, 2, 0, MAX_PAYLOAD);
                    client.out.write(new byte[random.nextInt(100_000)]);
                }
            }
        }
        assertThat(PooledByteBufAllocator.DEFAULT.pinnedHeapMemory()).isZero();
        assertThat(PooledByteBufAllocator.DEFAULT.pinnedDirectMemory()).isZero();
    }

    /**
     * Without a budget for all connections together, these hold {@code 16 * 32 MiB}. All of them go
     * on sending what is left of the half they mean to send, wherever the server takes some.
     */
    @Test
    void halfSentWritesOfManyConnectionsStayWithinTheBudgetAndOthersAreServed() throws Exception {
        int hostiles = 16;
        long budget = 64L << 20;
        var evictions = new AtomicInteger();
        var events =
                new NbdEvents() {
                    @Override
                    public void connectionEvicted(
                            SocketAddress remote, String export, String reason) {
                        evictions.incrementAndGet();
                    }
                };
        long pinnedBefore = PooledByteBufAllocator.DEFAULT.pinnedHeapMemory();
        var sockets = new ArrayList<SocketChannel>();
        try (var server = server(limits(budget), events);
                var honest = SocketClient.open(server.port, "a")) {
            var unsent = new ArrayList<ByteBuffer>();
            for (int i = 0; i < hostiles; i++) {
                sockets.add(halfHandshaken(server.port));
                ByteBuf half = EmbeddedClient.header(0, NBD_CMD_WRITE, 1, 0, MAX_PAYLOAD);
                half.writeZero(MAX_PAYLOAD / 2);
                unsent.add(half.nioBuffer());
            }
            var block = new byte[4096];
            long slowestNanos = 0;
            long mostHeld = 0;
            long mostPinned = 0;
            for (int cookie = 0; evictions.get() < hostiles - 1; cookie++) {
                for (int i = 0; i < hostiles; i++) {
                    try {
                        sockets.get(i).write(unsent.get(i));
                    } catch (IOException _) {
                        unsent.get(i).position(unsent.get(i).limit()); // it was evicted
                    }
                }
                long start = System.nanoTime();
                honest.send(
                        EmbeddedClient.header(0, NBD_CMD_WRITE, cookie, 0, block.length)
                                .writeBytes(block));
                assertThat(honest.reply(cookie)).isZero();
                honest.request(NBD_CMD_READ, cookie, 0, block.length);
                assertThat(honest.reply(cookie)).isZero();
                honest.in.readFully(block);
                slowestNanos = Math.max(slowestNanos, System.nanoTime() - start);
                var held = new AtomicLong();
                server.onLoop(() -> held.set(server.server.budget().heldBytes()));
                mostHeld = Math.max(mostHeld, held.get());
                mostPinned =
                        Math.max(
                                mostPinned,
                                PooledByteBufAllocator.DEFAULT.pinnedHeapMemory() - pinnedBefore);
            }
            assertThat(mostHeld).isBetween((long) MAX_PAYLOAD, budget);
            assertThat(mostPinned).isBetween((long) MAX_PAYLOAD, budget);
            assertThat(slowestNanos).isLessThan(TimeUnit.SECONDS.toNanos(5));

            // Waits for the last one's bytes, and so ends it.
            honest.send(
                    EmbeddedClient.header(0, NBD_CMD_WRITE, 7, 0, MAX_PAYLOAD)
                            .writeZero(MAX_PAYLOAD));
            assertThat(honest.reply(7)).isZero();
            assertThat(evictions.get()).isEqualTo(hostiles);
            server.onLoop(() -> assertThat(server.server.budget().heldBytes()).isZero());
        } finally {
            for (SocketChannel socket : sockets) {
                socket.close();
            }
        }
        assertThat(PooledByteBufAllocator.DEFAULT.pinnedHeapMemory()).isEqualTo(pinnedBefore);
    }

    /** A non-blocking socket that has said all of its handshake; the answers stay unread. */
    private static SocketChannel halfHandshaken(int port) throws IOException {
        SocketChannel socket =
                SocketChannel.open(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
        ByteBuf handshake =
                Unpooled.buffer()
                        .writeInt(NBD_FLAG_C_FIXED_NEWSTYLE | NBD_FLAG_C_NO_ZEROES)
                        .writeLong(IHAVEOPT)
                        .writeInt(NBD_OPT_EXPORT_NAME)
                        .writeInt(1)
                        .writeByte('a');
        socket.write(handshake.nioBuffer());
        socket.configureBlocking(false);
        return socket;
    }

    @Test
    void closeLetsRequestsUnderWayEnd() throws Exception {
        var server = server(NbdLimits.DEFAULT, NbdEvents.NONE);
        MemoryDevice device = server.exports.device("a");
        server.onLoop(device::hold);
        try (var client = SocketClient.open(server.port, "a")) {
            client.request(NBD_CMD_READ, 1, 0, 16);
            awaitOnLoop(server, device, 1);
            CompletableFuture<Void> closed = server.server.close();
            client.request(NBD_CMD_READ, 2, 0, 16);
            assertThat(client.reply(2)).isEqualTo(NBD_ESHUTDOWN);
            assertThat(closed).isNotDone();
            assertThatThrownBy(() -> new SocketClient(server.port).in.readFully(new byte[18]))
                    .isInstanceOf(IOException.class);
            server.onLoop(() -> device.completeSome(new Random(1), 1));
            assertThat(client.reply(1)).isZero();
            client.in.readFully(new byte[16]);
            assertThat(endOfStream(client)).isTrue();
            closed.get(20, TimeUnit.SECONDS);
            assertThat(server.server.close()).isCompleted();
        }
        server.close();
        assertThat(device.closes).isEqualTo(1);
    }

    @Test
    void closeDoesNotWaitForEver() throws Exception {
        var server = server(limits(10, Duration.ofMillis(200)), NbdEvents.NONE);
        MemoryDevice device = server.exports.device("a");
        server.onLoop(device::hold);
        try (var client = SocketClient.open(server.port, "a")) {
            client.request(NBD_CMD_FLUSH, 1, 0, 0);
            awaitOnLoop(server, device, 1);
            server.server.close().get(20, TimeUnit.SECONDS);
            assertThat(endOfStream(client)).isTrue();
            assertThat(device.closes).isZero();
            server.onLoop(() -> device.completeSome(new Random(1), 1));
            assertThat(device.closes).isEqualTo(1);
        }
        server.close();
    }

    private static void awaitOnLoop(MemoryServer server, MemoryDevice device, int waiting)
            throws Exception {
        var count = new AtomicInteger();
        while (count.get() != waiting) {
            server.onLoop(() -> count.set(device.waiting()));
        }
    }

    private static boolean endOfStream(SocketClient client) throws IOException {
        try {
            client.in.readByte();
            return false;
        } catch (EOFException _) {
            return true;
        }
    }

    private static MemoryServer server(NbdLimits limits, NbdEvents events) throws Exception {
        var server = new MemoryServer(limits, events);
        server.exports.add("a", SIZE, false);
        return server;
    }

    private static NbdLimits limits(long budgetBytes) {
        return TestLimits.ofServer(
                100,
                Duration.ofSeconds(10),
                new NbdLimits.Payloads(
                        budgetBytes,
                        Duration.ofSeconds(20),
                        Duration.ofMillis(100),
                        64 << 10,
                        Duration.ofSeconds(1)));
    }

    private static NbdLimits limits(int connections, Duration grace) {
        return TestLimits.ofServer(connections, grace, NbdLimits.DEFAULT.payloads());
    }
}
