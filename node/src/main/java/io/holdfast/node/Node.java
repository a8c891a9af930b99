package io.holdfast.node;

import io.holdfast.client.ClientIdentity;
import io.holdfast.client.ClusterExports;
import io.holdfast.client.ShardLinks;
import io.holdfast.client.admin.ProgramVersion;
import io.holdfast.client.crypto.ClusterKey;
import io.holdfast.client.crypto.KeyException;
import io.holdfast.client.nbd.NbdLimits;
import io.holdfast.client.nbd.NbdServer;
import io.holdfast.config.NodeConfig;
import io.holdfast.config.NodeConfig.Endpoint;
import io.holdfast.config.NodeConfig.Member;
import io.holdfast.node.admin.AdminServer;
import io.holdfast.node.admin.ClusterAdmin;
import io.holdfast.node.admin.Metrics;
import io.holdfast.node.admin.NodeHealth;
import io.holdfast.node.coordination.AtomixCoordinator;
import io.holdfast.node.peer.NettyPeerLinks;
import io.holdfast.node.peer.PeerLimits;
import io.holdfast.node.port.PeerLinks;
import io.holdfast.node.port.Store;
import io.holdfast.node.replica.Effect;
import io.holdfast.node.replica.Event;
import io.holdfast.node.replica.ReplicaStatus;
import io.holdfast.node.replica.ReplicaStatus.Follower;
import io.holdfast.node.replica.Timing;
import io.holdfast.node.runtime.DataLoop;
import io.holdfast.node.runtime.DataLoop.Announcement;
import io.holdfast.node.runtime.DataLoop.ReplicaView;
import io.holdfast.node.runtime.DataThread;
import io.holdfast.node.runtime.LeaderRecorder;
import io.holdfast.node.runtime.LocalClients;
import io.holdfast.node.runtime.ReplicaKeeper;
import io.holdfast.node.scrub.ScrubTimes;
import io.holdfast.node.scrub.Scrubber;
import io.holdfast.node.store.JournalStore;
import io.holdfast.node.store.StoreOptions;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ShardId;
import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.epoll.EpollIoHandler;
import io.netty.util.concurrent.DefaultThreadFactory;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A running storage node: every part, put together. Starts in the order in which the parts need
 * each other and serves what it knows from its last run without waiting for the coordinator; stops
 * in the reverse order, each step bounded.
 */
final class Node {
    private static final Duration BIND_TIMEOUT = Duration.ofSeconds(10);

    /** For requests under way when the node stops. */
    private static final Duration NBD_GRACE = Duration.ofSeconds(2);

    private static final Duration NBD_STOP_TIMEOUT = Duration.ofMillis(2_500);
    private static final Duration EXPORTS_STOP_TIMEOUT = Duration.ofMillis(3_500);
    private static final Duration STEP_ASIDE_TIMEOUT = Duration.ofSeconds(1);
    private static final long STEP_ASIDE_LOOK_NANOS = 20_000_000;

    /**
     * The coordinator's start takes a second of CPU, so elections of the shards known from the last
     * run go first; but not for longer than this: one without a majority never ends.
     */
    private static final Duration JOIN_DELAY = Duration.ofSeconds(4);

    private static final long JOIN_LOOK_NANOS = 50_000_000;

    private static final Duration STORE_STOP_TIMEOUT = Duration.ofSeconds(3);

    /** Below the data directory. */
    private static final String SCRUB_TIMES = "scrub-times";

    private static final Logger LOG = LoggerFactory.getLogger(Node.class);

    private final NodeConfig config;
    private final MultiThreadIoEventLoopGroup group;
    private final IoEventLoop eventLoop;
    private final DataThread thread;
    private final Metrics metrics = new Metrics();
    private final Store store;
    private final AtomixCoordinator coordinator;
    private final NettyPeerLinks links;
    private final ClusterExports exports;
    private final DataLoop loop;
    private final ReplicaKeeper keeper;
    private final NodeHealth health;

