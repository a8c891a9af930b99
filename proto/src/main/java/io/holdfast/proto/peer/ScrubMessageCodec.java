package io.holdfast.proto.peer;

import io.holdfast.proto.peer.ReplicaMessage.Cursor;
import io.holdfast.proto.peer.ScrubMessage.AskVersions;
import io.holdfast.proto.peer.ScrubMessage.Stretch;
import io.holdfast.proto.peer.ScrubMessage.Versions;
import io.netty.buffer.ByteBuf;
import java.util.ArrayList;
import java.util.List;

/** Fields of each {@link ScrubMessage}; conventions as in {@link ReplicaMessageCodec}. */
final class ScrubMessageCodec {
    private ScrubMessageCodec() {}

    private static final int ASK_SIZE = FieldWriter.SHARD_SIZE + 8 + 2 * FieldWriter.CURSOR_SIZE;
    private static final int VERSIONS_BEFORE_STRETCHES = ASK_SIZE + 8 + 4;
    private static final int STRETCH_BEFORE_SUMS =
            4 + 8 + 4 + 8 + 8 + FieldWriter.NONCE_SIZE + 1 + 1;

    /** Bytes of the message's fields. */
    static long size(ScrubMessage message) {
        return switch (message) {
            case AskVersions _ -> ASK_SIZE;
            case Versions m -> VERSIONS_BEFORE_STRETCHES + stretchesSize(m.stretches());
        };
    }

    private static long stretchesSize(List<Stretch> stretches) {
        PeerCodec.check(
                stretches.size() <= ScrubMessage.MAX_STRETCHES,
                "stretches",
                stretches.size(),
                ScrubMessage.MAX_STRETCHES);
        long size = 0;
        for (Stretch each : stretches) {
            int expected = sums(each.isZero(), each.count());
            PeerCodec.check(
                    each.sums().length == expected, "Stretch.sums", each.sums().length, expected);
            size += STRETCH_BEFORE_SUMS + expected;
        }
        return size;
    }

    private static int sums(boolean zero, int count) {
        return zero ? 0 : count * ScrubMessage.SUM_SIZE;
    }

    /** Writes type and fields. */
    static void write(ScrubMessage message, ByteBuf out) {
        switch (message) {
            case AskVersions m -> askVersions(m, out);
            case Versions m -> versions(m, out);
        }
    }

    /**
     * Writes an AskVersions, type 11.
     *
     * <pre>
     * size field
     *    8 shard
     *    8 ask              from 1
     *   12 from             layer 4, block 8
     *   12 to               layer 4, block 8; behind from
     * </pre>
     */
    private static void askVersions(AskVersions m, ByteBuf out) {
        out.writeByte(PeerCodec.TYPE_ASK_VERSIONS);
        FieldWriter.shard(out, m.shard());
        out.writeLong(m.ask());
        FieldWriter.cursor(out, m.from());
        FieldWriter.cursor(out, m.to());
    }

    static AskVersions askVersions(FieldReader in) {
        AskVersions ask =
                new AskVersions(
                        in.shard(), in.longFrom("ask", 1), in.cursor("from"), in.cursor("to"));
        in.require(isBefore(ask.from(), ask.to()), "to", ask.to());
        return ask;
    }

    /**
     * Writes a Versions, type 12.
     *
     * <pre>
     * size field
     *    8 shard
     *    8 ask              from 1
     *    8 applied
     *   12 from             layer 4, block 8
     *   12 next             layer 4, block 8; behind from
     *    4 stretch count    at most MAX_STRETCHES
     *      stretches, each:
     *    4   layer
     *    8   block          in order, without overlaps, from "from" to "next"
     *    4   count          from 1 to MAX_STRETCH_BLOCKS
     *    8   sequence       from 1
     *    8   epoch          from 1
     *   16   nonce          key id 4, session 4, counter 8; all 0: zeroes
     *    1   trim           of zeroes only
     *    1   intact         of zeroes always
     *        sums           CRC32C of each sealed block; none of zeroes
     * </pre>
     */
    private static void versions(Versions m, ByteBuf out) {
        out.writeByte(PeerCodec.TYPE_VERSIONS);
        FieldWriter.shard(out, m.shard());
        out.writeLong(m.ask()).writeLong(m.applied());
        FieldWriter.cursor(out, m.from());
        FieldWriter.cursor(out, m.next());
        out.writeInt(m.stretches().size());
        for (Stretch each : m.stretches()) {
            out.writeInt(each.layer()).writeLong(each.block()).writeInt(each.count());
            out.writeLong(each.sequence()).writeLong(each.epoch());
            FieldWriter.nonce(out, each.nonce());
            FieldWriter.bool(out, each.trim());
            FieldWriter.bool(out, each.intact());
            out.writeBytes(each.sums());
        }
    }

    static Versions versions(FieldReader in) {
        ShardId shard = in.shard();
        long ask = in.longFrom("ask", 1);
        long applied = in.naturalLong("applied");
        Cursor from = in.cursor("from");
        Cursor next = in.cursor("next");
        in.require(isBefore(from, next), "next", next);
        int count = in.intIn("stretch count", 0, ScrubMessage.MAX_STRETCHES);
        List<Stretch> stretches = new ArrayList<>();
        Cursor at = from;
        for (int i = 0; i < count; i++) {
            Stretch stretch = stretch(in);
            in.require(
                    !isBefore(new Cursor(stretch.layer(), stretch.block()), at),
                    "stretch block",
                    stretch.block());
            at = new Cursor(stretch.layer(), stretch.end());
            in.require(!isBefore(next, at), "stretch end", stretch.end());
            stretches.add(stretch);
        }
        return new Versions(shard, ask, applied, from, next, stretches);
    }

    private static Stretch stretch(FieldReader in) {
        int layer = in.natural("layer");
        long block = in.block();
        int count = in.intIn("count", 1, ScrubMessage.MAX_STRETCH_BLOCKS);
        in.endOf(block, count);
        long sequence = in.longFrom("sequence", 1);
        long epoch = in.longFrom("epoch", 1);
        Nonce nonce = in.nonceOrNone();
        boolean trim = in.bool("trim");
        boolean intact = in.bool("intact");
        boolean zero = nonce.keyId() == 0;
        in.require(zero || !trim, "trim", "1 with a nonce");
        in.require(intact || !zero, "intact", "0 of zeroes");
        return new Stretch(
                layer,
                block,
                count,
                sequence,
                epoch,
                nonce,
                trim,
                intact,
                in.bytes("sums", sums(zero, count)));
    }

    private static boolean isBefore(Cursor one, Cursor other) {
        return one.layer() < other.layer()
                || (one.layer() == other.layer() && one.block() < other.block());
    }
}
