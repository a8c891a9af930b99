package io.holdfast.node.store;

import io.holdfast.node.replica.HardState;
import io.holdfast.node.replica.HardState.CatchUp;
import io.holdfast.node.replica.HardState.Standing;
import io.holdfast.proto.peer.MalformedException;
import io.holdfast.proto.peer.ShardId;
import java.nio.ByteBuffer;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/**
 * A journal record that is not an entry: what happened to a shard (or, SYNCED, to the journal).
 *
 * <p>Layout, all numbers big-endian:
 *
 * <pre>
 * offset size field
 *      0    4 magic       0x48465331 "HFS1"; the 1 is the version of this layout
 *      4    4 checksum    CRC32C over bytes 8 to the end of the body
 *      8    4 length      of the whole record: 80 + body
 *     12    1 type        {@link Type#code}
 *     13    1 standing    STATE, CREATE, BASE: {@link Standing#code}, else 0
 *     14    2 reserved    0
 *     16    4 volume      0 in SYNCED
 *     20    4 shard       0 in SYNCED
 *     24    8 place       where this record stands in the journal
 *     32    8 promised    STATE, CREATE, BASE: {@link HardState#promised}, else 0
 *     40    4 promised to STATE, CREATE, BASE: {@link HardState#promisedTo}, else 0
 *     44    4 reserved    0
 *     48    8 epoch       BASE: epoch of the base; STATE: {@link CatchUp#epoch}; else 0
 *     56    8 position    BASE: sequence of the base; STATE: {@link CatchUp#through}; TRUNCATE:
 *                         last sequence that stays; SYNCED: the place that the journal was synced
 *                         through; else 0
 *     64    8 applied     BASE: log entries through this sequence were in the map, else 0
 *     72    8 reserved    0
 *     80      body        BASE: the shard's state; else empty
 * </pre>
 *
 * @param shard null in SYNCED
 * @param state null where the type has none
 */
