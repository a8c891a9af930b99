package io.holdfast.node.store;

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
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One part of a walk over a shard's map: for a follower's catch-up, or a scrub. Three steps:
 *
 * <ol>
 *   <li>a pool thread reads rows of the database from the cursor on, up to a border between pages;
 *   <li>the loop puts the pages in memory, which are newer, in the place of their rows. No page
 *       leaves memory between the two ({@link ExtentMap#hold}): one that was changed when the walk
 *       began would otherwise be missed, were it written out and let go after its rows were read.
 *       So what is found is the map as it is at this moment;
 *   <li>a thread reads the blocks, whose segments are pinned meanwhile, and makes of them what the
 *       walk is for.
 * </ol>
 */
final class MapWalk {
    private static final Logger LOG = LoggerFactory.getLogger(MapWalk.class);

    /** Most rows looked at in one part, so that a part without news ends, too. */
    static final int MAX_ROWS = 1 << 16;

    /**
     * A piece of an extent, all from one record, with its layer. Start absolute; at most {@link
     * Blocks#MAX_PER_ENTRY} blocks unless of zeroes.
     */
    record Piece(int layer, Extent extent) {
        boolean isZero() {
            return extent.place == Place.NONE;
        }
    }

    record PageId(int layer, long number) {}

    /**
     * Which part of a map.
     *
     * @param since only extents with a newer sequence
     * @param to where it ends at the latest; null: with the map
     * @param maxBytes of blocks, about
     */
    record Range(long since, Cursor from, @Nullable Cursor to, int maxBytes) {
        private boolean isBeyond(int layer, long block) {
            return to != null && isAtOrAfter(layer, block, to);
        }
    }

    private static boolean isAtOrAfter(int layer, long block, Cursor place) {
        return layer > place.layer() || (layer == place.layer() && block >= place.block());
    }

    /**
     * What the walk is for. All methods on the loop but {@link #read}.
     *
     * @param <R> what is made of the pieces
     */
    interface Purpose<R> {
        /** The pieces are known: the moment to note what belongs to the map as it is now. */
        default void found() {}

        /**
         * Reads blocks of the pieces, on the walk's thread.
         *
         * @param files the segment of each piece, null: of zeroes, or it cannot be opened
         */
        R read(List<Piece> pieces, List<SegmentTable.@Nullable Handle> files);

        /**
         * The part is read.
         *
         * @param next where the walk goes on; null: everything was seen
         */
        void done(R result, @Nullable Cursor next);

        /** The shard was dropped, or the store has failed. */
        void gone();
    }

    /**
     * What a walk works with.
     *
     * @param thread reads blocks
     * @param ended whether the store has failed or is closed
     * @param onDamage told on the loop when the database cannot be read
     */
    record Parts(
            ExtentMap map,
            MapDatabase database,
            SegmentTable segments,
            Journal journal,
            Executor thread,
            Executor loop,
            BooleanSupplier ended,
            Consumer<Exception> onDamage) {}

    private final ShardStore shard;
    private final Range range;
    private final Parts parts;
    private List<Piece> found = new ArrayList<>();
    private @Nullable Cursor stop;

    MapWalk(ShardStore shard, Range range, Parts parts) {
        this.shard = shard;
        this.range = range;
        this.parts = parts;
    }

    /** On the loop. */
    void start(Purpose<?> purpose) {
        parts.map.hold();
        boolean rows = !shard.map.rowsAreStale;
        parts.thread.execute(() -> {
            DamagedMapException damage = rows ? readRows() : null;
            onLoop(() -> merge(damage, purpose));
        });
    }

    private @Nullable DamagedMapException readRows() {
        PageId[] page = {new PageId(-1, -1)};
        long[] counted = {0, 0};
        try {
            parts.database.walk(
                    shard.id,
                    range.from,
                    (layer, row) -> {
                        if (range.isBeyond(layer, row.start)) {
                            return false;
                        }
                        long number = row.start >> ExtentPage.SHIFT;
                        if (page[0].number != number || page[0].layer != layer) {
                            if (counted[0] >= MAX_ROWS || counted[1] >= range.maxBytes) {
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
        return extent.sequence > range.since
                && !range.isBeyond(layer, extent.start)
                && isAtOrAfter(layer, extent.end() - 1, range.from);
    }

    private static Piece copy(int layer, Extent extent) {
        return new Piece(layer, extent.kept());
    }

    private static long bytes(Extent extent) {
        return Entry.HEADER_SIZE
                + (extent.place == Place.NONE ? 0L : (long) extent.count * Blocks.SEALED_SIZE);
    }

    private <R> void merge(@Nullable DamagedMapException damage, Purpose<R> purpose) {
        parts.map.release();
        if (damage != null) {
            parts.onDamage.accept(damage);
        }
        if (!parts.ended.getAsBoolean()) {
            // Some of it may have been appended in this very turn.
            parts.journal.write();
        }
        if (shard.map.dropped || parts.ended.getAsBoolean()) {
            purpose.gone();
            return;
        }
        Set<PageId> inMemory = new HashSet<>();
        List<Piece> newer = new ArrayList<>();
        takePages(inMemory, newer);
        Cursor end = stop;
        found.removeIf(each ->
                inMemory.contains(new PageId(each.layer, each.extent.start >> ExtentPage.SHIFT))
                        || (end != null && isAtOrAfter(each.layer, each.extent.start, end)));
        found.addAll(newer);
        found.sort(
                Comparator.<Piece>comparingInt(each -> each.layer)
                        .thenComparingLong(each -> each.extent.start));
        Cursor next = cut();
        purpose.found();
        read(purpose, next);
    }

    /**
     * Takes pages in memory until the part is full: all that differ from the database may lie
     * behind the cursor, and copying them for each part anew would hold up the loop.
     */
    private void takePages(Set<PageId> inMemory, List<Piece> newer) {
        List<ExtentPage> pages = new ArrayList<>();
        parts.map.pages(
                shard.map,
                page -> {
                    if (isInRange(page)) {
                        pages.add(page);
                    }
                });
        pages.sort(
                Comparator.<ExtentPage>comparingInt(page -> page.layer)
                        .thenComparingLong(page -> page.number));
        long bytes = 0;
        for (ExtentPage page : pages) {
            if (bytes >= range.maxBytes) {
                stop = new Cursor(page.layer, page.firstBlock());
                return;
            }
            inMemory.add(new PageId(page.layer, page.number));
            bytes += takePage(page, newer);
        }
    }

    private boolean isInRange(ExtentPage page) {
        long first = page.firstBlock();
        Cursor end = stop;
        // Earlier parts had what is before the cursor.
        return isAtOrAfter(page.layer, first + ExtentPage.BLOCKS - 1, range.from)
                && !range.isBeyond(page.layer, first)
                && (end == null || !isAtOrAfter(page.layer, first, end));
    }

    private long takePage(ExtentPage page, List<Piece> newer) {
        long bytes = 0;
        Extent extent = new Extent();
        for (int i = 0; i < page.size(); i++) {
            page.get(i, extent);
            extent.start += page.firstBlock();
            if (wanted(page.layer, extent)) {
                newer.add(copy(page.layer, extent));
                bytes += bytes(extent);
            }
        }
        return bytes;
    }

    /**
     * Cuts what was found into pieces, and the part to about the bytes wanted.
     *
     * @return where the walk goes on, null: it is done
     */
    private @Nullable Cursor cut() {
        List<Piece> pieces = new ArrayList<>();
        long bytes = 0;
        Cursor to = range.to;
        for (Piece each : found) {
            long at = each.extent.start;
            long end = each.extent.end();
            if (each.layer == range.from.layer()) {
                at = Math.max(at, range.from.block());
            }
            if (to != null && each.layer == to.layer()) {
                end = Math.min(end, to.block());
            }
            int most = each.isZero() ? ExtentPage.BLOCKS : Blocks.MAX_PER_ENTRY;
            while (at < end) {
                if (bytes >= range.maxBytes) {
                    found = pieces;
                    return new Cursor(each.layer, at);
                }
                Piece piece = copy(each.layer, each.extent);
                piece.extent.clip(at, Math.min(end, at + most));
                pieces.add(piece);
                bytes += bytes(piece.extent);
                at = piece.extent.end();
            }
        }
        found = pieces;
        return stop;
    }

    private <R> void read(Purpose<R> purpose, @Nullable Cursor next) {
        List<SegmentTable.@Nullable Handle> files = new ArrayList<>(found.size());
        for (Piece each : found) {
            files.add(each.isZero() ? null : pin(each.extent.place));
        }
        parts.thread.execute(() -> {
            R result = purpose.read(found, files);
            onLoop(() -> {
                for (SegmentTable.Handle file : files) {
                    if (file != null) {
                        parts.segments.unpin(file);
                    }
                }
                purpose.done(result, next);
            });
        });
    }

    private SegmentTable.@Nullable Handle pin(long place) {
        try {
            return parts.segments.pin(Place.segment(place));
        } catch (IOException e) {
            LOG.error("Cannot open a segment of shard {}", shard.id, e);
            return null;
        }
    }

    private void onLoop(Runnable task) {
        try {
            parts.loop.execute(task);
        } catch (RejectedExecutionException e) {
            LOG.debug("The data loop has ended; nobody waits for extents any more", e);
        }
    }
}
