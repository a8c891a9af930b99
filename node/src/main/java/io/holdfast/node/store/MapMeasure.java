package io.holdfast.node.store;

import io.holdfast.node.store.ExtentPage.Extent;
import io.holdfast.node.store.MapWalk.PageId;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.ReplicaMessage.Cursor;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.LongConsumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Adds up what a follower's catch-up by extents has to move, so that people can be told how long it
 * takes. Pages that differ from the database are counted on the loop, all others by their rows, on
 * a thread. What changes in between may be missed or counted as it was: it is an estimate.
 */
final class MapMeasure {
    private static final Logger LOG = LoggerFactory.getLogger(MapMeasure.class);

    private final ShardStore shard;
    private final long since;
    private final MapWalk.Parts parts;
    private final Set<PageId> counted = new HashSet<>();
    private long bytes;

    MapMeasure(ShardStore shard, long since, MapWalk.Parts parts) {
        this.shard = shard;
        this.since = since;
        this.parts = parts;
    }

    /** On the loop; so is {@code done}. */
    void start(LongConsumer done) {
        Extent extent = new Extent();
        parts.map()
                .pages(
                        shard.map,
                        page -> {
                            if (page.isDirty() || page.flushing) {
                                counted.add(new PageId(page.layer, page.number));
                                for (int i = 0; i < page.size(); i++) {
                                    page.get(i, extent);
                                    add(extent);
                                }
                            }
                        });
        boolean rows = !shard.map.rowsAreStale;
        parts.thread()
                .execute(() -> {
                    if (rows && !addRows()) {
                        return;
                    }
                    tell(done);
                });
    }

    /** A database that cannot be read is found out, and dealt with, by the catch-up itself. */
    private boolean addRows() {
        try {
            parts.database()
                    .walk(
                            shard.id,
                            Cursor.START,
                            (layer, row) -> {
                                if (row.sequence > since
                                        && !counted.contains(
                                                new PageId(layer, row.start >> ExtentPage.SHIFT))) {
                                    add(row);
                                }
                                return !parts.ended().getAsBoolean();
                            });
            return true;
        } catch (DamagedMapException e) {
            LOG.debug("Cannot measure a catch-up of shard {}", shard.id, e);
            return false;
        }
    }

    private void add(Extent extent) {
        if (extent.sequence <= since) {
            return;
        }
        boolean zero = extent.place == Place.NONE;
        int entries = zero ? 1 : Math.ceilDiv(extent.count, Blocks.MAX_PER_ENTRY);
        bytes += (long) entries * Entry.HEADER_SIZE;
        bytes += zero ? 0 : (long) extent.count * Blocks.SEALED_SIZE;
    }

    private void tell(LongConsumer done) {
        try {
            parts.loop()
                    .execute(() -> {
                        if (!shard.map.dropped && !parts.ended().getAsBoolean()) {
                            done.accept(bytes);
                        }
                    });
        } catch (RejectedExecutionException e) {
            LOG.debug("The data loop has ended; nobody waits for a measure any more", e);
        }
    }
}
