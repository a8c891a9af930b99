package io.holdfast.node.peer;

import io.holdfast.config.NodeConfig;
import io.holdfast.config.NodeConfig.Endpoint;
import io.holdfast.config.NodeConfig.Member;
import io.holdfast.node.port.PeerLinks;
import io.holdfast.proto.peer.Hello;
import io.holdfast.proto.peer.Hello.Role;
import io.holdfast.proto.peer.Hello.Verdict;
import io.holdfast.proto.peer.MalformedException;
import io.holdfast.proto.peer.PeerMessage;
import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.PooledByteBufAllocator;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoop;
import io.netty.channel.FixedRecvByteBufAllocator;
import io.netty.channel.epoll.EpollChannelOption;
import io.netty.channel.epoll.EpollServerSocketChannel;
import io.netty.channel.epoll.EpollSocketChannel;
import io.netty.util.NetUtil;
import io.netty.util.collection.IntObjectHashMap;
import io.netty.util.collection.IntObjectMap;
import io.netty.util.concurrent.Future;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The real {@link PeerLinks}: TCP with Netty's epoll transport, everything on the data loop.
 *
 * <p><b>One connection per pair of nodes, both ways; the node with the lower number dials.</b> With
 * one connection acknowledgements of TCP ride on data, "connected" means that both directions work,
 * and there is no tie to break. The lower number dials for as long as it has no connection, so each
 * end may restart at any time:
 *
 * <ul>
 *   <li>the acceptor restarts: the dialler sees the reset, or silence, and dials again;
 *   <li>the dialler restarts: its new hello replaces the old connection, which the acceptor may
 *       still believe in (half-open). The newest hello always wins, for whoever dials again has
 *       given up the old connection;
 *   <li>neither learns of a cut: both hear no ping, close, and the dialler dials again.
 * </ul>
 *
 * <p>Agents dial nodes and are answered over the same connection, under a number of this process
 * that is never given twice.
 *
 * <p>After each batch of call-backs of the receiver, whatever they were, {@code turnEnded} follows.
 * An exception from the receiver closes the connection whose message it was about.
 */
public final class NettyPeerLinks implements PeerLinks {
    /** Size of each receive buffer, so most bursts take one read. */
    private static final int RECEIVE_BYTES = 256 << 10;

    /** Connections that wait for accept in the kernel. */
    private static final int BACKLOG = 128;

    /** Probes of TCP keepalive, one per second, before an idle connection is given up. */
    private static final int KEEPALIVE_PROBES = 3;

    private static final Logger LOG = LoggerFactory.getLogger(NettyPeerLinks.class);

    private final NodeConfig config;
    private final EventLoop loop;
    private final Receiver receiver;
    private final PeerObserver observer;
    private final PeerLimits limits;
    private final RateLimitedLog refusals = new RateLimitedLog(LOG);
    private final long keyCheck;
    private final long incarnation = new SecureRandom().nextLong(1, Long.MAX_VALUE);

    private final IntObjectMap<Node> nodes = new IntObjectHashMap<>();

    /** Connections that are up, by the peer's number. */
    private final IntObjectMap<PeerConnection> up = new IntObjectHashMap<>();

    /** Every connection that is open, waiting or up. */
    private final Set<PeerConnection> open = new LinkedHashSet<>();

    /** Accepted connections without a hello, oldest first. */
    private final Set<PeerConnection> waiting = new LinkedHashSet<>();

    /** Nodes whose last hello named another cluster key than this node's. */
    private final Set<Integer> otherKeys = new HashSet<>();

    private volatile boolean keyDisputed;
    private final List<PeerConnection> toFlush = new ArrayList<>();
    private @Nullable Channel server;
    private @Nullable Future<?> ticks;
    private long lastTickNanos;
    private int agents;
    private int nextAgent = FIRST_AGENT;
    private boolean turnOpen;
    private boolean closed;

    /**
     * Links that do nothing yet.
     *
     * @param loop the data loop, of Netty's epoll transport
     * @param keyCheck {@code ClusterKey.check()} of the key that this node holds
     * @param receiver called on the loop only
     */
    public NettyPeerLinks(
            NodeConfig config,
            long keyCheck,
            EventLoop loop,
            Receiver receiver,
            PeerObserver observer,
            PeerLimits limits) {
        this.config = config;
        this.keyCheck = keyCheck;
        this.loop = loop;
        this.receiver = receiver;
        this.observer = observer;
        this.limits = limits;
        for (Member member : config.nodes()) {
            if (member.number() >= FIRST_AGENT) {
                throw new IllegalArgumentException("node number " + member.number());
            }
            if (member.number() != config.self().number()) {
                nodes.put(member.number(), new Node(member, limits.redialLeastMillis()));
            }
        }
    }

