package io.holdfast.node.store;

import io.holdfast.node.replica.HardState;
import io.holdfast.node.replica.HardState.CatchUp;
import io.holdfast.proto.peer.MalformedException;
import java.nio.ByteBuffer;

/**
 * What a checkpoint keeps of a shard.
 *
 * <p>Layout of the row's value, all numbers big-endian; the key is volume (4 bytes) and index (4):
 *
 * <pre>
 * offset size field
 *      0    1 version      2
 *      1    1 standing     {@link HardState.Standing#code}
 *      2    2 reserved     0
 *      4    4 promised to
 *      8    8 promised
 *     16    8 applied epoch
 *     24    8 applied      the map of this checkpoint holds exactly the log through here
 *     32    8 from         place in the journal: records of the shard before it are of no interest
 *     40    8 catch-up's epoch, and
 *     48    8 its base     {@link HardState#catchUp}
 *     56      state        of the core at {@code applied}
 * </pre>
 *
 * <p>Version 1, which is read, too, has the state at 40, and no catch-up.
 */
record ShardRow(
        HardState hardState, long appliedEpoch, long applied, long from, byte[] shardState) {
    static final int VERSION = 2;
    private static final int STATE = 56;
    private static final int STATE_IN_VERSION_1 = 40;

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
        out.putLong(hardState.catchUp().epoch());
        out.putLong(hardState.catchUp().through());
        out.put(shardState);
        return out.array();
    }

    /**
     * Reads a row.
     *
     * @throws MalformedException when it is of another version or too short
     */
    static ShardRow decode(byte[] bytes) {
        boolean first = bytes.length > 0 && bytes[0] == 1;
        int start = first ? STATE_IN_VERSION_1 : STATE;
        if (bytes.length < start || (bytes[0] != VERSION && !first)) {
            throw new MalformedException(
                    "shard row of "
                            + bytes.length
                            + " bytes"
                            + (bytes.length == 0 ? "" : " and version " + bytes[0])
                            + "; this program knows versions 1 and "
                            + VERSION);
        }
        ByteBuffer in = ByteBuffer.wrap(bytes);
        HardState hardState =
                new HardState(
                        in.getLong(8),
                        in.getInt(4),
                        Mark.standing(bytes[1]),
                        first ? CatchUp.NONE : new CatchUp(in.getLong(40), in.getLong(48)));
        byte[] state = new byte[bytes.length - start];
        in.get(start, state);
        return new ShardRow(hardState, in.getLong(16), in.getLong(24), in.getLong(32), state);
    }
}
