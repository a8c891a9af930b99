package io.holdfast.proto.nbd;

import io.holdfast.proto.peer.MalformedException;
import io.netty.buffer.ByteBuf;

/**
 * Header of a request in the transmission phase (section "Request message"). The payload of a WRITE
 * follows it.
 *
 * <pre>
 * offset  bytes  field
 *      0      4  NBD_REQUEST_MAGIC
 *      4      2  command flags
 *      6      2  type
 *      8      8  cookie
 *     16      8  offset, unsigned
 *     24      4  length, unsigned
 * </pre>
 *
 * @param flags NBD_CMD_FLAG bits, 0 to 65535, not yet validated
 * @param type NBD_CMD number, 0 to 65535, not yet validated
 * @param cookie opaque, returned with the reply
 * @param offset bytes, unsigned: negative means 2^63 and more
 * @param length bytes, 0 to 2^32-1
 */
public record NbdRequest(int flags, int type, long cookie, long offset, long length) {
    /** Bytes of the header. */
    public static final int SIZE = 28;

    /**
     * Reads a header; {@code SIZE} bytes must be readable.
     *
     * @throws MalformedException when the magic number is wrong: the stream is out of step
     */
    public static NbdRequest decode(ByteBuf in) {
        int magic = in.readInt();
        if (magic != NbdProtocol.NBD_REQUEST_MAGIC) {
            throw new MalformedException("request magic 0x" + Integer.toHexString(magic));
        }
        return new NbdRequest(
                in.readUnsignedShort(),
                in.readUnsignedShort(),
                in.readLong(),
                in.readLong(),
                in.readUnsignedInt());
    }

    /** Whether all bits of {@code flag} are set. */
    public boolean has(int flag) {
        return (flags & flag) == flag;
    }
}