    /** What is known of another node. */
    private static final class Node {
        final Member member;
        int pauseMillis;
        boolean known;
        long incarnation;
        long formerIncarnation;
        @Nullable Future<?> nextDial;

        Node(Member member, int pauseMillis) {
            this.member = member;
            this.pauseMillis = pauseMillis;
        }
    }

    /**
     * Binds this node's address and begins to dial. Call once, from any thread.
     *
     * @return done when bound; fails when the address cannot be bound. Nobody waits for other nodes
     */
    public CompletableFuture<Void> start() {
        CompletableFuture<Void> bound = new CompletableFuture<>();
        Endpoint own = config.self().peer();
        resolve(
                own,
                address -> bind(address, bound),
                e -> bound.completeExceptionally(new IOException("cannot resolve " + own, e)));
        return bound;
    }

    private void bind(InetSocketAddress address, CompletableFuture<Void> bound) {
        if (closed) {
            bound.completeExceptionally(new IOException("closed"));
            return;
        }
        ServerBootstrap acceptor =
                new ServerBootstrap()
                        .group(loop)
                        .channel(EpollServerSocketChannel.class)
                        .option(ChannelOption.SO_BACKLOG, BACKLOG)
                        .option(ChannelOption.SO_REUSEADDR, true)
                        .childHandler(initializer(0));
        CONNECTION_OPTIONS.forEach(option -> option.child(acceptor));
        acceptor.childOption(EpollChannelOption.TCP_USER_TIMEOUT, limits.silenceMillis());
        acceptor.bind(address)
                .addListener((ChannelFuture future) -> {
                    if (!future.isSuccess()) {
                        bound.completeExceptionally(
                                new IOException("cannot bind " + address, future.cause()));
                    } else if (closed) {
                        closeListener(future.channel());
                        bound.completeExceptionally(new IOException("closed"));
                    } else {
                        server = future.channel();
                        begin();
                        bound.complete(null);
                    }
                });
    }

    private void begin() {
        lastTickNanos = now();
        ticks =
                loop.scheduleWithFixedDelay(
                        this::tick,
                        limits.pingMillis(),
                        limits.pingMillis(),
                        TimeUnit.MILLISECONDS);
        for (Node node : nodes.values()) {
            if (dials(node)) {
                dial(node);
            }
        }
    }

    private boolean dials(Node node) {
        return config.self().number() < node.member.number();
    }

    /** A socket option of every connection. */
    private record Option<T>(ChannelOption<T> option, T value) {
        void child(ServerBootstrap bootstrap) {
            bootstrap.childOption(option, value);
        }

        void dialled(Bootstrap bootstrap) {
            bootstrap.option(option, value);
        }
    }

    private static final List<Option<?>> CONNECTION_OPTIONS =
            List.of(
                    new Option<>(ChannelOption.ALLOCATOR, PooledByteBufAllocator.DEFAULT),
                    new Option<>(
                            ChannelOption.RECVBUF_ALLOCATOR,
                            new FixedRecvByteBufAllocator(RECEIVE_BYTES)),
                    new Option<>(ChannelOption.TCP_NODELAY, true),
                    new Option<>(ChannelOption.SO_KEEPALIVE, true),
                    new Option<>(EpollChannelOption.TCP_KEEPIDLE, 1),
                    new Option<>(EpollChannelOption.TCP_KEEPINTVL, 1),
                    new Option<>(EpollChannelOption.TCP_KEEPCNT, KEEPALIVE_PROBES));

    /** The one place where handlers are put; for TLS an SslHandler goes before the connection. */
    private ChannelInitializer<Channel> initializer(int dialled) {
        return new ChannelInitializer<>() {
            @Override
            protected void initChannel(Channel channel) {
                channel.pipeline()
                        .addLast(new PeerConnection(NettyPeerLinks.this, channel, dialled, now()));
            }
        };
    }

    private void dial(Node node) {
        resolve(
                node.member.peer(),
                address -> connect(node, address),
                e -> {
                    refusals.warn(
                            "resolve",
                            node.member.number(),
                            "Cannot resolve the address of " + name(node) + ": " + e.getMessage(),
                            now());
                    redial(node);
                });
    }

