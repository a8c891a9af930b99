package io.holdfast.node.store;

import io.holdfast.proto.peer.MalformedException;
import io.holdfast.proto.peer.ShardId;
import java.nio.ByteBuffer;

/**
 * Live bytes of one shard in one segment as a row of the database; see {@link SegmentUsage}.
 *
 * <p>All numbers big-endian. Key:
 *
 * <pre>
 * offset size field
 *      0    4 volume
 *      4    4 shard
 *      8    4 segment
 * </pre>
 *
 * <p>Value:
 *
 * <pre>
 * offset size field
 *      0    8 live     bytes of sealed blocks that the shard's extents point to, from 1
 * </pre>
 *
 * @param live bytes, 0: the shard has nothing in the segment, and there is no row
 */
record UsageRow(ShardId shard, int segment, long live) {
    private static final int KEY_SIZE = 12;

    byte[] key() {
        return ByteBuffer.allocate(KEY_SIZE)
                .putInt(shard.volume())
                .putInt(shard.index())
                .putInt(segment)
                .array();
    }

    byte[] value() {
        return ByteBuffer.allocate(Long.BYTES).putLong(live).array();
    }

    /**
     * Reads a row.
     *
     * @throws MalformedException when it cannot be one
     */
    static UsageRow decode(byte[] key, byte[] value) {
        if (key.length != KEY_SIZE || value.length != Long.BYTES) {
            throw new MalformedException(
                    "usage row with a key of " + key.length + " and " + value.length + " bytes");
        }
        ByteBuffer name = ByteBuffer.wrap(key);
        UsageRow row =
                new UsageRow(
                        new ShardId(name.getInt(0), name.getInt(4)),
                        name.getInt(8),
                        ByteBuffer.wrap(value).getLong());
        if (row.segment < 1 || row.live < 1) {
            throw new MalformedException("usage row of " + row);
        }
        return row;
    }
}
