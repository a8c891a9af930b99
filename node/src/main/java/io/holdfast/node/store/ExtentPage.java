package io.holdfast.node.store;

import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.EntryKind;
import io.holdfast.proto.peer.Nonce;
import io.holdfast.proto.peer.ShardId;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The extents of one aligned range of {@link #BLOCKS} blocks of a layer, sorted, without overlaps,
 * in primitive arrays; and which of them have changed since the last checkpoint. Owned by the data
 * loop.
 *
 * <p>Per block the newest sequence wins; at equal sequence (a moved copy of the same blocks) the
 * later place.
 */
final class ExtentPage {
    static final int SHIFT = 10;

    /** Blocks of a page (4 MiB). Extents never cross a page's border. */
    static final int BLOCKS = 1 << SHIFT;

    private static final int MASK = BLOCKS - 1;

    /** Longs per extent in {@link #fields}. */
    private static final int STRIDE = 5;

    private static final int PLACE = 0;
    private static final int SEQUENCE = 1;
    private static final int EPOCH = 2;
    private static final int NONCE = 3;
    private static final int COUNTER = 4;

    /** Bytes of an empty page, arrays and hash entry included; an estimate. */
    private static final int BASE_BYTES = 280;

    private static final int TRIM = 1 << 30;

    private static final int[] NO_RANGES = new int[0];
    private static final long[] NO_FIELDS = new long[0];

    /** Everything about an extent; a mutable carrier, so that the hot path makes no garbage. */
    static final class Extent {
        /** First block, within the page or absolute as the user says. */
        long start;

        int count;

        /** Of the first sealed block, {@link Place#NONE}: zeroes. */
        long place;

        long sequence;
        long epoch;
        int keyId;
        int nonceSession;
        long nonceCounter;
        boolean trim;

        void copy(Extent from) {
            start = from.start;
            count = from.count;
            place = from.place;
            sequence = from.sequence;
            epoch = from.epoch;
            keyId = from.keyId;
            nonceSession = from.nonceSession;
            nonceCounter = from.nonceCounter;
            trim = from.trim;
        }

        /** Another one with the same fields, for who keeps it longer than the carrier. */
        Extent kept() {
            Extent kept = new Extent();
            kept.copy(this);
            return kept;
        }

        /** Of the first block; {@link Nonce#NONE}: zeroes. */
        Nonce nonce() {
            return place == Place.NONE ? Nonce.NONE : new Nonce(keyId, nonceSession, nonceCounter);
        }

        /**
         * The entry that says the same once more: of the same write, under its sequence and nonce.
         *
         * @param payload the sealed blocks; of zeroes nothing
         * @param doubtful whether the payload is from a record that is damaged
         */
        Entry moved(ShardId shard, int layer, byte[] payload, boolean doubtful) {
            boolean zero = place == Place.NONE;
            int flags = Entry.FLAG_MOVED;
            if (trim) {
                flags |= Entry.FLAG_TRIM;
            }
            if (doubtful) {
                flags |= Entry.FLAG_DOUBTFUL;
            }
            Entry.Builder entry =
                    Entry.builder(shard, zero ? EntryKind.ZERO : EntryKind.WRITE)
                            .at(epoch, sequence, 0)
                            .blocks(layer, start, count)
                            .flags(flags);
            if (!zero) {
                entry.sealed(nonce(), payload);
            }
            return entry.build();
        }

        /** Cuts the extent down to [from, to). */
        void clip(long from, long to) {
            long skipped = from - start;
            if (place != Place.NONE) {
                place += skipped * Blocks.SEALED_SIZE;
                nonceCounter += skipped;
            }
            start = from;
            count = (int) (to - from);
        }

        long end() {
            return start + count;
        }
    }

    final ShardMap owner;
    final int layer;
    final long number;

    /** Start, count - 1 and {@link #TRIM} of each extent: bits 0-9, 10-19, 30. */
    private int[] ranges;

    private long[] fields;
    private int size;

    /** One bit per start of an extent put or removed since the last capture; null: clean. */
    private long @Nullable [] dirty;

    private boolean emptied;

    /** Captured by a checkpoint that is not durable yet. */
    boolean flushing;

    /** Neighbours in the list of clean pages, most recently used first. */
    @Nullable ExtentPage newer;

    @Nullable ExtentPage older;
    boolean listed;

    ExtentPage(ShardMap owner, int layer, long number) {
        this.owner = owner;
        this.layer = layer;
        this.number = number;
        ranges = new int[4];
        fields = new long[4 * STRIDE];
    }

    int size() {
        return size;
    }

    /** First block of the page. */
    long firstBlock() {
        return number << SHIFT;
    }

    int bytes() {
        return BASE_BYTES
                + ranges.length * (Integer.BYTES + STRIDE * Long.BYTES)
                + (dirty == null ? 0 : BLOCKS / 8);
    }

    /** Lets go of everything; the page is of no use afterwards. */
    void empty() {
        size = 0;
        ranges = NO_RANGES;
        fields = NO_FIELDS;
        dirty = null;
        emptied = true;
    }

    boolean isEmptied() {
        return emptied;
    }

    boolean isDirty() {
        return dirty != null;
    }

    private int start(int index) {
        return ranges[index] & MASK;
    }

    private int end(int index) {
        return (ranges[index] & MASK) + ((ranges[index] >>> SHIFT) & MASK) + 1;
    }

    long sequence(int index) {
        return fields[index * STRIDE + SEQUENCE];
    }

    private long place(int index) {
        return fields[index * STRIDE + PLACE];
    }

    /** Fills {@code into} with extent number {@code index}, its start relative to the page. */
    void get(int index, Extent into) {
        int range = ranges[index];
        int at = index * STRIDE;
        into.start = range & MASK;
        into.count = ((range >>> SHIFT) & MASK) + 1;
        into.trim = (range & TRIM) != 0;
        into.place = fields[at + PLACE];
        into.sequence = fields[at + SEQUENCE];
        into.epoch = fields[at + EPOCH];
        into.keyId = (int) (fields[at + NONCE] >>> 32);
        into.nonceSession = (int) fields[at + NONCE];
        into.nonceCounter = fields[at + COUNTER];
    }

    private void set(int index, Extent from) {
        ranges[index] = (int) from.start | ((from.count - 1) << SHIFT) | (from.trim ? TRIM : 0);
        int at = index * STRIDE;
        fields[at + PLACE] = from.place;
        fields[at + SEQUENCE] = from.sequence;
        fields[at + EPOCH] = from.epoch;
        fields[at + NONCE] = ((long) from.keyId << 32) | (from.nonceSession & 0xffff_ffffL);
        fields[at + COUNTER] = from.nonceCounter;
    }

    /** Index of the first extent that ends after {@code block} (relative), {@link #size}: none. */
    int find(int block) {
        int low = 0;
        int high = size;
        while (low < high) {
            int middle = (low + high) >>> 1;
            if (end(middle) <= block) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    }

    /** Appends a row read from the database; rows come in order. */
    void load(Extent row) {
        Check.that(
                row.start >= 0
                        && row.end() <= BLOCKS
                        && row.count > 0
                        && (size == 0 || end(size - 1) <= row.start),
                "rows of a page are in order and do not overlap",
                number,
                row.start,
                row.count);
        ensure(size + 1);
        set(size++, row);
    }

    private void ensure(int extents) {
        if (extents > ranges.length) {
            int length = Math.max(extents, Math.min(ranges.length * 2, BLOCKS));
            ranges = Arrays.copyOf(ranges, length);
            fields = Arrays.copyOf(fields, length * STRIDE);
        }
    }

    /**
     * Puts an extent in, where nothing newer stands.
     *
     * @param extent start relative to the page; unchanged
     * @param scratch for this call
     * @return change of the number of extents
     */
    int put(Extent extent, Scratch scratch) {
        int from = (int) extent.start;
        int to = from + extent.count;
        int first = find(from);
        if (first < size
                && start(first) == from
                && end(first) == to
                && !wins(first, extent.sequence, extent.place)) {
            // The common case: blocks are overwritten as they were written.
            count(place(first), -extent.count);
            count(extent.place, extent.count);
            set(first, extent);
            mark(from);
            return 0;
        }
        int last = first;
        scratch.clear();
        int covered = from;
        boolean remnant = false;
        for (; last < size && start(last) < to; last++) {
            get(last, scratch.old);
            int oldStart = start(last);
            int oldEnd = end(last);
            if (wins(last, extent.sequence, extent.place)) {
                if (covered < oldStart) {
                    scratch.add(extent, covered, oldStart);
                    count(extent.place, oldStart - covered);
                    mark(covered);
                }
                scratch.add(scratch.old, oldStart, oldEnd);
                covered = oldEnd;
                continue;
            }
            mark(oldStart);
            count(scratch.old.place, Math.max(oldStart, from) - Math.min(oldEnd, to));
            if (oldStart < from) {
                scratch.add(scratch.old, oldStart, from);
            }
            if (oldEnd > to) {
                scratch.rest.copy(scratch.old);
                remnant = true;
            }
        }
        if (covered < to) {
            scratch.add(extent, covered, to);
            count(extent.place, to - covered);
            mark(covered);
        }
        if (remnant) {
            scratch.add(scratch.rest, to, (int) scratch.rest.end());
            mark(to);
        }
        return replace(first, last, scratch);
    }

    /** Blocks of the record at {@code place} become live, or dead when negative. */
    private void count(long place, int blocks) {
        if (place != Place.NONE) {
            owner.usage.add(Place.segment(place), (long) blocks * Blocks.SEALED_SIZE);
        }
    }

    private boolean wins(int index, long sequence, long place) {
        long held = sequence(index);
        return held > sequence || (held == sequence && place(index) > place);
    }

    private int replace(int first, int last, Scratch by) {
        int change = by.size - (last - first);
        if (change != 0) {
            ensure(size + change);
            System.arraycopy(ranges, last, ranges, last + change, size - last);
            System.arraycopy(
                    fields,
                    last * STRIDE,
                    fields,
                    (last + change) * STRIDE,
                    (size - last) * STRIDE);
            size += change;
        }
        for (int i = 0; i < by.size; i++) {
            set(first + i, by.pieces[i]);
        }
        return change;
    }

    private void mark(int start) {
        if (dirty == null) {
            dirty = new long[BLOCKS / Long.SIZE];
        }
        dirty[start / Long.SIZE] |= 1L << start;
    }

    /** Takes the changes for a checkpoint: what stands at each marked start now, or nothing. */
    void capture(RowSink sink, Extent carrier) {
        long[] marks = dirty;
        if (marks == null) {
            return;
        }
        dirty = null;
        flushing = true;
        for (int word = 0; word < marks.length; word++) {
            for (long bits = marks[word]; bits != 0; bits &= bits - 1) {
                int start = word * Long.SIZE + Long.numberOfTrailingZeros(bits);
                int index = find(start);
                if (index < size && start(index) == start) {
                    get(index, carrier);
                    sink.put(this, carrier);
                } else {
                    sink.delete(this, start);
                }
            }
        }
    }

    /** Where captured changes go. Starts are relative to the page. */
    interface RowSink {
        void put(ExtentPage page, Extent row);

        void delete(ExtentPage page, int start);
    }

    /** Pieces that replace a stretch of a page; reused by all pages of a map. */
    static final class Scratch {
        private static final int MOST = 2 * BLOCKS + 2;

        private Extent[] pieces = new Extent[0];
        private int size;
        private final Extent old = new Extent();
        private final Extent rest = new Extent();

        private void clear() {
            size = 0;
        }

        private void add(Extent from, int start, int end) {
            if (size == pieces.length) {
                Check.that(size < MOST, "pieces of a page", size);
                pieces = Arrays.copyOf(pieces, Math.min(MOST, size * 2 + 8));
                for (int i = size; i < pieces.length; i++) {
                    pieces[i] = new Extent();
                }
            }
            Extent piece = pieces[size++];
            piece.copy(from);
            piece.clip(start, end);
        }
    }
}
