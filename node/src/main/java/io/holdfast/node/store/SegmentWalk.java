package io.holdfast.node.store;

import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.MalformedException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * Goes through one segment and past whatever is damaged in it, to the next bytes that are a valid
 * record. Reads only. {@link JournalScan} decides what a start makes of a damage; this finds all.
 */
final class SegmentWalk {
    /** Enough for the header of any record; payloads are jumped over. */
    private static final int HEADS_WINDOW_BYTES = 16 << 10;

    private static final int CHECKED_WINDOW_BYTES = 2 << 20;

    private static final int LENGTH_KNOWN = 12;

    private final Path file;
    private final int number;
    private final boolean checked;

    /**
     * Prepares a walk.
     *
     * @param checked whether payloads are read, too, and every checksum is verified
     */
    SegmentWalk(Path file, int number, boolean checked) {
        this.file = file;
        this.number = number;
        this.checked = checked;
    }

    /** Takes what is found, in order. */
    interface Visitor {
        /** An entry, whose payload is not of interest. */
        void entry(EntryHead entry, long place) throws IOException;

        void mark(Mark mark, long place) throws IOException;

        /**
         * No valid record from {@code from} on.
         *
         * @param to where the next one begins; or, at the end, behind the last byte that is not
         *     zero
         * @param written behind the last byte in there that is not zero
         * @param head what the first bytes seem to be; null: no entry
         */
        void damage(long from, long to, long written, String why, @Nullable EntryHead head)
                throws IOException;
    }

    /**
     * What was found of the header.
     *
     * @param header null: it is damaged, or the segment was never begun
     * @param wrong what is wrong with it; null: nothing
     * @param begun false: zeroes, as of a segment made ahead of time
     * @param other the segment says that it is of another format
     */
    record Head(
            @Nullable SegmentHeader header,
            @Nullable String wrong,
            boolean begun,
            @Nullable StoreException other) {
        static Head wrong(@Nullable String wrong) {
            return new Head(null, wrong, true, null);
        }
    }

    /** Reads the header. */
    Head head(UUID store) throws IOException {
        try (SegmentReader reader = new SegmentReader(file, SegmentHeader.SIZE)) {
            byte[] bytes = new byte[SegmentHeader.SIZE];
            reader.at(0, SegmentHeader.SIZE).get(bytes);
            if (isZero(bytes)) {
                return new Head(null, "segment header is missing: zeroes", false, null);
            }
            SegmentHeader header = SegmentHeader.decode(bytes, file.toString());
            String wrong = null;
            if (header.segment() != number) {
                wrong = "segment header is of segment " + header.segment();
            } else if (!header.store().equals(store)) {
                wrong = "segment belongs to store " + header.store() + ", not to " + store;
            }
            return wrong == null ? new Head(header, null, true, null) : Head.wrong(wrong);
        } catch (MalformedException e) {
            return Head.wrong(String.valueOf(e.getMessage()));
        } catch (StoreException e) {
            // One flipped bit may have made the version; the remedy is for the reader to choose.
            String text = String.valueOf(e.getMessage());
            return new Head(null, text.lines().findFirst().orElse(text), true, e);
        }
    }

    private static boolean isZero(byte[] bytes) {
        for (byte each : bytes) {
            if (each != 0) {
                return false;
            }
        }
        return true;
    }

    /**
     * Goes through the records.
     *
     * @param knownEnd where they end, as the next segment says, as an offset; 0: not known
     * @return offset behind the last record
     */
    long run(long knownEnd, Visitor visitor) throws IOException {
        int window = checked ? CHECKED_WINDOW_BYTES : HEADS_WINDOW_BYTES;
        try (SegmentReader reader = new SegmentReader(file, window)) {
            long limit = knownEnd == 0 ? reader.size() : knownEnd;
            long offset = SegmentHeader.SIZE;
            while (offset < limit) {
                String why;
                try {
                    offset = visit(reader, offset, checked, visitor);
                    continue;
                } catch (MalformedException e) {
                    why = String.valueOf(e.getMessage());
                }
                Gap gap = gap(reader, offset, limit);
                if (gap.written == offset && gap.next == limit && knownEnd == 0) {
                    return offset;
                }
                EntryHead head = entryHead(reader, offset);
                visitor.damage(
                        Place.of(number, offset),
                        Place.of(
                                number,
                                gap.next == limit && knownEnd == 0 ? gap.written : gap.next),
                        Place.of(number, gap.written),
                        gap.written == offset ? "zeroes where a record was" : why,
                        head);
                offset = gap.next;
            }
            return offset;
        }
    }

    private long visit(SegmentReader reader, long offset, boolean whole, Visitor visitor)
            throws IOException {
        ByteBuffer start = reader.at(offset, LENGTH_KNOWN);
        long place = Place.of(number, offset);
        boolean isMark = start.getInt(start.position()) == Mark.MAGIC;
        int length = isMark ? Mark.lengthOf(start) : Entry.lengthOf(start);
        if (offset + length > reader.size()) {
            throw new MalformedException(
                    "record of " + length + " bytes crosses the segment's end");
        }
        if (isMark) {
            visitor.mark(Mark.decode(reader.at(offset, length), place), place);
        } else {
            if (whole) {
                Entry.decode(reader.at(offset, length));
            }
            EntryHead head = EntryHead.read(reader.at(offset, Entry.HEADER_SIZE));
            if (!head.isPlausible()) {
                throw new MalformedException("entry header is not one");
            }
            visitor.entry(head, place);
        }
        return offset + Journal.padded(length);
    }

    /** Where the next valid record is, or the limit; and where the last byte before it is not 0. */
    private record Gap(long next, long written) {}

    private Gap gap(SegmentReader reader, long from, long limit) throws IOException {
        long written = from;
        for (long at = from; at < limit; at += Journal.ALIGNMENT) {
            long word = reader.at(at, Long.BYTES).getLong();
            if (word == 0) {
                continue;
            }
            int magic = (int) (word >>> Integer.SIZE);
            if (at > from
                    && (magic == Entry.MAGIC || magic == Mark.MAGIC)
                    && isRecord(reader, at)) {
                return new Gap(at, written);
            }
            written = at + Long.BYTES - Long.numberOfTrailingZeros(word) / Byte.SIZE;
        }
        return new Gap(limit, written);
    }

    private boolean isRecord(SegmentReader reader, long offset) throws IOException {
        try {
            visit(reader, offset, true, NOBODY);
            return true;
        } catch (MalformedException e) {
            return false;
        }
    }

    private static final Visitor NOBODY =
            new Visitor() {
                @Override
                public void entry(EntryHead entry, long place) {}

                @Override
                public void mark(Mark mark, long place) {}

                @Override
                public void damage(
                        long from, long to, long written, String why, @Nullable EntryHead head) {}
            };

    private static @Nullable EntryHead entryHead(SegmentReader reader, long offset)
            throws IOException {
        ByteBuffer start = reader.at(offset, Entry.HEADER_SIZE);
        return start.getInt(start.position()) == Entry.MAGIC ? EntryHead.read(start) : null;
    }
}
