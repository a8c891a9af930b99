package io.holdfast.node.store;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.IntConsumer;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Removes segments that nobody needs. Owned by the data loop; files go on a thread.
 *
 * <p>A segment may go when
 *
 * <ol>
 *   <li>it had nothing live when the last completed checkpoint was captured: then neither the map
 *       in memory nor the rows that a crash would leave point into it, and it stays so, because all
 *       of its entries are in the map or will never be;
 *   <li>it lies before the <em>covered</em> place of that checkpoint: a start does not read it, and
 *       the newest hard states and marks in it are in the shards' rows;
 *   <li>nobody reads from it;
 *   <li>the log in it has been given up. Log is kept for followers that were away for a while,
 *       {@link #KEPT_LOG_BYTES} of it in segments that have no other use, as long as there is room,
 *       for {@link #KEPT_LOG_NANOS}: what users trim or delete is to be free soon. A follower that
 *       needs older log catches up by extents.
 * </ol>
 *
 * <p>A crash may leave some of the files that were being removed; they are found at the next start.
 */
final class SegmentRemover {
    private static final Logger LOG = LoggerFactory.getLogger(SegmentRemover.class);

    /** Most bytes of segments that are kept for the sake of their log. */
    static final long KEPT_LOG_BYTES = 1L << 30;

    /** Longest time that a segment is kept for the sake of its log: a node's restart takes less. */
    static final long KEPT_LOG_NANOS = 20_000_000_000L;

    /**
     * Most files removed at a time, so that room is seen to come back, and that a sync of the
     * journal does not wait for the file system to free all of a large volume.
     */
    static final int MOST_AT_ONCE = 16;

    /** After a failure nothing is removed for so long. */
    private static final long TRY_AGAIN_NANOS = 1_000_000_000L;

    private final Path directory;
    private final SegmentUsage usage;
    private final SegmentTable readers;
    private final SpaceMeter meter;
    private final Executor thread;
    private final Executor loop;

    /** Gives up the log in segments up to this one. */
    private final IntConsumer giveUpLog;

    /** Told when segments are gone. */
    private final Runnable onRemoved;

    private final LongSupplier nanoTime;

    /** Meet the first two conditions. */
    private final TreeSet<Integer> released = new TreeSet<>();

    private long releasedBytes;

    /** The same in the order of their release, and perhaps some that are gone. */
    private final ArrayDeque<Release> releases = new ArrayDeque<>();

    /** The newest segment that has been kept long enough, and with it all older ones. */
    private int keptEnough;

    private final TreeSet<Integer> removing = new TreeSet<>();

    private record Release(int segment, long nanos) {}

    private boolean failed;
    private long failedNanos;

    private long removed;

    SegmentRemover(
            Path directory,
            SegmentUsage usage,
            SegmentTable readers,
            SpaceMeter meter,
            Executor thread,
            Executor loop,
            LongSupplier nanoTime,
            IntConsumer giveUpLog,
            Runnable onRemoved) {
        this.directory = directory;
        this.usage = usage;
        this.readers = readers;
        this.meter = meter;
        this.thread = thread;
        this.loop = loop;
        this.nanoTime = nanoTime;
        this.giveUpLog = giveUpLog;
        this.onRemoved = onRemoved;
    }

    /** These segments meet the first two conditions now. */
    void release(Collection<Integer> segments) {
        long now = nanoTime.getAsLong();
        for (int each : segments) {
            if (usage.has(each) && !removing.contains(each) && released.add(each)) {
                releasedBytes += usage.begun(each).bytes;
                releases.add(new Release(each, now));
            }
        }
    }

    /** Whether the segment is on its way, or kept for its log. */
    boolean has(int segment) {
        return released.contains(segment) || removing.contains(segment);
    }

    /** Segments removed since the store was opened. */
    long removed() {
        return removed;
    }

    /** How many of the dead segments are on their way or kept for their log. */
    int releasedCount() {
        return released.size() + removing.size();
    }

    /**
     * Removes what may go.
     *
     * @param wanted segments that somebody needs the room of
     */
    void remove(int wanted) {
        long now = nanoTime.getAsLong();
        if (failed && now - failedNanos < TRY_AGAIN_NANOS) {
            return;
        }
        for (Release oldest = releases.peek();
                oldest != null && now - oldest.nanos >= KEPT_LOG_NANOS;
                oldest = releases.peek()) {
            // Log is of use only together with all that follows it.
            keptEnough = Math.max(keptEnough, oldest.segment);
            releases.remove();
        }
        long kept = releasedBytes;
        List<Integer> going = new ArrayList<>();
        Iterator<Integer> oldest = released.iterator();
        while (oldest.hasNext() && removing.size() < MOST_AT_ONCE) {
            int each = oldest.next();
            if (each > keptEnough && kept <= KEPT_LOG_BYTES && going.size() >= wanted) {
                break;
            }
            giveUpLog.accept(each);
            long size = usage.begun(each).bytes;
            kept -= size;
            if (letGo(each)) {
                oldest.remove();
                releasedBytes -= size;
                removing.add(each);
                going.add(each);
            }
        }
        if (!going.isEmpty()) {
            thread.execute(() -> delete(going));
        }
    }

    private boolean letGo(int segment) {
        try {
            return readers.release(segment);
        } catch (IOException e) {
            LOG.warn("Could not close segment {}, which is to be removed", segment, e);
            return true;
        }
    }

    private void delete(List<Integer> segments) {
        List<Integer> gone = new ArrayList<>();
        try {
            for (int each : segments) {
                Files.deleteIfExists(Segments.file(directory, each));
                gone.add(each);
            }
            Segments.syncDirectory(directory);
        } catch (IOException e) {
            LOG.warn("Could not remove all of the segments {}", segments, e);
        }
        meter.measure();
        try {
            loop.execute(() -> deleted(segments, gone));
        } catch (RejectedExecutionException e) {
            LOG.debug("The data loop has ended; segments have been removed all the same", e);
        }
    }

    private void deleted(List<Integer> segments, List<Integer> gone) {
        segments.forEach(removing::remove);
        gone.forEach(usage::removed);
        removed += gone.size();
        failed = gone.size() < segments.size();
        failedNanos = nanoTime.getAsLong();
        release(segments);
        onRemoved.run();
    }
}
