package io.holdfast.node.store;

import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.MalformedException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Entries of a shard's log, from memory or from their places in the journal, verified. Owned by the
 * data loop, where it also reads: entries that fell out of memory were written lately, so they are
 * nearly always in the page cache.
 */
final class LogReader {
    private static final Logger LOG = LoggerFactory.getLogger(LogReader.class);

    private final SegmentTable segments;

    /** Part of a segment read ahead, since a shard's entries tend to stand close together. */
    private final byte[] chunk = new byte[2 * Entry.MAX_SIZE];

    private long chunkFrom;
    private int chunkBytes;

    LogReader(SegmentTable segments) {
        this.segments = segments;
    }

    /** See {@link io.holdfast.node.port.Store#log}. */
    List<Entry> read(ShardStore shard, long from, long through, int maxBytes) {
        List<Entry> entries = new ArrayList<>();
        long bytes = 0;
        chunkBytes = 0;
        for (long at = from; at <= through; at++) {
            Entry entry = entry(shard, at);
            if (entry == null) {
                break;
            }
            bytes += entry.sizeBytes();
            if (bytes > maxBytes && !entries.isEmpty()) {
                break;
            }
            entries.add(entry);
        }
        return entries;
    }

    private @Nullable Entry entry(ShardStore shard, long sequence) {
        Entry cached = shard.log.cached(sequence);
        if (cached != null) {
            return cached;
        }
        long place = shard.log.place(sequence);
        if (place == Place.NONE) {
            return null;
        }
        try {
            Entry entry = Entry.decode(chunk(place));
            if (entry.sequence() != sequence || !entry.shard().equals(shard.id)) {
                throw new MalformedException("found " + entry);
            }
            return entry;
        } catch (MalformedException | IOException e) {
            LOG.error(
                    "Entry {} of shard {} at {} cannot be read; followers catch up by extents",
                    sequence,
                    shard.id,
                    Place.text(place),
                    e);
            return null;
        }
    }

    /** The bytes from {@code place} on; the whole record is among them. */
    private ByteBuffer chunk(long place) throws IOException {
        long skip = place - chunkFrom;
        boolean held = chunkBytes > 0 && skip >= 0 && skip + Entry.HEADER_SIZE <= chunkBytes;
        if (held) {
            ByteBuffer start = ByteBuffer.wrap(chunk, (int) skip, chunkBytes - (int) skip);
            if (Entry.lengthOf(start) <= start.remaining()) {
                return start;
            }
        }
        SegmentTable.Handle handle = segments.pin(Place.segment(place));
        try {
            ByteBuffer into = ByteBuffer.wrap(chunk);
            while (into.hasRemaining()
                    && handle.file.read(into, Place.offset(place) + into.position()) >= 0) {
                chunkBytes = into.position();
            }
            chunkFrom = place;
            chunkBytes = into.position();
            return into.flip();
        } finally {
            segments.unpin(handle);
        }
    }
}
