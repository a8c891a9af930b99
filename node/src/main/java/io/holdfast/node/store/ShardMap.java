package io.holdfast.node.store;

import io.holdfast.proto.peer.ShardId;
import io.netty.util.collection.IntObjectHashMap;
import io.netty.util.collection.LongObjectHashMap;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import org.jspecify.annotations.Nullable;

/** The pages in memory of one life of a shard, by layer and number. Owned by the data loop. */
final class ShardMap {
    final ShardId shard;

    /**
     * Rows of an earlier life of the shard may still be in the database, until a checkpoint has
     * removed them; so nothing is read from there.
     */
    boolean rowsAreStale;

    /** The shard was dropped: pages are not listed or captured any more. */
    boolean dropped;

    /** Bytes of each segment that the pages, and the rows of those not in memory, point to. */
    final SegmentUsage.Shares usage;

    private final IntObjectHashMap<LongObjectHashMap<ExtentPage>> layers = new IntObjectHashMap<>();

    ShardMap(ShardId shard, SegmentUsage.Shares usage, boolean rowsAreStale) {
        this.shard = shard;
        this.usage = usage;
        this.rowsAreStale = rowsAreStale;
    }

    @Nullable ExtentPage page(int layer, long number) {
        LongObjectHashMap<ExtentPage> pages = layers.get(layer);
        return pages == null ? null : pages.get(number);
    }

    void add(ExtentPage page) {
        LongObjectHashMap<ExtentPage> pages = layers.get(page.layer);
        if (pages == null) {
            pages = new LongObjectHashMap<>();
            layers.put(page.layer, pages);
        }
        pages.put(page.number, page);
    }

    void remove(ExtentPage page) {
        LongObjectHashMap<ExtentPage> pages = layers.get(page.layer);
        if (pages != null) {
            pages.remove(page.number);
            if (pages.isEmpty()) {
                layers.remove(page.layer);
            }
        }
    }

    /**
     * Walks over all pages in memory, in no order; none may be added or removed until it is done.
     */
    Iterator<ExtentPage> iterator() {
        Iterator<LongObjectHashMap<ExtentPage>> each = layers.values().iterator();
        return new Iterator<>() {
            private Iterator<ExtentPage> pages = Collections.emptyIterator();

            @Override
            public boolean hasNext() {
                while (!pages.hasNext() && each.hasNext()) {
                    pages = each.next().values().iterator();
                }
                return pages.hasNext();
            }

            @Override
            public ExtentPage next() {
                if (!hasNext()) {
                    throw new NoSuchElementException();
                }
                return pages.next();
            }
        };
    }

    /** All pages in memory, in no order. */
    List<ExtentPage> pages() {
        List<ExtentPage> all = new ArrayList<>();
        for (LongObjectHashMap<ExtentPage> pages : layers.values()) {
            all.addAll(pages.values());
        }
        return all;
    }
}
