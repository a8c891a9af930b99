package io.holdfast.client;

import io.holdfast.client.crypto.ClusterKey;
import io.holdfast.client.crypto.VolumeKey;
import io.holdfast.proto.catalogue.Catalogue;
import io.holdfast.proto.catalogue.Volume;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ClientReply.Refusal;
import io.holdfast.proto.peer.ClientRequest;
import io.holdfast.proto.peer.ShardId;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.PriorityQueue;
import java.util.Random;
import java.util.Set;
import java.util.function.BiConsumer;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;

/**
 * Three nodes, one volume, a clock turned by hand and a network that loses, repeats and overtakes
 * as a seed says. One queue of events in order of (time, arrival), so that a seed is a run.
 */
final class ModelCluster implements Timers {
    static final long MS = 1_000_000;
    static final List<Integer> NODES = List.of(1, 2, 3);

    /** One process: where replies go, and the links it sees. */
    class Host implements ShardLinks {
        BiConsumer<Integer, ClientReply> receiver = (from, reply) -> {};

        @Override
        public void send(int node, ClientRequest request) {
            sent.add(request);
            trace = trace * 31 + now * 7 + request.request();
            if (drop.test(request)) {
                return;
            }
            for (int copies = copies(); copies > 0; copies--) {
                later(delay(), () -> arrive(node, request));
            }
        }

        private void arrive(int node, ClientRequest request) {
            if (down.contains(node)) {
                return;
            }
            ClientReply reply = answer(node, request);
            for (int copies = copies(); copies > 0; copies--) {
                later(
                        delay(),
                        () -> {
                            if (!down.contains(node)) {
                                receiver.accept(node, reply);
                            }
                        });
            }
        }

        @Override
        public boolean connected(int node) {
            return !down.contains(node);
        }
    }

    private record Event(long at, long order, Runnable task, boolean[] cancelled) {}

    final ClusterKey clusterKey = new ClusterKey(new byte[32]);
    final VolumeKey key;
    Volume volume;
    final List<ModelShard> shards = new ArrayList<>();
    final int[] leaders;
    final long[] epochs;
    final Set<Integer> down = new HashSet<>();
    final List<ClientRequest> sent = new ArrayList<>();
    private final PriorityQueue<Event> events =
            new PriorityQueue<>((a, b) ->
                    a.at != b.at ? Long.compare(a.at, b.at) : Long.compare(a.order, b.order));
    private final Random network;
    private long order;
    long now = 5_000_000_000L;
    long trace;
    double loss;
    double duplication;
    long maxDelay = MS;
    double busy;
    Predicate<ClientRequest> drop = request -> false;

    ModelCluster(long seed, int shardCount, Volume.Attach attach, int timeoutSeconds) {
        network = new Random(seed);
        byte[] keyBytes = new byte[32];
        network.nextBytes(keyBytes);
        key = new VolumeKey(1, keyBytes);
        leaders = new int[shardCount];
        epochs = new long[shardCount];
        int[] sessions = new int[1];
        List<Volume.Shard> placed = new ArrayList<>();
        for (int i = 0; i < shardCount; i++) {
            leaders[i] = NODES.get(i % NODES.size());
            epochs[i] = 1;
            shards.add(
                    new ModelShard(new ShardId(7, i), attach == Volume.Attach.EXCLUSIVE, sessions));
            placed.add(new Volume.Shard(i, NODES, i % 2 == 0 ? leaders[i] : 0, i % 2 == 0 ? 1 : 0));
        }
        volume =
                new Volume(
                        7,
                        "vol",
                        96 * 4096L,
                        8 * 4096L,
                        Volume.Durability.FLUSH,
                        attach,
                        Volume.Reads.LEASE,
                        timeoutSeconds,
                        Volume.State.READY,
                        1,
                        1,
                        clusterKey.wrap(key),
                        placed);
    }

    int sessionsGranted() {
        return shards.getFirst().sessionsGranted[0];
    }

    Catalogue catalogue() {
        return new Catalogue(1, 8, List.of(volume));
    }

    /** A client in a process of its own. */
    VolumeClient client(int number, String identity) {
        return client(number, identity, ClientEvents.NONE);
    }

    VolumeClient client(int number, String identity, ClientEvents observer) {
        Host process = new Host();
        VolumeClient client =
                new VolumeClient(
                        number,
                        0,
                        volume,
                        new ClientIdentity(identity),
                        key,
                        VolumeClient.Window.DEFAULT,
                        process,
                        this,
                        observer);
        process.receiver = client::onReply;
        return client;
    }

    private ClientReply answer(int node, ClientRequest request) {
        int index = request.shard().index();
        if (leaders[index] != node) {
            return refuse(request, Refusal.NOT_LEADER, leaders[index], epochs[index]);
        }
        if (network.nextDouble() < busy) {
            return refuse(request, Refusal.BUSY, 0, 0);
        }
        return shards.get(index).decide(node, request);
    }

    private static ClientReply refuse(ClientRequest request, Refusal why, int leader, long epoch) {
        return new ClientReply.Refused(
                request.shard(), request.client(), request.request(), why, leader, epoch, "");
    }

    /** Moves a shard's leadership; 0: nobody leads for now. */
    void lead(int shard, int node) {
        leaders[shard] = node;
        epochs[shard]++;
    }

    private int copies() {
        double drawn = network.nextDouble();
        return drawn < loss ? 0 : drawn < loss + duplication ? 2 : 1;
    }

    private long delay() {
        // Most messages are quick, some are slow enough to be overtaken by seconds.
        return network.nextInt(20) == 0
                ? network.nextLong(maxDelay * 20 + 1)
                : network.nextLong(maxDelay + 1);
    }

    void heal() {
        loss = 0;
        duplication = 0;
        busy = 0;
        maxDelay = MS;
        drop = request -> false;
        down.clear();
        for (int i = 0; i < leaders.length; i++) {
            if (leaders[i] == 0) {
                lead(i, 1 + i % 3);
            }
        }
    }

    @Override
    public long nanoTime() {
        return now;
    }

    @Override
    public Handle schedule(long delayNanos, Runnable task) {
        boolean[] cancelled = new boolean[1];
        events.add(new Event(now + delayNanos, order++, task, cancelled));
        return () -> cancelled[0] = true;
    }

    private void later(long delayNanos, Runnable task) {
        schedule(delayNanos, task);
    }

    /** Runs one event; false: there is none. */
    boolean step() {
        Event event = events.poll();
        if (event == null) {
            return false;
        }
        now = Math.max(now, event.at);
        if (!event.cancelled[0]) {
            event.task.run();
        }
        return true;
    }

    /** Runs events until a condition holds; fails when it does not within the given time. */
    void runUntil(BooleanSupplier condition, long withinMillis) {
        long end = now + withinMillis * MS;
        while (!condition.getAsBoolean()) {
            Event next = events.peek();
            if (next == null || next.at > end) {
                throw new AssertionError("not within " + withinMillis + " ms");
            }
            step();
        }
    }

    /** Lets time pass. */
    void pass(long millis) {
        long end = now + millis * MS;
        Event next = events.peek();
        while (next != null && next.at <= end) {
            step();
            next = events.peek();
        }
        now = end;
    }
}
