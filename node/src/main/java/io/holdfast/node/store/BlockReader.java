package io.holdfast.node.store;

import io.holdfast.node.store.ExtentPage.Extent;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.ClientReply.Run;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.Nonce;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads blocks' bytes from the journal. Owned by the data loop.
 *
 * <p>What is in the page cache is read on the loop, by one call for places that nearly touch (the
 * records of small writes one after another); what is not is read by the pool's threads. Where the
 * kernel or the file system cannot tell (no {@code RWF_NOWAIT}), all reads go to the pool: slower,
 * but the loop never waits for a disk.
 */
final class BlockReader {
    private static final Logger LOG = LoggerFactory.getLogger(BlockReader.class);

    /** Places closer than this are read by one call; the bytes between are thrown away. */
    private static final int NEAR_BYTES = 2 * Entry.HEADER_SIZE;

    /** Most bytes read by one call on the loop. */
    static final int STAGING_BYTES = 2 * Entry.MAX_SIZE;

    private final SegmentTable segments;
    private final PageCacheFile.@Nullable Reader pageCache;
    private final Executor pool;
    private final Executor loop;
    private boolean withoutWaiting;

    BlockReader(
            SegmentTable segments,
            PageCacheFile.@Nullable Reader pageCache,
            Executor pool,
            Executor loop) {
        this.segments = segments;
        this.pageCache = pageCache;
        this.pool = pool;
        this.loop = loop;
        withoutWaiting = pageCache != null;
    }

    /** Reads on the pool only, as on a file system without {@code RWF_NOWAIT}. */
    void alwaysUsePool() {
        withoutWaiting = false;
    }

    /** Collects the runs of one read in order. */
    static final class Plan {
        private final List<Part> parts = new ArrayList<>();
        private long next;

        Plan(long block) {
            next = block;
        }

        /** Adds an extent that starts at or after the end of what is there. */
        void add(Extent extent) {
            gapTo(extent.start);
            if (!parts.isEmpty() && parts.getLast().continuedBy(extent)) {
                parts.getLast().count += extent.count;
            } else {
                parts.add(new Part(extent));
            }
            next = extent.end();
        }

        /** Blocks never written up to {@code block}. */
        void gapTo(long block) {
            if (next < block) {
                Extent never = new Extent();
                never.start = next;
                never.count = (int) (block - next);
                parts.add(new Part(never));
                next = block;
            }
        }

        /** Whether all bytes are before a place of the journal. */
        boolean isBefore(long end) {
            return parts.stream().allMatch(part -> part.place < end);
        }

        /** The runs; payloads are filled once the read is done. */
        private List<Run> runs() {
            List<Run> runs = new ArrayList<>(parts.size());
            for (Part part : parts) {
                runs.add(new Run(part.block, part.count, part.sequence, part.nonce, part.payload));
            }
            return runs;
        }
    }

    /** A run, and where its bytes are. */
    private static final class Part {
        private static final byte[] NOTHING = new byte[0];

        final long block;
        int count;
        final long sequence;
        final Nonce nonce;
        final long place;
        byte[] payload = NOTHING;

        /** Set while the read is under way. */
        SegmentTable.@Nullable Handle pinned;

        Part(Extent extent) {
            block = extent.start;
            count = extent.count;
            sequence = extent.sequence;
            place = extent.place;
            nonce = extent.nonce();
        }

        int bytes() {
            return place == Place.NONE ? 0 : count * Blocks.SEALED_SIZE;
        }

        /** Whether the extent is the rest of the same write (or of the same zeroes). */
        boolean continuedBy(Extent extent) {
            if (extent.sequence != sequence || block + count != extent.start) {
                return false;
            }
            return place == Place.NONE
                    ? extent.place == Place.NONE
                    : extent.place == place + bytes()
                            && extent.keyId == nonce.keyId()
                            && extent.nonceSession == nonce.session()
                            && extent.nonceCounter == nonce.counter() + count;
        }
    }

    /**
     * Reads what the plan says.
     *
     * @param done at once, when all is in the page cache; null: could not be read
     */
    void read(Plan plan, Consumer<@Nullable List<Run>> done) {
        List<Part> missing = new ArrayList<>();
        try {
            int at = 0;
            while (at < plan.parts.size()) {
                at = readSome(plan.parts, at, missing);
            }
        } catch (IOException e) {
            unpin(missing);
            LOG.error("Could not read from the journal", e);
            done.accept(null);
            return;
        }
        if (missing.isEmpty()) {
            done.accept(plan.runs());
            return;
        }
        pool.execute(() -> {
            boolean read = readWaiting(missing);
            onLoop(() -> {
                unpin(missing);
                done.accept(read ? plan.runs() : null);
            });
        });
    }

    /** Reads the part at {@code from} and those that follow it closely; returns the next one. */
    private int readSome(List<Part> parts, int from, List<Part> missing) throws IOException {
        Part first = parts.get(from);
        if (first.place == Place.NONE) {
            return from + 1;
        }
        first.payload = new byte[first.bytes()];
        int to = from + 1;
        long end = first.place + first.bytes();
        while (to < parts.size() && near(parts.get(to), first.place, end)) {
            Part part = parts.get(to++);
            part.payload = new byte[part.bytes()];
            end = part.place + part.bytes();
        }
        SegmentTable.Handle handle = segments.pin(Place.segment(first.place));
        if (readWithoutWaiting(handle, parts.subList(from, to), (int) (end - first.place))) {
            segments.unpin(handle);
            return to;
        }
        segments.unpin(handle);
        for (Part part : parts.subList(from, to)) {
            part.pinned = segments.pin(Place.segment(part.place));
            missing.add(part);
        }
        return to;
    }

    private static boolean near(Part part, long start, long end) {
        return part.place >= end
                && part.place - end <= NEAR_BYTES
                && Place.segment(part.place) == Place.segment(start)
                && part.place + part.bytes() - start <= STAGING_BYTES;
    }

    private boolean readWithoutWaiting(SegmentTable.Handle handle, List<Part> parts, int bytes) {
        PageCacheFile file = handle.cached;
        if (!withoutWaiting || file == null || pageCache == null) {
            return false;
        }
        long start = parts.getFirst().place;
        int read = file.read(Place.offset(start), bytes);
        if (read == PageCacheFile.UNSUPPORTED) {
            LOG.info("The file system has no reads without waiting; reader threads do all reads");
            withoutWaiting = false;
        }
        if (read != bytes) {
            return false;
        }
        for (Part part : parts) {
            pageCache.copy((int) (part.place - start), part.payload, part.payload.length);
        }
        return true;
    }

    private static boolean readWaiting(List<Part> parts) {
        try {
            for (Part part : parts) {
                SegmentTable.Handle handle = part.pinned;
                if (handle != null) {
                    handle.read(part.payload, Place.offset(part.place));
                }
            }
            return true;
        } catch (IOException e) {
            LOG.error("Could not read from the journal", e);
            return false;
        }
    }

    private void unpin(List<Part> parts) {
        for (Part part : parts) {
            SegmentTable.Handle handle = part.pinned;
            if (handle != null) {
                segments.unpin(handle);
                part.pinned = null;
            }
        }
    }

    private void onLoop(Runnable task) {
        try {
            loop.execute(task);
        } catch (RejectedExecutionException e) {
            LOG.debug("The data loop has ended; nobody waits for a read any more", e);
        }
    }
}
