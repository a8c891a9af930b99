package io.holdfast.proto.nbd;

import io.netty.buffer.ByteBuf;

/**
 * Replies of the transmission phase.
 *
 * <p>Section "Simple reply message":
 *
 * <pre>
 * offset  bytes  field
 *      0      4  NBD_SIMPLE_REPLY_MAGIC
 *      4      4  error, 0: none
 *      8      8  cookie
 *     16         data of a successful READ
 * </pre>
 *
 * <p>Section "Structured reply chunk message":
 *
 * <pre>
 * offset  bytes  field
 *      0      4  NBD_STRUCTURED_REPLY_MAGIC
 *      4      2  flags, NBD_REPLY_FLAG
 *      6      2  type, NBD_REPLY_TYPE
 *      8      8  cookie
 *     16      4  length n of the payload, unsigned
 *     20      n  payload
 * </pre>
 */
public final class NbdReplyEncoder {
    private NbdReplyEncoder() {}

    /** Bytes of a simple reply without data. */
    public static final int SIMPLE_SIZE = 16;

    /** Bytes of a chunk's header. */
    public static final int CHUNK_SIZE = 20;

    /** Bytes of an OFFSET_DATA chunk before its data. */
    public static final int OFFSET_DATA_SIZE = CHUNK_SIZE + Long.BYTES;

    /** A simple reply; the data of a successful READ is the caller's to append. */
    public static void simple(ByteBuf out, long cookie, int error) {
        out.writeInt(NbdProtocol.NBD_SIMPLE_REPLY_MAGIC);
        out.writeInt(error);
        out.writeLong(cookie);
    }

    /**
     * Final OFFSET_DATA chunk of a READ, up to its data, which is the caller's to append.
     *
     * @param offset bytes from the start of the export
     * @param length bytes of data, from 1
     */
    public static void offsetData(ByteBuf out, long cookie, long offset, int length) {
        chunk(out, NbdProtocol.NBD_REPLY_TYPE_OFFSET_DATA, cookie, Long.BYTES + length);
        out.writeLong(offset);
    }

    /** Final chunk without content: success of a READ of no bytes. */
    public static void none(ByteBuf out, long cookie) {
        chunk(out, NbdProtocol.NBD_REPLY_TYPE_NONE, cookie, 0);
    }

    /**
     * Final error chunk: error (32 bits), length of the message (16 bits), message.
     *
     * @param error an error value other than 0
     * @param message shown to a human; cut to what a string may hold
     */
    public static void error(ByteBuf out, long cookie, int error, String message) {
        byte[] text = NbdText.bytes(message);
        int length = Integer.BYTES + Short.BYTES + text.length;
        chunk(out, NbdProtocol.NBD_REPLY_TYPE_ERROR, cookie, length);
        out.writeInt(error);
        out.writeShort(text.length);
        out.writeBytes(text);
    }

    private static void chunk(ByteBuf out, int type, long cookie, int length) {
        out.writeInt(NbdProtocol.NBD_STRUCTURED_REPLY_MAGIC);
        out.writeShort(NbdProtocol.NBD_REPLY_FLAG_DONE);
        out.writeShort(type);
        out.writeLong(cookie);
        out.writeInt(length);
    }
}
