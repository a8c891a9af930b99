package io.holdfast.proto.peer;

import io.holdfast.proto.peer.ClientReply.Data;
import io.holdfast.proto.peer.ClientReply.Done;
import io.holdfast.proto.peer.ClientReply.Holder;
import io.holdfast.proto.peer.ClientReply.Refusal;
import io.holdfast.proto.peer.ClientReply.Refused;
import io.holdfast.proto.peer.ClientReply.Run;
import io.netty.buffer.ByteBuf;
import java.util.ArrayList;
import java.util.List;

/**
 * Fields of each {@link ClientReply}. All begin with the shard (volume 4, index 4), the client (4)
 * and the request (8, from 1); numbers are not negative.
 */
final class ClientReplyCodec {
    private ClientReplyCodec() {}

    /** Shard, client, request. */
    private static final int COMMON_SIZE = FieldWriter.SHARD_SIZE + 4 + 8;

    private static final int DONE_SIZE = COMMON_SIZE + 8;
    private static final int REFUSED_BEFORE_TEXT = COMMON_SIZE + 1 + 4 + 8 + 2;
    private static final int RUN_BEFORE_PAYLOAD = 8 + 4 + 8 + FieldWriter.NONCE_SIZE;

    /** Bytes of the message's fields. */
    static long size(ClientReply message) {
        return switch (message) {
            case Done _ -> DONE_SIZE;
            case Refused m -> REFUSED_BEFORE_TEXT + text(m).length;
            case Data m -> COMMON_SIZE + 4 + runsSize(m.runs());
            case Holder m -> COMMON_SIZE + 8 + 1 + FieldWriter.identitySize(m.identity());
        };
    }

    private static byte[] text(Refused m) {
        return FieldWriter.utf8Cut(m.text(), PeerCodec.MAX_TEXT_BYTES);
    }

    private static long runsSize(List<Run> runs) {
        int count = runs.size();
        PeerCodec.check(count <= PeerCodec.MAX_RUNS, "run count", count, PeerCodec.MAX_RUNS);
        long size = 0;
        for (Run run : runs) {
            int expected = run.isZero() ? 0 : run.count() * Blocks.SEALED_SIZE;
            PeerCodec.check(
                    run.payload().length == expected,
                    "Run.payload",
                    run.payload().length,
                    expected);
            size += RUN_BEFORE_PAYLOAD + expected;
        }
        return size;
    }

    /** Writes type and fields. */
    static void write(ClientReply message, ByteBuf out) {
        switch (message) {
            case Done m -> done(m, out);
            case Refused m -> refused(m, out);
            case Data m -> data(m, out);
            case Holder m -> holder(m, out);
        }
    }

    private static void begin(int type, ClientReply message, ByteBuf out) {
        out.writeByte(type);
        FieldWriter.shard(out, message.shard());
        out.writeInt(message.client()).writeLong(message.request());
    }

    private static int client(FieldReader in) {
        return in.natural("client");
    }

    private static long request(FieldReader in) {
        return in.longFrom("request", 1);
    }

    /**
     * Writes a Done, type 32.
     *
     * <pre>
     * size field
     *    8 shard
     *    4 client
     *    8 request
     *    8 value
     * </pre>
     */
    private static void done(Done m, ByteBuf out) {
        begin(PeerCodec.TYPE_DONE, m, out);
        out.writeLong(m.value());
    }

    static Done done(FieldReader in) {
        return new Done(in.shard(), client(in), request(in), in.naturalLong("value"));
    }

    /**
     * Writes a Refused, type 33.
     *
     * <pre>
     * size field
     *    8 shard
     *    4 client
     *    8 request
     *    1 why              Refusal.code
     *    4 leader
     *    8 epoch
     *    2 text length      at most MAX_TEXT_BYTES
     *      text             UTF-8
     * </pre>
     */
    private static void refused(Refused m, ByteBuf out) {
        begin(PeerCodec.TYPE_REFUSED, m, out);
        out.writeByte(m.why().code).writeInt(m.leader()).writeLong(m.epoch());
        FieldWriter.text(out, text(m));
    }

    static Refused refused(FieldReader in) {
        return new Refused(
                in.shard(),
                client(in),
                request(in),
                Refusal.of(in.unsignedByte("why")),
                in.natural("leader"),
                in.naturalLong("epoch"),
                in.text("text", 0, PeerCodec.MAX_TEXT_BYTES));
    }

    /**
     * Writes a Data, type 34.
     *
     * <pre>
     * size field
     *    8 shard
     *    4 client
     *    8 request
     *    4 run count        1 to MAX_RUNS
     *      runs, each:
     *    8   block          where the run before ended
     *    4   count          from 1, over all runs at most Blocks.MAX_PER_READ
     *    8   sequence
     *   16   nonce          key id 4, session 4, counter 8; all 0: zeroes
     *        payload        count sealed blocks; none when the key id is 0
     * </pre>
     */
    private static void data(Data m, ByteBuf out) {
        begin(PeerCodec.TYPE_DATA, m, out);
        out.writeInt(m.runs().size());
        for (Run run : m.runs()) {
            out.writeLong(run.block()).writeInt(run.count()).writeLong(run.sequence());
            FieldWriter.nonce(out, run.nonce());
            out.writeBytes(run.payload());
        }
    }

    static Data data(FieldReader in) {
        ShardId shard = in.shard();
        int client = client(in);
        long request = request(in);
        int runCount = in.intIn("run count", 1, PeerCodec.MAX_RUNS);
        List<Run> runs = new ArrayList<>(runCount);
        int blocks = 0;
        long next = 0;
        for (int i = 0; i < runCount; i++) {
            long block = in.block();
            in.require(i == 0 || block == next, "block of run " + i, block);
            int count = in.intIn("count", 1, Blocks.MAX_PER_READ - blocks);
            blocks += count;
            next = in.endOf(block, count);
            long sequence = in.naturalLong("sequence");
            Nonce nonce = in.nonceOrNone();
            byte[] payload = in.sealed(nonce.keyId() == 0 ? 0 : count);
            runs.add(new Run(block, count, sequence, nonce, payload));
        }
        return new Data(shard, client, request, List.copyOf(runs));
    }

    /**
     * Writes a Holder, type 35.
     *
     * <pre>
     * size field
     *    8 shard
     *    4 client
     *    8 request
     *    8 generation
     *    1 connected        boolean
     *    2 identity length  at most Entry.MAX_IDENTITY_BYTES
     *      identity         UTF-8, empty: nobody
     * </pre>
     */
    private static void holder(Holder m, ByteBuf out) {
        begin(PeerCodec.TYPE_HOLDER, m, out);
        out.writeLong(m.generation()).writeBoolean(m.connected());
        FieldWriter.text(out, FieldWriter.utf8(m.identity()));
    }

    static Holder holder(FieldReader in) {
        return new Holder(
                in.shard(),
                client(in),
                request(in),
                in.naturalLong("generation"),
                in.bool("connected"),
                in.text("identity", 0, Entry.MAX_IDENTITY_BYTES));
    }
}