record Mark(
        Type type,
        @Nullable ShardId shard,
        @Nullable HardState state,
        long epoch,
        long position,
        long applied,
        byte[] body) {
    static final int MAGIC = 0x48465331;

    /** Bytes of the fixed part. */
    static final int SIZE = 80;

    /** Largest shard state a BASE can carry, in bytes; it must fit a segment, too. */
    static final int MAX_BODY = 16 << 20;

    private static final byte[] EMPTY = new byte[0];

    /** What a mark says. The code is the disk format. */
    enum Type {
        /** The shard's hard state from here on. */
        STATE(1),
        /** The shard begins here, empty; everything before is of a dropped one of its name. */
        CREATE(2),
        /** The log restarts after {@code position}. */
        BASE(3),
        /** Entries after {@code position} are no longer in the log. */
        TRUNCATE(4),
        /** The shard is gone. */
        DROP(5),
        /** All before {@code position} was synced when this was appended. */
        SYNCED(6);

        final int code;

        Type(int code) {
            this.code = code;
        }

        boolean hasState() {
            return this == STATE || this == CREATE || this == BASE;
        }
    }

    static Mark state(ShardId shard, HardState state) {
        CatchUp catchUp = state.catchUp();
        return new Mark(Type.STATE, shard, state, catchUp.epoch(), catchUp.through(), 0, EMPTY);
    }

    static Mark create(ShardId shard, HardState state) {
        return new Mark(Type.CREATE, shard, state, 0, 0, 0, EMPTY);
    }

    static Mark base(
            ShardId shard, HardState state, long epoch, long sequence, long applied, byte[] body) {
        return new Mark(Type.BASE, shard, state, epoch, sequence, applied, body);
    }

    static Mark truncate(ShardId shard, long sequence) {
        return new Mark(Type.TRUNCATE, shard, null, 0, sequence, 0, EMPTY);
    }

    static Mark drop(ShardId shard) {
        return new Mark(Type.DROP, shard, null, 0, 0, 0, EMPTY);
    }

    static Mark synced(long place) {
        return new Mark(Type.SYNCED, null, null, 0, place, 0, EMPTY);
    }

    /** The hard state from here on; a BASE leaves the catch-up as it was. */
    HardState after(HardState before) {
        return state == null
                ? before
                : type == Type.BASE ? state.withCatchUp(before.catchUp()) : state;
    }

    int sizeBytes() {
        return SIZE + body.length;
    }

    /** The record as it stands at {@code place}. */
    byte[] encode(long place) {
        byte[] bytes = new byte[sizeBytes()];
        ByteBuffer out = ByteBuffer.wrap(bytes);
        out.putInt(0, MAGIC);
        out.putInt(8, bytes.length);
        out.put(12, (byte) type.code);
        if (shard != null) {
            out.putInt(16, shard.volume());
            out.putInt(20, shard.index());
        }
        out.putLong(24, place);
        if (state != null) {
            out.put(13, (byte) state.standing().code);
            out.putLong(32, state.promised());
            out.putInt(40, state.promisedTo());
        }
        out.putLong(48, epoch);
        out.putLong(56, position);
        out.putLong(64, applied);
        out.put(SIZE, body);
        out.putInt(4, checksum(bytes));
        return bytes;
    }

    private static int checksum(byte[] record) {
        CRC32C crc = new CRC32C();
        crc.update(record, 8, record.length - 8);
        return (int) crc.getValue();
    }

    /**
     * Length of the mark that starts here.
     *
     * @param in at least 12 bytes
     * @throws MalformedException when no mark starts here
     */
    static int lengthOf(ByteBuffer in) {
        int at = in.position();
        int magic = in.getInt(at);
        if (magic != MAGIC) {
            throw new MalformedException(
                    magic >>> Byte.SIZE == MAGIC >>> Byte.SIZE
                            ? "mark of version "
                                    + (char) (magic & 0xff)
                                    + "; this program knows version "
                                    + (char) (MAGIC & 0xff)
                            : "mark magic is 0x" + Integer.toHexString(magic));
        }
        int length = in.getInt(at + 8);
        if (length < SIZE || length > SIZE + MAX_BODY) {
            throw new MalformedException("mark length is " + length);
        }
        return length;
    }

    /**
     * Reads and verifies one mark.
     *
     * @param in the whole record remaining; moved past it
     * @param place where it was found
     * @throws MalformedException when anything about it is wrong
     */
    static Mark decode(ByteBuffer in, long place) {
        if (in.remaining() < SIZE || in.remaining() < lengthOf(in)) {
            throw new MalformedException("mark cut short at " + in.remaining() + " bytes");
        }
        byte[] record = new byte[lengthOf(in)];
        in.get(record);
        ByteBuffer fields = ByteBuffer.wrap(record);
        if (fields.getInt(4) != checksum(record)) {
            throw new MalformedException("mark checksum does not match");
        }
        if (fields.getLong(24) != place) {
            throw new MalformedException(
                    "mark of place " + Place.text(fields.getLong(24)) + " at " + Place.text(place));
        }
        if (fields.getShort(14) != 0 || fields.getInt(44) != 0 || fields.getLong(72) != 0) {
            throw new MalformedException("mark has reserved bytes set");
        }
        Type type = type(record[12]);
        ShardId shard = type == Type.SYNCED ? null : shardId(fields.getInt(16), fields.getInt(20));
        long epoch = fields.getLong(48);
        long position = fields.getLong(56);
        HardState state =
                type.hasState()
                        ? new HardState(
                                fields.getLong(32),
                                fields.getInt(40),
                                standing(record[13]),
                                type == Type.STATE ? new CatchUp(epoch, position) : CatchUp.NONE)
                        : null;
        byte[] body = new byte[record.length - SIZE];
        fields.get(SIZE, body);
        return new Mark(type, shard, state, epoch, position, fields.getLong(64), body);
    }

    private static Type type(int code) {
        for (Type type : Type.values()) {
            if (type.code == code) {
                return type;
            }
        }
        throw new MalformedException("unknown mark type " + code);
    }

    static Standing standing(int code) {
        for (Standing standing : Standing.values()) {
            if (standing.code == code) {
                return standing;
            }
        }
        throw new MalformedException("unknown standing " + code);
    }

    private static ShardId shardId(int volume, int index) {
        if (volume < 1 || index < 0 || index > ShardId.MAX_INDEX) {
            throw new MalformedException("mark of shard " + volume + "/" + index);
        }
        return new ShardId(volume, index);
    }
}
