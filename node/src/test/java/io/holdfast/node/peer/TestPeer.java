package io.holdfast.node.peer;

import io.holdfast.config.NodeConfig;
import io.holdfast.config.NodeConfig.Endpoint;
import io.holdfast.config.NodeConfig.Limits;
import io.holdfast.config.NodeConfig.Member;
import io.holdfast.node.port.PeerLinks.Receiver;
import io.holdfast.proto.peer.PeerMessage;
import io.netty.channel.EventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.epoll.EpollIoHandler;
import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/** One side of a test: links on a loop of their own, and all that the receiver was told. */
final class TestPeer implements AutoCloseable {
    static final int WAIT_SECONDS = 20;
    static final long KEY_CHECK = 77;

    /** Quick enough for tests, with room for a busy machine. */
    static final PeerLimits QUICK = new PeerLimits(64L << 20, 4, 2, 1000, 600, 100, 3000, 20, 100);

    final MultiThreadIoEventLoopGroup group;
    final EventLoop loop;
    final NettyPeerLinks links;
    final LinkedBlockingQueue<String> happened = new LinkedBlockingQueue<>();
    private final List<String> seen = new ArrayList<>();
    final LinkedBlockingQueue<PeerMessage> messages = new LinkedBlockingQueue<>();
    final AtomicInteger turns = new AtomicInteger();
    final AtomicInteger refused = new AtomicInteger();
    final AtomicInteger malformed = new AtomicInteger();
    final AtomicLong dropped = new AtomicLong();
    final AtomicLong lastFrom = new AtomicLong();

    /** What to do with a message, on the loop; null: keep it in {@link #messages}. */
    volatile @Nullable BiConsumer<TestPeer, PeerMessage> reaction;

    TestPeer(NodeConfig config, PeerLimits limits) throws Exception {
        group = new MultiThreadIoEventLoopGroup(1, EpollIoHandler.newFactory());
        loop = group.next();
        links = new NettyPeerLinks(config, KEY_CHECK, loop, new Told(), new Counted(), limits);
        links.start().get(WAIT_SECONDS, TimeUnit.SECONDS);
    }

    private final class Told implements Receiver {
        @Override
        public void received(int from, PeerMessage message) {
            lastFrom.set(from);
            BiConsumer<TestPeer, PeerMessage> what = reaction;
            if (what == null) {
                messages.add(message);
            } else {
                what.accept(TestPeer.this, message);
            }
        }

        @Override
        public void turnEnded() {
            turns.incrementAndGet();
            links.flush();
        }

        @Override
        public void connected(int from, long incarnation) {
            happened.add("connected " + from);
        }

        @Override
        public void disconnected(int from) {
            happened.add("disconnected " + from);
        }
    }

    private final class Counted implements PeerObserver {
        @Override
        public void dropped(int to, PeerMessage message) {
            dropped.incrementAndGet();
        }

        @Override
        public void refused() {
            refused.incrementAndGet();
        }

        @Override
        public void malformed(int from) {
            malformed.incrementAndGet();
        }
    }

    void onLoop(Runnable what) throws Exception {
        loop.submit(what).get(WAIT_SECONDS, TimeUnit.SECONDS);
    }

    void send(int to, PeerMessage... messages) throws Exception {
        onLoop(() -> {
            for (PeerMessage message : messages) {
                links.send(to, message);
            }
            links.flush();
        });
    }

    PeerMessage next() throws Exception {
        PeerMessage message = messages.poll(WAIT_SECONDS, TimeUnit.SECONDS);
        if (message == null) {
            throw new AssertionError("no message came");
        }
        return message;
    }

    /** Waits for what the receiver is told; other news is kept for later calls. */
    void await(String what) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_SECONDS);
        if (seen.remove(what)) {
            return;
        }
        while (true) {
            String next = happened.poll(end - System.nanoTime(), TimeUnit.NANOSECONDS);
            if (next == null) {
                throw new AssertionError("expected " + what + ", came " + seen);
            }
            if (next.equals(what)) {
                return;
            }
            seen.add(next);
        }
    }

    @Override
    public void close() {
        links.close();
        group.shutdownGracefully(0, 5, TimeUnit.SECONDS).syncUninterruptibly();
    }

    /**
     * A free port below those that the kernel gives to dialling sockets: a dial to a free one of
     * those may connect with itself and so take the port away.
     */
    private static int freePort(Set<Integer> taken) throws IOException {
        for (int attempt = 0; attempt < 1000; attempt++) {
            int port = ThreadLocalRandom.current().nextInt(15_000, 32_000);
            try (ServerSocket _ = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
                if (taken.add(port)) {
                    return port;
                }
            } catch (BindException e) {
                taken.add(port);
            }
        }
        throw new IOException("no free port");
    }

    static List<Member> members(int count) throws IOException {
        List<Member> members = new ArrayList<>();
        Set<Integer> taken = new HashSet<>();
        for (int number = 1; number <= count; number++) {
            Endpoint unused = new Endpoint("127.0.0.1", 1);
            Endpoint peer = new Endpoint("127.0.0.1", freePort(taken));
            members.add(new Member(number, "node" + number, unused, unused, peer, unused));
        }
        return members;
    }

    static NodeConfig config(String cluster, List<Member> members, int self) {
        return new NodeConfig(
                cluster,
                members.get(self - 1),
                members,
                Path.of("unused"),
                Path.of("unused"),
                NodeConfig.Scrub.DEFAULT,
                NodeConfig.CatchUp.DEFAULT,
                new Limits(1, 1, 1, 1, 1, 0));
    }
}
