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

        void damage(Damage damage) throws IOException;
    }

    /**
     * No valid record from {@code from} on.
     *
     * @param to where the next one begins; or, at the end, behind the last byte that is not zero
     * @param behindEnd the next segment says that the records end before this
     * @param torn may be what a write left that ended half-way: a part of a record, then zeroes
     * @param record what the first bytes seem to be; null: nothing that is known
     * @param head the fields of an entry; null: it seems to be none
     */
    record Damage(
            long from,
            long to,
            boolean behindEnd,
            boolean torn,
            String why,
            @Nullable String record,
            @Nullable EntryHead head) {}

    /**
     * What was found of the header.
     *
     * @param header null: it is damaged, or the segment was never begun
     * @param wrong what is wrong with it; null: nothing
     * @param begun false: zeroes, as of a segment made ahead of time
     * @param elsewhere the header is sound, but this is not the segment's place: another segment's
     *     number, or another store
     * @param other the segment says that it is of another format
     */
    record Head(
            @Nullable SegmentHeader header,
            @Nullable String wrong,
            boolean begun,
            Elsewhere elsewhere,
            @Nullable StoreException other) {
        static Head wrong(String wrong, Elsewhere elsewhere) {
            return new Head(null, wrong, true, elsewhere, null);
        }
    }

    /** Whose a segment with a sound header is. */
    enum Elsewhere {
        NO,
        OTHER_SEGMENT,
        OTHER_STORE
    }

    /** Reads the header. */
    Head head(UUID store) throws IOException {
        try (SegmentReader reader = new SegmentReader(file, SegmentHeader.SIZE)) {
            byte[] bytes = new byte[SegmentHeader.SIZE];
            reader.at(0, SegmentHeader.SIZE).get(bytes);
            if (isZero(bytes)) {
                String zeroes = "segment header is missing: zeroes";
                return new Head(null, zeroes, false, Elsewhere.NO, null);
            }
            SegmentHeader header = SegmentHeader.decode(bytes, file.toString());
            if (header.segment() != number) {
                return Head.wrong(
                        "this is segment " + header.segment() + " in the place of " + number,
                        Elsewhere.OTHER_SEGMENT);
            }
            if (!header.store().equals(store)) {
                return Head.wrong(
                        "segment belongs to store " + header.store() + ", not to " + store,
                        Elsewhere.OTHER_STORE);
            }
            return new Head(header, null, true, Elsewhere.NO, null);
        } catch (MalformedException e) {
            return Head.wrong(String.valueOf(e.getMessage()), Elsewhere.NO);
        } catch (StoreException e) {
            // One flipped bit may have made the version; the remedy is for the reader to choose.
            String text = String.valueOf(e.getMessage());
            text = text.lines().findFirst().orElse(text);
            return new Head(null, text, true, Elsewhere.NO, e);
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
     * @param atLeast they went as far as this, as an offset; 0: not known
     * @return offset behind the last record
     */
    long run(long knownEnd, long atLeast, Visitor visitor) throws IOException {
        int window = checked ? CHECKED_WINDOW_BYTES : HEADS_WINDOW_BYTES;
        try (SegmentReader reader = new SegmentReader(file, window)) {
            long limit = knownEnd == 0 ? Math.max(reader.size(), atLeast) : knownEnd;
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
                boolean atEnd = gap.next == limit && knownEnd == 0;
                if (gap.written == offset && atEnd && offset >= atLeast) {
                    return offset;
                }
                long to = atEnd ? Math.max(gap.written, atLeast) : gap.next;
                if (gap.written == offset) {
                    why = "zeroes where a record was";
                } else if (gap.first > offset) {
                    why =
                            atEnd && offset >= atLeast
                                    ? "the records end here, but the bytes from offset "
                                            + gap.first
                                            + " on are not zero"
                                    : "zeroes where a record was, other bytes from offset "
                                            + gap.first
                                            + " on";
                }
                visitor.damage(damage(reader, offset, to, gap.written - offset, why));
                offset = atEnd ? to : gap.next;
                if (atEnd) {
                    return offset;
                }
            }
            readBehind(reader, limit, visitor);
            return offset;
        }
    }

    private Damage damage(SegmentReader reader, long offset, long to, long written, String why)
            throws IOException {
        ByteBuffer start = reader.at(offset, Entry.HEADER_SIZE);
        int magic = start.getInt(start.position());
        EntryHead head = magic == Entry.MAGIC ? EntryHead.read(start) : null;
        return new Damage(
                Place.of(number, offset),
                Place.of(number, to),
                false,
                JournalScan.isTorn(reader, offset, written),
                why,
                magic == Mark.MAGIC ? "mark" : null,
                head);
    }

    /** A start reads on for as long as it finds records, also behind what the next segment says. */
    private void readBehind(SegmentReader reader, long end, Visitor visitor) throws IOException {
        if (end >= reader.size()) {
            return;
        }
        Gap gap = gap(reader, end, reader.size());
        if (gap.written == end && gap.next == reader.size()) {
            return;
        }
        String why = "bytes that are not zero behind the segment's last record";
        long to = gap.next < reader.size() ? reader.size() : gap.written;
        visitor.damage(
                new Damage(
                        Place.of(number, gap.first),
                        Place.of(number, to),
                        true,
                        false,
                        why,
                        null,
                        null));
    }

    private long visit(SegmentReader reader, long offset, boolean whole, Visitor visitor)
            throws IOException {
        ByteBuffer start = reader.at(offset, LENGTH_KNOWN);
        long place = Place.of(number, offset);
        boolean isMark = start.getInt(start.position()) == Mark.MAGIC;
        int length = isMark ? Mark.lengthOf(start) : Entry.lengthOf(start);
        boolean crossesEnd = offset + length > reader.size();
        try {
            if (isMark) {
                visitor.mark(Mark.decode(reader.at(offset, length), place), place);
            } else {
                // What is beyond the file reads as zeroes, at a start, too: a record that ends with
                // zeroes may be valid without them.
                if (whole || crossesEnd) {
                    Entry.decode(reader.at(offset, length));
                }
                EntryHead head = EntryHead.read(reader.at(offset, Entry.HEADER_SIZE));
                if (!head.isPlausible()) {
                    throw new MalformedException("entry header is not one");
                }
                visitor.entry(head, place);
            }
        } catch (MalformedException e) {
            throw crossesEnd
                    ? new MalformedException(
                            "record of " + length + " bytes crosses the segment's end")
                    : e;
        }
        return offset + Journal.padded(length);
    }

    /**
     * What is between two records.
     *
     * @param first aligned offset of the first bytes that are not zero
     * @param next the next valid record, or the limit
     * @param written behind the last byte before it that is not zero
     */
    private record Gap(long first, long next, long written) {}

    private Gap gap(SegmentReader reader, long from, long limit) throws IOException {
        long written = from;
        long first = limit;
        for (long at = from; at < limit; at += Journal.ALIGNMENT) {
            long word = reader.at(at, Long.BYTES).getLong();
            if (word == 0) {
                continue;
            }
            first = Math.min(first, at);
            int magic = (int) (word >>> Integer.SIZE);
            if (at > from
                    && (magic == Entry.MAGIC || magic == Mark.MAGIC)
                    && isRecord(reader, at)) {
                return new Gap(first, at, written);
            }
            written = at + Long.BYTES - Long.numberOfTrailingZeros(word) / Byte.SIZE;
        }
        return new Gap(first, limit, written);
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
                public void damage(Damage damage) {}
            };
}
