package io.holdfast.node.store;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.IntConsumer;
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
 *       {@link #KEPT_LOG_BYTES} of it in segments that have no other use, as long as there is room.
 *       A follower that needs older log catches up by extents.
 * </ol>
 *
 * <p>A crash may leave some of the files that were being removed; they are found at the next start.
 */
final class SegmentRemover {
    private static final Logger LOG = LoggerFactory.getLogger(SegmentRemover.class);

    /** Most bytes of segments that are kept for the sake of their log. */
    static final long KEPT_LOG_BYTES = 1L << 30;

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

    /** Meet the first two conditions. */
    private final TreeSet<Integer> released = new TreeSet<>();

    private final TreeSet<Integer> removing = new TreeSet<>();

    private long removed;

    SegmentRemover(
            Path directory,
            SegmentUsage usage,
            SegmentTable readers,
            SpaceMeter meter,
            Executor thread,
            Executor loop,
            IntConsumer giveUpLog,
            Runnable onRemoved) {
        this.directory = directory;
        this.usage = usage;
        this.readers = readers;
        this.meter = meter;
        this.thread = thread;
        this.loop = loop;
        this.giveUpLog = giveUpLog;
        this.onRemoved = onRemoved;
    }

    /** These segments meet the first two conditions now. */
    void release(Collection<Integer> segments) {
        for (int each : segments) {
            if (usage.has(each) && !removing.contains(each)) {
                released.add(each);
            }
        }
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
        long kept = 0;
        for (int each : released) {
            kept += usage.begun(each).bytes;
        }
        List<Integer> going = new ArrayList<>();
        Iterator<Integer> oldest = released.iterator();
        while (oldest.hasNext() && (kept > KEPT_LOG_BYTES || going.size() < wanted)) {
            int each = oldest.next();
            giveUpLog.accept(each);
            kept -= usage.begun(each).bytes;
            if (letGo(each)) {
                oldest.remove();
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
        for (int each : segments) {
            if (!gone.contains(each)) {
                released.add(each);
            }
        }
        onRemoved.run();
    }
}
