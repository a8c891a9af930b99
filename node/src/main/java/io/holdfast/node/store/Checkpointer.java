package io.holdfast.node.store;

import io.holdfast.proto.peer.ShardId;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Ties the database to a place in the journal. Owned by the data loop, with one thread of its own.
 *
 * <p>A checkpoint is captured on the loop (changed rows, one row per shard, the covered place: the
 * smallest over the shards of "first log entry not in the map", live bytes of segments), then, on
 * the thread, the journal is synced through all that the rows point to, then the batch is written
 * and flushed: data first, metadata after. Captured pages stay in memory until that is done, so
 * readers never look into the database for something that is on its way there.
 */
final class Checkpointer implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Checkpointer.class);

    private final Journal journal;
    private final ExtentMap map;
    private final MapDatabase database;
    private final NavigableMap<ShardId, ShardStore> shards;
    private final SegmentUsage usage;
    private final Executor loop;
    private final Listener listener;
    private final Threads threads;
    private final ExecutorService thread;

    /** As the database has it. Written on the thread. */
    private volatile StoreRow row;

    private List<ShardId> dropped = new ArrayList<>();
    private @Nullable Running running;

    /** Any thread. */
    private volatile long extentsEstimate;

    Checkpointer(
            StoreRow row,
            Journal journal,
            ExtentMap map,
            MapDatabase database,
            NavigableMap<ShardId, ShardStore> shards,
            SegmentUsage usage,
            Executor loop,
            Threads threads,
            Listener listener) {
        this.row = row;
        this.journal = journal;
        this.map = map;
        this.database = database;
        this.shards = shards;
        this.usage = usage;
        this.loop = loop;
        this.listener = listener;
        this.threads = threads;
        thread = threads.one("store-checkpoint");
        extentsEstimate = database.extentsEstimate();
    }

    /** Hears how checkpoints end. On the loop. */
    interface Listener {
        /**
         * A checkpoint is durable.
         *
         * @param covered segment from which a start would read
         * @param dead segments before it that had nothing live when the checkpoint was captured: no
         *     start needs them any more
         */
        void completed(int covered, List<Integer> dead);

        /** A checkpoint has failed, and with it the store. */
        void failed(Exception cause);
    }

    /** A checkpoint under way. */
    private static final class Running {
        final List<ShardId> dropped;
        final List<ExtentPage> pages;
        final int covered;
        final List<Integer> dead;
        final CompletableFuture<Void> durable = new CompletableFuture<>();

        Running(List<ShardId> dropped, List<ExtentPage> pages, int covered, List<Integer> dead) {
            this.dropped = dropped;
            this.pages = pages;
            this.covered = covered;
            this.dead = dead;
        }
    }

    boolean isRunning() {
        return running != null;
    }

    long extentsEstimate() {
        return extentsEstimate;
    }

    /** The next checkpoint removes the shard's rows. */
    void drop(ShardId shard) {
        dropped.add(shard);
    }

    /** Whether rows of an earlier shard of this name may still be in the database. */
    boolean rowsAreStale(ShardId shard) {
        Running now = running;
        return dropped.contains(shard) || (now != null && now.dropped.contains(shard));
    }

    /**
     * Captures the present state and makes it durable on the thread.
     *
     * @param clean nothing will be written after it
     */
    void begin(boolean clean) {
        Check.that(running == null, "one checkpoint at a time");
        long end = journal.write();
        if (journal.failed()) {
            return;
        }
        TreeMap<ShardId, ShardRow> rows = new TreeMap<>();
        long covered = end;
        for (ShardStore shard : shards.values()) {
            ShardRow row = shard.row(end);
            rows.put(shard.id, row);
            covered = Math.min(covered, row.from());
        }
        MapChanges changes =
                new MapChanges(
                        dropped, new StoreRow(clean, row.store(), covered, end, row.bootId()));
        changes.shards.putAll(rows);
        shards.values().forEach(shard -> shard.map.usage.capture(shard.id, changes));
        int first = Place.segment(covered);
        Running now =
                new Running(
                        dropped, map.capture(changes), first, List.copyOf(usage.deadBefore(first)));
        dropped = new ArrayList<>();
        running = now;
        CompletableFuture<Long> _ =
                journal.sync()
                        .whenCompleteAsync(
                                (synced, failure) -> {
                                    if (failure == null) {
                                        write(now, changes, end, synced);
                                    } else {
                                        now.durable.completeExceptionally(failure);
                                    }
                                    ended(now);
                                },
                                thread);
    }

    private void write(Running now, MapChanges changes, long end, long synced) {
        try {
            Check.that(synced >= end, "a sync covers what was written before", synced, end);
            database.write(changes);
            row = changes.store;
            extentsEstimate = database.extentsEstimate();
            now.durable.complete(null);
        } catch (IOException | RuntimeException e) {
            now.durable.completeExceptionally(e);
        }
    }

    private void ended(Running now) {
        try {
            loop.execute(() -> finish(now));
        } catch (RejectedExecutionException e) {
            LOG.debug("The data loop has ended before a checkpoint; closing finishes it", e);
        }
    }

    /** The checkpoint has ended. On the loop; {@link #await} may have come before. */
    private void finish(Running ended) {
        if (running != ended) {
            return;
        }
        running = null;
        if (ended.durable.isCompletedExceptionally()) {
            Throwable cause = ended.durable.exceptionNow();
            listener.failed(cause instanceof Exception e ? e : new IOException(cause));
            return;
        }
        for (ShardId each : ended.dropped) {
            ShardStore successor = shards.get(each);
            if (successor != null && !dropped.contains(each)) {
                successor.map.rowsAreStale = false;
            }
        }
        map.captured(ended.pages);
        listener.completed(ended.covered, ended.dead);
    }

    /** See {@link MapDatabase#noteFailedSync}. */
    void noteFailedSync() {
        thread.execute(() -> database.noteFailedSync(row));
    }

    /** Waits for the checkpoint under way, if there is one. */
    void await() {
        Running now = running;
        if (now == null) {
            return;
        }
        try {
            threads.await(now.durable);
        } catch (ExecutionException e) {
            LOG.debug("A checkpoint ended with a failure, which is reported to the owners", e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return;
        }
        finish(now);
    }

    @Override
    public void close() {
        thread.close();
    }
}
