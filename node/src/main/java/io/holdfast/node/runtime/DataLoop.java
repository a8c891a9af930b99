package io.holdfast.node.runtime;

import io.holdfast.client.ShardLinks;
import io.holdfast.client.Timers;
import io.holdfast.node.port.Coordinator.NodeState;
import io.holdfast.node.port.PeerLinks;
import io.holdfast.node.port.Store;
import io.holdfast.node.replica.Effect;
import io.holdfast.node.replica.Event;
import io.holdfast.node.replica.Recovered;
import io.holdfast.node.replica.Replica;
import io.holdfast.node.replica.ReplicaOptions;
import io.holdfast.node.replica.ReplicaStatus;
import io.holdfast.node.replica.Timing;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ClientRequest;
import io.holdfast.proto.peer.PeerMessage;
import io.holdfast.proto.peer.ReplicaMessage;
import io.holdfast.proto.peer.Room;
import io.holdfast.proto.peer.ScrubMessage;
import io.holdfast.proto.peer.ShardId;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The node's one data thread: replicas, peer connections, NBD connections and volume clients all
 * run on it, so the data path has neither locks nor hand-overs.
 *
 * <p><b>Turns.</b> Messages are stepped one by one as they arrive. What they cause is collected:
 * the first of them puts one turn into the event loop's task queue, which Netty works off after all
 * connections that were ready have been read. So one wake-up of the thread costs one turn, and a
 * turn is: every touched replica is told {@link Event.TurnEnd}; messages leave; the journal is
 * written once; what waited for that leaves too. Batches are as large as what was waiting, without
 * a timer.
 *
 * <p>Completions of the store (write, sync, read) and messages of this node to itself never step a
 * replica from inside a step: they are queued or leave a mark, and the turn picks them up.
 *
 * <p>Methods are for the loop's thread unless they say otherwise.
 */
public final class DataLoop implements PeerLinks.Receiver {
    /**
     * Rounds of one turn. A write that completes at once may cause the next one; beyond this the
     * connections get their turn first.
     */
    private static final int MAX_ROUNDS = 16;

    /**
     * Most messages of this node to itself in the queue. Volume clients bound what they have under
     * way far below; beyond, messages are dropped like those to a peer.
     */
    private static final int MAX_LOCAL_MESSAGES = 1 << 16;

    /** How often the state of the other nodes is looked at. */
    private static final long GONE_LOOK_NANOS = 500_000_000L;

    private static final Logger LOG = LoggerFactory.getLogger(DataLoop.class);

    private final DataThread thread;
    private final int self;
    private final Store store;
    private final Timing timing;
    private final RuntimeObserver observer;
    private final PeerLinks links;
    private final LocalClients clients;
    private final GoneNodes goneNodes;
    private final CatchUpPace catchUpPace;

    /** Running process of each node, as it said when it connected; this node's own included. */
    private final Map<Integer, Long> incarnations = new TreeMap<>();

    private final Map<ShardId, ShardDriver> drivers = new TreeMap<>();
    private final ArrayDeque<PeerMessage> local = new ArrayDeque<>();
    private final ArrayDeque<Later> later = new ArrayDeque<>();
    private List<ShardDriver> touched = new ArrayList<>();
    private List<ShardDriver> appended = new ArrayList<>();
    private final List<Consumer<Announcement>> listeners = new ArrayList<>();
    private final List<Timers.Handle> timers = new ArrayList<>();

    private boolean turnScheduled;
    private boolean sendsQueued;
    private boolean syncWanted;
    private boolean syncReported;
    private long syncedThrough;
    private @Nullable Exception storeFailure;
    private @Nullable ScrubReceiver scrub;
    private long clientRequests;
    private long clientRequestsSeen;
    private long nextClientsLookNanos = Long.MIN_VALUE;

    /** As the replicas were told. */
    private Room room = Room.ENOUGH;

    /** An event that came up in the middle of a step. */
    private record Later(ShardDriver driver, Event event) {}

    /** Who leads a shard, as this node's replica of it sees it. */
    public record Announcement(ShardId shard, Effect.Role role, long epoch, int leader) {}

    /**
     * A replica of this node, for people and metrics.
     *
     * @param outOfService its disk has failed
     * @param catchUps of followers that are behind, while it leads
     */
    public record ReplicaView(
            ShardId shard,
            ReplicaStatus status,
            boolean outOfService,
            List<CatchUpProgress> catchUps) {
        public ReplicaView {
            catchUps = List.copyOf(catchUps);
        }
    }

    /**
     * How fast this node brings followers forward, all together.
     *
     * @param bytesPerSecond at most
     * @param bytesPerSecondWithClients while clients use replicas of this node
     */
    public record CatchUpRates(long bytesPerSecond, long bytesPerSecondWithClients) {
        public CatchUpRates {
            if (bytesPerSecond < 1 || bytesPerSecondWithClients < 1) {
                throw new IllegalArgumentException(
                        bytesPerSecond + " " + bytesPerSecondWithClients);
            }
        }
    }

