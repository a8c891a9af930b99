package io.holdfast.node.runtime;

import io.holdfast.client.ShardLinks;
import io.holdfast.node.port.PeerLinks;
import io.holdfast.node.replica.Timing;
import io.holdfast.node.store.JournalStore;
import io.holdfast.node.store.StoreOptions;
import io.holdfast.proto.catalogue.Catalogue;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ClientRequest;
import io.holdfast.proto.peer.ShardId;
import io.netty.channel.EventLoop;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/** One node's runtime over a real store and a network in memory. */
public final class TestNode {
    private static final long LOOK_NANOS = 2_000_000;
    private static final int PATIENCE_SECONDS = 60;

    /** Generous, since tests run on machines with other work. */
    public static final Timing TIMING = scaled(Timing.DEFAULT, 5);

    public final int number;
    public final DataThread thread;
    public final JournalStore store;
    public final DataLoop loop;
    public final ReplicaKeeper keeper;

    /** Everything that the node's clients were told, in order. */
    public final List<ClientReply> replies = new ArrayList<>();

    private final AtomicReference<@Nullable Throwable> broken;
    private @Nullable ShardLinks links;
    private boolean sending;

    /** Runs when a reply arrives. */
    @Nullable Runnable onReply;

    public TestNode(int number, List<Integer> nodes, Path directory, EventLoop eventLoop)
            throws IOException {
        this(number, nodes, directory, eventLoop, new MemoryNetwork());
    }

    /** A node that shares a network in memory with others. */
    public TestNode(
            int number,
            List<Integer> nodes,
            Path directory,
            EventLoop eventLoop,
            MemoryNetwork network)
            throws IOException {
        this(
                number,
                nodes,
                directory,
                eventLoop,
                network,
                new DataLoop.CatchUpRates(1L << 30, 1L << 30),
                RuntimeObserver.NONE);
    }

    TestNode(
            int number,
            List<Integer> nodes,
            Path directory,
            EventLoop eventLoop,
            MemoryNetwork network,
            DataLoop.CatchUpRates catchUpRates,
            RuntimeObserver observer)
            throws IOException {
        this.number = number;
        this.broken = new AtomicReference<>();
        thread = new DataThread(eventLoop, broken::set);
        store =
                new JournalStore(
                        directory,
                        new StoreOptions(4 << 20, 16 << 20, 1 << 20, 1 << 20, 1, "boot"),
                        thread);
        loop =
                new DataLoop(
                        thread,
                        number,
                        nodes,
                        store,
                        TIMING,
                        catchUpRates,
                        observer,
                        new DataLoop.Parts() {
                            @Override
                            public PeerLinks links(PeerLinks.Receiver receiver) {
                                return network.links(number, thread, receiver);
                            }

                            @Override
                            public LocalClients clients(ShardLinks made) {
                                links = made;
                                return new Clients();
                            }
                        });
        keeper = new ReplicaKeeper(loop, store, number, TIMING);
        loop.start(Map::of);
    }

    private static Timing scaled(Timing timing, int by) {
        return new Timing(
                timing.tickNanos(),
                timing.heartbeatNanos() * by,
                timing.silenceNanos() * by,
                timing.pausedNanos() * by,
                timing.staggerNanos() * by,
                timing.leaseNanos() * by,
                timing.guardNanos() * by);
    }

    private final class Clients implements LocalClients {
        @Override
        public void onReply(int from, ClientReply reply) {
            if (sending) {
                throw new IllegalStateException("a reply inside its own request's call");
            }
            replies.add(reply);
            if (onReply != null) {
                onReply.run();
            }
        }

        @Override
        public void onLeader(ShardId shard, int leader, long epoch) {}

        @Override
        public void onConnected(int node) {}

        @Override
        public void onDisconnected(int node) {}
    }

    /** Sends requests in one burst; on the loop. */
    public void send(int to, List<ClientRequest> requests) {
        sending = true;
        requests.forEach(request -> Objects.requireNonNull(links).send(to, request));
        sending = false;
    }

    /** Waits until the loop sees something. */
    public void await(String what, BooleanSupplier seen) throws Exception {
        CompletableFuture<Void> done = new CompletableFuture<>();
        thread.execute(() -> look(seen, done));
        try {
            done.get(PATIENCE_SECONDS, TimeUnit.SECONDS);
        } catch (TimeoutException e) {
            throw new AssertionError("not seen in time: " + what + "; " + loopState(), e);
        }
        if (broken.get() != null) {
            throw new AssertionError("the data thread broke", broken.get());
        }
    }

    private String loopState() throws Exception {
        return thread.submit(() -> loop.replicas() + " " + replies).get(1, TimeUnit.SECONDS);
    }

    private void look(BooleanSupplier seen, CompletableFuture<Void> done) {
        if (broken.get() != null || seen.getAsBoolean()) {
            done.complete(null);
        } else if (!done.isDone()) {
            thread.schedule(LOOK_NANOS, () -> look(seen, done));
        }
    }

    /** Runs something on the loop and waits for it. */
    public void run(Runnable task) throws Exception {
        thread.submit(
                        () -> {
                            task.run();
                            return true;
                        })
                .get(PATIENCE_SECONDS, TimeUnit.SECONDS);
    }

    /** As if the disk had failed. */
    public void failStore(Exception cause) throws Exception {
        run(() -> loop.storeFailed(cause));
    }

    /** Whether this node leads the shard. */
    public boolean leads(ShardId shard) {
        return loop.replicas().stream()
                .anyMatch(r -> r.shard().equals(shard) && r.status().leader() == number);
    }

    /** Gives the node a catalogue. */
    public void show(Catalogue catalogue) {
        keeper.newer(catalogue);
    }

    /** Stops replicas and store; the directory can be opened again. */
    public void stop() throws Exception {
        run(() -> {
            loop.stop();
            store.close();
        });
    }
}
