package io.holdfast.node.store;

import io.holdfast.node.store.ExtentPage.Extent;
import io.holdfast.node.store.SegmentContents.Part;
import io.holdfast.node.store.SegmentContents.Stored;
import io.holdfast.node.store.SegmentUsage.Segment;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.ShardId;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Empties segments that are dead for the most part: what is live in them is appended again, as it
 * is (ciphertext, sequence, nonce), and the next checkpoint releases them. Owned by the data loop.
 *
 * <p><b>Victim.</b> The segment with the most of {@code (1 - u) * age / (1 + u)}, u its live part:
 * what is won, times how long it is likely to last, over what is read and written (Rosenblum and
 * Ousterhout 1992). Age is the number of segments begun since, which needs no clock and survives a
 * restart. In a trial with all blocks equally hot it costs what the emptiest victim would, with a
 * tenth of the blocks taking nine tenths of the writes a twentieth less.
 *
 * <p><b>Pace.</b> When room gets short the cleaner earns the right to work with every byte that
 * clients append, so that it stops when they stop; the less room there is the more it earns, and at
 * the end it works without asking. However much room there is, segments that a trim has left sparse
 * are emptied at a fixed rate, when they have not changed for a while: see {@link #SETTLED_NANOS}.
 *
 * <p>Parts of the victim are read and verified on a thread, at most one ahead. A step on the loop
 * looks for each of their records what the map still points to. Places are compared, not sequences,
 * and journal bytes never change, so it does not matter what happened to the blocks between reading
 * and looking.
 */
final class Cleaner implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Cleaner.class);

    /** Cleaning begins when fewer segments than this can be made ... */
    static final int START_SEGMENTS = 8;

    /** ... or less than one part in this many of the whole store is left. */
    static final int START_FRACTION = 16;

    /** With fewer segments than this left the cleaner does not wait for clients. */
    static final int HARD_SEGMENTS = 4;

    /** Twice what clients take is freed just before that; half way, what they take. */
    static final double MOST_PACE = 2;

    /**
     * However much room there is, dead bytes are kept below the live ones and this, so that a small
     * volume does not fill a large disk with its past.
     */
    static final long DEAD_BYTES = 1L << 30;

    /** Pace against dead bytes while there is room: a little more than keeps them as they are. */
    static final double DEAD_PACE = 1.5;

    /** A segment with a larger live part is no victim: moving it wins next to nothing. */
    static final double MOST_LIVE = 0.9;

    /** Where there is room, only a segment with a smaller live part is one. */
    static final double MOST_LIVE_WITH_ROOM = 0.5;

    /**
     * A segment that is at least half dead and has not changed for so long is emptied although
     * nobody needs the room: whoever trims a file system wants to see its space. While it still
     * changes, as one that is being overwritten does, waiting is cheaper: what dies meanwhile is
     * not moved. So no more is moved than has died, once.
     */
    static final long SETTLED_NANOS = 5_000_000_000L;

    /** 64 MiB of such segments per second; a part of 1 in {@link #BUSY_FRACTION} of it ... */
    private static final double SETTLED_BYTES_PER_NANO = (64 << 20) / 1e9;

    /** ... in turns in which clients append. */
    private static final int BUSY_FRACTION = 4;

    /** How often such segments are looked for in vain. */
    private static final long LOOK_NANOS = 1_000_000_000L;

    /** Most bytes of the victim that one step deals with. */
    static final int STEP_BYTES = 512 << 10;

    /** Longest step. The clock is read between records. */
    static final long STEP_NANOS = 1_000_000;

    /** Most work that can be earned in advance, in bytes of the victim. */
    static final long MOST_EARNED = 8L << 20;

    /** What the cleaner does to the store. On the loop. */
    interface Work {
        /** The shard of that name, null: there is none (any more). */
        @Nullable ShardMap map(ShardId shard);

        /** Appends moved copies and puts them into the map. */
        void move(ShardId shard, List<Entry> moved);

        /** Hands what was appended to the operating system. */
        void write();

        /** Whether the store has failed or is closed. */
        boolean ended();

        /** The database cannot be read. */
        void damaged(DamagedMapException cause);
    }

    private final Path directory;
    private final SegmentUsage usage;
    private final ExtentMap map;
    private final Work work;
    private final Executor thread;
    private final Executor loop;
    private final LongSupplier nanoTime;

    /** Segments that could not be read to their end; a start tries them again. */
    private final Set<Integer> unreadable = new HashSet<>();

    /** Segments from this one on are not victims: no completed checkpoint covers them. */
    private int coveredSegment;

    private Demand demand = Demand.NONE;
    private @Nullable Segment victim;
    private @Nullable SegmentContents contents;
    private @Nullable Part part;
    private @Nullable Part ahead;
    private int nextInPart;
    private boolean reading;
    private boolean stepQueued;
    private boolean forced;
    private boolean closed;

    private long earned;
    private long turnNanos;
    private long lookedNanos;
    private boolean lookNow;
    private boolean clientsAppend;
    private long movedBytes;

    Cleaner(
            Path directory,
            SegmentUsage usage,
            ExtentMap map,
            Work work,
            Executor thread,
            Executor loop,
            LongSupplier nanoTime) {
        this.directory = directory;
        this.usage = usage;
        this.map = map;
        this.work = work;
        this.thread = thread;
        this.loop = loop;
        this.nanoTime = nanoTime;
        turnNanos = nanoTime.getAsLong();
        lookedNanos = turnNanos;
    }

    /**
     * What is wanted of the cleaner.
     *
     * @param pace bytes freed per byte that clients append; 0: none, infinite: do not wait for them
     * @param mostLive a segment with a larger live part is no victim
     * @param mayBegin whether another victim may be begun. What is moved takes room at once, and
     *     gives it back with a checkpoint; with less than a segment left that is waited for
     */
    record Demand(double pace, double mostLive, boolean mayBegin) {
        static final Demand NONE = new Demand(0, 0, false);

        boolean isUrgent() {
            return pace == Double.POSITIVE_INFINITY;
        }

        /**
         * What the state of the store asks for.
         *
         * @param freeBytes for which segments can be made
         * @param emptyBytes of segments without anything live, which will be free
         * @param usedBytes of all other segments
         * @param liveBytes of these
         */
        static Demand of(
                long freeBytes,
                long emptyBytes,
                long usedBytes,
                long liveBytes,
                long segmentBytes) {
            long free = freeBytes + emptyBytes;
            long hard = HARD_SEGMENTS * segmentBytes;
            long start = startBytes(free + usedBytes, segmentBytes);
            boolean fits = freeBytes >= segmentBytes || emptyBytes == 0;
            if (free < hard) {
                return new Demand(Double.POSITIVE_INFINITY, MOST_LIVE, fits);
            }
            if (free < start) {
                return new Demand(MOST_PACE * (start - free) / (start - hard), MOST_LIVE, fits);
            }
            boolean muchDead = usedBytes - liveBytes > liveBytes + DEAD_BYTES;
            return muchDead ? new Demand(DEAD_PACE, MOST_LIVE_WITH_ROOM, true) : NONE;
        }
    }

    /** Room below which the cleaner works. */
    static long startBytes(long capacityBytes, long segmentBytes) {
        return Math.max(START_SEGMENTS * segmentBytes, capacityBytes / START_FRACTION);
    }

    /** What is before this segment is in the rows of a completed checkpoint. */
    void covered(int segment) {
        coveredSegment = segment;
    }

    /** Segments from this one on are no victims yet. */
    int covered() {
        return coveredSegment;
    }

    /** Bytes of moved copies appended since the store was opened. */
    long movedBytes() {
        return movedBytes;
    }

    /** Whether a victim is being emptied. */
    boolean isBusy() {
        return victim != null;
    }

    /** Whether there is a segment that is worth being emptied when room is short. */
    boolean hasVictim() {
        return victim != null || choose(MOST_LIVE) != null;
    }

    /** Empties one segment, the best there is, whatever the demand. */
    void force() {
        forced = true;
        step();
    }

    /**
     * A turn of the loop is over.
     *
     * @param appendedBytes by clients since the last call
     */
    void turnEnded(long appendedBytes, Demand now) {
        demand = now;
        // Less is no client's: marks, and what the cleaner's own records are padded with.
        clientsAppend = appendedBytes >= Blocks.SIZE;
        long time = nanoTime.getAsLong();
        long passed = Math.clamp(time - turnNanos, 0, LOOK_NANOS);
        turnNanos = time;
        Segment current = victim;
        if (now.isUrgent() || (now.pace == 0 && current == null)) {
            earned = 0;
        } else if (current != null) {
            double live = current.livePart();
            double more = appendedBytes * now.pace / Math.max(1 - MOST_LIVE, 1 - live);
            if (!clientsAppend) {
                more += passed * SETTLED_BYTES_PER_NANO;
            } else if (live <= SegmentUsage.MOST_LIVE_IN_SPARSE) {
                more += passed * SETTLED_BYTES_PER_NANO / BUSY_FRACTION;
            }
            earned = Math.min(MOST_EARNED, earned + (long) more);
        }
        step();
    }

    private void step() {
        if (closed || work.ended()) {
            return;
        }
        if (victim == null && !begin()) {
            forced = false;
            return;
        }
        boolean unpaced = forced || demand.isUrgent();
        try {
            long done = take(unpaced ? STEP_BYTES : Math.min(STEP_BYTES, earned));
            earned -= unpaced ? 0 : done;
            work.write();
        } catch (DamagedMapException e) {
            work.damaged(e);
            return;
        }
        // A part that is still being read goes on with its arrival. Without clients there may be
        // no turns for a while.
        boolean more = unpaced || (earned > 0 && victim != null && !clientsAppend);
        if (more && (part != null || victim == null)) {
            stepSoon();
        }
    }

    /** After whatever else waits for the loop. */
    private void stepSoon() {
        if (!stepQueued) {
            stepQueued = true;
            onLoop(() -> {
                stepQueued = false;
                step();
            });
        }
    }

    private boolean begin() {
        Segment chosen = null;
        if (forced) {
            chosen = choose(MOST_LIVE);
        } else {
            if (demand.pace == 0 || (demand.mayBegin && !demand.isUrgent())) {
                chosen = settled();
            }
            if (chosen == null && demand.mayBegin && (clientsAppend || demand.isUrgent())) {
                chosen = choose(demand.mostLive);
            }
        }
        if (chosen == null) {
            return false;
        }
        victim = chosen;
        contents = new SegmentContents(Segments.file(directory, chosen.number), chosen.number);
        part = null;
        ahead = null;
        readAhead();
        return true;
    }

    /** The best of those that are to be emptied although there is room. */
    private @Nullable Segment settled() {
        long now = nanoTime.getAsLong();
        if (!lookNow && now - lookedNanos < LOOK_NANOS) {
            return null;
        }
        lookNow = false;
        lookedNanos = now;
        List<Segment> settled = usage.sparse(0, coveredSegment);
        settled.removeIf(each -> !each.isSettled(SETTLED_NANOS, now));
        return best(settled, SegmentUsage.MOST_LIVE_IN_SPARSE);
    }

    private @Nullable Segment choose(double mostLive) {
        return best(usage.before(coveredSegment), mostLive);
    }

    private @Nullable Segment best(Collection<Segment> segments, double mostLive) {
        Segment best = null;
        double most = 0;
        for (Segment each : segments) {
            double live = each.livePart();
            if (each.live() == 0 || live > mostLive || unreadable.contains(each.number)) {
                continue;
            }
            double score = (1 - live) * (coveredSegment - each.number) / (1 + live);
            if (score > most) {
                most = score;
                best = each;
            }
        }
        return best;
    }

    /** Deals with about {@code bytes} of the victim; returns how many. */
    private long take(long bytes) {
        long start = nanoTime.getAsLong();
        long done = 0;
        while (done < bytes) {
            Segment current = victim;
            if (current == null || current.live() == 0) {
                finish(null);
                break;
            }
            Part now = part;
            if (now == null) {
                now = ahead;
                part = now;
                ahead = null;
                nextInPart = 0;
                readAhead();
                if (now == null) {
                    break;
                }
            }
            if (nextInPart < now.writes().size()) {
                Stored next = now.writes().get(nextInPart++);
                move(next);
                done += next.entry().sizeBytes();
                if (nanoTime.getAsLong() - start >= STEP_NANOS) {
                    break;
                }
            } else if (now.last()) {
                finish(now.damage());
                break;
            } else {
                part = null;
            }
        }
        return done;
    }

    /** Moves what is live of one record. */
    private void move(Stored stored) {
        Entry entry = stored.entry();
        ShardMap shard = work.map(entry.shard());
        if (shard == null) {
            return;
        }
        long first = stored.place() + Entry.HEADER_SIZE;
        List<Extent> live = new ArrayList<>();
        map.read(
                shard,
                entry.layer(),
                entry.block(),
                entry.count(),
                extent -> {
                    if (extent.place
                            == first + (extent.start - entry.block()) * Blocks.SEALED_SIZE) {
                        live.add(extent.kept());
                    }
                });
        if (live.isEmpty()) {
            return;
        }
        List<Entry> moved = new ArrayList<>(live.size());
        for (Extent extent : live) {
            int from = (int) (extent.start - entry.block()) * Blocks.SEALED_SIZE;
            Entry copy = copy(entry, extent, from);
            moved.add(copy);
            movedBytes += copy.sizeBytes();
        }
        work.move(entry.shard(), moved);
    }

    private static Entry copy(Entry entry, Extent extent, int from) {
        boolean whole = extent.count == entry.count();
        byte[] payload =
                whole
                        ? entry.payload()
                        : Arrays.copyOfRange(
                                entry.payload(), from, from + extent.count * Blocks.SEALED_SIZE);
        // What is doubtful stays so, however often it is moved.
        return extent.moved(entry.shard(), entry.layer(), payload, entry.isDoubtful());
    }

    private void finish(@Nullable String damage) {
        Segment done = victim;
        letGo();
        forced = false;
        lookNow = true;
        if (done != null && done.live() > 0) {
            LOG.error(
                    "Segment {} cannot be emptied, {} bytes stay where they are{}",
                    done.number,
                    done.live(),
                    damage == null ? "" : ": damaged at " + damage);
            unreadable.add(done.number);
        }
    }

    private void letGo() {
        SegmentContents read = contents;
        victim = null;
        contents = null;
        part = null;
        ahead = null;
        reading = false;
        if (read != null) {
            thread.execute(() -> close(read));
        }
    }

    private void readAhead() {
        SegmentContents from = contents;
        Part now = part;
        if (from == null || reading || ahead != null || (now != null && now.last())) {
            return;
        }
        reading = true;
        thread.execute(() -> {
            Part next;
            try {
                next = from.next();
            } catch (IOException e) {
                next = new Part(List.of(), true, String.valueOf(e.getMessage()));
            }
            Part read = next;
            onLoop(() -> arrived(from, read));
        });
    }

    private void arrived(SegmentContents from, Part read) {
        if (contents != from) {
            return; // the victim was emptied, or overwritten, before its end
        }
        reading = false;
        ahead = read;
        if (part == null) {
            step();
        }
    }

    private static void close(SegmentContents read) {
        try {
            read.close();
        } catch (IOException e) {
            LOG.warn("Could not close a segment after cleaning it", e);
        }
    }

    private void onLoop(Runnable task) {
        try {
            loop.execute(task);
        } catch (RejectedExecutionException e) {
            LOG.debug("The data loop has ended; cleaning goes on with the next start", e);
        }
    }

    /** Ends the work; the thread is the owner's. */
    @Override
    public void close() {
        closed = true;
        letGo();
    }
}