    /** Who hears what nodes say of their replicas beside the replication: the scrub. */
    public interface ScrubReceiver {
        /** A question or answer of another node's scrub. */
        void received(int from, ScrubMessage message);

        /** Another replica's copy of a block, asked for here. */
        void received(int from, ReplicaMessage.FetchedBlock copy);
    }

    /**
     * Fetches of blocks from this number on are a {@link ScrubReceiver}'s; replicas number theirs
     * from 1.
     */
    public static final long FIRST_SCRUB_FETCH = 1L << 62;

    /** The parts around the loop that need the loop to be made. */
    public interface Parts {
        /** Connections that deliver to {@code receiver}; none arrives before this returns. */
        PeerLinks links(PeerLinks.Receiver receiver);

        /** Volume clients that send over {@code links}. */
        LocalClients clients(ShardLinks links);
    }

    /**
     * A loop without replicas; {@link #start} starts its clock. May be called on any thread, before
     * the data thread has work for it.
     *
     * @param self this node's number
     * @param nodes all nodes of the cluster
     */
    public DataLoop(
            DataThread thread,
            int self,
            List<Integer> nodes,
            Store store,
            Timing timing,
            CatchUpRates catchUpRates,
            RuntimeObserver observer,
            Parts parts) {
        this.thread = thread;
        this.self = self;
        this.store = store;
        this.timing = timing;
        this.catchUpPace = new CatchUpPace(catchUpRates, System.nanoTime());
        this.observer = observer;
        this.goneNodes = new GoneNodes(nodes.stream().filter(node -> node != self).toList());
        this.links = parts.links(this);
        incarnations.put(self, links.incarnation());
        this.clients = parts.clients(new LocalLinks());
    }

    /** What hears of this loop's and its replicas' doings. */
    RuntimeObserver observer() {
        return observer;
    }

    /**
     * Starts the ticks.
     *
     * @param gossip what membership says of the others; may be called at any time, never blocks
     */
    public void start(Supplier<Map<Integer, NodeState>> gossip) {
        thread.execute(() -> goneNodes.start(System.nanoTime()));
        timers.add(thread.every(timing.tickNanos(), this::tick));
        timers.add(thread.every(GONE_LOOK_NANOS, () -> checkGone(gossip.get())));
    }

    /** Stops the ticks and closes every replica; the store stays open. */
    public void stop() {
        timers.forEach(Timers.Handle::cancel);
        timers.clear();
        drivers.values().forEach(ShardDriver::close);
        drivers.clear();
    }

    /** Calls {@code listener} with every change of leadership that a replica here sees. */
    public void listen(Consumer<Announcement> listener) {
        listeners.add(listener);
    }

    /** Hands a scrub's messages to {@code receiver}; dropped while there is none. */
    public void scrub(ScrubReceiver receiver) {
        scrub = receiver;
    }

    /** Requests of volume clients that have come to replicas here. */
    public long clientRequests() {
        return clientRequests;
    }

    /** The thread that all this happens on. */
    public DataThread thread() {
        return thread;
    }

    /** The connections to the other nodes. */
    public PeerLinks links() {
        return links;
    }

    /** Whether this node has a replica of the shard. */
    public boolean has(ShardId shard) {
        return drivers.containsKey(shard);
    }

    /** Shards with a replica here, sorted. */
    public List<ShardId> shards() {
        return List.copyOf(drivers.keySet());
    }

    /** All replicas here, sorted by shard. */
    public List<ReplicaView> replicas() {
        long now = System.nanoTime();
        List<ReplicaView> views = new ArrayList<>();
        for (ShardDriver driver : drivers.values()) {
            views.add(view(driver, now));
        }
        return views;
    }

    /** The replica of a shard here; null: there is none. */
    public @Nullable ReplicaView replica(ShardId shard) {
        ShardDriver driver = drivers.get(shard);
        return driver == null ? null : view(driver, System.nanoTime());
    }

    private static ReplicaView view(ShardDriver driver, long nowNanos) {
        return new ReplicaView(
                driver.shard(),
                driver.status(nowNanos),
                driver.isOutOfService(),
                driver.catchUps());
    }

    /** Why the store can no longer be used; null: it can. */
    public @Nullable Exception storeFailure() {
        return storeFailure;
    }