    private void connect(Node node, InetSocketAddress address) {
        if (closed) {
            return;
        }
        Bootstrap dialler =
                new Bootstrap()
                        .group(loop)
                        .channel(EpollSocketChannel.class)
                        .option(ChannelOption.CONNECT_TIMEOUT_MILLIS, limits.connectMillis())
                        .option(EpollChannelOption.TCP_USER_TIMEOUT, limits.silenceMillis())
                        .handler(initializer(node.member.number()));
        CONNECTION_OPTIONS.forEach(option -> option.dialled(dialler));
        dialler.connect(address)
                .addListener(future -> {
                    if (!future.isSuccess()) {
                        redial(node);
                    }
                });
    }

    private void redial(Node node) {
        if (closed) {
            return;
        }
        int pause = node.pauseMillis;
        node.pauseMillis = Math.min(2 * pause, limits.redialMostMillis());
        node.nextDial = loop.schedule(() -> dial(node), pause, TimeUnit.MILLISECONDS);
    }

    /** Tells the outcome on the loop. Names are looked up off it, for that may block. */
    private void resolve(
            Endpoint endpoint,
            Consumer<InetSocketAddress> done,
            Consumer<UnknownHostException> failed) {
        String host = endpoint.host();
        Runnable lookUp =
                () -> {
                    Runnable outcome;
                    try {
                        InetAddress address = InetAddress.getByName(host);
                        InetSocketAddress socket = new InetSocketAddress(address, endpoint.port());
                        outcome = () -> done.accept(socket);
                    } catch (UnknownHostException e) {
                        outcome = () -> failed.accept(e);
                    }
                    try {
                        loop.execute(outcome);
                    } catch (RejectedExecutionException e) {
                        LOG.debug("The loop ended while {} was looked up", host, e);
                    }
                };
        if (NetUtil.isValidIpV4Address(host) || NetUtil.isValidIpV6Address(host)) {
            lookUp.run();
        } else {
            Thread.ofVirtual().name("resolve " + host).start(lookUp);
        }
    }

    private static String name(Node node) {
        return node.member.id() + " (" + node.member.peer() + ")";
    }

    /** Who a connection leads to, as far as that is known. */
    private String name(PeerConnection connection) {
        Node node = nodes.get(connection.peer);
        if (node != null) {
            return node.member.id() + " (" + connection.address() + ")";
        }
        return (connection.peer >= FIRST_AGENT ? "agent " + connection.peer + " at " : "")
                + connection.address();
    }

    /** The loop's clock, in nanoseconds of no particular origin. */
    long now() {
        return System.nanoTime();
    }

    /** A connection is made; hellos come next. */
    void opened(PeerConnection connection) {
        if (closed) {
            connection.close();
            return;
        }
        open.add(connection);
        if (connection.dialled != 0) {
            connection.sendHello(hello(Verdict.WELCOME));
            return;
        }
        waiting.add(connection);
        if (waiting.size() > limits.waiting()) {
            refuse(waiting.iterator().next(), "gave way: too many connections without a hello");
        }
    }

    private Hello hello(Verdict verdict) {
        return new Hello(
                Hello.VERSION,
                Role.NODE,
                verdict,
                config.self().number(),
                incarnation,
                keyCheck,
                config.clusterName());
    }

    /** The peer has said hello: takes it in or closes. */
    void judge(PeerConnection connection, Hello hello) {
        if (connection.dialled != 0) {
            judgeAnswer(connection, hello);
            return;
        }
        Verdict verdict = verdict(hello);
        connection.sendHello(hello(verdict));
        if (verdict != Verdict.WELCOME) {
            if (nodes.containsKey(hello.node())) {
                connection.peer = hello.node();
            }
            refuse(connection, reason(verdict, hello));
            return;
        }
        waiting.remove(connection);
        if (hello.role() == Role.AGENT) {
            agents++;
            becomeUp(connection, nextAgent++, hello.incarnation());
        } else {
            becomeUp(connection, node(hello.node()), hello);
        }
    }

    private Verdict verdict(Hello hello) {
        if (hello.version() != Hello.VERSION) {
            return Verdict.OTHER_VERSION;
        }
        if (!hello.cluster().equals(config.clusterName())) {
            return Verdict.OTHER_CLUSTER;
        }
        if (hello.role() == Role.AGENT) {
            return agents < limits.agents() && nextAgent > 0 ? Verdict.WELCOME : Verdict.TOO_MANY;
        }
        if (hello.node() == config.self().number()) {
            return Verdict.OWN_NUMBER;
        }
        Node node = nodes.get(hello.node());
        if (node == null) {
            return Verdict.UNKNOWN_NODE;
        }
        if (holdsOtherKey(hello)) {
            return Verdict.OTHER_KEY;
        }
        return dials(node) ? Verdict.WRONG_DIRECTION : Verdict.WELCOME;
    }