    /** Writes the times of scrubs. */
    private final ExecutorService scrubTimes;

    private final Scrubber scrubber;
    private final ClusterAdmin admin;
    private final NbdServer nbd;

    /** What has been started and has to be closed, last first. */
    private final Deque<AutoCloseable> started = new ArrayDeque<>();

    private volatile boolean stopping;

    /**
     * Opens the disk and builds everything; nothing can be reached from outside yet.
     *
     * @param fatal called when an invariant is broken; must end the process
     * @throws IOException when the data directory cannot be used
     * @throws KeyException when the key is not that of the volumes this node knows
     */
    Node(NodeConfig config, ClusterKey key, Consumer<Throwable> fatal)
            throws IOException, KeyException {
        this.config = config;
        int self = config.self().number();
        List<Integer> nodes = config.nodes().stream().map(Member::number).toList();
        group =
                new MultiThreadIoEventLoopGroup(
                        1, new DefaultThreadFactory("data"), EpollIoHandler.newFactory());
        eventLoop = group.next();
        thread = new DataThread(eventLoop, fatal);
        store = new JournalStore(config.dataDirectory(), StoreOptions.of(config.limits()), thread);
        coordinator = new AtomixCoordinator(config);
        key.requireOpensOneOf(coordinator.catalogue().volumes());
        Parts parts = new Parts(key);
        loop =
                new DataLoop(
                        thread,
                        self,
                        nodes,
                        store,
                        Timing.DEFAULT,
                        new DataLoop.CatchUpRates(
                                config.catchUp().bytesPerSecond(),
                                config.catchUp().bytesPerSecondWithClients()),
                        metrics.runtime(),
                        parts);
        links = Objects.requireNonNull(parts.links);
        exports = Objects.requireNonNull(parts.exports);
        keeper = new ReplicaKeeper(loop, store, self, Timing.DEFAULT);
        LeaderRecorder recorder =
                new LeaderRecorder(loop, coordinator, self, coordinator.incarnation());
        loop.listen(recorder::onAnnouncement);
        loop.listen(this::log);
        keeper.follow(exports::onCatalogue);
        health = new NodeHealth(loop, coordinator, self, links::keyDisputed);
        scrubTimes =
                Executors.newSingleThreadExecutor(
                        Thread.ofPlatform().daemon().name("scrub-times").factory());
        scrubber =
                new Scrubber(
                        loop,
                        store,
                        self,
                        keeper::catalogue,
                        new Scrubber.Options(
                                config.scrub().bytesPerSecond(), config.scrub().every().toMillis()),
                        new ScrubTimes(config.dataDirectory().resolve(SCRUB_TIMES), scrubTimes),
                        System::currentTimeMillis,
                        () -> ThreadLocalRandom.current().nextDouble());
        admin =
                new ClusterAdmin(
                        config,
                        loop,
                        store,
                        coordinator,
                        key,
                        health,
                        scrubber,
                        ProgramVersion.get());
        nbd =
                new NbdServer(
                        eventLoop,
                        exports,
                        nbdLimits(config.limits()),
                        this::identify,
                        metrics.nbd());
        metrics.watch(store);
        metrics.watch(scrubber);
    }

    /** The parts that the data loop and its surroundings need of each other. */
    private final class Parts implements DataLoop.Parts {
        private final ClusterKey key;
        private @Nullable NettyPeerLinks links;
        private @Nullable ClusterExports exports;

        Parts(ClusterKey key) {
            this.key = key;
        }

        @Override
        public PeerLinks links(PeerLinks.Receiver receiver) {
            NettyPeerLinks made =
                    new NettyPeerLinks(
                            config,
                            key.check(),
                            eventLoop,
                            receiver,
                            new PeerMeters(metrics.registry()),
                            PeerLimits.DEFAULT);
            links = made;
            return made;
        }