    /**
     * Makes a replica and lets it take part.
     *
     * @param open opens or creates the shard in the store for an owner
     */
    void add(ReplicaOptions options, Function<Store.Owner, Recovered> open) {
        ShardId shard = options.shard();
        if (drivers.containsKey(shard)) {
            throw new IllegalStateException("there is a replica of " + shard + " already");
        }
        ShardDriver.Handle handle = new ShardDriver.Handle(this);
        Recovered recovered = open.apply(handle);
        Replica replica =
                new Replica(
                        options, recovered, ShardDriver.versions(shard, store), System.nanoTime());
        ShardDriver driver = handle.drive(shard, replica, store);
        drivers.put(shard, driver);
        incarnations.forEach((node, incarnation) -> {
            driver.step(new Event.NodeAlive(node, incarnation));
            if (node != self && !links.connected(node)) {
                driver.step(new Event.NodeLost(node));
            }
        });
        if (room != Room.ENOUGH) {
            driver.step(new Event.RoomChanged(room));
        }
        for (int dead : goneNodes.dead()) {
            driver.step(new Event.NodeDead(dead));
        }
    }

    /** Ends a replica and forgets what it held. */
    void drop(ShardId shard) {
        ShardDriver driver = drivers.remove(shard);
        if (driver != null) {
            driver.close();
        }
        store.drop(shard);
    }

    /** Tells a replica something, if it is here. */
    public void tell(ShardId shard, Event event) {
        ShardDriver driver = drivers.get(shard);
        if (driver != null) {
            driver.step(event);
        }
    }

    @Override
    public void received(int from, PeerMessage message) {
        thread.guard(() -> deliver(from, message));
    }

    @Override
    public void turnEnded() {
        // The turn is already queued if anything was touched; it comes after the other connections
        // that are ready, so that their messages share the write and the flush.
    }

    @Override
    public void connected(int from, long incarnation) {
        thread.guard(() -> {
            goneNodes.connected(from);
            incarnations.put(from, incarnation);
            tellAll(new Event.NodeAlive(from, incarnation));
            clients.onConnected(from);
        });
    }

    @Override
    public void disconnected(int from) {
        thread.guard(() -> {
            goneNodes.disconnected(from, System.nanoTime());
            tellAll(new Event.NodeLost(from));
            clients.onDisconnected(from);
        });
    }

    private void deliver(int from, PeerMessage message) {
        switch (message) {
            case ClientReply reply -> clients.onReply(from, reply);
            case ClientRequest request -> {
                clientRequests++;
                ShardDriver driver = drivers.get(request.shard());
                if (driver == null || driver.isOutOfService()) {
                    reply(from, refusal(request, driver == null));
                } else {
                    driver.step(new Event.FromClient(from, request));
                }
            }
            case ReplicaMessage.FetchedBlock copy when copy.fetch() >= FIRST_SCRUB_FETCH -> {
                if (scrub != null) {
                    scrub.received(from, copy);
                }
            }
            case ScrubMessage said -> {
                if (scrub != null) {
                    scrub.received(from, said);
                }
            }
            case ReplicaMessage said -> tell(said.shard(), new Event.FromPeer(from, said));
        }
    }

    /** A replica whose disk has failed sends clients on to the others; they elect a new leader. */
    private static ClientReply refusal(ClientRequest request, boolean unknown) {
        return new ClientReply.Refused(
                request.shard(),
                request.client(),
                request.request(),
                unknown ? ClientReply.Refusal.UNKNOWN_SHARD : ClientReply.Refusal.NOT_LEADER,
                0,
                0,
                unknown ? "no replica of this shard here" : "the disk of this replica has failed");
    }

    private void tick() {
        checkRoom();
        checkClients();
        tellAll(new Event.Tick());
        // The store gives room back in its own time, also when the last replica is gone.
        scheduleTurn();
    }

    private void checkRoom() {
        Store.Usage usage = store.usage();
        Room now =
                switch (usage.space()) {
                    case OK, WARN -> Room.ENOUGH;
                    case FULL -> usage.cleanable() ? Room.SOON : Room.NONE;
                };
        if (now == room) {
            return;
        }
        if (now == Room.NONE) {
            LOG.warn(
                    "disk full, {} bytes free: volumes with a replica here take no new data until"
                            + " something is deleted or trimmed",
                    usage.freeBytes());
        } else if (room == Room.NONE) {
            LOG.info("disk has room again, {} bytes free", usage.freeBytes());
        }
        room = now;
        tellAll(new Event.RoomChanged(now));
    }

    private void checkClients() {
        long now = System.nanoTime();
        if (now >= nextClientsLookNanos) {
            nextClientsLookNanos = now + CatchUps.LOOK_NANOS;
            catchUpPace.clients(clientRequests != clientRequestsSeen, now);
            clientRequestsSeen = clientRequests;
        }
    }

    private void checkGone(Map<Integer, NodeState> gossip) {
        for (int dead : goneNodes.newlyDead(gossip, System.nanoTime())) {
            LOG.warn("node {} is dead to us: its clients' claims may be broken", dead);
            tellAll(new Event.NodeDead(dead));
        }
    }

