package io.holdfast.node.store;

import io.holdfast.proto.peer.ShardId;
import io.netty.util.collection.IntObjectHashMap;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.NavigableSet;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * How many bytes of each segment the map points to: what is <em>live</em>. Owned by the data loop.
 *
 * <p>Live are sealed blocks; headers and marks are not: nobody would move them. The numbers change
 * with each change of the map and nowhere else, are written with its rows in the same checkpoint,
 * and so need no scan at start: replay changes them as it changes the map.
 *
 * <p>They are kept per shard, so that a shard of a million extents is dropped in as many steps as
 * it has segments, without a look at its extents.
 *
 * <p>Invariant: per shard and segment never negative, per segment never more than its file has room
 * for.
 */
final class SegmentUsage {
    /** A segment with live bytes, but no larger live part than this, is called sparse. */
    static final double MOST_LIVE_IN_SPARSE = 0.5;

    /** Size of segments that are begun from now on. */
    private final long segmentBytes;

    private final TreeMap<Integer, Segment> segments = new TreeMap<>();

    /** Segments without live bytes, and so perhaps of no use. */
    private final TreeSet<Integer> dead = new TreeSet<>();

    /** Segments with live bytes, of which no more than {@link #MOST_LIVE_IN_SPARSE} is live. */
    private final TreeSet<Integer> sparse = new TreeSet<>();

    private long nowNanos;
    private long bytes;
    private long liveBytes;

    /**
     * Nothing yet.
     *
     * @param nowNanos see {@link #clock}
     */
    SegmentUsage(long segmentBytes, long nowNanos) {
        this.segmentBytes = segmentBytes;
        this.nowNanos = nowNanos;
    }

    /** The time of the changes to come; to the turn is near enough. */
    void clock(long nanos) {
        nowNanos = nanos;
    }

    /** A segment file. */
    static final class Segment {
        final int number;
        long bytes;
        private long filled;
        private long live;
        private boolean sparse;
        private long changedNanos;

        private Segment(int number, long bytes, long nowNanos) {
            this.number = number;
            this.bytes = bytes;
            filled = bytes;
            changedNanos = nowNanos;
        }

        /** Whether its live bytes have not changed for so long. */
        boolean isSettled(long nanos, long nowNanos) {
            return nowNanos - changedNanos >= nanos;
        }

        long live() {
            return live;
        }

        /** Whether so many more live bytes can be in the file. */
        boolean hasRoomFor(long more) {
            return live + more <= bytes - SegmentHeader.SIZE;
        }

        /**
         * The part of what was written that is live, 0 to 1. The room that was left at the end,
         * because the next record did not fit, does not count as dead: moving the rest would leave
         * as much again, and the cleaner would never be done.
         */
        double livePart() {
            return (double) live / filled;
        }
    }

    /** What one shard has in one segment. */
    private static final class Share {
        final Segment segment;
        long live;
        boolean changed;

        Share(Segment segment) {
            this.segment = segment;
        }
    }

    /** Where captured changes go. */
    interface RowSink {
        /** Live bytes of the shard in the segment; 0: none any more. */
        void usage(ShardId shard, int segment, long live);
    }

    /** The part of one life of a shard. */
    static final class Shares {
        private final SegmentUsage all;
        private final IntObjectHashMap<Share> shares = new IntObjectHashMap<>();
        private List<Share> changed = new ArrayList<>();

        private Shares(SegmentUsage all) {
            this.all = all;
        }

        /** The map points to {@code live} bytes more, or less, of the segment. */
        void add(int segment, long live) {
            Share share = shares.get(segment);
            if (share == null) {
                share = new Share(all.begun(segment));
                shares.put(segment, share);
            }
            if (!share.changed) {
                share.changed = true;
                changed.add(share);
            }
            share.live += live;
            Check.that(share.live >= 0, "live bytes are not negative", segment, share.live, live);
            all.add(share.segment, live);
        }

        /** Live bytes of the shard, in all segments. */
        long total() {
            long bytes = 0;
            for (Share share : shares.values()) {
                bytes += share.live;
            }
            return bytes;
        }

