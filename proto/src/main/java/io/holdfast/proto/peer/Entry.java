package io.holdfast.proto.peer;

import java.nio.ByteBuffer;
import java.util.zip.CRC32C;

/**
 * One entry of a shard's log. The leader makes it, every replica journals the very same bytes, and
 * the journal record <em>is</em> the data: extents point into it.
 *
 * <p>Layout, on the wire and on disk alike; all numbers big-endian:
 *
 * <pre>
 * offset size field
 *      0    4 magic      0x48464531 "HFE1"; the 1 is the version of this layout
 *      4    4 checksum   CRC32C over bytes 8 to the end of the payload
 *      8    4 length     of the whole record: 128 + payload
 *     12    1 kind       {@link EntryKind#code}
 *     13    1 flags      bit 0: ZERO came from TRIM, the client does not need the space kept;
 *                        bit 1: moved copy (cleaner or catch-up), not part of the log's order;
 *                        bit 2: doubtful, only of a moved WRITE: the record that these blocks were
 *                        copied from was damaged, so some of them may be other than was written
 *     14    2 reserved   0
 *     16    4 volume     {@link ShardId#volume}
 *     20    4 shard      {@link ShardId#index}
 *     24    8 epoch      of the leader that made the entry, from 1
 *     32    8 sequence   position in the shard's log, from 1
 *     40    8 commit     the leader's commit point when it made the entry
 *     48    8 block      first block of a WRITE or ZERO, else 0
 *     56    4 count      blocks of a WRITE or ZERO, else 0
 *     60    4 layer      of a WRITE or ZERO, else 0
 *     64    4 key id     {@link Nonce#keyId}
 *     68    4 nonce session
 *     72    8 nonce counter
 *     80    4 session    of the client whose request this is, 0: none
 *     84    4 reserved   0
 *     88    8 request    the client's request number within its session and shard
 *     96    8 low water  all of the session's requests below this are settled at the client
 *    104    8 generation of the attachment the request belongs to, 0: none
 *    112   16 reserved   0
 *    128      payload    WRITE: count sealed blocks; CLAIM: the holder's node (4), that
 *                        node's incarnation (8), the holder's identity in UTF-8; else empty
 * </pre>
 *
 * <p>Immutable; the payload array must not be changed by anyone after construction.
 */
public final class Entry {
    /** Bytes of the fixed part. */
    public static final int HEADER_SIZE = 128;

    /** First four bytes of every record. */
    public static final int MAGIC = 0x48464531;

    /** Flag: a ZERO that came from TRIM. */
    public static final int FLAG_TRIM = 1;

    /** Flag: a moved copy of blocks that keeps its original's sequence. */
    public static final int FLAG_MOVED = 2;

    /**
     * Flag: a moved copy of blocks whose own record was damaged, or could not be read (zeroes stand
     * in for those). The checksum here is of the bytes as they were found; it must not make them
     * look good. The tag of each block tells its reader.
     */
    public static final int FLAG_DOUBTFUL = 4;

    private static final int KNOWN_FLAGS = FLAG_TRIM | FLAG_MOVED | FLAG_DOUBTFUL;

    /** Longest identity, in bytes of UTF-8. */
    public static final int MAX_IDENTITY_BYTES = 512;

    /** Largest payload any entry may have. */
    public static final int MAX_PAYLOAD = Blocks.MAX_PER_ENTRY * Blocks.SEALED_SIZE;

    /** Largest whole record. */
    public static final int MAX_SIZE = HEADER_SIZE + MAX_PAYLOAD;

    private static final byte[] EMPTY = new byte[0];

    private final ShardId shard;
    private final EntryKind kind;
    private final int flags;
    private final long epoch;
    private final long sequence;
    private final long commit;
    private final long block;
    private final int count;
    private final int layer;
    private final Nonce nonce;
    private final int session;
    private final long request;
    private final long lowWater;
    private final long generation;
    private final byte[] payload;
    private final byte[] header;

    private Entry(Builder from) {
        shard = from.shard;
        kind = from.kind;
        flags = from.flags;
        epoch = from.epoch;
        sequence = from.sequence;
        commit = from.commit;
        block = from.block;
        count = from.count;
        layer = from.layer;
        nonce = from.nonce;
        session = from.session;
        request = from.request;
        lowWater = from.lowWater;
        generation = from.generation;
        payload = from.payload;
        checkShape();
        header = encodeHeader();
    }

