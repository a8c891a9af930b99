package io.holdfast.node.runtime;

import io.holdfast.node.port.Store;
import io.holdfast.node.replica.Event;
import io.holdfast.node.replica.HardState;
import io.holdfast.node.replica.Limits;
import io.holdfast.node.replica.ReplicaOptions;
import io.holdfast.node.replica.Timing;
import io.holdfast.proto.catalogue.Catalogue;
import io.holdfast.proto.catalogue.Volume;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.ShardId;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps this node's replicas as the catalogue wants them: opens those that have a past here, makes
 * new ones, drops those of deleted volumes. Never drops on mere absence: a catalogue that does not
 * know a volume yet (an empty one after the loss of this node's catalogue, an old one) is told from
 * one that has deleted it by the numbers given out, which never repeat.
 *
 * <p>All methods on the data loop but {@link #newer}.
 */
public final class ReplicaKeeper {
    private static final Logger LOG = LoggerFactory.getLogger(ReplicaKeeper.class);

    private final DataLoop loop;
    private final Store store;
    private final int self;
    private final Timing timing;
    private final List<Consumer<Catalogue>> followers = new ArrayList<>();
    private final AtomicReference<@Nullable Catalogue> arrived = new AtomicReference<>();
    private final Set<ShardId> past;
    private Catalogue catalogue = Catalogue.EMPTY;
    private boolean working;

    /**
     * A keeper that has not seen a catalogue yet.
     *
     * @param self this node's number
     */
    public ReplicaKeeper(DataLoop loop, Store store, int self, Timing timing) {
        this.loop = loop;
        this.store = store;
        this.self = self;
        this.timing = timing;
        this.past = store.shards();
    }

    /** Calls {@code follower} on the data loop with each catalogue, before replicas follow it. */
    public void follow(Consumer<Catalogue> follower) {
        followers.add(follower);
    }

    /** The catalogue that replicas follow at the moment. */
    public Catalogue catalogue() {
        return catalogue;
    }

    /** A catalogue has arrived; older ones still waiting are skipped. Any thread. */
    public void newer(Catalogue newest) {
        if (arrived.getAndSet(newest) == null) {
            loop.thread().execute(this::take);
        }
    }

    private void take() {
        Catalogue newest = arrived.getAndSet(null);
        if (newest == null || newest.version() <= catalogue.version()) {
            return;
        }
        catalogue = newest;
        followers.forEach(follower -> follower.accept(newest));
        dropDeleted();
        if (!working) {
            addNext();
        }
    }

    private void dropDeleted() {
        List<ShardId> here = new ArrayList<>(loop.shards());
        here.addAll(past);
        for (ShardId shard : here) {
            if (shard.volume() < catalogue.nextVolume()
                    && catalogue.volume(shard.volume()).isEmpty()) {
                LOG.info("shard {}: volume deleted, replica dropped", shard);
                past.remove(shard);
                loop.drop(shard);
            }
        }
    }

    /**
     * One replica per task, as each may wait for a sync: heartbeats of the others go in between.
     */
    private void addNext() {
        working = false;
        if (loop.storeFailure() != null) {
            return; // this node goes on serving its clients from the other nodes' replicas
        }
        for (Volume volume : catalogue.volumes()) {
            for (Volume.Shard shard : volume.shards()) {
                if (shard.replicas().contains(self) && !loop.has(volume.shardId(shard.index()))) {
                    try {
                        add(volume, shard);
                    } catch (UncheckedIOException e) {
                        // A failed disk takes replicas out, not the node with its clients.
                        LOG.error("shard {}: no replica", volume.shardId(shard.index()), e);
                        return;
                    }
                    working = true;
                    loop.thread().execute(this::addNext);
                    return;
                }
            }
        }
    }

    private void add(Volume volume, Volume.Shard placed) {
        ShardId shard = volume.shardId(placed.index());
        ReplicaOptions options =
                new ReplicaOptions(
                        shard,
                        self,
                        placed.replicas(),
                        volume.layer(),
                        Math.ceilDiv(volume.sizeBytes(), Blocks.SIZE),
                        volume.durability() == Volume.Durability.SYNC,
                        volume.reads() == Volume.Reads.QUORUM,
                        volume.attach() == Volume.Attach.EXCLUSIVE,
                        timing,
                        Limits.DEFAULT,
                        loop.observer()::branchTaken);
        if (past.remove(shard)) {
            loop.add(options, owner -> store.open(shard, owner));
            LOG.info("shard {} of {}: replica opened", shard, volume.name());
        } else if (isNew(volume, placed)) {
            loop.add(options, owner -> store.create(shard, HardState.FRESH, owner));
            LOG.info("shard {} of {}: replica made", shard, volume.name());
        } else {
            loop.add(options, owner -> store.create(shard, HardState.FORGETFUL, owner));
            LOG.warn(
                    "shard {} of {}: no past here of a volume in use, replica made as learner",
                    shard,
                    volume.name());
        }
        if (placed.leader() == 0 && placed.replicas().getFirst() == self) {
            loop.tell(shard, new Event.Campaign());
        }
    }

    /**
     * Whether nobody can have written to the shard yet. Once it has had a leader, a replica without
     * a past may be one that has lost it: as a learner it costs nothing and the leader lets it vote
     * as soon as it holds everything.
     */
    private static boolean isNew(Volume volume, Volume.Shard placed) {
        return volume.state() == Volume.State.CREATING && placed.epoch() == 0;
    }
}
