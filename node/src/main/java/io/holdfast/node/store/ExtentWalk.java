package io.holdfast.node.store;

import io.holdfast.node.port.Store.Extents;
import io.holdfast.node.store.ExtentPage.Extent;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.ReplicaMessage.Cursor;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One part of a walk over a shard's map, for a follower's catch-up. Three steps:
 *
 * <ol>
 *   <li>a pool thread reads rows of the database from the cursor on, up to a border between pages;
 *   <li>the loop puts the pages in memory, which are newer, in the place of their rows. No page
 *       leaves memory between the two ({@link ExtentMap#hold}): one that was changed when the walk
 *       began would otherwise be missed, were it written out and let go after its rows were read;
 *   <li>a pool thread reads the payloads and makes the entries.
 * </ol>
 */
final class ExtentWalk {
    private static final Logger LOG = LoggerFactory.getLogger(ExtentWalk.class);

    /** Most rows looked at in one part, so that a part without news ends, too. */
    static final int MAX_ROWS = 1 << 16;

    private static final byte[] NOTHING = new byte[0];

    /** An extent with its layer; start absolute. */
    private record Found(int layer, Extent extent) {}

    private record PageId(int layer, long number) {}

    private final ShardStore shard;
    private final long since;
    private final Cursor from;
    private final int maxBytes;
    private final Consumer<Extents> done;
    private final Parts parts;

    /**
     * What a walk works with.
     *
     * @param onDamage told on the loop when the database cannot be read
     */
    record Parts(
            ExtentMap map,
            MapDatabase database,
            SegmentTable segments,
            Journal journal,
            Executor pool,
            Executor loop,
            Consumer<Exception> onDamage) {}

    private List<Found> found = new ArrayList<>();
    private @Nullable Cursor stop;

    ExtentWalk(
            ShardStore shard,
            long since,
            Cursor from,
            int maxBytes,
            Consumer<Extents> done,
            Parts parts) {
        this.shard = shard;
        this.since = since;
        this.from = from;
        this.maxBytes = maxBytes;
        this.done = done;
        this.parts = parts;
    }

    /** On the loop. */
    void start() {
        parts.map.hold();
        boolean rows = !shard.map.rowsAreStale;
        parts.pool.execute(() -> {
            DamagedMapException damage = rows ? readRows() : null;
            onLoop(() -> merge(damage));
        });
    }

    private @Nullable DamagedMapException readRows() {
        PageId[] page = {new PageId(-1, -1)};
        long[] counted = {0, 0};
        try {
            parts.database.walk(
                    shard.id,
                    from,
                    (layer, row) -> {
                        long number = row.start >> ExtentPage.SHIFT;
                        if (page[0].number != number || page[0].layer != layer) {
                            if (counted[0] >= MAX_ROWS || counted[1] >= maxBytes) {
                                stop = new Cursor(layer, number << ExtentPage.SHIFT);
                                return false;
                            }
                            page[0] = new PageId(layer, number);
                        }
                        counted[0]++;
                        if (wanted(layer, row)) {
                            found.add(copy(layer, row));
                            counted[1] += bytes(row);
                        }
                        return true;
                    });
            return null;
        } catch (DamagedMapException e) {
            return e;
        }
    }

    private boolean wanted(int layer, Extent extent) {
        return extent.sequence > since
                && (layer > from.layer() || (layer == from.layer() && extent.end() > from.block()));
    }

    private static Found copy(int layer, Extent extent) {
        return new Found(layer, extent.kept());
    }

    private static long bytes(Extent extent) {
        return Entry.HEADER_SIZE
                + (extent.place == Place.NONE ? 0L : (long) extent.count * Blocks.SEALED_SIZE);
    }

    private void merge(@Nullable DamagedMapException damage) {
        parts.map.release();
        if (damage != null) {
            parts.onDamage.accept(damage);
            return;
        }
        // Some of it may have been appended in this very turn.
        parts.journal.write();
        if (shard.map.dropped || parts.journal.failed()) {
            return;
        }
        Set<PageId> inMemory = new HashSet<>();
        List<Found> newer = new ArrayList<>();
        parts.map.pages(shard.map, page -> takePage(page, inMemory, newer));
        found.removeIf(each ->
                inMemory.contains(new PageId(each.layer, each.extent.start >> ExtentPage.SHIFT)));
        found.addAll(newer);
        found.sort(
                Comparator.<Found>comparingInt(each -> each.layer)
                        .thenComparingLong(each -> each.extent.start));
        cut();
    }

    private void takePage(ExtentPage page, Set<PageId> inMemory, List<Found> newer) {
        Cursor end = stop;
        long first = page.firstBlock();
        if (page.layer < from.layer()
                || (page.layer == from.layer() && first + ExtentPage.BLOCKS <= from.block())) {
            return; // earlier parts had it; without this each part would look at all extents again
        }
        if (end != null
                && (page.layer > end.layer()
                        || (page.layer == end.layer() && first >= end.block()))) {
            return;
        }
        inMemory.add(new PageId(page.layer, page.number));
        Extent extent = new Extent();
        for (int i = 0; i < page.size(); i++) {
            page.get(i, extent);
            extent.start += first;
            if (wanted(page.layer, extent)) {
                newer.add(copy(page.layer, extent));
            }
        }
    }

    /** Cuts what was found into entries' sizes, and the part to about {@code maxBytes}. */
    private void cut() {
        List<Found> pieces = new ArrayList<>();
        long bytes = 0;
        Cursor next = stop;
        cutting:
        for (Found each : found) {
            long at = each.extent.start;
            if (each.layer == from.layer()) {
                at = Math.max(at, from.block());
            }
            int most = each.extent.place == Place.NONE ? ExtentPage.BLOCKS : Blocks.MAX_PER_ENTRY;
            while (at < each.extent.end()) {
                if (bytes >= maxBytes) {
                    next = new Cursor(each.layer, at);
                    break cutting;
                }
                Found piece = copy(each.layer, each.extent);
                piece.extent.clip(at, Math.min(each.extent.end(), at + most));
                pieces.add(piece);
                bytes += bytes(piece.extent);
                at = piece.extent.end();
            }
        }
        found = pieces;
        readPayloads(next);
    }

    private void readPayloads(@Nullable Cursor next) {
        List<SegmentTable.Handle> pinned = new ArrayList<>();
        try {
            for (Found each : found) {
                if (each.extent.place != Place.NONE) {
                    pinned.add(parts.segments.pin(Place.segment(each.extent.place)));
                }
            }
        } catch (IOException e) {
            failed(pinned, e);
            return;
        }
        parts.pool.execute(() -> {
            try {
                List<Entry> moved = entries(pinned);
                onLoop(() -> {
                    pinned.forEach(parts.segments::unpin);
                    done.accept(new Extents(moved, next == null ? from : next, next == null));
                });
            } catch (IOException e) {
                onLoop(() -> failed(pinned, e));
            }
        });
    }

    /** The part is offered again: the follower asks for it once more, or another replica. */
    private void failed(List<SegmentTable.Handle> pinned, IOException cause) {
        LOG.error("Could not read extents of shard {} from the journal", shard.id, cause);
        pinned.forEach(parts.segments::unpin);
        done.accept(new Extents(List.of(), from, false));
    }

    private List<Entry> entries(List<SegmentTable.Handle> pinned) throws IOException {
        List<Entry> moved = new ArrayList<>(found.size());
        int handle = 0;
        for (Found each : found) {
            Extent extent = each.extent;
            byte[] payload = NOTHING;
            if (extent.place != Place.NONE) {
                payload = new byte[extent.count * Blocks.SEALED_SIZE];
                pinned.get(handle++).read(payload, Place.offset(extent.place));
            }
            moved.add(extent.moved(shard.id, each.layer, payload));
        }
        return moved;
    }

    private void onLoop(Runnable task) {
        try {
            parts.loop.execute(task);
        } catch (RejectedExecutionException e) {
            LOG.debug("The data loop has ended; nobody waits for extents any more", e);
        }
    }
}
