package io.holdfast.simulation;

import static io.holdfast.simulation.SimFailure.check;

import io.holdfast.node.port.PeerLinks;
import io.holdfast.node.replica.Effect;
import io.holdfast.node.replica.Effect.Role;
import io.holdfast.node.replica.HardState.Standing;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.EntryKind;
import io.holdfast.proto.peer.PeerMessage;
import io.holdfast.proto.peer.ShardId;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.BooleanSupplier;

/**
 * A whole cluster: nodes, network, coordinator, clients, and the oracles that watch them. Scenarios
 * use it directly; {@link Simulation} lets it run at random.
 */
final class SimCluster {
    final SimOptions options;
    final SimQueue queue = new SimQueue();
    final Trace trace = new Trace(queue);
    final Counters counters = new Counters();
    final SimNetwork network;

    private final SimRandom root;
    private final List<SimVolume> volumes = new ArrayList<>();
    private final List<ShardId> shards = new ArrayList<>();
    private final TreeMap<ShardId, ShardOracle> oracles = new TreeMap<>();
    private final TreeMap<Integer, SimNode> nodes = new TreeMap<>();
    private final List<SimClient> clients = new ArrayList<>();
    private final List<SimUser> users = new ArrayList<>();
    private final List<SimDevice> devices = new ArrayList<>();
    private final TreeMap<Integer, Replies> clientsByNumber = new TreeMap<>();
    private final SimCoordinator coordinator;
    private final SimFaults faults;
    private long newestGeneration;
    private String newestHolder = "";

    /** A cluster whose nodes are not started yet. */
    SimCluster(SimOptions options, SimRandom root) {
        this.options = options;
        this.root = root;
        for (int number = 1; number <= options.volumes(); number++) {
            // The second is the other kind.
            boolean exclusive = (number == 1) == options.exclusive();
            SimVolume volume = new SimVolume(this, number, exclusive);
            volumes.add(volume);
            for (ShardId shard : volume.shards()) {
                shards.add(shard);
                oracles.put(shard, new ShardOracle(shard, volume, this));
            }
        }
        network =
                new SimNetwork(
                        queue,
                        root.child("network"),
                        options.network(),
                        Wire::copy,
                        this::received);
        SimRandom clocks = root.child("clocks");
        for (int number = 1; number <= options.nodes(); number++) {
            int drift = options.driftPerMille();
            double rate = 1 + clocks.between(-drift, drift) / 1000.0;
            SimClock clock =
                    new SimClock(queue, rate, clocks.between(0, 1000) * SimOptions.SECONDS);
            nodes.put(number, new SimNode(this, number, root.child("node " + number), clock));
        }
        faults = new SimFaults(this, root.child("faults"));
        coordinator = new SimCoordinator(this, root.child("coordinator"));
        for (SimVolume volume : volumes) {
            for (int i = 0; i < options.users(); i++) {
                addUser(volume);
            }
            for (int i = 0; i < options.rawClients(); i++) {
                addClient(volume);
            }
        }
    }

    /** One more user of the first volume, by the bare protocol. */
    SimClient addClient() {
        return addClient(volumes.getFirst());
    }

    private SimClient addClient(SimVolume volume) {
        int index = clients.size() + users.size();
        SimClient client = new SimClient(this, volume, index, root.child("client " + index));
        clients.add(client);
        return client;
    }

    /** One more user of volume clients. */
    SimUser addUser(SimVolume volume) {
        int index = clients.size() + users.size();
        SimUser user = new SimUser(this, volume, index, root.child("user " + index));
        users.add(user);
        return user;
    }

    /** Starts every node. */
    void start() {
        nodes.values().forEach(this::start);
    }

    /** Starts a node that is down; false: its disk does not let it. */
    boolean start(SimNode node) {
        if (!node.start()) {
            return false;
        }
        coordinator.nodeAlive(node.number);
        return true;
    }

    List<SimVolume> volumes() {
        return volumes;
    }

    /** The volume of a shard. */
    SimVolume volume(ShardId shard) {
        return volumes.get(shard.volume() - 1);
    }

    /** Of all volumes. */
    List<ShardId> shards() {
        return shards;
    }

    /** Requests of all volumes' histories. */
    long operations() {
        return volumes.stream().mapToLong(one -> one.history.operations().size()).sum();
    }

