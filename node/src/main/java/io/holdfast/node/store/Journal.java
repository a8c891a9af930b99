package io.holdfast.node.store;

import io.holdfast.node.store.Segments.Fill;
import io.holdfast.proto.peer.Entry;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Consumer;
import java.util.function.LongConsumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The writing end of the journal: one stream of records in segment files. Places are fixed by
 * {@code append}, bytes reach the operating system with {@link #write}, and last after a sync.
 *
 * <p>Owned by the data loop. Two tasks of its own run elsewhere: one syncs, one prepares the next
 * segment.
 *
 * <p>Records start at multiples of 8 bytes and never cross segments. A sync covers every segment
 * written since the last one. A failed write or sync is final: nothing is written or synced
 * afterwards, and no waiting caller hears of success. (After a failed fdatasync the page cache may
 * call pages clean that never reached the disk; a second one would lie.)
 *
 * <p>The first record after a completed sync is a SYNCED mark, so that recovery can tell bytes that
 * may be missing after a power loss from bytes that must not be.
 */
final class Journal implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Journal.class);

    /** Records start at multiples of this. */
    static final int ALIGNMENT = 8;

    /** Bytes copied together and written by one call. */
    private static final int WRITE_BYTES = 4 << 20;

    /** Most bytes that may wait for {@link #write}; more are written on the way. */
    private static final int PENDING_BYTES = 32 << 20;

    /**
     * A segment's bytes are written ahead if the one before saw at least this many syncs: fewer do
     * not win back what writing every byte twice costs.
     */
    private static final int SYNCS_WORTH_WRITING_AHEAD = 128;

    /** How long after a failure to make the next segment it is tried again. */
    private static final long PREPARE_AGAIN_NANOS = 200_000_000;

    /** Hears of segment files. */
    interface SegmentListener {
        /** The segment is the one that is written to from now on. On the loop. */
        void begun(int segment);

        /** The segment's last record ends at the offset {@code filled}. On the loop. */
        void full(int segment, long filled);

        /** The room on the file system may have changed. Any thread. */
        void measured();
    }

    /** A segment that is written to or waits for its last sync. */
    private static final class Segment {
        final FileChannel file;

        /** Guarded by {@link #lock}. No write will follow. */
        boolean full;

        Segment(FileChannel file) {
            this.file = file;
        }
    }

    /** Bytes queued for one stretch of one segment. */
    private static final class Batch {
        final Segment segment;
        final long offset;
        final List<byte[]> pieces = new ArrayList<>();

        Batch(Segment segment, long offset) {
            this.segment = segment;
            this.offset = offset;
        }
    }

    private final Path directory;
    private final UUID store;
    private final long segmentBytes;
    private final Disk disk;
    private final Executor loop;
    private final SegmentListener listener;
    private final Consumer<Exception> onFailure;

    private Segment segment;
    private int number;
    private long offset;
    private long written;
    private long pendingBytes;
    private long appendedBytes;
    private long markedThrough;
    private boolean failed;
    private final List<Batch> pending = new ArrayList<>();
    private final ByteBuffer staging;

    private final Threads threads;
    private final ExecutorService preparer;
    private Future<FileChannel> spare;
    private long preparedNanos;
    private boolean warnedOfStarving;

    private final Object lock = new Object();

    /** Guarded by {@link #lock}, like the following. */
    private final List<Segment> unsynced = new ArrayList<>();

    private final ArrayDeque<LongConsumer> waiting = new ArrayDeque<>();
    private final ArrayDeque<CompletableFuture<Long>> waitingInside = new ArrayDeque<>();
    private long writtenForSync;
    private long syncedThrough;
    private int syncsInSegment;
    private boolean syncing;
    private boolean syncFailed;
    private boolean stopped;

    private final ExecutorService syncer;

    /**
     * Goes on where recovery ended.
     *
     * @param onFailure told once, on the loop
     */
    Journal(
            Path directory,
            UUID store,
            long segmentBytes,
            JournalScan.End end,
            Disk disk,
            Executor loop,
            Threads threads,
            SegmentListener listener,
            Consumer<Exception> onFailure)
            throws IOException {
        this.directory = directory;
        this.store = store;
        this.segmentBytes = segmentBytes;
        this.disk = disk;
        this.loop = loop;
        this.listener = listener;
        this.onFailure = onFailure;
        this.threads = threads;
        staging = ByteBuffer.allocateDirect((int) Math.min(WRITE_BYTES, segmentBytes));
        number = Place.segment(end.place());
        offset = Place.offset(end.place());
        if (offset == 0) {
            segment = new Segment(disk.prepare(directory, number, segmentBytes, Fill.RESERVED));
            queueHeader(end.previousEnd());
        } else {
            Path file = Segments.file(directory, number);
            // A start may have been killed after it had cut it, or segments are longer now.
            Segments.lengthen(file, segmentBytes);
            segment = new Segment(FileChannel.open(file, StandardOpenOption.WRITE));
        }
        // What recovery found in this segment may never have been synced, so the first sync covers
        // it, too; the segments before it were synced by JournalScan.
        unsynced.add(segment);
        listener.begun(number);
        written = end.place();
        writtenForSync = end.place();
        preparer = threads.one("store-prepare");
        syncer = threads.one("store-sync");
        spare = prepareNext();
    }

    private Future<FileChannel> prepareNext() {
        Fill fill;
        synchronized (lock) {
            fill = syncsInSegment < SYNCS_WORTH_WRITING_AHEAD ? Fill.RESERVED : Fill.WRITTEN;
            syncsInSegment = 0;
        }
        return prepareNext(fill);
    }

    private Future<FileChannel> prepareNext(Fill fill) {
        int next = number + 1;
        preparedNanos = threads.nanoTime();
        return preparer.submit(() -> {
            try {
                return disk.prepare(directory, next, segmentBytes, fill);
            } finally {
                listener.measured();
            }
        });
    }

    /**
     * Whether the next segment could not be made, for want of room or another reason; nothing is
     * lost before the present one is full.
     */
    boolean isStarved() {
        return spare.state() == Future.State.FAILED;
    }

    /** Bytes that the segment prepared ahead takes, or is about to. */
    long spareBytes() {
        return isStarved() ? 0 : segmentBytes;
    }

    /** Tries again to make the next segment if it could not be made a while ago. */
    void retryPreparing() {
        if (!failed && isStarved() && threads.nanoTime() - preparedNanos >= PREPARE_AGAIN_NANOS) {
            if (!warnedOfStarving) {
                warnedOfStarving = true;
                LOG.warn(
                        "Segment {} cannot be made; the store goes on with what is left of the"
                                + " present one",
                        number + 1,
                        spare.exceptionNow());
            }
            spare = prepareNext(Fill.RESERVED);
        }
    }

    /** Place of the next record, unless it does not fit the segment. */
    long end() {
        return Place.of(number, offset);
    }

    /** Through here all is in the operating system's hands. */
    long written() {
        return written;
    }

    /** Through here all is synced. */
    long synced() {
        synchronized (lock) {
            return syncedThrough;
        }
    }

    /** Bytes appended since the journal was opened. */
    long appendedBytes() {
        return appendedBytes;
    }

    boolean failed() {
        return failed;
    }

    /** Whether it was a sync that failed: then what is written may be lost, too. */
    boolean isSyncFailed() {
        synchronized (lock) {
            return syncFailed;
        }
    }

    /** Queues an entry; returns its place. */
    long append(Entry entry) {
        long place = reserve(entry.sizeBytes());
        queue(entry.header());
        queue(entry.payload());
        pad(entry.sizeBytes());
        return place;
    }

    /** Queues a mark; returns its place. */
    long append(Mark mark) {
        Check.that(fits(mark), "mark fits a segment", mark.sizeBytes(), segmentBytes);
        long place = reserve(mark.sizeBytes());
        queue(mark.encode(place));
        pad(mark.sizeBytes());
        return place;
    }

    /** Whether any segment can hold the mark. */
    boolean fits(Mark mark) {
        return mark.body().length <= Mark.MAX_BODY
                && padded(mark.sizeBytes()) + padded(Mark.SIZE) + SegmentHeader.SIZE
                        <= segmentBytes;
    }

    /** Finds room for a record, behind a SYNCED mark where one is due. */
    private long reserve(int bytes) {
        if (pendingBytes >= PENDING_BYTES) {
            write();
        }
        long synced;
        synchronized (lock) {
            synced = syncedThrough;
        }
        Check.that(
                SegmentHeader.SIZE + padded(Mark.SIZE) + padded(bytes) <= segmentBytes,
                "a record fits a segment",
                bytes,
                segmentBytes);
        boolean mark = synced > markedThrough;
        long needed = padded(bytes) + (mark ? padded(Mark.SIZE) : 0);
        if (offset + needed > segmentBytes) {
            rollOver();
        } else if (pending.isEmpty()) {
            pending.add(new Batch(segment, offset));
        }
        if (mark) {
            markedThrough = synced;
            queue(Mark.synced(synced).encode(end()));
        }
        return end();
    }

    static long padded(int bytes) {
        return ((long) bytes + ALIGNMENT - 1) & -ALIGNMENT;
    }

    private void queue(byte[] bytes) {
        pending.getLast().pieces.add(bytes);
        offset += bytes.length;
        pendingBytes += bytes.length;
        appendedBytes += bytes.length;
    }

    private void pad(int bytes) {
        int missing = (int) (padded(bytes) - bytes);
        if (missing > 0) {
            queue(new byte[missing]);
        }
    }

    private void rollOver() {
        Check.that(number < Place.MAX_SEGMENT, "segment numbers last", number);
        long previousEnd = end();
        if (pending.isEmpty()) {
            // Even without bytes, so that the full segment is closed after its last sync.
            pending.add(new Batch(segment, offset));
        }
        if (!failed) {
            try {
                segment = new Segment(takeSpare());
            } catch (IOException e) {
                fail(e);
            }
        }
        listener.full(number, offset);
        number++;
        offset = 0;
        listener.begun(number);
        queueHeader(previousEnd);
        if (!failed) {
            warnedOfStarving = false;
            spare = prepareNext();
        }
    }

    private void queueHeader(long previousEnd) {
        pending.add(new Batch(segment, 0));
        queue(new SegmentHeader(number, store, previousEnd).encode());
    }

    /** The prepared segment; waits when it is late, and tries once more when it failed. */
    private FileChannel takeSpare() throws IOException {
        try {
            return threads.await(spare);
        } catch (ExecutionException e) {
            LOG.warn("Could not prepare segment {}, trying again", number + 1, e.getCause());
            return disk.prepare(directory, number + 1, segmentBytes, Fill.RESERVED);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted while waiting for a segment", e);
        }
    }

    /** Hands all that is queued to the operating system; returns the journal's end. */
    long write() {
        if (pending.isEmpty()) {
            return written;
        }
        if (!failed) {
            try {
                for (Batch batch : pending) {
                    write(batch);
                }
                written = end();
                noteWritten();
            } catch (IOException e) {
                fail(e);
            }
        }
        pending.clear();
        pendingBytes = 0;
        return written;
    }

    private void write(Batch batch) throws IOException {
        long at = batch.offset;
        staging.clear();
        for (byte[] piece : batch.pieces) {
            int from = 0;
            while (from < piece.length) {
                if (!staging.hasRemaining()) {
                    at += drain(batch.segment, at);
                }
                int part = Math.min(piece.length - from, staging.remaining());
                staging.put(piece, from, part);
                from += part;
            }
        }
        drain(batch.segment, at);
    }

    private int drain(Segment to, long at) throws IOException {
        staging.flip();
        int bytes = staging.remaining();
        disk.write(to.file, staging, at);
        staging.clear();
        return bytes;
    }

    private void noteWritten() {
        synchronized (lock) {
            for (Batch batch : pending) {
                if (!unsynced.contains(batch.segment)) {
                    unsynced.add(batch.segment);
                }
                batch.segment.full = batch.segment != segment;
            }
            writtenForSync = written;
        }
    }

    /** Fails for good: see the class comment. On the loop. */
    void fail(Exception cause) {
        if (failed) {
            return;
        }
        failed = true;
        endWaiting(List.of(), new IOException("the journal has failed", cause));
        onFailure.accept(cause);
    }

    /** {@code done} runs on the loop, with the place synced through. */
    void sync(LongConsumer done) {
        synchronized (lock) {
            if (!stopped) {
                waiting.add(done);
                beginSync();
            }
        }
    }

    /** Like {@link #sync(LongConsumer)}, completed on the syncing thread. Any thread. */
    CompletableFuture<Long> sync() {
        CompletableFuture<Long> done = new CompletableFuture<>();
        synchronized (lock) {
            if (stopped) {
                done.completeExceptionally(new IOException("the journal has failed or is closed"));
            } else {
                waitingInside.add(done);
                beginSync();
            }
        }
        return done;
    }

    /** Guarded by {@link #lock}. */
    private void beginSync() {
        if (!syncing) {
            syncing = true;
            syncer.execute(this::syncWhileWanted);
        }
    }

    private void syncWhileWanted() {
        List<LongConsumer> callers = new ArrayList<>();
        List<CompletableFuture<Long>> insiders = new ArrayList<>();
        List<Segment> segments = new ArrayList<>();
        while (true) {
            long through;
            synchronized (lock) {
                if (stopped || (waiting.isEmpty() && waitingInside.isEmpty())) {
                    syncing = false;
                    return;
                }
                callers.addAll(waiting);
                waiting.clear();
                insiders.addAll(waitingInside);
                waitingInside.clear();
                segments.addAll(unsynced);
                unsynced.clear();
                through = writtenForSync;
            }
            try {
                for (Segment each : segments) {
                    disk.force(each.file);
                }
            } catch (IOException e) {
                synchronized (lock) {
                    unsynced.addAll(segments);
                    syncFailed = true;
                }
                endWaiting(insiders, e);
                onLoop(() -> fail(e));
                return;
            }
            synchronized (lock) {
                syncedThrough = through;
                syncsInSegment++;
                for (Segment each : segments) {
                    if (each.full && !unsynced.contains(each)) {
                        closeQuietly(each.file);
                    }
                }
            }
            insiders.forEach(done -> done.complete(through));
            if (!callers.isEmpty()) {
                List<LongConsumer> all = List.copyOf(callers);
                onLoop(() -> all.forEach(done -> done.accept(through)));
            }
            callers.clear();
            insiders.clear();
            segments.clear();
        }
    }

    /** Nothing is synced from now on, and whoever waits for it hears so. */
    private void endWaiting(List<CompletableFuture<Long>> taken, IOException cause) {
        List<CompletableFuture<Long>> left = new ArrayList<>(taken);
        synchronized (lock) {
            stopped = true;
            left.addAll(waitingInside);
            waitingInside.clear();
            waiting.clear();
        }
        left.forEach(done -> done.completeExceptionally(cause));
    }

    private void onLoop(Runnable task) {
        try {
            loop.execute(task);
        } catch (RejectedExecutionException e) {
            LOG.debug("The data loop has ended; nobody waits for a sync any more", e);
        }
    }

    private static void closeQuietly(FileChannel file) {
        try {
            file.close();
        } catch (IOException e) {
            LOG.warn("Could not close a synced segment", e);
        }
    }

    /**
     * Ends the threads and closes the files. Syncs that were asked for are done first; what is
     * queued but not written is lost.
     */
    @Override
    public void close() {
        syncer.close();
        endWaiting(List.of(), new IOException("the journal is closed"));
        preparer.close();
        if (spare.state() == Future.State.SUCCESS) {
            closeQuietly(spare.resultNow());
        }
        synchronized (lock) {
            unsynced.forEach(each -> closeQuietly(each.file));
        }
        closeQuietly(segment.file);
    }
}
