package io.holdfast.node.store;

import io.holdfast.node.store.ExtentPage.Extent;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.EntryKind;
import io.holdfast.proto.peer.MalformedException;
import io.holdfast.proto.peer.ShardId;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.LinkedHashMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads extents together with the whole records that they are in, to verify the records' checksums.
 *
 * <p>The map names blocks' bytes, not their record; but a record's blocks stand in a row behind its
 * header, and the header says which block is the first: so it is at one of {@link
 * Blocks#MAX_PER_ENTRY} places before them. Where none of these fits, the header is damaged.
 *
 * <p>Keeps the last few records, since what is left of a large one is read piece by piece. One
 * thread at a time, and one user: journal bytes never change, but damage comes and is repaired.
 */
final class RecordReader {
    private static final Logger LOG = LoggerFactory.getLogger(RecordReader.class);

    /** Records kept, 2 MiB at most. */
    private static final int KEPT = 8;

    private final ShardId shard;

    /** By the place of their first block. */
    private final LinkedHashMap<Long, Entry> recent = new LinkedHashMap<>();

    RecordReader(ShardId shard) {
        this.shard = shard;
    }

    /** What the disk says of an extent. */
    enum Verdict {
        /** The record around it has the right checksum and is the one that the map means. */
        INTACT,
        /** It has not, or says of itself that its blocks are doubtful. Some may be good. */
        DAMAGED,
        /** Some of the extent cannot be read at all: zeroes stand in for it. */
        UNREADABLE
    }

    /**
     * An extent's blocks.
     *
     * @param sealed all of them
     */
    record Found(byte[] sealed, Verdict verdict) {}

    /**
     * Reads an extent that is not of zeroes; waits for the disk.
     *
     * @param file the segment of its place
     */
    Found read(SegmentTable.Handle file, int layer, Extent extent) {
        Entry record = record(file, layer, extent);
        if (record != null) {
            int from = (int) (extent.start - record.block()) * Blocks.SEALED_SIZE;
            byte[] sealed = new byte[extent.count * Blocks.SEALED_SIZE];
            System.arraycopy(record.payload(), from, sealed, 0, sealed.length);
            return new Found(sealed, record.isDoubtful() ? Verdict.DAMAGED : Verdict.INTACT);
        }
        return blocks(file, layer, extent);
    }

    /** Block by block, so that one that cannot be read does not take the others with it. */
    private Found blocks(SegmentTable.Handle file, int layer, Extent extent) {
        byte[] sealed = new byte[extent.count * Blocks.SEALED_SIZE];
        byte[] one = new byte[Blocks.SEALED_SIZE];
        Verdict verdict = Verdict.DAMAGED;
        for (int i = 0; i < extent.count; i++) {
            int at = i * Blocks.SEALED_SIZE;
            try {
                file.read(one, Place.offset(extent.place) + at);
                System.arraycopy(one, 0, sealed, at, one.length);
            } catch (IOException e) {
                LOG.debug(
                        "Cannot read block {} of layer {} of shard {}",
                        extent.start + i,
                        layer,
                        shard,
                        e);
                verdict = Verdict.UNREADABLE;
            }
        }
        return new Found(sealed, verdict);
    }

    /** The whole record that the extent is in; null: there is none that is right. */
    private @Nullable Entry record(SegmentTable.Handle file, int layer, Extent extent) {
        byte[] header = new byte[Entry.HEADER_SIZE];
        for (int before = 0; before < Blocks.MAX_PER_ENTRY; before++) {
            Entry kept = recent.get(extent.place - (long) before * Blocks.SEALED_SIZE);
            if (kept != null && holds(kept, layer, extent, before)) {
                return kept;
            }
        }
        long offset = Place.offset(extent.place);
        for (int before = 0; before < Blocks.MAX_PER_ENTRY; before++) {
            long start = offset - (long) before * Blocks.SEALED_SIZE - Entry.HEADER_SIZE;
            if (start < SegmentHeader.SIZE) {
                return null;
            }
            try {
                file.read(header, start);
                if (ByteBuffer.wrap(header).getInt() != Entry.MAGIC) {
                    continue;
                }
                byte[] bytes = new byte[Entry.lengthOf(ByteBuffer.wrap(header))];
                file.read(bytes, start);
                Entry record = Entry.decode(ByteBuffer.wrap(bytes));
                if (holds(record, layer, extent, before)) {
                    keep(extent.place - (long) before * Blocks.SEALED_SIZE, record);
                    return record;
                }
            } catch (MalformedException | IOException e) {
                LOG.debug("No record of block {} of {} at {}", extent.start, shard, start, e);
            }
        }
        return null;
    }

    private void keep(long place, Entry record) {
        if (recent.size() >= KEPT) {
            recent.pollFirstEntry();
        }
        recent.put(place, record);
    }

    private boolean holds(Entry record, int layer, Extent extent, int before) {
        return record.shard().equals(shard)
                && record.kind() == EntryKind.WRITE
                && record.layer() == layer
                && record.sequence() == extent.sequence
                && record.block() == extent.start - before
                && before + extent.count <= record.count()
                && record.nonce().plus(before).equals(extent.nonce());
    }
}
