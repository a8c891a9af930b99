package io.holdfast.node.store;

import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.MalformedException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.NavigableMap;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads the journal at start: every record from a place on, in order, to the end; then makes the
 * end clean, so that the next record can follow.
 *
 * <p>Reading stops at the first bytes that are no record. What they are is decided so:
 *
 * <ol>
 *   <li>They stand before a place that is known to have been synced (by the last checkpoint, or by
 *       a SYNCED mark that stands anywhere after them): <em>corruption</em>.
 *   <li>No valid record stands after them, here or in later segments, and rule 4 does not hold: a
 *       <em>torn tail</em>, the end of what a crash let through. It is cut.
 *   <li>There are valid records after them, and the machine has not been restarted since they were
 *       written (or the store was closed cleanly): the page cache cannot have lost them in the
 *       middle, so this is <em>corruption</em>.
 *   <li>No valid record stands after them, the machine has not been restarted, and they are not
 *       what a write leaves that ended half-way, which is the beginning of a record, or of the next
 *       segment's header, and then zeroes only: <em>corruption</em>. (A record that is complete but
 *       for its checksum, say. One whose own last bytes are zeroes cannot be told from a torn one.)
 *   <li>There are valid records after them, and the machine was restarted uncleanly: the unsynced
 *       tail reached the disk in part. It is cut. (The replicas here become learners, because their
 *       tails may be gone; so even if it was bit rot in synced bytes that no mark proved, nothing
 *       that was promised hangs on them.)
 * </ol>
 *
 * <p>Cutting removes later segments, and all behind the place from its own, so that no record from
 * behind the cut can ever come back to life behind a new one. It is synced before the journal is
 * used. A crash in the middle leaves what can be cut again: a later segment or none, then a torn
 * record or none.
 */
final class JournalScan {
    private static final Logger LOG = LoggerFactory.getLogger(JournalScan.class);

    /** Takes the records. */
    interface Visitor {
        void entry(Entry entry, long place) throws IOException;

        void mark(Mark mark, long place) throws IOException;
    }

    /**
     * Where the journal goes on.
     *
     * @param place of the next record; offset 0: the segment is to be begun
     * @param previousEnd end of the segment before
     * @param scannedBytes read as records
     * @param cut whether a torn or unsynced tail was cut
     */
    record End(long place, long previousEnd, long scannedBytes, boolean cut) {}

    /** A record's first bytes, which say how long it is. */
    private static final int LENGTH_KNOWN = 12;

    private final Path directory;
    private final UUID store;
    private final long provenSynced;
    private final boolean tailMayBeLost;
    private final NavigableMap<Integer, Path> files;
    private long scannedBytes;

    /**
     * Prepares to read the segments that are there now.
     *
     * @param provenSynced all before this place was synced
     * @param tailMayBeLost the machine was restarted without the store having been closed
     */
    JournalScan(Path directory, UUID store, long provenSynced, boolean tailMayBeLost)
            throws IOException {
        this.directory = directory;
        this.store = store;
        this.provenSynced = provenSynced;
        this.tailMayBeLost = tailMayBeLost;
        files = Segments.list(directory);
    }

    /**
     * Reads from {@code from} on and cleans the end.
     *
     * @throws StoreException on corruption or an unknown version; the message names file and offset
     */
    End run(long from, Visitor visitor) throws IOException {
        int number = Place.segment(from);
        long offset = Place.offset(from);
        long previousEnd = 0;
        while (true) {
            Path file = files.get(number);
            if (file == null) {
                return endAt(Place.of(number, 0), previousEnd, "segment is missing");
            }
            try (SegmentReader reader = new SegmentReader(file)) {
                String badHeader = checkHeader(reader, number, previousEnd);
                if (badHeader != null) {
                    return endAt(Place.of(number, 0), previousEnd, badHeader);
                }
                if (previousEnd == 0) {
                    previousEnd = header(reader).previousEnd();
                }
                offset = Math.max(offset, SegmentHeader.SIZE);
                String stopped = null;
                while (stopped == null && offset < reader.size()) {
                    try {
                        long next = visit(reader, number, offset, visitor);
                        scannedBytes += next - offset;
                        offset = next;
                    } catch (MalformedException e) {
                        stopped = String.valueOf(e.getMessage());
                    }
                }
                long place = Place.of(number, offset);
                if (!nextContinues(number, place)) {
                    return endAt(place, previousEnd, stopped == null ? "segment ends" : stopped);
                }
                previousEnd = place;
                number++;
                offset = 0;
            }
        }
    }

