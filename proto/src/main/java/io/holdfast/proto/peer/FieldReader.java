package io.holdfast.proto.peer;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * Reads and validates the fields of one message, in order. Every method names the field in the
 * {@link MalformedException} that it throws when the bytes are missing or out of range.
 */
final class FieldReader {
    private static final byte[] EMPTY = new byte[0];

    private final ByteBuffer in;
    private int type;

    /** A reader of type and fields, from the buffer's position to its limit. */
    FieldReader(ByteBuffer in) {
        this.in = in;
    }

    int type() {
        type = unsignedByte("type");
        return type;
    }

    private MalformedException malformed(String field, Object value) {
        return new MalformedException("message type " + type + ": " + field + " is " + value);
    }

    private void need(long bytes, String field) {
        if (in.remaining() < bytes) {
            throw malformed(field, "cut short at " + in.remaining() + " of " + bytes + " bytes");
        }
    }

    ShardId shard() {
        need(8, "shard");
        int volume = in.getInt();
        int index = in.getInt();
        if (volume < 1 || index < 0 || index > ShardId.MAX_INDEX) {
            throw malformed("shard", volume + "/" + index);
        }
        return new ShardId(volume, index);
    }

    int unsignedByte(String field) {
        need(1, field);
        return in.get() & 0xff;
    }

    boolean bool(String field) {
        int value = unsignedByte(field);
        if (value > 1) {
            throw malformed(field, value);
        }
        return value == 1;
    }

    int intIn(String field, int least, int most) {
        need(4, field);
        int value = in.getInt();
        if (value < least || value > most) {
            throw malformed(field, value);
        }
        return value;
    }

    /** An int from 0. */
    int natural(String field) {
        return intIn(field, 0, Integer.MAX_VALUE);
    }

    long longFrom(String field, long least) {
        long value = anyLong(field);
        if (value < least) {
            throw malformed(field, value);
        }
        return value;
    }

    /** A long from 0. */
    long naturalLong(String field) {
        return longFrom(field, 0);
    }

    long anyLong(String field) {
        need(8, field);
        return in.getLong();
    }

    /** First block of a range; the range's end is checked with {@link #endOf}. */
    long block() {
        return naturalLong("block");
    }

    /** Block after the last one of a range that must not pass {@link Blocks#END}. */
    long endOf(long block, int count) {
        if (block > Blocks.END - count) {
            throw malformed("block", block + " with count " + count);
        }
        return block + count;
    }

    ReplicaMessage.Cursor cursor(String field) {
        int layer = natural(field + ".layer");
        return new ReplicaMessage.Cursor(layer, naturalLong(field + ".block"));
    }

    /** A nonce of sealed blocks. */
    Nonce nonce() {
        Nonce nonce = nonceOrNone();
        if (nonce.keyId() == 0) {
            throw malformed("nonce.keyId", 0);
        }
        return nonce;
    }

    /** A nonce, or exactly {@link Nonce#NONE}. */
    Nonce nonceOrNone() {
        int keyId = natural("nonce.keyId");
        int session = natural("nonce.session");
        long counter = naturalLong("nonce.counter");
        if (keyId == 0) {
            if (session != 0 || counter != 0) {
                throw malformed("nonce without key", session + "/" + counter);
            }
            return Nonce.NONE;
        }
        if (session == 0) {
            throw malformed("nonce.session", 0);
        }
        return new Nonce(keyId, session, counter);
    }

    /** Sealed blocks; their number was checked before. */
    byte[] sealed(int count) {
        return bytes("payload", count * Blocks.SEALED_SIZE);
    }

    /** A length of 4 bytes and so many bytes. */
    byte[] sizedBytes(String field, int most) {
        return bytes(field, intIn(field + " length", 0, most));
    }

    /** So many bytes; their number was checked before. */
    byte[] bytes(String field, int length) {
        need(length, field);
        if (length == 0) {
            return EMPTY;
        }
        byte[] bytes = new byte[length];
        in.get(bytes);
        return bytes;
    }

    /** A length of 2 bytes and so many bytes of UTF-8. */
    String text(String field, int least, int most) {
        need(2, field);
        int length = in.getShort() & 0xffff;
        if (length < least || length > most) {
            throw malformed(field + " length", length);
        }
        byte[] bytes = bytes(field, length);
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
        } catch (CharacterCodingException e) {
            MalformedException malformed = malformed(field, "not UTF-8");
            malformed.addSuppressed(e);
            throw malformed;
        }
    }

    /** A count of 4 bytes and so many entries, all of one shard. */
    List<Entry> entries(String field, ShardId shard) {
        int count = intIn(field + " count", 0, PeerCodec.MAX_ENTRIES);
        need((long) count * Entry.HEADER_SIZE, field);
        if (count == 0) {
            return List.of();
        }
        List<Entry> entries = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            Entry entry = Entry.decode(in);
            if (!entry.shard().equals(shard)) {
                throw malformed(field + "[" + i + "].shard", entry.shard());
            }
            entries.add(entry);
        }
        return List.copyOf(entries);
    }

    /** Fails unless {@code holds}, for rules between fields. */
    void require(boolean holds, String field, Object value) {
        if (!holds) {
            throw malformed(field, value);
        }
    }

    void end() {
        if (in.hasRemaining()) {
            throw malformed("end", in.remaining() + " bytes too early");
        }
    }
}
