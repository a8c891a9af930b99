package io.holdfast.proto.nbd;

import io.holdfast.proto.peer.MalformedException;
import io.netty.buffer.ByteBuf;
import java.util.ArrayList;
import java.util.List;

/**
 * Data of NBD_OPT_LIST_META_CONTEXT and NBD_OPT_SET_META_CONTEXT (section "Option types").
 *
 * <pre>
 * bytes  field
 *     4  length n of the name, unsigned
 *     n  name of the export
 *     4  number of queries, unsigned
 *        for each query:
 *     4    length m, unsigned
 *     m    query, "namespace:leaf"
 * </pre>
 *
 * @param export name of the export
 * @param queries in the client's order, unmodifiable
 */
public record NbdMetaQuery(String export, List<String> queries) {
    public NbdMetaQuery {
        queries = List.copyOf(queries);
    }

    /**
     * Reads the whole of {@code in}.
     *
     * @throws MalformedException when lengths do not fit, or a name or query is no string
     */
    public static NbdMetaQuery decode(ByteBuf in) {
        String export = NbdStrings.read(in, readLength(in, "export name"), "export name");
        long count = readLength(in, "query count");
        if (count * Integer.BYTES > in.readableBytes()) {
            throw new MalformedException(
                    "%d queries in %d bytes".formatted(count, in.readableBytes()));
        }
        var queries = new ArrayList<String>((int) count);
        for (int i = 0; i < count; i++) {
            queries.add(NbdStrings.read(in, readLength(in, "query"), "query"));
        }
        if (in.isReadable()) {
            throw new MalformedException(in.readableBytes() + " bytes after the last query");
        }
        return new NbdMetaQuery(export, queries);
    }

    private static long readLength(ByteBuf in, String what) {
        if (in.readableBytes() < Integer.BYTES) {
            throw new MalformedException("context query ends before " + what);
        }
        return in.readUnsignedInt();
    }
}