    private Entry(ShardId shard, EntryKind kind, ByteBuffer in, byte[] header, byte[] payload) {
        this.shard = shard;
        this.kind = kind;
        this.header = header;
        this.payload = payload;
        flags = in.get(13) & 0xff;
        epoch = in.getLong(24);
        sequence = in.getLong(32);
        commit = in.getLong(40);
        block = in.getLong(48);
        count = in.getInt(56);
        layer = in.getInt(60);
        nonce = new Nonce(in.getInt(64), in.getInt(68), in.getLong(72));
        session = in.getInt(80);
        request = in.getLong(88);
        lowWater = in.getLong(96);
        generation = in.getLong(104);
        checkShape();
    }

    /** Starts an entry; every field not set is 0 or empty. */
    public static Builder builder(ShardId shard, EntryKind kind) {
        return new Builder(shard, kind);
    }

    /**
     * Length of the record whose header starts here, checked against what a record can be, so that
     * a reader never allocates on the word of a damaged length.
     *
     * @param header at least 12 bytes from the record's start
     * @return whole length in bytes, {@link #HEADER_SIZE} to {@link #MAX_SIZE}
     * @throws MalformedException on a wrong magic or length
     */
    public static int lengthOf(ByteBuffer header) {
        int at = header.position();
        int magic = header.getInt(at);
        if (magic != MAGIC) {
            throw new MalformedException(
                    magic >>> Byte.SIZE == MAGIC >>> Byte.SIZE
                            ? "entry of version "
                                    + (char) (magic & 0xff)
                                    + "; this program knows version "
                                    + (char) (MAGIC & 0xff)
                            : "entry magic is 0x" + Integer.toHexString(magic));
        }
        int length = header.getInt(at + 8);
        if (length < HEADER_SIZE || length > MAX_SIZE) {
            throw new MalformedException("entry length is " + length);
        }
        return length;
    }

    /**
     * Reads and verifies one record.
     *
     * @param in positioned at the record's start with the whole record remaining; moved past it
     * @throws MalformedException when anything about the record is wrong, checksum included
     */
    public static Entry decode(ByteBuffer in) {
        if (in.remaining() < HEADER_SIZE) {
            throw new MalformedException("entry cut short at " + in.remaining() + " bytes");
        }
        int length = lengthOf(in);
        if (in.remaining() < length) {
            throw new MalformedException("entry of " + length + " bytes cut at " + in.remaining());
        }
        byte[] header = new byte[HEADER_SIZE];
        in.get(header);
        byte[] payload = length == HEADER_SIZE ? EMPTY : new byte[length - HEADER_SIZE];
        in.get(payload);
        ByteBuffer fields = ByteBuffer.wrap(header);
        int checksum = checksum(header, payload);
        if (checksum != fields.getInt(4)) {
            throw new MalformedException("entry checksum does not match");
        }
        if (fields.getShort(14) != 0
                || fields.getInt(84) != 0
                || fields.getLong(112) != 0
                || fields.getLong(120) != 0) {
            throw new MalformedException("entry has a reserved field that is not 0");
        }
        int volume = fields.getInt(16);
        int index = fields.getInt(20);
        if (volume < 1 || index < 0 || index > ShardId.MAX_INDEX) {
            throw new MalformedException("entry names shard " + volume + "/" + index);
        }
        EntryKind kind = EntryKind.of(header[12] & 0xff);
        return new Entry(new ShardId(volume, index), kind, fields, header, payload);
    }

    private void checkShape() {
        boolean blocks = kind == EntryKind.WRITE || kind == EntryKind.ZERO;
        int most = kind == EntryKind.WRITE ? Blocks.MAX_PER_ENTRY : Blocks.MAX_PER_ZERO;
        if ((flags & ~KNOWN_FLAGS) != 0) {
            throw new MalformedException("entry flags are 0x" + Integer.toHexString(flags));
        }
        if (isDoubtful() && !(isMoved() && kind == EntryKind.WRITE)) {
            throw new MalformedException("doubtful entry that is no moved WRITE: " + kind);
        }
        if (epoch < 1 || sequence < 1 || commit < 0) {
            throw new MalformedException(
                    "entry epoch " + epoch + ", sequence " + sequence + ", commit " + commit);
        }
        if (blocks ? count < 1 || count > most : count != 0) {
            throw new MalformedException(kind + " entry of " + count + " blocks");
        }
        if (block < 0 || block > Blocks.END - count || layer < 0) {
            throw new MalformedException("entry at block " + block + " of layer " + layer);
        }
        boolean fits =
                switch (kind) {
                    case WRITE -> payload.length == count * Blocks.SEALED_SIZE;
                    case CLAIM -> payload.length > 12 && payload.length <= 12 + MAX_IDENTITY_BYTES;
                    default -> payload.length == 0;
                };
        if (!fits) {
            throw new MalformedException(kind + " entry with a payload of " + payload.length);
        }
    }

