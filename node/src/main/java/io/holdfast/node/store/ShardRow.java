package io.holdfast.node.store;

import io.holdfast.node.replica.HardState;
import io.holdfast.proto.peer.MalformedException;
import java.nio.ByteBuffer;

/**
 * What a checkpoint keeps of a shard.
 *
 * <p>Layout of the row's value, all numbers big-endian; the key is volume (4 bytes) and index (4):
 *
 * <pre>
 * offset size field
 *      0    1 version      1
 *      1    1 standing     {@link HardState.Standing#code}
 *      2    2 reserved     0
 *      4    4 promised to
 *      8    8 promised
 *     16    8 applied epoch
 *     24    8 applied      the map of this checkpoint holds exactly the log through here
 *     32    8 from         place in the journal: records of the shard before it are of no interest
 *     40      state        of the core at {@code applied}
 * </pre>
 */
record ShardRow(
        HardState hardState, long appliedEpoch, long applied, long from, byte[] shardState) {
    static final int VERSION = 1;
    private static final int STATE = 40;

    byte[] encode() {
        ByteBuffer out = ByteBuffer.allocate(STATE + shardState.length);
        out.put((byte) VERSION);
        out.put((byte) hardState.standing().code);
        out.putShort((short) 0);
        out.putInt(hardState.promisedTo());
        out.putLong(hardState.promised());
        out.putLong(appliedEpoch);
        out.putLong(applied);
        out.putLong(from);
        out.put(shardState);
        return out.array();
    }

    /**
     * Reads a row.
     *
     * @throws MalformedException when it is of another version or too short
     */
    static ShardRow decode(byte[] bytes) {
        if (bytes.length < STATE || bytes[0] != VERSION) {
            throw new MalformedException(
                    "shard row of "
                            + bytes.length
                            + " bytes"
                            + (bytes.length == 0 ? "" : " and version " + bytes[0])
                            + "; this program knows version "
                            + VERSION);
        }
        ByteBuffer in = ByteBuffer.wrap(bytes);
        HardState hardState = new HardState(in.getLong(8), in.getInt(4), Mark.standing(bytes[1]));
        byte[] state = new byte[bytes.length - STATE];
        in.get(STATE, state);
        return new ShardRow(hardState, in.getLong(16), in.getLong(24), in.getLong(32), state);
    }
}