    /**
     * Whether this node seems to be the one with the wrong cluster key: others hold another one,
     * and it is connected with no majority. Any thread.
     */
    public boolean keyDisputed() {
        return keyDisputed;
    }

    /** Whether the node holds another cluster key, which is remembered until it comes up. */
    private boolean holdsOtherKey(Hello hello) {
        if (hello.keyCheck() == keyCheck) {
            return false;
        }
        otherKeys.add(hello.node());
        judgeKeys();
        return true;
    }

    private void judgeKeys() {
        long connected = nodes.keySet().stream().filter(up::containsKey).count();
        keyDisputed = !otherKeys.isEmpty() && 2 * (connected + 1) <= config.nodes().size();
    }

    private String reason(Verdict verdict, Hello hello) {
        return switch (verdict) {
            case WELCOME -> "is welcome";
            case OTHER_VERSION ->
                    "speaks protocol version " + hello.version() + ", not " + Hello.VERSION;
            case OTHER_CLUSTER ->
                    "belongs to cluster '"
                            + printable(hello.cluster())
                            + "', not '"
                            + config.clusterName()
                            + "'";
            case UNKNOWN_NODE -> "says it is node number " + hello.node() + ", which is not known";
            case OWN_NUMBER -> "says it is node number " + hello.node() + ", which is this node";
            case WRONG_DIRECTION ->
                    "says it is node number " + hello.node() + ", which is to be dialled from here";
            case OTHER_KEY ->
                    "holds another cluster key; every node needs the same file "
                            + config.clusterKeyFile();
            case TOO_MANY -> "is one agent too many, the limit is " + limits.agents();
        };
    }

    /** A stranger's text must not forge log lines. */
    private static String printable(String text) {
        return text.replaceAll("[^\\x20-\\x7e]", "?");
    }

    private void judgeAnswer(PeerConnection connection, Hello hello) {
        Node node = node(connection.dialled);
        if (hello.version() != Hello.VERSION) {
            refuse(connection, reason(Verdict.OTHER_VERSION, hello));
        } else if (!hello.cluster().equals(config.clusterName())) {
            refuse(connection, reason(Verdict.OTHER_CLUSTER, hello));
        } else if (holdsOtherKey(hello)) {
            refuse(connection, reason(Verdict.OTHER_KEY, hello));
        } else if (hello.verdict() != Verdict.WELCOME) {
            refuse(connection, "refuses this node: " + hello.verdict());
        } else if (hello.node() != connection.dialled) {
            refuse(connection, "says it is node number " + hello.node());
        } else {
            becomeUp(connection, node, hello);
        }
    }

    private Node node(int number) {
        Node node = nodes.get(number);
        if (node == null) {
            throw new IllegalStateException("no node has number " + number);
        }
        return node;
    }

    private void becomeUp(PeerConnection connection, Node node, Hello hello) {
        int number = node.member.number();
        PeerConnection old = up.get(number);
        if (old != null) {
            old.close();
        }
        if (!node.known || node.incarnation != hello.incarnation()) {
            if (node.known && node.formerIncarnation == hello.incarnation()) {
                refusals.warn(
                        "twins",
                        number,
                        "Two processes say in turn that they are " + name(node),
                        now());
            }
            node.formerIncarnation = node.incarnation;
            node.incarnation = hello.incarnation();
            node.known = true;
        }
        otherKeys.remove(number);
        LOG.info(
                "Connected with {}, incarnation {}",
                name(node),
                Long.toHexString(hello.incarnation()));
        becomeUp(connection, number, hello.incarnation());
    }

    private void becomeUp(PeerConnection connection, int number, long processIncarnation) {
        connection.becomeUp(number);
        up.put(number, connection);
        judgeKeys();
        observer.connected(number);
        turnOpen = true;
        receiver.connected(number, processIncarnation);
    }

    /** Closes a connection that is not up, and says why. */
    void refuse(PeerConnection connection, String why) {
        observer.refused();
        refusals.warn(
                "refused",
                connection.peer,
                "Refused a connection "
                        + (connection.dialled == 0 ? "from " : "to ")
                        + name(connection)
                        + ": it "
                        + why,
                now());
        connection.close();
    }

    /** A peer sent what is no message. */
    void malformed(PeerConnection connection, MalformedException why) {
        observer.malformed(connection.peer);
        refusals.warn(
                "malformed",
                logKey(connection),
                "Closing the connection with " + name(connection) + ": " + why.getMessage(),
                now());
        connection.close();
    }