    ShardOracle oracle(ShardId shard) {
        ShardOracle oracle = oracles.get(shard);
        if (oracle == null) {
            throw new IllegalArgumentException("no shard " + shard);
        }
        return oracle;
    }

    List<Integer> nodeNumbers() {
        return List.copyOf(nodes.keySet());
    }

    List<SimNode> nodes() {
        return List.copyOf(nodes.values());
    }

    SimNode node(int number) {
        SimNode node = nodes.get(number);
        if (node == null) {
            throw new IllegalArgumentException("no node " + number);
        }
        return node;
    }

    List<SimClient> clients() {
        return clients;
    }

    List<SimUser> users() {
        return users;
    }

    SimCoordinator coordinator() {
        return coordinator;
    }

    SimFaults faults() {
        return faults;
    }

    /** Nodes and agents. */
    List<Integer> endpoints() {
        List<Integer> endpoints = new ArrayList<>(nodes.keySet());
        users.forEach(user -> endpoints.add(user.agent()));
        clients.forEach(client -> endpoints.add(client.agent()));
        return endpoints;
    }

    // ---- messages ----

    private void received(int from, int to, PeerMessage message) {
        if (to < PeerLinks.FIRST_AGENT) {
            node(to).receive(from, message);
        } else if (message instanceof ClientReply reply) {
            reply(from, to, reply);
        }
    }

    /** A reply has reached the process in which its client lives. */
    void reply(int from, int endpoint, ClientReply reply) {
        Replies client = clientsByNumber.get(reply.client());
        if (client != null && client.endpoint() == endpoint) {
            trace.add("client " + reply.client(), Describe.message(reply));
            client.reply(from, reply);
        }
    }

    /** A replica has told of its role: to the coordinator, and to the volume clients beside it. */
    void announced(ShardId shard, int node, Effect.Announce announce) {
        coordinator.announced(shard, node, announce);
        for (SimDevice device : List.copyOf(devices)) {
            if (device.volume() == volume(shard)) {
                device.announced(shard, node, announce);
            }
        }
    }

    /** A number for a client's next attachment. */
    int nextClientNumber(Replies client) {
        int number = clientsByNumber.size() + 1;
        clientsByNumber.put(number, client);
        return number;
    }

    /** A volume client begins. */
    void attached(SimDevice device) {
        devices.add(device);
    }

    /** A volume client is no more. */
    void detached(SimDevice device) {
        devices.remove(device);
    }

    /** A volume client has learned of its claim. */
    void claimed(ShardId shard, SimDevice holder, long generation) {
        if (generation >= newestGeneration) {
            newestGeneration = generation;
            newestHolder = holder.identity();
        }
        for (SimUser user : users) {
            if (user.volume() == volume(shard)) {
                user.claimed(shard, holder, generation);
            }
        }
    }

    /** The newest generation that a volume client was granted. */
    long newestGeneration() {
        return newestGeneration;
    }

    /** Whose it is. */
    String newestHolder() {
        return newestHolder;
    }

    /** A node's process is gone, and the clients in it. */
    void nodeDied(int node) {
        clients.forEach(client -> client.hostDied(node));
        List.copyOf(devices).forEach(device -> device.hostDied(node));
    }

    /** So many disks forgot something at once that acknowledged writes may be lost. */
    void majorityForgot() {
        oracles.values().forEach(ShardOracle::majorityForgot);
    }

    // ---- time ----

    /** Lets simulated time pass. */
    void run(long nanos) {
        long until = queue.now() + nanos;
        while (queue.runNext(until)) {
            // Every event checks for itself.
        }
        queue.advanceTo(until);
    }

    /** Lets time pass until something holds; false: it did not within {@code limitNanos}. */
    boolean runUntil(BooleanSupplier condition, long limitNanos) {
        long until = queue.now() + limitNanos;
        while (!condition.getAsBoolean()) {
            if (!queue.runNext(until)) {
                queue.advanceTo(until);
                return condition.getAsBoolean();
            }
        }
        return true;
    }

    // ---- questions ----

    /** The running node that leads and serves a shard, the newest if two believe it; 0: nobody. */
    int leader(ShardId shard) {
        int leader = 0;
        long newest = -1;
        for (SimNode node : nodes.values()) {
            if (node.isRunning()) {
                var status = node.replica(shard).status();
                if (status.role() == Role.LEADER && status.promised() > newest) {
                    newest = status.promised();
                    leader = node.number;
                }
            }
        }
        return leader;
    }