    private byte[] encodeHeader() {
        byte[] bytes = new byte[HEADER_SIZE];
        ByteBuffer out = ByteBuffer.wrap(bytes);
        out.putInt(0, MAGIC);
        out.putInt(8, sizeBytes());
        out.put(12, (byte) kind.code);
        out.put(13, (byte) flags);
        out.putInt(16, shard.volume());
        out.putInt(20, shard.index());
        out.putLong(24, epoch);
        out.putLong(32, sequence);
        out.putLong(40, commit);
        out.putLong(48, block);
        out.putInt(56, count);
        out.putInt(60, layer);
        out.putInt(64, nonce.keyId());
        out.putInt(68, nonce.session());
        out.putLong(72, nonce.counter());
        out.putInt(80, session);
        out.putLong(88, request);
        out.putLong(96, lowWater);
        out.putLong(104, generation);
        out.putInt(4, checksum(bytes, payload));
        return bytes;
    }

    private static int checksum(byte[] header, byte[] payload) {
        CRC32C crc = new CRC32C();
        crc.update(header, 8, HEADER_SIZE - 8);
        crc.update(payload, 0, payload.length);
        return (int) crc.getValue();
    }

    /** The encoded header, checksum included. Must not be changed. */
    public byte[] header() {
        return header;
    }

    /** The payload. Must not be changed. */
    public byte[] payload() {
        return payload;
    }

    /** Bytes of the whole record. */
    public int sizeBytes() {
        return HEADER_SIZE + payload.length;
    }

    public ShardId shard() {
        return shard;
    }

    public EntryKind kind() {
        return kind;
    }

    /** Whether this ZERO came from TRIM. */
    public boolean isTrim() {
        return (flags & FLAG_TRIM) != 0;
    }

    /** Whether this is a moved copy that is not part of the log's order. */
    public boolean isMoved() {
        return (flags & FLAG_MOVED) != 0;
    }

    /** Whether this is a copy from a damaged record. */
    public boolean isDoubtful() {
        return (flags & FLAG_DOUBTFUL) != 0;
    }

    public long epoch() {
        return epoch;
    }

    public long sequence() {
        return sequence;
    }

    public long commit() {
        return commit;
    }

    public long block() {
        return block;
    }

    public int count() {
        return count;
    }

    public int layer() {
        return layer;
    }

    public Nonce nonce() {
        return nonce;
    }

    public int session() {
        return session;
    }

    public long request() {
        return request;
    }

    public long lowWater() {
        return lowWater;
    }

    public long generation() {
        return generation;
    }

    @Override
    public String toString() {
        return kind
                + " "
                + shard
                + " "
                + epoch
                + ":"
                + sequence
                + " blocks "
                + block
                + "+"
                + count
                + " session "
                + session
                + "#"
                + request;
    }

    /** Collects an entry's fields. Not reusable. */
    public static final class Builder {
        private final ShardId shard;
        private final EntryKind kind;
        private int flags;
        private long epoch;
        private long sequence;
        private long commit;
        private long block;
        private int count;
        private int layer;
        private Nonce nonce = Nonce.NONE;
        private int session;
        private long request;
        private long lowWater;
        private long generation;
        private byte[] payload = EMPTY;

        private Builder(ShardId shard, EntryKind kind) {
            this.shard = shard;
            this.kind = kind;
        }

        /** Position in the log, and the leader's commit point. */
        public Builder at(long epoch, long sequence, long commit) {
            this.epoch = epoch;
            this.sequence = sequence;
            this.commit = commit;
            return this;
        }

        /** The blocks a WRITE or ZERO is about. */
        public Builder blocks(int layer, long block, int count) {
            this.layer = layer;
            this.block = block;
            this.count = count;
            return this;
        }

        /** The client's request behind this entry. */
        public Builder request(int session, long request, long lowWater, long generation) {
            this.session = session;
            this.request = request;
            this.lowWater = lowWater;
            this.generation = generation;
            return this;
        }

        /** Sealed blocks and the name of their nonces. */
        public Builder sealed(Nonce nonce, byte[] payload) {
            this.nonce = nonce;
            this.payload = payload;
            return this;
        }

        /** Payload of a CLAIM. */
        public Builder payload(byte[] payload) {
            this.payload = payload;
            return this;
        }

        /** {@link #FLAG_TRIM}, {@link #FLAG_MOVED} and {@link #FLAG_DOUBTFUL}. */
        public Builder flags(int flags) {
            this.flags = flags;
            return this;
        }

        /**
         * The finished entry.
         *
         * @throws MalformedException when the fields do not fit each other
         */
        public Entry build() {
            return new Entry(this);
        }
    }
}
