package io.holdfast.proto.nbd;

import io.holdfast.proto.peer.MalformedException;
import io.netty.buffer.ByteBuf;

/**
 * Header of an option that a client sends (section "Newstyle negotiation").
 *
 * <pre>
 * offset  bytes  field
 *      0      8  IHAVEOPT
 *      8      4  option
 *     12      4  length of the data that follows, unsigned
 * </pre>
 *
 * @param number what the client wants, any value
 * @param length bytes of data that follow, 0 to 2^32-1
 */
public record NbdOption(int number, long length) {
    /** Bytes of the header. */
    public static final int SIZE = 16;

    /**
     * Reads a header; {@code SIZE} bytes must be readable.
     *
     * @throws MalformedException when the magic number is wrong: the stream is out of step
     */
    public static NbdOption decode(ByteBuf in) {
        long magic = in.readLong();
        if (magic != NbdProtocol.IHAVEOPT) {
            throw new MalformedException("option magic 0x" + Long.toHexString(magic));
        }
        return new NbdOption(in.readInt(), in.readUnsignedInt());
    }
}