    /** Whether every replica runs, votes, and has applied everything that was ever committed. */
    boolean allEqual() {
        for (ShardId shard : shards) {
            long committed = oracle(shard).committed();
            for (SimNode node : nodes.values()) {
                if (!node.isRunning()
                        || node.replica(shard).status().standing() != Standing.VOTER
                        || node.replica(shard).status().applied() != committed
                        || node.replica(shard).status().last() != committed) {
                    return false;
                }
            }
        }
        return true;
    }

    /**
     * Blocks whose newest version a node holds, and another node in its map, too, both as they were
     * written; the newest last.
     */
    List<SimStorage.Place> copiedElsewhere(ShardId shard, SimNode node) {
        List<Map.Entry<SimStorage.Place, SimStorage.Cell>> found = new ArrayList<>();
        for (var own : node.store(shard).map().entrySet()) {
            if (isGood(shard, own.getKey(), own.getValue())
                    && nodes.values().stream()
                            .anyMatch(other ->
                                    other != node
                                            && hasGood(
                                                    other,
                                                    shard,
                                                    own.getKey(),
                                                    own.getValue().sequence()))) {
                found.add(own);
            }
        }
        found.sort(Comparator.comparingLong(one -> one.getValue().sequence()));
        return found.stream().map(Map.Entry::getKey).toList();
    }

    private boolean hasGood(SimNode node, ShardId shard, SimStorage.Place place, long sequence) {
        if (node.store(shard) instanceof JournalShard real) {
            return node.isUp() && real.hasGood(place.block(), sequence);
        }
        SimStorage.Cell cell = node.store(shard).map().get(place);
        return cell != null && cell.sequence() == sequence && isGood(shard, place, cell);
    }

    /** Whether it is a block that has the bytes that were written. */
    private boolean isGood(ShardId shard, SimStorage.Place place, SimStorage.Cell cell) {
        return cell.entry().kind() == EntryKind.WRITE
                && volume(shard)
                        .history
                        .sealed
                        .isIntact(
                                cell.entry().nonce(),
                                cell.entry().payload(),
                                (int) (place.block() - cell.entry().block()));
    }

    /** Whether any node has a good copy of the newest version of a block. */
    boolean hasGoodCopy(SimVolume volume, long block) {
        ShardId shard = volume.shardOf(block);
        SimStorage.Place place = new SimStorage.Place(SealedBlocks.LAYER, block);
        long newest = 0;
        for (SimNode node : nodes.values()) {
            if (node.isUp() || node.journal() == null) {
                newest =
                        Math.max(newest, node.store(shard).newestSequence(place.layer(), block, 1));
            }
        }
        long sequence = newest;
        return nodes.values().stream().anyMatch(node -> hasGood(node, shard, place, sequence));
    }

    /** Whether reads have failed on a node's disk, so that a leader may say so. */
    boolean wasEverUnreadable() {
        return nodes.values().stream()
                .map(SimNode::journal)
                .anyMatch(journal -> journal != null && journal.disk().wasEverUnreadable());
    }

    /** Whether what a node holds of a block, or held, may not be what was written. */
    boolean mayBeCorrupt(SimVolume volume, long block) {
        ShardId shard = volume.shardOf(block);
        return options.faults().rot()
                || nodes.values().stream()
                        .anyMatch(node ->
                                node.store(shard) instanceof JournalShard real
                                        && real.wasDoubtful(block));
    }

    /** Compares all replicas with each other and with the log, and checks the clients' history. */
    void checkEnd() {
        for (ShardId shard : shards) {
            byte[] state = null;
            for (SimNode node : nodes.values()) {
                SimJournal journal = node.journal();
                if (journal != null) {
                    journal.checkEnd();
                }
                // What a follower's disk has damaged is repaired when it leads, and is read.
                boolean mayBeDamaged =
                        (options.faults().rot() || options.storage().unreadable())
                                && (node.number != leader(shard) || node.wasRepairRefused());
                oracle(shard).checkMap(node.number, node.store(shard), mayBeDamaged);
                byte[] own = node.replica(shard).shardState();
                check(
                        state == null || Arrays.equals(state, own),
                        "replicas equal",
                        "node ",
                        node.number,
                        " has other sessions or claims than node 1");
                state = own;
            }
        }
        checkHistory();
    }

    /** Checks what clients asked and were answered so far. */
    void checkHistory() {
        shards.forEach(shard -> oracle(shard).checkHistory(options.blocks()));
    }
}