    private void tellAll(Event event) {
        for (ShardDriver driver : drivers.values()) {
            driver.step(event);
        }
    }

    // What drivers call.

    CatchUpPace catchUpPace() {
        return catchUpPace;
    }

    /** A node that has said nothing for this long may be gone. */
    long silenceNanos() {
        return timing.silenceNanos();
    }

    long nanoTime() {
        return System.nanoTime();
    }

    void touched(ShardDriver driver) {
        touched.add(driver);
        scheduleTurn();
    }

    void appended(ShardDriver driver) {
        appended.add(driver);
        scheduleTurn();
    }

    void later(ShardDriver driver, Event event) {
        later.add(new Later(driver, event));
        scheduleTurn();
    }

    /** Sends a message to another node; it leaves with this turn, or is lost. */
    public void sendToPeer(int to, PeerMessage message) {
        links.send(to, message);
        sendsQueued = true;
        scheduleTurn();
    }

    /** Sends a reply to where the request came from: a peer, or a volume client in this node. */
    void reply(int origin, ClientReply reply) {
        if (origin == self) {
            queueLocal(reply);
        } else {
            sendToPeer(origin, reply);
        }
    }

    void announced(ShardDriver driver, Effect.Announce announce) {
        ShardId shard = driver.shard();
        observer.leadershipChanged(shard, announce);
        clients.onLeader(shard, announce.leader(), announce.epoch());
        Announcement announcement =
                new Announcement(shard, announce.role(), announce.epoch(), announce.leader());
        for (Consumer<Announcement> listener : listeners) {
            listener.accept(announcement);
        }
    }

    void storeFailed(Exception cause) {
        if (storeFailure == null) {
            storeFailure = cause;
            LOG.error("the store has failed: every replica of this node is out of service", cause);
        }
        // The store says it once for each shard or once for all; one disk carries them all.
        drivers.values().forEach(ShardDriver::close);
    }

    private void queueLocal(PeerMessage message) {
        if (local.size() >= MAX_LOCAL_MESSAGES) {
            observer.localMessageDropped();
            return;
        }
        local.add(message);
        scheduleTurn();
    }

    // Turns.

    private void scheduleTurn() {
        if (!turnScheduled) {
            turnScheduled = true;
            thread.execute(this::turn);
        }
    }

    private void turn() {
        int rounds = 0;
        while (isWaiting() && rounds < MAX_ROUNDS) {
            deliverLocal();
            stepLater();
            endTurnOfTouched();
            flush();
            write();
            reportSynced();
            rounds++;
        }
        flush();
        if (syncWanted) {
            syncWanted = false;
            sync();
        }
        store.turnEnded();
        turnScheduled = false;
        if (isWaiting()) {
            scheduleTurn();
        }
    }

    private boolean isWaiting() {
        return !local.isEmpty()
                || !later.isEmpty()
                || !touched.isEmpty()
                || !appended.isEmpty()
                || syncReported;
    }

    /** Only what is in the queue now; answers to it belong to the next round. */
    private void deliverLocal() {
        for (int left = local.size(); left > 0; left--) {
            deliver(self, local.remove());
        }
    }

    private void stepLater() {
        for (int left = later.size(); left > 0; left--) {
            Later next = later.remove();
            next.driver().step(next.event());
        }
    }

    private void endTurnOfTouched() {
        List<ShardDriver> ending = touched;
        touched = new ArrayList<>();
        ending.forEach(ShardDriver::endTurn);
    }

    /** Before the write, so that followers work while this node writes; and after it. */
    private void flush() {
        if (sendsQueued) {
            sendsQueued = false;
            links.flush();
        }
    }

    private void write() {
        if (appended.isEmpty()) {
            return;
        }
        List<ShardDriver> waiting = appended;
        appended = new ArrayList<>();
        long start = System.nanoTime();
        long end = store.write();
        observer.journalWritten(System.nanoTime() - start);
        for (ShardDriver driver : waiting) {
            syncWanted |= driver.written(end);
        }
    }

    private void sync() {
        long start = System.nanoTime();
        store.sync(position -> {
            observer.journalSynced(System.nanoTime() - start);
            syncedThrough = Math.max(syncedThrough, position);
            syncReported = true;
            scheduleTurn();
        });
    }

    private void reportSynced() {
        if (syncReported) {
            syncReported = false;
            drivers.values().forEach(driver -> driver.synced(syncedThrough));
        }
    }

    /** How this node's volume clients reach the nodes: their own without a wire. */
    private final class LocalLinks implements ShardLinks {
        @Override
        public void send(int node, ClientRequest request) {
            if (node == self) {
                queueLocal(request);
            } else {
                sendToPeer(node, request);
            }
        }

        @Override
        public boolean connected(int node) {
            return node == self || links.connected(node);
        }
    }
}
