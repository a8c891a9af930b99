package io.holdfast.proto.nbd;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import java.nio.charset.StandardCharsets;

/**
 * What a server sends during the handshake (sections "Newstyle negotiation", "Fixed newstyle
 * negotiation", "Option reply types").
 *
 * <p>A reply to an option:
 *
 * <pre>
 * offset  bytes  field
 *      0      8  OPTION_REPLY_MAGIC
 *      8      4  option it answers
 *     12      4  reply type, NBD_REP
 *     16      4  length n, unsigned
 *     20      n  data
 * </pre>
 */
public final class NbdHandshakeEncoder {
    private NbdHandshakeEncoder() {}

    /** The server's opening: NBDMAGIC, IHAVEOPT, handshake flags (16 bits). */
    public static void greeting(ByteBuf out) {
        out.writeLong(NbdProtocol.NBDMAGIC);
        out.writeLong(NbdProtocol.IHAVEOPT);
        out.writeShort(NbdProtocol.NBD_FLAG_FIXED_NEWSTYLE | NbdProtocol.NBD_FLAG_NO_ZEROES);
    }

    /**
     * Answer to NBD_OPT_EXPORT_NAME: size (64 bits), transmission flags (16 bits), and 124 zeroes
     * unless the client waived them.
     */
    public static void exportName(ByteBuf out, long sizeBytes, int flags, boolean noZeroes) {
        out.writeLong(sizeBytes);
        out.writeShort(flags);
        if (!noZeroes) {
            out.writeZero(NbdProtocol.EXPORT_NAME_ZEROES);
        }
    }

    /** NBD_REP_ACK. */
    public static void ack(ByteBuf out, int option) {
        header(out, option, NbdProtocol.NBD_REP_ACK, 0);
    }

    /**
     * An error reply.
     *
     * @param type an NBD_REP_ERR
     * @param message shown to a human; cut to what a string may hold
     */
    public static void error(ByteBuf out, int option, int type, String message) {
        byte[] text = NbdText.bytes(message);
        header(out, option, type, text.length);
        out.writeBytes(text);
    }

    /** NBD_REP_SERVER: one name of the list. */
    public static void server(ByteBuf out, int option, String name) {
        byte[] text = name.getBytes(StandardCharsets.UTF_8);
        header(out, option, NbdProtocol.NBD_REP_SERVER, Integer.BYTES + text.length);
        out.writeInt(text.length);
        out.writeBytes(text);
    }

    /** NBD_INFO_EXPORT: size in bytes and transmission flags. */
    public static void infoExport(ByteBuf out, int option, long sizeBytes, int flags) {
        info(out, option, NbdProtocol.NBD_INFO_EXPORT, Long.BYTES + Short.BYTES);
        out.writeLong(sizeBytes);
        out.writeShort(flags);
    }

    /** NBD_INFO_NAME or NBD_INFO_DESCRIPTION. */
    public static void infoText(ByteBuf out, int option, int infoType, String text) {
        info(out, option, infoType, ByteBufUtil.utf8Bytes(text));
        out.writeCharSequence(text, StandardCharsets.UTF_8);
    }

    /** NBD_INFO_BLOCK_SIZE: smallest, preferred and largest size, bytes. */
    public static void infoBlockSize(ByteBuf out, int option, int min, int preferred, int max) {
        info(out, option, NbdProtocol.NBD_INFO_BLOCK_SIZE, 3 * Integer.BYTES);
        out.writeInt(min);
        out.writeInt(preferred);
        out.writeInt(max);
    }

    private static void info(ByteBuf out, int option, int infoType, int length) {
        header(out, option, NbdProtocol.NBD_REP_INFO, Short.BYTES + length);
        out.writeShort(infoType);
    }

    private static void header(ByteBuf out, int option, int type, int length) {
        out.writeLong(NbdProtocol.OPTION_REPLY_MAGIC);
        out.writeInt(option);
        out.writeInt(type);
        out.writeInt(length);
    }
}
