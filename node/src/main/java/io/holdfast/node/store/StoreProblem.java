package io.holdfast.node.store;

import io.holdfast.proto.peer.Blocks;
import org.jspecify.annotations.Nullable;

/**
 * Something in a store that is not as it was written. What is null is not known, or has no place in
 * this kind of problem. What is said of a damaged record is read from bytes that may be damaged.
 *
 * @param kind what is damaged
 * @param place in the journal, SEGMENT:OFFSET
 * @param file that holds the place
 * @param bytes from the place on, 0: not known
 * @param record kind of the record
 * @param shard VOLUME/SHARD
 * @param sequence of the record or extent, 0: none
 * @param layer of the blocks
 * @param block first block
 * @param blocks number of blocks, 0: it has none
 * @param liveBlocks blocks that the map has in the damaged bytes: what is lost here
 * @param what in words
 */
public record StoreProblem(
        Kind kind,
        @Nullable String place,
        @Nullable String file,
        long bytes,
        @Nullable String record,
        @Nullable String shard,
        long sequence,
        int layer,
        long block,
        int blocks,
        long liveBlocks,
        String what) {
    /** What is damaged. */
    public enum Kind {
        /** A segment is missing, or its header is not right. */
        SEGMENT,
        /** Bytes that should be a record. */
        RECORD,
        /** A shard's log has a gap. */
        LOG,
        /** A row of the map. */
        MAP,
        /** An extent whose place does not hold its blocks. */
        EXTENT,
        /** Live bytes of a segment are not what the extents add up to. */
        USAGE
    }

    static StoreProblem of(Kind kind, String what) {
        return new StoreProblem(kind, null, null, 0, null, null, 0, 0, 0, 0, 0, what);
    }

    static StoreProblem at(Kind kind, long place, String file, long bytes, String what) {
        return new StoreProblem(
                kind, Place.text(place), file, bytes, null, null, 0, 0, 0, 0, 0, what);
    }

    StoreProblem about(EntryHead head) {
        return new StoreProblem(
                kind,
                place,
                file,
                bytes,
                head.kindName(),
                head.shard(),
                head.sequence(),
                head.hasBlocks() ? head.layer() : 0,
                head.hasBlocks() ? head.block() : 0,
                head.hasBlocks() ? head.count() : 0,
                liveBlocks,
                what);
    }

    StoreProblem withRecord(@Nullable String name) {
        return new StoreProblem(
                kind,
                place,
                file,
                bytes,
                name,
                shard,
                sequence,
                layer,
                block,
                blocks,
                liveBlocks,
                what);
    }

    StoreProblem withLive(long lost) {
        return new StoreProblem(
                kind, place, file, bytes, record, shard, sequence, layer, block, blocks, lost,
                what);
    }

    /** One or two lines for people. */
    public String text() {
        StringBuilder text = new StringBuilder();
        if (place != null) {
            text.append(place).append(" (").append(file);
            if (bytes > 0) {
                text.append(", ").append(bytes).append(" bytes");
            }
            text.append("): ");
        }
        text.append(what);
        if (record != null) {
            text.append("\n    ").append(record);
            if (shard != null) {
                text.append(" of shard ").append(shard).append(", sequence ").append(sequence);
            }
            if (blocks != 0) {
                text.append(", layer ").append(layer);
                text.append(", blocks ").append(block).append(" to ");
                text.append(block + blocks - 1).append(" of ").append(Blocks.SIZE).append(" bytes");
            }
        }
        if (liveBlocks > 0) {
            text.append(record == null ? "\n    " : "; ");
            text.append(liveBlocks).append(liveBlocks == 1 ? " block" : " blocks");
            text.append(" of the map lost");
        }
        return text.toString();
    }
}
