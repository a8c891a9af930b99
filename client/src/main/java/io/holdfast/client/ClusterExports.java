package io.holdfast.client;

import io.holdfast.client.crypto.ClusterKey;
import io.holdfast.client.crypto.KeyException;
import io.holdfast.proto.catalogue.Catalogue;
import io.holdfast.proto.catalogue.Volume;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ShardId;
import io.netty.buffer.ByteBuf;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The cluster's READY volumes as exports. All connections of one client identity to one volume
 * share one {@link VolumeClient}, and with it one session and one claim; the last one to close
 * gives them up.
 *
 * <p>An exclusive volume that another client holds is offered read-only. Since people disconnect
 * from one node and connect to another at once, {@link #open} first waits up to a second for the
 * holder to let go; and while the holder's node cannot be reached, until its claim may be broken: a
 * client whose node has just died comes here. Without an answer from the leader the volume is
 * offered writable: the writes themselves will decide.
 *
 * <p>All calls on one thread, the one that the volume clients run on.
 */
public final class ClusterExports implements Exports {
    private static final Logger log = LoggerFactory.getLogger(ClusterExports.class);

    private static final long MS = 1_000_000;

    /** How long {@link #open} waits for another client to release the volume. */
    static final long RELEASE_NANOS = 1_000 * MS;

    /**
     * How long it waits while the holder's node cannot be reached: a little longer than it takes
     * the leader to give that node up.
     */
    static final long GONE_NANOS = 12_000 * MS;

    /** How often it asks meanwhile. */
    static final long POLL_NANOS = 100 * MS;

    /** How long it waits for each answer. */
    static final long ANSWER_NANOS = 2_000 * MS;

    /** How long {@link #shutdown} lets calls complete before it fails them. */
    static final long DRAIN_NANOS = 2_000 * MS;

    /** When {@link #shutdown} is done at the latest. */
    static final long SHUTDOWN_NANOS = 3_000 * MS;

    private record Key(int volume, ClientIdentity identity) {}

    private final int node;
    private final ShardLinks links;
    private final Timers timers;
    private final Supplier<Catalogue> catalogue;
    private final ClusterKey clusterKey;
    private final ClientEvents events;

    /** Usable clients by whom they are for. Never iterated. */
    private final Map<Key, Shared> shared = new HashMap<>();

    /** All clients that are not closed, by number, in order of number. */
    private final Map<Integer, Shared> byNumber = new LinkedHashMap<>();

    private int nextNumber = 1;
    private boolean stopping;
    private final List<Timers.Handle> alarms = new ArrayList<>();
    private @Nullable Runnable whenStopped;

    /**
     * Exports over one process's links.
     *
     * @param node this node's number; 0 when this process is no node
     * @param catalogue gives out the newest catalogue known here
     */
    public ClusterExports(
            int node,
            ShardLinks links,
            Timers timers,
            Supplier<Catalogue> catalogue,
            ClusterKey clusterKey,
            ClientEvents events) {
        this.node = node;
        this.links = links;
        this.timers = timers;
        this.catalogue = catalogue;
        this.clusterKey = clusterKey;
        this.events = events;
    }

    // ---- exports -----------------------------------------------------------------------------

    @Override
    public List<String> names(ClientIdentity client) {
        return catalogue.get().volumes().stream()
                .filter(volume -> volume.state() == Volume.State.READY)
                .map(Volume::name)
                .sorted()
                .toList();
    }

    @Override
    public void describe(String name, ClientIdentity client, Consumer<Optional<Description>> done) {
        Shared use = acquire(name, client);
        if (use == null) {
            done.accept(Optional.empty());
            return;
        }
        Volume volume = use.volume;
        long now = timers.nanoTime();
        askHolder(
                use,
                new Patience(now, now),
                readOnly -> {
                    release(use);
                    done.accept(Optional.of(new Description(name, volume.sizeBytes(), readOnly)));
                });
    }

    @Override
    public void open(String name, ClientIdentity client, Consumer<Optional<BlockDevice>> done) {
        Shared use = acquire(name, client);
        if (use == null) {
            done.accept(Optional.empty());
            return;
        }
        use.client.open();
        long now = timers.nanoTime();
        askHolder(
                use,
                new Patience(now + RELEASE_NANOS, now + GONE_NANOS),
                readOnly -> done.accept(Optional.of(new View(use, readOnly))));
    }

    /**
     * When to stop asking again.
     *
     * @param connectedNanos while the holder is there
     * @param lostNanos while its node cannot be reached
     */
    private record Patience(long connectedNanos, long lostNanos) {
        boolean endsWith(ClientReply.Holder answer, long nowNanos) {
            return nowNanos - (answer.connected() ? connectedNanos : lostNanos) >= 0;
        }
    }

    /** Finds out whether another client holds the volume. */
    private void askHolder(Shared use, Patience patience, Consumer<Boolean> readOnly) {
        if (use.volume.attach() == Volume.Attach.SHARED || use.client.isHolder()) {
            readOnly.accept(false);
            return;
        }
        use.client.askHolder(
                ANSWER_NANOS,
                answer -> {
                    if (answer == null
                            || answer.identity().isEmpty()
                            || answer.identity().equals(use.identity.name())) {
                        readOnly.accept(false);
                    } else if (patience.endsWith(answer, timers.nanoTime())) {
                        readOnly.accept(true);
                    } else {
                        timers.schedule(POLL_NANOS, () -> askHolder(use, patience, readOnly));
                    }
                });
    }

    // ---- sharing -----------------------------------------------------------------------------

    private @Nullable Shared acquire(String name, ClientIdentity identity) {
        Volume volume =
                catalogue
                        .get()
                        .volume(name)
                        .filter(found -> found.state() == Volume.State.READY)
                        .orElse(null);
        if (volume == null || stopping) {
            return null;
        }
        Key key = new Key(volume.number(), identity);
        Shared use = shared.get(key);
        if (use == null || use.client.isUnusable()) {
            use = create(volume, identity);
            if (use == null) {
                return null;
            }
            shared.put(key, use);
        }
        use.references++;
        return use;
    }

    private @Nullable Shared create(Volume volume, ClientIdentity identity) {
        int number = nextNumber++;
        try {
            VolumeClient client =
                    new VolumeClient(
                            number,
                            node,
                            volume,
                            identity,
                            clusterKey.unwrap(volume.keyId(), volume.wrappedKey()),
                            VolumeClient.Window.DEFAULT,
                            links,
                            timers,
                            events);
            Shared use = new Shared(number, volume, identity, client);
            byNumber.put(number, use);
            return use;
        } catch (KeyException e) {
            log.error("volume {} cannot be opened: {}", volume.name(), e.getMessage());
            return null;
        }
    }

    private void release(Shared use) {
        use.references--;
        if (use.references == 0) {
            close(use);
        }
    }

    private void close(Shared use) {
        shared.remove(new Key(use.volume.number(), use.identity), use);
        if (use.closing) {
            return;
        }
        use.closing = true;
        use.client.close(() -> {
            byNumber.remove(use.number);
            if (stopping && byNumber.isEmpty()) {
                stopped();
            }
        });
    }

    private static final class Shared {
        private final int number;
        private final Volume volume;
        private final ClientIdentity identity;
        private final VolumeClient client;
        private int references;
        private boolean closing;

        Shared(int number, Volume volume, ClientIdentity identity, VolumeClient client) {
            this.number = number;
            this.volume = volume;
            this.identity = identity;
            this.client = client;
        }
    }

    /** What one connection gets: its own mode and end, everything else is shared. */
    private final class View implements BlockDevice {
        private final Shared use;
        private final boolean readOnly;
        private boolean closed;

        View(Shared use, boolean readOnly) {
            this.use = use;
            this.readOnly = readOnly;
        }

        @Override
        public long sizeBytes() {
            return use.client.sizeBytes();
        }

        @Override
        public boolean readOnly() {
            return readOnly;
        }

        @Override
        public void read(long offset, ByteBuf target, Completion done) {
            if (isOpen(done)) {
                use.client.read(offset, target, done);
            }
        }

        @Override
        public void write(long offset, ByteBuf source, boolean fua, Completion done) {
            if (isOpen(done) && isWritable(done)) {
                use.client.write(offset, source, fua, done);
            }
        }

        @Override
        public void zero(long offset, long length, boolean punch, boolean fua, Completion done) {
            if (isOpen(done) && isWritable(done)) {
                use.client.zero(offset, length, punch, fua, done);
            }
        }

        @Override
        public void flush(Completion done) {
            if (isOpen(done)) {
                use.client.flush(done);
            }
        }

        private boolean isOpen(Completion done) {
            if (closed) {
                throw new IllegalStateException("call on a closed device");
            }
            if (use.closing) {
                done.done(Outcome.SHUTTING_DOWN);
            }
            return !use.closing;
        }

        private boolean isWritable(Completion done) {
            if (readOnly) {
                done.done(Outcome.NOT_PERMITTED);
            }
            return !readOnly;
        }

        @Override
        public void close() {
            if (!closed) {
                closed = true;
                release(use);
            }
        }
    }

    // ---- what the runtime tells --------------------------------------------------------------

    /** A reply for one of the clients here; replies for closed ones are ignored. */
    public void onReply(int from, ClientReply reply) {
        Shared use = byNumber.get(reply.client());
        if (use != null) {
            use.client.onReply(from, reply);
        }
    }

    /** A shard's leader became known, by whatever way; the newest epoch wins. */
    public void onLeader(ShardId shard, int leader, long epoch) {
        for (Shared use : List.copyOf(byNumber.values())) {
            if (use.volume.number() == shard.volume()) {
                use.client.onLeader(shard.index(), leader, epoch);
            }
        }
    }

    /** Messages can reach a node again. */
    public void onConnected(int reached) {
        for (Shared use : List.copyOf(byNumber.values())) {
            use.client.onConnected(reached);
        }
    }

    /** Messages can no longer reach a node; those on their way may be lost. */
    public void onDisconnected(int lost) {
        for (Shared use : List.copyOf(byNumber.values())) {
            use.client.onDisconnected(lost);
        }
    }

    /** A newer catalogue. The devices of a volume that is no longer in it fail from now on. */
    public void onCatalogue(Catalogue newer) {
        for (Shared use : List.copyOf(byNumber.values())) {
            newer.volume(use.volume.number())
                    .ifPresentOrElse(use.client::onVolume, use.client::volumeDeleted);
        }
    }

    /**
     * Offers nothing any more and gives up all claims and sessions. Calls under way may complete
     * for two seconds and fail then.
     *
     * @param done called once, after three seconds at most
     */
    public void shutdown(Runnable done) {
        stopping = true;
        whenStopped = done;
        for (Shared use : List.copyOf(byNumber.values())) {
            close(use);
        }
        if (byNumber.isEmpty()) {
            stopped();
            return;
        }
        alarms.add(
                timers.schedule(
                        DRAIN_NANOS,
                        () ->
                                List.copyOf(byNumber.values())
                                        .forEach(use -> use.client.shutDown())));
        alarms.add(timers.schedule(SHUTDOWN_NANOS, this::stopped));
    }

    private void stopped() {
        Runnable done = whenStopped;
        whenStopped = null;
        alarms.forEach(Timers.Handle::cancel);
        alarms.clear();
        if (done != null) {
            done.run();
        }
    }
}