    private static SegmentHeader header(SegmentReader reader) throws IOException {
        byte[] bytes = new byte[SegmentHeader.SIZE];
        reader.at(0, SegmentHeader.SIZE).get(bytes);
        return SegmentHeader.decode(bytes, reader.file().toString());
    }

    private @Nullable String checkHeader(SegmentReader reader, int number, long previousEnd)
            throws IOException {
        SegmentHeader header;
        try {
            header = header(reader);
        } catch (MalformedException e) {
            return String.valueOf(e.getMessage());
        }
        if (header.segment() != number) {
            return "header is of segment " + header.segment();
        }
        if (!header.store().equals(store)) {
            throw new StoreException(
                    reader.file() + " belongs to store " + header.store() + ", not to " + store);
        }
        if (previousEnd != 0 && header.previousEnd() != previousEnd) {
            return "segment follows " + Place.text(header.previousEnd());
        }
        return null;
    }

    /** Whether the next segment says that this one's records end exactly here. */
    private boolean nextContinues(int number, long end) throws IOException {
        Path next = files.get(number + 1);
        if (next == null) {
            return false;
        }
        try (SegmentReader reader = new SegmentReader(next)) {
            return header(reader).previousEnd() == end;
        } catch (MalformedException e) {
            return false;
        }
    }

    /** Takes the record at the offset; returns where the next one starts. */
    private static long visit(SegmentReader reader, int number, long offset, Visitor visitor)
            throws IOException {
        ByteBuffer start = reader.at(offset, LENGTH_KNOWN);
        long place = Place.of(number, offset);
        if (start.getInt(start.position()) == Mark.MAGIC) {
            int length = Mark.lengthOf(start);
            Mark mark = Mark.decode(reader.at(offset, length), place);
            visitor.mark(mark, place);
            return offset + Journal.padded(length);
        }
        int length = Entry.lengthOf(start);
        Entry entry = Entry.decode(reader.at(offset, length));
        visitor.entry(entry, place);
        return offset + Journal.padded(length);
    }

    /** Finds out what the bytes at {@code place} are, and makes it the end if it may be. */
    private End endAt(long place, long previousEnd, String why) throws IOException {
        Later later = later(place);
        Path file = Segments.file(directory, Place.segment(place));
        String where = file + " at offset " + Place.offset(place) + ": " + why;
        if (Long.max(provenSynced, later.synced) > place) {
            throw new StoreException(
                    "journal is damaged: "
                            + where
                            + ", but the journal was synced through "
                            + Place.text(Long.max(provenSynced, later.synced)));
        }
        if (later.first != Place.NONE && !tailMayBeLost) {
            throw new StoreException(
                    "journal is damaged: "
                            + where
                            + ", but a valid record follows at "
                            + Place.text(later.first));
        }
        if (later.garbage && !tailMayBeLost && !isTorn(place, later)) {
            throw new StoreException(
                    "journal is damaged: "
                            + where
                            + ", and the bytes there are no torn write: they end at "
                            + Place.text(later.end));
        }
        if (later.garbage) {
            LOG.warn(
                    "Cut the journal's tail, which had not been synced: {}{}",
                    where,
                    later.first == Place.NONE
                            ? ""
                            : "; records behind it are lost, too, from " + Place.text(later.first));
        }
        syncEarlierSegments(Place.segment(place));
        clean(place, later.garbage);
        return new End(place, previousEnd, scannedBytes, later.garbage);
    }

    /**
     * What stands after a place.
     *
     * @param first valid record, or {@link Place#NONE}
     * @param synced the furthest that a mark after the place claims to be synced
     * @param garbage whether anything but zeroes stands from the place on
     * @param begin the first of it, to the word
     * @param end place behind the last byte that is not zero and in no valid record
     */
    private record Later(long first, long synced, boolean garbage, long begin, long end) {}

