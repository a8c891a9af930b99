package io.holdfast.node.store;

import io.holdfast.proto.peer.MalformedException;
import java.nio.ByteBuffer;
import java.util.UUID;
import java.util.zip.CRC32C;

/**
 * First bytes of a segment file. Written when the segment comes into use, together with its first
 * records; a segment prepared ahead starts with zeroes.
 *
 * <p>Layout, all numbers big-endian:
 *
 * <pre>
 * offset size field
 *      0    8 magic        "HFJOURNL"
 *      8    4 version      of the journal's format, 1
 *     12    4 checksum     CRC32C over bytes 0 to 11 and 16 to 63
 *     16    4 segment      number, as in the file's name
 *     20    4 reserved     0
 *     24   16 store        id of the store, two longs
 *     40    8 previous end place where the records of the segment before end, 0 in the first
 *     48   16 reserved     0
 * </pre>
 */
record SegmentHeader(int segment, UUID store, long previousEnd) {
    static final long MAGIC = 0x48464a4f55524e4cL;

    /** The version written, and the only one read. */
    static final int VERSION = 1;

    static final int SIZE = 64;

    byte[] encode() {
        byte[] bytes = new byte[SIZE];
        ByteBuffer out = ByteBuffer.wrap(bytes);
        out.putLong(0, MAGIC);
        out.putInt(8, VERSION);
        out.putInt(16, segment);
        out.putLong(24, store.getMostSignificantBits());
        out.putLong(32, store.getLeastSignificantBits());
        out.putLong(40, previousEnd);
        out.putInt(12, checksum(bytes));
        return bytes;
    }

    private static int checksum(byte[] bytes) {
        CRC32C crc = new CRC32C();
        crc.update(bytes, 0, 12);
        crc.update(bytes, 16, SIZE - 16);
        return (int) crc.getValue();
    }

    /**
     * Reads and verifies a header.
     *
     * @throws MalformedException when it is none, or damaged
     * @throws StoreException when it is of a version unknown here
     */
    static SegmentHeader decode(byte[] bytes, String file) throws StoreException {
        ByteBuffer in = ByteBuffer.wrap(bytes);
        if (in.getLong(0) != MAGIC) {
            throw new MalformedException("segment magic is 0x" + Long.toHexString(in.getLong(0)));
        }
        int version = in.getInt(8);
        if (version == 0) {
            throw new MalformedException("segment header has no version");
        }
        if (version != VERSION) {
            throw StoreException.otherFormat("journal segment " + file, version, VERSION);
        }
        if (in.getInt(12) != checksum(bytes)) {
            throw new MalformedException("segment header checksum does not match");
        }
        return new SegmentHeader(
                in.getInt(16), new UUID(in.getLong(24), in.getLong(32)), in.getLong(40));
    }
}