        /** Takes over a row of the last checkpoint. */
        void load(int segment, long live) {
            add(segment, live);
            changed.clear();
            shares.get(segment).changed = false;
        }

        /** The shard is gone, and its rows are the database's affair. */
        void drop() {
            for (Share share : shares.values()) {
                all.add(share.segment, -share.live);
            }
            shares.clear();
            changed.clear();
        }

        /** Takes what changed since the last capture. */
        void capture(ShardId shard, RowSink sink) {
            for (Share share : changed) {
                share.changed = false;
                sink.usage(shard, share.segment.number, share.live);
                if (share.live == 0) {
                    shares.remove(share.segment.number);
                }
            }
            changed = new ArrayList<>();
        }
    }

    Shares ofShard() {
        return new Shares(this);
    }

    private void add(Segment segment, long live) {
        boolean wasDead = segment.live == 0;
        segment.live += live;
        liveBytes += live;
        Check.that(
                segment.live >= 0 && segment.live <= segment.bytes - SegmentHeader.SIZE,
                "live bytes of a segment are between 0 and its size",
                segment.number,
                segment.live,
                segment.bytes);
        segment.changedNanos = nowNanos;
        if (segment.live == 0) {
            dead.add(segment.number);
        } else if (wasDead) {
            dead.remove(segment.number);
        }
        sort(segment);
    }

    private void sort(Segment segment) {
        boolean isSparse = segment.live > 0 && segment.livePart() <= MOST_LIVE_IN_SPARSE;
        if (isSparse != segment.sparse) {
            segment.sparse = isSparse;
            if (isSparse) {
                sparse.add(segment.number);
            } else {
                sparse.remove(segment.number);
            }
        }
    }

    /** The segment; noted when it is a new one. */
    Segment begun(int number) {
        return segments.computeIfAbsent(number, made -> note(made, segmentBytes));
    }

    /** Records are written to the segment from now on; a file found at start may be longer now. */
    void writing(int number) {
        Segment segment = begun(number);
        if (segment.bytes < segmentBytes) {
            bytes += segmentBytes - segment.bytes;
            segment.bytes = segmentBytes;
            segment.filled = segmentBytes;
        }
    }

    /** Nothing more is written to the segment; {@code filled} is where its last record ends. */
    void full(int number, long filled) {
        Segment segment = begun(number);
        segment.filled = filled;
        sort(segment);
    }

    /** Notes a file found at start. */
    void found(int number, long fileBytes) {
        segments.put(number, note(number, fileBytes));
    }

    private Segment note(int number, long fileBytes) {
        bytes += fileBytes;
        dead.add(number);
        return new Segment(number, fileBytes, nowNanos);
    }

    /** The segment's file is gone. */
    void removed(int number) {
        Segment gone = segments.remove(number);
        if (gone != null) {
            Check.that(gone.live == 0, "what is removed has nothing live", number, gone.live);
            bytes -= gone.bytes;
            dead.remove(number);
        }
    }

    boolean has(int number) {
        return segments.containsKey(number);
    }

    /** All segments, oldest first. */
    Collection<Segment> segments() {
        return Collections.unmodifiableCollection(segments.values());
    }

    /** Segments before {@code number}, oldest first. */
    Collection<Segment> before(int number) {
        return Collections.unmodifiableCollection(segments.headMap(number).values());
    }

    /** Numbers of the segments from {@code number} on, oldest first. */
    List<Integer> from(int number) {
        return List.copyOf(segments.tailMap(number, true).keySet());
    }

    /** Numbers of segments before {@code number} that have nothing live, oldest first. */
    NavigableSet<Integer> deadBefore(int number) {
        return Collections.unmodifiableNavigableSet(dead.headSet(number, false));
    }

    /** Sparse segments from {@code from} on and before {@code end}, oldest first. */
    List<Segment> sparse(int from, int end) {
        List<Segment> found = new ArrayList<>();
        if (from < end) {
            sparse.subSet(from, end).forEach(number -> found.add(begun(number)));
        }
        return found;
    }

    /** Bytes of all segment files. */
    long bytes() {
        return bytes;
    }

    /** Live bytes of all segments. */
    long liveBytes() {
        return liveBytes;
    }
}