    /**
     * Whether a write that ended half-way leaves just this: a part of a record, or of the header of
     * a segment that had just been begun, then zeroes.
     */
    private boolean isTorn(long place, Later later) throws IOException {
        int segment = Place.segment(place);
        int begun = Place.segment(later.begin);
        Path file = files.get(begun);
        if (file == null || begun != Place.segment(later.end)) {
            return false;
        }
        if (Place.offset(later.begin) == 0) {
            return begun <= segment + 1 && Place.offset(later.end) <= SegmentHeader.SIZE;
        }
        try (SegmentReader reader = new SegmentReader(file)) {
            return later.begin == place && isTorn(reader, Place.offset(place), later.end - place);
        }
    }

    /** Whether some bytes, with zeroes behind them, are a part of a record. */
    static boolean isTorn(SegmentReader reader, long offset, long bytes) throws IOException {
        ByteBuffer start = reader.at(offset, LENGTH_KNOWN);
        int magic = start.getInt(start.position());
        if (bytes < LENGTH_KNOWN) {
            int missing = Byte.SIZE * (int) Math.max(0, Integer.BYTES - bytes);
            return magic >>> missing == Entry.MAGIC >>> missing
                    || magic >>> missing == Mark.MAGIC >>> missing;
        }
        try {
            return bytes < (magic == Mark.MAGIC ? Mark.lengthOf(start) : Entry.lengthOf(start));
        } catch (MalformedException e) {
            return false;
        }
    }

    private Later later(long place) throws IOException {
        long[] found = {Place.NONE, 0};
        boolean garbage = false;
        long begin = place;
        long end = place;
        int from = Place.segment(place);
        Visitor claims =
                new Visitor() {
                    @Override
                    public void entry(Entry entry, long at) {
                        note(at);
                    }

                    @Override
                    public void mark(Mark mark, long at) {
                        note(at);
                        if (mark.type() == Mark.Type.SYNCED) {
                            found[1] = Long.max(found[1], mark.position());
                        }
                    }

                    private void note(long at) {
                        found[0] = found[0] == Place.NONE ? at : found[0];
                    }
                };
        for (var file : files.tailMap(from, true).entrySet()) {
            int number = file.getKey();
            long offset = number == from ? Place.offset(place) : 0;
            try (SegmentReader reader = new SegmentReader(file.getValue())) {
                while (offset < reader.size()) {
                    long word = reader.at(offset, Journal.ALIGNMENT).getLong();
                    if (word == 0) {
                        offset += Journal.ALIGNMENT;
                        continue;
                    }
                    begin = garbage ? begin : Place.of(number, offset);
                    garbage = true;
                    int zeroes = Long.numberOfTrailingZeros(word) / Byte.SIZE;
                    end = Place.of(number, offset + Long.BYTES - zeroes);
                    offset = skip(reader, number, offset, claims);
                }
            }
        }
        return new Later(found[0], found[1], garbage, begin, end);
    }

    private static long skip(SegmentReader reader, int number, long offset, Visitor claims)
            throws IOException {
        int magic = reader.at(offset, Integer.BYTES).getInt();
        if (magic != Entry.MAGIC && magic != Mark.MAGIC) {
            return offset + Journal.ALIGNMENT;
        }
        try {
            return visit(reader, number, offset, claims);
        } catch (MalformedException e) {
            return offset + Journal.ALIGNMENT;
        }
    }

    /**
     * Segments before the last one are never synced again, since nothing more is written to them. A
     * process that was killed may have left them in the page cache only, and what is synced from
     * here on says that they are, too.
     */
    private void syncEarlierSegments(int last) throws IOException {
        for (Path file : files.subMap(Place.segment(provenSynced), true, last, false).values()) {
            try (FileChannel out = FileChannel.open(file, StandardOpenOption.WRITE)) {
                out.force(false);
            }
        }
    }

    private void clean(long place, boolean garbage) throws IOException {
        int last = Place.segment(place);
        boolean begun = Place.offset(place) > 0;
        NavigableMap<Integer, Path> later = files.tailMap(last, !begun);
        for (Path file : later.values()) {
            Files.delete(file);
        }
        if (!later.isEmpty()) {
            Segments.syncDirectory(directory);
        }
        if (begun && garbage) {
            Segments.cut(Segments.file(directory, last), Place.offset(place));
        }
    }
}