        @Override
        public LocalClients clients(ShardLinks shardLinks) {
            ClusterExports made =
                    new ClusterExports(
                            config.self().number(),
                            shardLinks,
                            thread,
                            coordinator::catalogue,
                            key,
                            metrics.client());
            exports = made;
            return new ExportClients(made);
        }
    }

    /** The exports' volume clients as the data loop sees them. */
    private record ExportClients(ClusterExports exports) implements LocalClients {
        @Override
        public void onReply(int from, ClientReply reply) {
            exports.onReply(from, reply);
        }

        @Override
        public void onLeader(ShardId shard, int leader, long epoch) {
            exports.onLeader(shard, leader, epoch);
        }

        @Override
        public void onConnected(int node) {
            exports.onConnected(node);
        }

        @Override
        public void onDisconnected(int node) {
            exports.onDisconnected(node);
        }
    }

    private static NbdLimits nbdLimits(NodeConfig.Limits limits) {
        NbdLimits usual = NbdLimits.DEFAULT;
        return new NbdLimits(
                limits.nbdConnections(),
                usual.handshakeTimeout(),
                usual.maxOptions(),
                usual.maxOptionBytes(),
                usual.maxDrainedBytes(),
                usual.maxRequestsInFlight(),
                limits.inFlightBytes(),
                usual.outboundHighBytes(),
                NBD_GRACE,
                NbdLimits.Payloads.forHeap(Runtime.getRuntime().maxMemory()));
    }

    /** Without certificate or token, a client is its source address and the node it uses. */
    private ClientIdentity identify(SocketAddress remote) {
        String host = "local";
        if (remote instanceof InetSocketAddress internet) {
            InetAddress address = internet.getAddress();
            host = address == null ? internet.getHostString() : address.getHostAddress();
        }
        return new ClientIdentity(host + "@" + config.self().id());
    }

    private void log(Announcement announcement) {
        ShardId shard = announcement.shard();
        String volume =
                keeper.catalogue()
                        .volume(shard.volume())
                        .map(v -> v.name())
                        .orElse("a deleted volume");
        if (announcement.leader() == 0) {
            LOG.info("shard {} of {}: no leader, epoch {}", shard, volume, announcement.epoch());
        } else if (announcement.role() == Effect.Role.LEADER) {
            LOG.info(
                    "shard {} of {}: this node leads, epoch {}",
                    shard,
                    volume,
                    announcement.epoch());
        } else {
            LOG.info(
                    "shard {} of {}: node {} leads, epoch {}",
                    shard,
                    volume,
                    announcement.leader(),
                    announcement.epoch());
        }
    }

    /**
     * Opens the replicas known from the last run, binds, and serves; joins the coordinator in the
     * background.
     *
     * @throws IOException when an address cannot be bound
     */
    void start() throws IOException {
        coordinator.watch(keeper::newer);
        loop.start(coordinator::members);
        thread.execute(scrubber::start);
        await(links.start(), BIND_TIMEOUT, "peer address " + config.self().peer());
        Endpoint address = config.self().nbd();
        await(nbd.bind(address.host(), address.port()), BIND_TIMEOUT, "NBD address " + address);
        health.nbdBound();
        AdminServer server =
                new AdminServer(config.self().http(), admin, () -> metrics.scrape(loop));
        started.push(admin);
        started.push(server);
        admin.start();
        long joinBy = System.nanoTime() + JOIN_DELAY.toNanos();
        thread.execute(() -> joinWhenServing(joinBy));
        LOG.info(
                "{} of cluster {}: NBD on {}, admin on {}, peers on {}, catalogue version {}",
                config.self().id(),
                config.clusterName(),
                address,
                config.self().http(),
                config.self().peer(),
                coordinator.catalogue().version());
    }

