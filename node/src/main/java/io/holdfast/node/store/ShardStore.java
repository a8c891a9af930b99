package io.holdfast.node.store;

import io.holdfast.node.port.Store.Owner;
import io.holdfast.node.replica.HardState;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.ShardId;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** What the store holds of one shard. Owned by the data loop. */
final class ShardStore {
    final ShardId id;
    final ShardMap map;
    final LogIndex log;
    HardState hardState;

    /** Null until the shard is opened. */
    @Nullable Owner owner;

    /**
     * Start of the shard's log as the last checkpoint, or a base taken over since, left it: what
     * counts while the owner is not there or not there yet.
     */
    long baseEpoch;

    long base;
    byte[] baseState;

    /** Newest log entry that was put into the map. */
    long mapThrough;

    /** Records before this place are of no interest. */
    long from;

    /** Log after the base, found at start; given to the owner. */
    List<Entry> recovered = new ArrayList<>();

    ShardStore(ShardId id, ShardMap map, ShardRow row) {
        this.id = id;
        this.map = map;
        hardState = row.hardState();
        baseEpoch = row.appliedEpoch();
        base = row.applied();
        baseState = row.shardState();
        mapThrough = row.applied();
        from = row.from();
        log = new LogIndex(base);
    }

    /** The {@code from} of {@link #row}, without its state. */
    long from(long end) {
        Owner replica = owner;
        long applied = replica == null ? base : Math.max(base, replica.applied());
        long next = log.place(applied + 1);
        return next == Place.NONE ? end : next;
    }

    /** Sequence up to which the map is applied for sure. */
    long applied() {
        Owner replica = owner;
        return replica == null ? base : Math.max(base, replica.applied());
    }

    /** What a checkpoint at journal end {@code end} keeps. */
    ShardRow row(long end) {
        Owner replica = owner;
        if (replica == null || replica.applied() < base) {
            return row(baseEpoch, base, baseState, end);
        }
        return row(replica.appliedEpoch(), replica.applied(), replica.shardState(), end);
    }

    private ShardRow row(long epoch, long applied, byte[] state, long end) {
        long next = log.place(applied + 1);
        Check.that(
                next != Place.NONE || applied >= log.last(),
                "the log is held from the applied point on",
                applied,
                log.first(),
                log.last());
        return new ShardRow(hardState, epoch, applied, next == Place.NONE ? end : next, state);
    }
}
