package io.holdfast.node.store;

import io.holdfast.node.store.ExtentPage.Extent;
import io.holdfast.proto.peer.MalformedException;
import io.holdfast.proto.peer.ShardId;
import java.nio.ByteBuffer;

/**
 * An extent as a row of the database.
 *
 * <p>Key, big-endian so that rows are sorted by shard, layer and block:
 *
 * <pre>
 * offset size field
 *      0    4 volume
 *      4    4 shard
 *      8    4 layer
 *     12    8 block   first block
 * </pre>
 *
 * <p>Value, all numbers big-endian:
 *
 * <pre>
 * offset size field
 *      0    1 version       1
 *      1    1 flags         bit 0: zeroes that came from TRIM
 *      2    2 count         blocks, 1 to {@link ExtentPage#BLOCKS}
 *      4    8 place         of the first sealed block in the journal, 0: zeroes
 *     12    8 sequence      of the write
 *     20    8 epoch         of the write
 *     28    4 key id        0 for zeroes, like the following
 *     32    4 nonce session
 *     36    8 nonce counter of the first block
 * </pre>
 */
final class ExtentRow {
    private ExtentRow() {}

    static final int KEY_SIZE = 20;
    static final int VALUE_SIZE = 44;
    static final int VERSION = 1;
    private static final int TRIM = 1;

    static void key(ByteBuffer out, ShardId shard, int layer, long block) {
        out.putInt(shard.volume()).putInt(shard.index()).putInt(layer).putLong(block);
    }

    static byte[] key(ShardId shard, int layer, long block) {
        ByteBuffer out = ByteBuffer.allocate(KEY_SIZE);
        key(out, shard, layer, block);
        return out.array();
    }

    static void value(ByteBuffer out, Extent extent) {
        out.put((byte) VERSION);
        out.put((byte) (extent.trim ? TRIM : 0));
        out.putShort((short) extent.count);
        out.putLong(extent.place);
        out.putLong(extent.sequence);
        out.putLong(extent.epoch);
        out.putInt(extent.keyId);
        out.putInt(extent.nonceSession);
        out.putLong(extent.nonceCounter);
    }

    static int layer(byte[] key) {
        return ByteBuffer.wrap(key).getInt(8);
    }

    static long block(byte[] key) {
        return ByteBuffer.wrap(key).getLong(12);
    }

    /**
     * Reads a value.
     *
     * @param into filled, except for the start
     * @throws MalformedException when it is of another version or cannot be
     */
    static void decode(byte[] value, Extent into) {
        if (value.length != VALUE_SIZE || value[0] != VERSION) {
            throw new MalformedException(
                    "extent row of "
                            + value.length
                            + " bytes"
                            + (value.length == 0 ? "" : " and version " + value[0])
                            + "; this program knows version "
                            + VERSION);
        }
        ByteBuffer in = ByteBuffer.wrap(value);
        into.trim = (value[1] & TRIM) != 0;
        into.count = in.getShort(2);
        into.place = in.getLong(4);
        into.sequence = in.getLong(12);
        into.epoch = in.getLong(20);
        into.keyId = in.getInt(28);
        into.nonceSession = in.getInt(32);
        into.nonceCounter = in.getLong(36);
        if (into.count < 1 || into.count > ExtentPage.BLOCKS) {
            throw new MalformedException("extent row of " + into.count + " blocks");
        }
    }
}
