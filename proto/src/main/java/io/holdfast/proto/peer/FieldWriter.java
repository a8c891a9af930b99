package io.holdfast.proto.peer;

import io.netty.buffer.ByteBuf;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/** Writes the fields that are more than one number; the counterpart of {@link FieldReader}. */
final class FieldWriter {
    private FieldWriter() {}

    static final int SHARD_SIZE = 8;
    static final int CURSOR_SIZE = 12;
    static final int NONCE_SIZE = 16;

    static void shard(ByteBuf out, ShardId shard) {
        out.writeInt(shard.volume()).writeInt(shard.index());
    }

    static void bool(ByteBuf out, boolean value) {
        out.writeByte(value ? 1 : 0);
    }

    static void cursor(ByteBuf out, ReplicaMessage.Cursor cursor) {
        out.writeInt(cursor.layer()).writeLong(cursor.block());
    }

    static void nonce(ByteBuf out, Nonce nonce) {
        out.writeInt(nonce.keyId()).writeInt(nonce.session()).writeLong(nonce.counter());
    }

    static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** UTF-8 of a text for people, cut at a character to at most {@code most} bytes. */
    static byte[] utf8Cut(String text, int most) {
        byte[] bytes = utf8(text);
        if (bytes.length <= most) {
            return bytes;
        }
        int end = most;
        while ((bytes[end] & 0xc0) == 0x80) {
            end--;
        }
        return Arrays.copyOf(bytes, end);
    }

    static void text(ByteBuf out, byte[] utf8) {
        out.writeShort(utf8.length).writeBytes(utf8);
    }

    static int identitySize(String identity) {
        int length = utf8(identity).length;
        PeerCodec.check(
                length <= Entry.MAX_IDENTITY_BYTES, "identity", length, Entry.MAX_IDENTITY_BYTES);
        return 2 + length;
    }

    static long entriesSize(List<Entry> entries) {
        PeerCodec.check(
                entries.size() <= PeerCodec.MAX_ENTRIES,
                "entry count",
                entries.size(),
                PeerCodec.MAX_ENTRIES);
        long size = 4;
        for (Entry entry : entries) {
            size += entry.sizeBytes();
        }
        return size;
    }

    static void entries(ByteBuf out, List<Entry> entries) {
        out.writeInt(entries.size());
        for (Entry entry : entries) {
            out.writeBytes(entry.header()).writeBytes(entry.payload());
        }
    }
}
