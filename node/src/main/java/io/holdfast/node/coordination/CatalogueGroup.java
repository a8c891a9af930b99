package io.holdfast.node.coordination;

import io.atomix.cluster.AtomixCluster;
import io.atomix.cluster.ClusterConfig;
import io.atomix.cluster.Member;
import io.atomix.cluster.MemberId;
import io.atomix.cluster.Node;
import io.atomix.cluster.discovery.BootstrapDiscoveryProvider;
import io.atomix.cluster.messaging.ManagedClusterCommunicationService;
import io.atomix.cluster.messaging.impl.DefaultClusterCommunicationService;
import io.atomix.cluster.protocol.GroupMembershipProtocol;
import io.atomix.cluster.protocol.SwimMembershipProtocol;
import io.atomix.cluster.protocol.SwimMembershipProtocolConfig;
import io.atomix.primitive.Recovery;
import io.atomix.primitive.impl.DefaultPrimitiveTypeRegistry;
import io.atomix.primitive.partition.PartitionId;
import io.atomix.primitive.service.ServiceConfig;
import io.atomix.primitive.session.SessionClient;
import io.atomix.protocols.raft.RaftClient;
import io.atomix.protocols.raft.RaftServer;
import io.atomix.protocols.raft.ReadConsistency;
import io.atomix.protocols.raft.cluster.RaftMember;
import io.atomix.protocols.raft.impl.RaftContext;
import io.atomix.protocols.raft.partition.impl.RaftClientCommunicator;
import io.atomix.protocols.raft.partition.impl.RaftNamespaces;
import io.atomix.protocols.raft.partition.impl.RaftServerCommunicator;
import io.atomix.protocols.raft.session.CommunicationStrategy;
import io.atomix.protocols.raft.storage.RaftStorage;
import io.atomix.protocols.raft.storage.system.Configuration;
import io.atomix.storage.StorageLevel;
import io.atomix.utils.concurrent.BlockingAwareThreadPoolContextFactory;
import io.atomix.utils.concurrent.ThreadContextFactory;
import io.atomix.utils.net.Address;
import io.atomix.utils.serializer.Serializer;
import io.holdfast.config.NodeConfig;
import io.holdfast.node.port.Coordinator.NodeState;
import java.io.IOException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * This node's part of Atomix: messaging, gossip, one Raft server with the catalogue as its only
 * service (D2), and a client of that service.
 *
 * <p>Put together from Atomix' Raft server and client instead of its {@code Atomix} class: that one
 * needs a second Raft group of its own with several primitives in it (D2), scans the class path,
 * and fixes the election time-out.
 *
 * <p>One thread calls; {@link #members} and {@link #leader} may be called by any.
 */
final class CatalogueGroup implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(CatalogueGroup.class);

    private static final String NAME = "catalogue";

    /** Of Raft, below the data directory. */
    private static final String DIRECTORY = "coordination";

    /** How long each step of closing may take. */
    private static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(2);

    /**
     * A session is kept alive by a log entry a quarter before its end. Nothing depends on a
     * session, so it may be long; a lost one is replaced.
     */
    private static final Duration SESSION_TIMEOUT = Duration.ofSeconds(10);

    /** Raft's, for this group. Short delays on a loaded machine must not start elections. */
    private static final Duration ELECTION_TIMEOUT = Duration.ofSeconds(2);

    /** A node that is the whole cluster waits for nobody. */
    private static final Duration ELECTION_TIMEOUT_ALONE = Duration.ofMillis(500);

    private static final Duration HEARTBEAT_INTERVAL = Duration.ofMillis(400);

    /** Of the pool that all of Raft's threads here come from; it may block in none of them. */
    private static final int RAFT_THREADS = 4;

    private static final int MESSAGING_CONNECTIONS = 2;
    private static final Duration CONNECT_TIMEOUT = Duration.ofSeconds(2);

    private final NodeConfig config;
    private final AtomixCluster cluster;
    private final FixedMembers members;
    private final ManagedClusterCommunicationService communication;
    private final ThreadContextFactory threads;
    private final CatalogueService.Type type;
    private final int segmentBytes;
    private @Nullable RaftContext raft;
    private volatile @Nullable RaftClient client;
    private volatile boolean running;

    /**
     * Builds, binds nothing yet.
     *
     * @param onUnreadable see {@link CatalogueService.Type}
     */
    CatalogueGroup(NodeConfig config, int segmentBytes, Consumer<String> onUnreadable) {
        this.config = config;
        this.segmentBytes = segmentBytes;
        type = new CatalogueService.Type(onUnreadable);
        NodeConfig.Endpoint self = config.self().coordination();
        List<Node> others = new ArrayList<>();
        for (NodeConfig.Member node : config.nodes()) {
            others.add(
                    Node.builder()
                            .withId(FixedMembers.id(node).id())
                            .withAddress(
                                    Address.from(
                                            node.coordination().host(), node.coordination().port()))
                            .build());
        }
        // A configuration object, because the plain builder looks for files on the class path.
        ClusterConfig settings = new ClusterConfig();
        settings.getMessagingConfig().setConnectTimeout(CONNECT_TIMEOUT);
        cluster =
                AtomixCluster.builder(settings)
                        .withClusterId(config.clusterName())
                        .withMemberId(FixedMembers.id(config.self()))
                        .withAddress(Address.from(self.host(), self.port()))
                        .withMessagingInterface(self.host()) // else it listens on all of them
                        .withConnectionPoolSize(MESSAGING_CONNECTIONS)
                        .withMulticastEnabled(false)
                        .withMembershipProvider(
                                BootstrapDiscoveryProvider.builder()
                                        .withNodes(others.toArray(Node[]::new))
                                        .build())
                        .withMembershipProtocol(gossip())
                        .build();
        members = new FixedMembers(config, cluster.getMembershipService());
        communication =
                new DefaultClusterCommunicationService(
                        members, cluster.getMessagingService(), cluster.getUnicastService());
        threads = new BlockingAwareThreadPoolContextFactory("coordination-%d", RAFT_THREADS, LOG);
    }

    /**
     * D4: gossip may notice a frozen node late, so it is only shown. It may therefore be slow, and
     * cheap.
     */
    private static GroupMembershipProtocol gossip() {
        SwimMembershipProtocolConfig settings =
                new SwimMembershipProtocolConfig()
                        .setBroadcastUpdates(true)
                        .setBroadcastDisputes(true)
                        .setNotifySuspect(true)
                        .setGossipInterval(Duration.ofMillis(500))
                        .setGossipFanout(2)
                        .setProbeInterval(Duration.ofMillis(700))
                        .setProbeTimeout(Duration.ofMillis(800))
                        .setSuspectProbes(3)
                        .setFailureTimeout(Duration.ofSeconds(3));
        return SwimMembershipProtocol.TYPE.newProtocol(settings);
    }

    /**
     * Binds and begins to take part. May block for a second or two.
     *
     * @throws IOException the address cannot be bound, or the stored members are others
     */
    void start() throws IOException, InterruptedException {
        NodeConfig.Endpoint self = config.self().coordination();
        try {
            var _ = InetAddress.getByName(self.host());
        } catch (UnknownHostException e) {
            throw new IOException("this node's own address " + self + " does not resolve", e);
        }
        members.resolve();
        await(cluster.start(), "cannot bind " + self);
        await(communication.start(), "cannot start messaging");
        running = true;
        RaftContext context = openRaft();
        raft = context;
        boolean alone = config.nodes().size() == 1;
        context.setElectionTimeout(alone ? ELECTION_TIMEOUT_ALONE : ELECTION_TIMEOUT);
        context.setHeartbeatInterval(HEARTBEAT_INTERVAL);
        context.setSessionTimeout(SESSION_TIMEOUT);
        checkMembers(context.getCluster().getConfiguration());
        // Completes with a majority only; a session says sooner that there is one.
        var _ = context.getCluster().bootstrap(memberIds());
    }

    /**
     * Atomix does not sync its files (D3), so after a power loss they may be such as it cannot
     * read: a log of no length is enough. They are set aside, and this node takes part like one
     * that has lost its disk: the others have the catalogue, and each node what it has seen of it.
     */
    private RaftContext openRaft() throws IOException {
        try {
            return newRaft();
        } catch (RuntimeException e) {
            Path aside = setAside();
            LOG.error("Atomix cannot read its files: kept as {}, starting without", aside, e);
            return newRaft();
        }
    }

    private RaftContext newRaft() {
        Serializer serializer = Serializer.using(RaftNamespaces.RAFT_PROTOCOL);
        return new RaftContext(
                NAME,
                FixedMembers.id(config.self()),
                members,
                new RaftServerCommunicator(NAME, serializer, communication),
                storage(),
                new DefaultPrimitiveTypeRegistry(List.of(type)),
                threads,
                false);
    }

    private Path setAside() throws IOException {
        Path aside = directory().resolveSibling(DIRECTORY + ".unreadable");
        if (Files.exists(aside)) {
            // One is enough to look at; a machine with bad power must not fill its disk with them.
            try (Stream<Path> files = Files.list(aside)) {
                for (Path file : (Iterable<Path>) files::iterator) {
                    Files.delete(file);
                }
            }
            Files.delete(aside);
        }
        return Files.move(directory(), aside);
    }

    private Path directory() {
        return config.dataDirectory().resolve(DIRECTORY);
    }

    private List<MemberId> memberIds() {
        return config.nodes().stream().map(FixedMembers::id).toList();
    }

    /**
     * Raft remembers its members and ignores what it is told later; a node that is not among them
     * would join for good. So a configuration that says something else is refused.
     */
    private void checkMembers(@Nullable Configuration stored) throws IOException {
        if (stored == null) {
            return;
        }
        TreeSet<String> before = new TreeSet<>();
        for (RaftMember member : stored.members()) {
            before.add(member.memberId().id());
        }
        TreeSet<String> now = new TreeSet<>();
        memberIds().forEach(id -> now.add(id.id()));
        if (!before.equals(now)) {
            throw new IOException(
                    "the cluster was formed by nodes "
                            + before
                            + ", the configuration lists "
                            + now
                            + ": its members cannot be changed");
        }
    }

    private RaftStorage storage() {
        return RaftStorage.builder()
                .withPrefix(NAME)
                .withDirectory(directory().toFile())
                .withStorageLevel(StorageLevel.DISK)
                .withMaxSegmentSize(segmentBytes)
                .withMaxEntrySize(Math.min(CatalogueCodec.MAX_ENTRY_BYTES, segmentBytes / 2))
                // D3: it would do nothing. SavedCatalogue keeps what a power loss may take.
                .withFlushOnCommit(false)
                .withDynamicCompaction(false)
                .withNamespace(RaftNamespaces.RAFT_STORAGE)
                .build();
    }

    private static void await(Future<?> future, String what)
            throws IOException, InterruptedException {
        try {
            var _ = future.get(30, TimeUnit.SECONDS);
        } catch (ExecutionException e) {
            throw new IOException(what + ": " + e.getCause(), e.getCause());
        } catch (TimeoutException e) {
            throw new IOException(what + ": no answer from Atomix", e);
        }
    }

    /**
     * Opens a session with the catalogue, in place of the one before. May never complete; the
     * caller waits only so long. A later call gives the earlier one's client up.
     */
    CompletableFuture<SessionClient> open() {
        closeClient();
        RaftClient opened =
                RaftClient.builder()
                        .withClientId(NAME)
                        .withPartitionId(PartitionId.from(NAME, 1))
                        .withMemberId(FixedMembers.id(config.self()))
                        .withProtocol(
                                new RaftClientCommunicator(
                                        NAME,
                                        Serializer.using(RaftNamespaces.RAFT_PROTOCOL),
                                        communication))
                        .withThreadContextFactory(threads)
                        .build();
        client = opened;
        return opened.connect(memberIds())
                .thenCompose(c ->
                        c.sessionBuilder(NAME, type, new ServiceConfig())
                                // Reads need not be newest: changes are compare-and-set.
                                .withReadConsistency(ReadConsistency.SEQUENTIAL)
                                .withCommunicationStrategy(CommunicationStrategy.LEADER)
                                // Its own recovery may hang; a new session is opened.
                                .withRecoveryStrategy(Recovery.CLOSE)
                                .withMinTimeout(SESSION_TIMEOUT)
                                .withMaxTimeout(SESSION_TIMEOUT)
                                .build()
                                .connect());
    }

    /** Tries again to resolve hosts; may block. */
    void resolve() {
        members.resolve();
    }

    /** What keeps this node from having a majority, for the log. */
    String missing() {
        List<String> silent = new ArrayList<>();
        members()
                .forEach((number, state) -> {
                    if (state != NodeState.ALIVE) {
                        silent.add("n" + number + " " + state);
                    }
                });
        Map<String, String> unresolved = members.unresolved();
        return "leader "
                + leader()
                + ", not there: "
                + silent
                + (unresolved.isEmpty() ? "" : ", hosts without an address: " + unresolved);
    }

    /** Raft's leader as this node knows it, for people. */
    String leader() {
        RaftContext context = raft;
        RaftMember leader = context == null ? null : context.getLeader();
        return leader == null ? "unknown" : leader.memberId().id();
    }

    /** Gossip's opinion of each configured node. */
    Map<Integer, NodeState> members() {
        Map<MemberId, Member> seen = new HashMap<>();
        if (running) {
            for (Member member : cluster.getMembershipService().getMembers()) {
                seen.put(member.id(), member);
            }
        }
        Map<Integer, NodeState> states = new LinkedHashMap<>();
        for (NodeConfig.Member node : config.nodes()) {
            Member member = seen.get(FixedMembers.id(node));
            NodeState state = NodeState.DEAD;
            if (node.number() == config.self().number()
                    || (member != null && member.isActive() && member.isReachable())) {
                state = NodeState.ALIVE;
            } else if (member != null && member.isActive()) {
                state = NodeState.SUSPECT;
            }
            states.put(node.number(), state);
        }
        return states;
    }

    private void closeClient() {
        RaftClient old = client;
        client = null;
        if (old != null) {
            // Gives up its timers; the session ends by itself.
            quietly(old.close(), "client");
        }
    }

    /** Stops, in a few seconds at most, whether or not there is a majority. */
    @Override
    public void close() {
        running = false;
        closeClient();
        RaftContext context = raft;
        raft = null;
        if (context != null) {
            // Not RaftServer.shutdown(): that refuses a server that is still waiting to join.
            CompletableFuture<@Nullable Void> inactive = new CompletableFuture<>();
            context.getThreadContext()
                    .execute(() -> {
                        context.transition(RaftServer.Role.INACTIVE);
                        context.getCluster().close();
                        inactive.complete(null);
                    });
            quietly(inactive, "Raft server");
            context.close();
        }
        quietly(communication.stop(), "messaging");
        quietly(cluster.stop(), "cluster");
        threads.close();
    }

    private static void quietly(Future<?> future, String what) {
        try {
            var _ = future.get(CLOSE_TIMEOUT.toMillis(), TimeUnit.MILLISECONDS);
        } catch (ExecutionException | TimeoutException e) {
            LOG.debug("{} did not close in order: {}", what, e.toString());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