    /** On the loop. */
    private void joinWhenServing(long joinByNanos) {
        if (stopping) {
            return;
        }
        if (!health.replicasServe() && System.nanoTime() - joinByNanos < 0) {
            thread.schedule(JOIN_LOOK_NANOS, () -> joinWhenServing(joinByNanos));
            return;
        }
        var _ =
                coordinator
                        .start()
                        .whenComplete((joined, failure) -> {
                            if (failure == null) {
                                health.coordinatorJoined();
                            } else if (!stopping) {
                                LOG.error(
                                        "coordination failed, the catalogue cannot be"
                                                + " changed from here",
                                        failure);
                            }
                        });
    }

    private static void await(CompletableFuture<?> done, Duration timeout, String what)
            throws IOException {
        try {
            done.get(timeout.toMillis(), TimeUnit.MILLISECONDS);
        } catch (ExecutionException e) {
            Throwable cause = e.getCause() == null ? e : e.getCause();
            throw new IOException(what + ": " + cause.getMessage(), cause);
        } catch (TimeoutException e) {
            throw new IOException(what + ": not done in " + timeout.toSeconds() + " s", e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException(what + ": interrupted", e);
        }
    }

    /**
     * Stops the node: clients first, then leadership, then the disk.
     *
     * @return whether every step was done in its time
     */
    boolean stop() {
        LOG.info("{}: stopping", config.self().id());
        stopping = true;
        health.stopping();
        Thread leaving = Thread.ofPlatform().name("coordinator-close").start(coordinator::close);
        boolean clean = finish("NBD connections", NBD_STOP_TIMEOUT, nbd.close());
        CompletableFuture<Void> exportsStopped = new CompletableFuture<>();
        thread.execute(() -> exports.shutdown(() -> exportsStopped.complete(null)));
        clean &= finish("exports", EXPORTS_STOP_TIMEOUT, exportsStopped);
        clean &= finish("leadership", STEP_ASIDE_TIMEOUT, stepAside());
        while (!started.isEmpty()) {
            try {
                started.pop().close();
            } catch (Exception e) {
                LOG.warn("stopping: {}", String.valueOf(e), e);
                clean = false;
            }
        }
        clean &=
                finish(
                        "store",
                        STORE_STOP_TIMEOUT,
                        thread.submit(() -> {
                            scrubber.stop();
                            links.close();
                            loop.stop();
                            store.close();
                            return true;
                        }));
        scrubTimes.shutdown();
        try {
            leaving.join(STEP_ASIDE_TIMEOUT);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        metrics.close();
        LOG.info("{}: stopped", config.self().id());
        return clean;
    }

    private static boolean finish(String what, Duration timeout, CompletableFuture<?> done) {
        try {
            await(done, timeout, what);
            return true;
        } catch (IOException e) {
            LOG.warn("stopping: {}", e.getMessage());
            return false;
        }
    }

    /** Hands every shard led here to a follower that is up to date, so that nobody has to wait. */
    private CompletableFuture<Void> stepAside() {
        CompletableFuture<Void> done = new CompletableFuture<>();
        thread.execute(() -> {
            for (ReplicaView replica : loop.replicas()) {
                replica.status().followers().stream()
                        .filter(f -> f.state() == ReplicaStatus.State.IN_SYNC)
                        .filter(f -> links.connected(f.node()))
                        .map(Follower::node)
                        .findFirst()
                        .ifPresent(to -> loop.tell(replica.shard(), new Event.StepAside(to)));
            }
            awaitNoLeadership(done);
        });
        return done;
    }

    private void awaitNoLeadership(CompletableFuture<Void> done) {
        boolean leading =
                loop.replicas().stream()
                        .anyMatch(r ->
                                r.status().role() == Effect.Role.LEADER
                                        && r.status().followers().stream()
                                                .anyMatch(f ->
                                                        f.state() == ReplicaStatus.State.IN_SYNC));
        if (!leading) {
            done.complete(null);
        } else if (!done.isDone()) {
            thread.schedule(STEP_ASIDE_LOOK_NANOS, () -> awaitNoLeadership(done));
        }
    }
}
