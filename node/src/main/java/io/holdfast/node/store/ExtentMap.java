package io.holdfast.node.store;

import io.holdfast.node.store.ExtentPage.Extent;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.EntryKind;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * From (shard, layer, block) to where the block's bytes are. Owned by the data loop.
 *
 * <p>Pages are read from the database when first touched and stay in memory while they differ from
 * it: changed since the last checkpoint, or captured by one that is not durable yet. Other pages
 * are let go, least recently used first, when all together exceed the cache's size. Pages that
 * differ are bounded by checkpoints: one is due when they take half of the cache ({@link
 * #checkpointDue}).
 *
 * <p>So a page that is not in memory equals the database, and start-up reads no pages.
 */
final class ExtentMap {
    private final MapDatabase database;
    private final long cacheBytes;

    /** Pages of dropped shards let go in one step. */
    private static final int DROP_PAGES = 1024;

    private final ExtentPage.Scratch scratch = new ExtentPage.Scratch();
    private final Extent carrier = new Extent();

    private long bytes;
    private long dirtyBytes;
    private int holds;
    private List<ExtentPage> dirty = new ArrayList<>();
    private @Nullable ExtentPage newest;
    private @Nullable ExtentPage oldest;
    private @Nullable ExtentPage recent;

    /** Pages of dropped shards that are still in memory. */
    private final ArrayDeque<Iterator<ExtentPage>> dropped = new ArrayDeque<>();

    ExtentMap(MapDatabase database, long cacheBytes) {
        this.database = database;
        this.cacheBytes = cacheBytes;
    }

    /** Takes part of the map. The extent is reused: copy what is kept. Starts are absolute. */
    interface Visitor {
        void extent(Extent extent);
    }

    /** Puts a WRITE or ZERO entry that stands at {@code place}; other kinds change nothing. */
    void put(ShardMap shard, Entry entry, long place) {
        if (entry.kind() != EntryKind.WRITE && entry.kind() != EntryKind.ZERO) {
            return;
        }
        boolean zero = entry.kind() == EntryKind.ZERO;
        long at = entry.block();
        long end = at + entry.count();
        while (at < end) {
            ExtentPage page = page(shard, entry.layer(), at >> ExtentPage.SHIFT);
            long to = Math.min(end, page.firstBlock() + ExtentPage.BLOCKS);
            long skipped = at - entry.block();
            carrier.start = at - page.firstBlock();
            carrier.count = (int) (to - at);
            carrier.sequence = entry.sequence();
            carrier.epoch = entry.epoch();
            carrier.trim = zero && entry.isTrim();
            carrier.place =
                    zero ? Place.NONE : place + Entry.HEADER_SIZE + skipped * Blocks.SEALED_SIZE;
            carrier.keyId = zero ? 0 : entry.nonce().keyId();
            carrier.nonceSession = zero ? 0 : entry.nonce().session();
            carrier.nonceCounter = zero ? 0 : entry.nonce().counter() + skipped;
            put(page);
            at = to;
        }
        evict();
    }

    private void put(ExtentPage page) {
        int before = page.bytes();
        boolean wasDirty = page.isDirty();
        page.put(carrier, scratch);
        int grown = page.bytes() - before;
        bytes += grown;
        if (wasDirty) {
            dirtyBytes += grown;
        } else if (page.isDirty()) {
            unlist(page);
            dirty.add(page);
            dirtyBytes += page.bytes();
        }
    }

    /** Newest sequence in the range, 0: none. */
    long newestSequence(ShardMap shard, int layer, long block, int count) {
        long newestFound = 0;
        long at = block;
        long end = block + count;
        while (at < end) {
            ExtentPage page = page(shard, layer, at >> ExtentPage.SHIFT);
            long to = Math.min(end, page.firstBlock() + ExtentPage.BLOCKS);
            int index = page.find((int) (at - page.firstBlock()));
            for (; index < page.size(); index++) {
                page.get(index, carrier);
                if (page.firstBlock() + carrier.start >= to) {
                    break;
                }
                newestFound = Math.max(newestFound, carrier.sequence);
            }
            at = to;
        }
        evict();
        return newestFound;
    }

    /** The extents in a range, in order, clipped to it; gaps were never written. */
    void read(ShardMap shard, int layer, long block, int count, Visitor visitor) {
        long at = block;
        long end = block + count;
        while (at < end) {
            ExtentPage page = page(shard, layer, at >> ExtentPage.SHIFT);
            long to = Math.min(end, page.firstBlock() + ExtentPage.BLOCKS);
            int index = page.find((int) (at - page.firstBlock()));
            for (; index < page.size(); index++) {
                page.get(index, carrier);
                carrier.start += page.firstBlock();
                if (carrier.start >= to) {
                    break;
                }
                carrier.clip(Math.max(carrier.start, at), Math.min(carrier.end(), to));
                visitor.extent(carrier);
            }
            at = to;
        }
        evict();
    }

    private ExtentPage page(ShardMap shard, int layer, long number) {
        ExtentPage last = recent;
        if (last != null && last.owner == shard && last.number == number && last.layer == layer) {
            return last;
        }
        ExtentPage page = shard.page(layer, number);
        if (page == null) {
            page = load(shard, layer, number);
        } else if (page.listed && page != newest) {
            unlist(page);
            list(page);
        }
        recent = page;
        return page;
    }

    private ExtentPage load(ShardMap shard, int layer, long number) {
        ExtentPage page = new ExtentPage(shard, layer, number);
        if (!shard.rowsAreStale) {
            database.page(shard.shard, layer, number, page::load);
        }
        shard.add(page);
        list(page);
        bytes += page.bytes();
        return page;
    }

    private void list(ExtentPage page) {
        page.listed = true;
        page.newer = null;
        page.older = newest;
        if (newest == null) {
            oldest = page;
        } else {
            newest.newer = page;
        }
        newest = page;
    }

    private void unlist(ExtentPage page) {
        if (!page.listed) {
            return;
        }
        page.listed = false;
        ExtentPage newer = page.newer;
        ExtentPage older = page.older;
        if (newer == null) {
            newest = older;
        } else {
            newer.older = older;
        }
        if (older == null) {
            oldest = newer;
        } else {
            older.newer = newer;
        }
        page.newer = null;
        page.older = null;
    }

    private void evict() {
        while (bytes > cacheBytes && holds == 0 && oldest != null) {
            forget(oldest);
        }
    }

    private void forget(ExtentPage page) {
        unlist(page);
        bytes -= page.bytes();
        if (page.owner.dropped) {
            // Its shard's pages are being walked over.
            page.empty();
        } else {
            page.owner.remove(page);
        }
        if (recent == page) {
            recent = null;
        }
    }

    /** No page leaves memory until {@link #release}: somebody compares it with the database. */
    void hold() {
        holds++;
    }

    void release() {
        holds--;
        evict();
    }

    /** Bytes of the pages in memory, an estimate. */
    long bytes() {
        return bytes;
    }

    /** Whether pages that wait for a checkpoint take too much of the memory. */
    boolean checkpointDue() {
        return dirtyBytes > cacheBytes / 2;
    }

    /** Takes what changed since the last capture. */
    List<ExtentPage> capture(ExtentPage.RowSink sink) {
        List<ExtentPage> captured = dirty;
        dirty = new ArrayList<>();
        dirtyBytes = 0;
        captured.removeIf(page -> page.owner.dropped);
        for (ExtentPage page : captured) {
            int before = page.bytes();
            page.capture(sink, carrier);
            bytes += page.bytes() - before;
        }
        return captured;
    }

    /** What was captured is in the database now. */
    void captured(List<ExtentPage> pages) {
        for (ExtentPage page : pages) {
            page.flushing = false;
            if (!page.isDirty() && !page.owner.dropped) {
                list(page);
            }
        }
        evict();
    }

    /**
     * The shard is gone. Its pages go with {@link #forgetDropped}, its rows are the database's
     * affair.
     */
    void drop(ShardMap shard) {
        shard.dropped = true;
        shard.usage.drop();
        dropped.add(shard.iterator());
        recent = null;
    }

    /** Whether pages of dropped shards are still in memory. */
    boolean holdsDropped() {
        return !dropped.isEmpty();
    }

    /**
     * Lets go of some pages of dropped shards; changed ones count as such until the next capture.
     */
    void forgetDropped() {
        int left = DROP_PAGES;
        while (left > 0 && !dropped.isEmpty()) {
            Iterator<ExtentPage> pages = dropped.peek();
            if (!pages.hasNext()) {
                dropped.remove();
                continue;
            }
            ExtentPage page = pages.next();
            left--;
            if (!page.isEmptied()) {
                forget(page);
            }
        }
    }

    /** Calls {@code visitor} with each page of the shard in memory. */
    void pages(ShardMap shard, Consumer<ExtentPage> visitor) {
        shard.pages().forEach(visitor);
    }
}
