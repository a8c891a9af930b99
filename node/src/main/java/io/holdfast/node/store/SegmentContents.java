package io.holdfast.node.store;

import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.EntryKind;
import io.holdfast.proto.peer.MalformedException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Reads a whole segment front to back in parts, for the cleaner. Every record is verified, so that
 * no damaged byte gets a new, valid checksum by being moved. One thread at a time.
 */
final class SegmentContents implements AutoCloseable {
    /** A part ends with the record that reaches this size. */
    static final int PART_BYTES = 1 << 20;

    private final Path file;
    private final int segment;
    private long offset = SegmentHeader.SIZE;

    /** Null until the first part is read, so that making this waits for nothing. */
    private @Nullable SegmentReader reader;

    SegmentContents(Path file, int segment) {
        this.file = file;
        this.segment = segment;
    }

    /** A WRITE entry and where it stands. */
    record Stored(Entry entry, long place) {}

    /**
     * Some records of the segment.
     *
     * @param writes the WRITE entries among them
     * @param last nothing follows
     * @param damage why reading ended before the segment did; null: it did not
     */
    record Part(List<Stored> writes, boolean last, @Nullable String damage) {}

    /** The next records. */
    Part next() throws IOException {
        SegmentReader from = reader;
        if (from == null) {
            from = new SegmentReader(file);
            reader = from;
        }
        return next(from);
    }

    private Part next(SegmentReader from) throws IOException {
        List<Stored> writes = new ArrayList<>();
        long end = offset + PART_BYTES;
        try {
            while (offset < end) {
                if (offset + Mark.SIZE > from.size()) {
                    return new Part(writes, true, null);
                }
                ByteBuffer start = from.at(offset, 12);
                int magic = start.getInt(start.position());
                if (magic == 0) {
                    return new Part(writes, true, null);
                }
                int length = magic == Mark.MAGIC ? Mark.lengthOf(start) : Entry.lengthOf(start);
                if (magic != Mark.MAGIC) {
                    Entry entry = Entry.decode(from.at(offset, length));
                    if (entry.kind() == EntryKind.WRITE) {
                        writes.add(new Stored(entry, Place.of(segment, offset)));
                    }
                }
                offset += Journal.padded(length);
            }
            return new Part(writes, false, null);
        } catch (MalformedException e) {
            return new Part(
                    writes, true, "offset " + offset + ": " + String.valueOf(e.getMessage()));
        }
    }

    @Override
    public void close() throws IOException {
        if (reader != null) {
            reader.close();
        }
    }
}
