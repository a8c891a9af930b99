package io.holdfast.proto.nbd;

import io.holdfast.proto.peer.MalformedException;
import io.netty.buffer.ByteBuf;

/**
 * Data of NBD_OPT_INFO and NBD_OPT_GO (section "Option types").
 *
 * <pre>
 * bytes  field
 *     4  length n of the name, unsigned
 *     n  name of the export; empty: the default one
 *     2  number k of information requests, unsigned
 *    2k  information types wanted
 * </pre>
 *
 * @param name of the export
 * @param wanted bit i is set when information type i was asked for; types above 31 are unknown to
 *     the standard and left out, as it demands
 */
public record NbdExportQuery(String name, int wanted) {
    /**
     * Reads the whole of {@code in}.
     *
     * @throws MalformedException when lengths do not fit or the name is no string
     */
    public static NbdExportQuery decode(ByteBuf in) {
        if (in.readableBytes() < Integer.BYTES + Short.BYTES) {
            throw new MalformedException("export query of " + in.readableBytes() + " bytes");
        }
        String name = NbdStrings.read(in, in.readUnsignedInt(), "export name");
        if (in.readableBytes() < Short.BYTES) {
            throw new MalformedException("export query ends after the name");
        }
        int count = in.readUnsignedShort();
        if (in.readableBytes() != count * Short.BYTES) {
            throw new MalformedException(
                    "%d information requests in %d bytes".formatted(count, in.readableBytes()));
        }
        int wanted = 0;
        for (int i = 0; i < count; i++) {
            int type = in.readUnsignedShort();
            if (type < Integer.SIZE) {
                wanted |= 1 << type;
            }
        }
        return new NbdExportQuery(name, wanted);
    }

    /** Whether the client asked for an NBD_INFO type. */
    public boolean wants(int infoType) {
        return (wanted & 1 << infoType) != 0;
    }
}