    /** Nothing came for too long. */
    void silent(PeerConnection connection) {
        refusals.warn(
                "silent",
                logKey(connection),
                "Closing the connection with " + name(connection) + ": it is silent",
                now());
        connection.close();
    }

    /** A read or write failed, or the receiver threw. */
    void failed(PeerConnection connection, Throwable cause) {
        if (cause instanceof IOException) {
            LOG.debug("Lost the connection with {}", name(connection), cause);
        } else {
            LOG.error("Closing the connection with {}", name(connection), cause);
        }
        connection.close();
        endTurn();
    }

    private static int logKey(PeerConnection connection) {
        return connection.peer >= FIRST_AGENT ? RateLimitedLog.STRANGER : connection.peer;
    }

    /** A connection has closed; called once for each. */
    void closed(PeerConnection connection, boolean wasUp) {
        open.remove(connection);
        waiting.remove(connection);
        if (wasUp) {
            if (up.get(connection.peer) != connection) {
                throw new IllegalStateException("connection with " + connection.peer + " unknown");
            }
            up.remove(connection.peer);
            if (connection.peer >= FIRST_AGENT) {
                agents--;
            } else if (!closed) {
                LOG.info("Disconnected from {}", name(connection));
            }
            judgeKeys();
            observer.disconnected(connection.peer);
            if (!closed) {
                turnOpen = true;
                receiver.disconnected(connection.peer);
            }
        }
        if (connection.dialled != 0) {
            redial(node(connection.dialled));
        }
    }

    void deliver(int from, PeerMessage message) {
        turnOpen = true;
        receiver.received(from, message);
    }

    /** Ends the receiver's turn when it was called since the last end. */
    void endTurn() {
        if (turnOpen && !closed) {
            turnOpen = false;
            receiver.turnEnded();
        }
    }

    void toFlush(PeerConnection connection) {
        toFlush.add(connection);
    }

    void countSent(int to, long bytes) {
        observer.sent(to, bytes);
    }

    void countReceived(int from, long bytes) {
        observer.received(from, bytes);
    }

    private void tick() {
        long now = now();
        // After a pause of this process what the peers said meanwhile is still unread.
        boolean judge = now - lastTickNanos < 2_000_000L * limits.pingMillis();
        lastTickNanos = now;
        for (PeerConnection connection : List.copyOf(open)) {
            connection.tick(now, judge, limits);
            if (connection.isUp() && connection.dialled != 0) {
                // Only a connection that lasted resets the pause, so that one which breaks right
                // after each hello is not dialled in a tight circle.
                node(connection.dialled).pauseMillis = limits.redialLeastMillis();
            }
        }
        endTurn();
    }

    /**
     * {@inheritDoc}
     *
     * @throws IllegalStateException the message is to this node itself, or breaks a limit of the
     *     protocol: faults of the caller
     */
    @Override
    public void send(int to, PeerMessage message) {
        PeerConnection connection = up.get(to);
        if (connection == null) {
            if (to == config.self().number()) {
                throw new IllegalStateException("a message to this node itself: " + message);
            }
            observer.dropped(to, message);
        } else if (!connection.send(message, limits.queuedBytes())) {
            observer.dropped(to, message);
        }
    }

    @Override
    public void flush() {
        for (int i = 0; i < toFlush.size(); i++) {
            toFlush.get(i).flush();
        }
        toFlush.clear();
    }

    @Override
    public long incarnation() {
        return incarnation;
    }

    @Override
    public boolean connected(int node) {
        return up.containsKey(node);
    }

    /** Closes everything; no call-back comes after it. From any thread; waits off the loop. */
    @Override
    public void close() {
        if (loop.inEventLoop()) {
            shutDown();
        } else if (!loop.isTerminated()) {
            // A loop that has ended has closed its connections itself.
            loop.submit(this::shutDown).syncUninterruptibly();
        }
    }

    private void shutDown() {
        if (closed) {
            return;
        }
        closed = true;
        if (ticks != null) {
            ticks.cancel(false);
        }
        if (server != null) {
            closeListener(server);
        }
        for (Node node : nodes.values()) {
            if (node.nextDial != null) {
                node.nextDial.cancel(false);
            }
        }
        for (PeerConnection connection : List.copyOf(open)) {
            connection.close();
        }
        toFlush.clear();
    }

    private static void closeListener(Channel listener) {
        listener.close()
                .addListener(closing -> {
                    if (!closing.isSuccess()) {
                        LOG.warn("Cannot close {}", listener, closing.cause());
                    }
                });
    }
}
