package io.holdfast.proto.peer;

import io.holdfast.proto.peer.ClientRequest.AskHolder;
import io.holdfast.proto.peer.ClientRequest.Claim;
import io.holdfast.proto.peer.ClientRequest.CloseSession;
import io.holdfast.proto.peer.ClientRequest.Flush;
import io.holdfast.proto.peer.ClientRequest.OpenSession;
import io.holdfast.proto.peer.ClientRequest.Read;
import io.holdfast.proto.peer.ClientRequest.Release;
import io.holdfast.proto.peer.ClientRequest.Write;
import io.holdfast.proto.peer.ClientRequest.Zero;
import io.netty.buffer.ByteBuf;

/**
 * Fields of each {@link ClientRequest}. All begin with the shard (volume 4, index 4), the client
 * (4) and the request (8, from 1); a boolean is one byte, 0 or 1; numbers are not negative unless
 * said otherwise. Whether a session exists is the leader's to judge, not the codec's.
 */
final class ClientRequestCodec {
    private ClientRequestCodec() {}

    /** Shard, client, request. */
    private static final int COMMON_SIZE = FieldWriter.SHARD_SIZE + 4 + 8;

    private static final int SESSION_SIZE = COMMON_SIZE + 4;
    private static final int CLAIM_BEFORE_IDENTITY = SESSION_SIZE + 8 + 1;
    private static final int RELEASE_SIZE = SESSION_SIZE + 8;
    private static final int WRITE_BEFORE_PAYLOAD =
            SESSION_SIZE + 8 + 8 + 4 + 8 + 4 + FieldWriter.NONCE_SIZE + 8 + 1;
    private static final int ZERO_SIZE = SESSION_SIZE + 8 + 8 + 4 + 8 + 4 + 1 + 1;
    private static final int READ_SIZE = COMMON_SIZE + 4 + 8 + 4 + 4;

    /** Bytes of the message's fields. */
    static long size(ClientRequest message) {
        return switch (message) {
            case OpenSession _ -> SESSION_SIZE;
            case CloseSession _ -> SESSION_SIZE;
            case Claim m -> CLAIM_BEFORE_IDENTITY + FieldWriter.identitySize(m.identity());
            case Release _ -> RELEASE_SIZE;
            case Write m -> WRITE_BEFORE_PAYLOAD + payloadSize(m);
            case Zero _ -> ZERO_SIZE;
            case Flush _ -> SESSION_SIZE;
            case Read _ -> READ_SIZE;
            case AskHolder _ -> COMMON_SIZE;
        };
    }

    private static int payloadSize(Write m) {
        PeerCodec.check(
                m.count() >= 1 && m.count() <= Blocks.MAX_PER_ENTRY,
                "Write.count",
                m.count(),
                Blocks.MAX_PER_ENTRY);
        int expected = m.count() * Blocks.SEALED_SIZE;
        PeerCodec.check(
                m.payload().length == expected, "Write.payload", m.payload().length, expected);
        return expected;
    }

    /** Writes type and fields. */
    static void write(ClientRequest message, ByteBuf out) {
        switch (message) {
            case OpenSession m -> session(PeerCodec.TYPE_OPEN_SESSION, m, m.session(), out);
            case CloseSession m -> session(PeerCodec.TYPE_CLOSE_SESSION, m, m.session(), out);
            case Claim m -> claim(m, out);
            case Release m -> release(m, out);
            case Write m -> write(m, out);
            case Zero m -> zero(m, out);
            case Flush m -> session(PeerCodec.TYPE_FLUSH, m, m.session(), out);
            case Read m -> read(m, out);
            case AskHolder m -> begin(PeerCodec.TYPE_ASK_HOLDER, m, out);
        }
    }

    private static void begin(int type, ClientRequest message, ByteBuf out) {
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
     * Writes an OpenSession (type 16), CloseSession (17) or Flush (22). (AskHolder, type 24, ends
     * after the request number.)
     *
     * <pre>
     * size field
     *    8 shard
     *    4 client
     *    8 request
     *    4 session
     * </pre>
     */
    private static void session(int type, ClientRequest m, int session, ByteBuf out) {
        begin(type, m, out);
        out.writeInt(session);
    }

    static OpenSession openSession(FieldReader in) {
        return new OpenSession(in.shard(), client(in), request(in), in.natural("session"));
    }

    static CloseSession closeSession(FieldReader in) {
        return new CloseSession(in.shard(), client(in), request(in), in.natural("session"));
    }

    static Flush flush(FieldReader in) {
        return new Flush(in.shard(), client(in), request(in), in.natural("session"));
    }

    static AskHolder askHolder(FieldReader in) {
        return new AskHolder(in.shard(), client(in), request(in));
    }

    /**
     * Writes a Claim, type 18.
     *
     * <pre>
     * size field
     *    8 shard
     *    4 client
     *    8 request
     *    4 session
     *    8 generation
     *    1 force
     *    2 identity length  1 to Entry.MAX_IDENTITY_BYTES
     *      identity         UTF-8
     * </pre>
     */
    private static void claim(Claim m, ByteBuf out) {
        session(PeerCodec.TYPE_CLAIM, m, m.session(), out);
        out.writeLong(m.generation());
        FieldWriter.bool(out, m.force());
        FieldWriter.text(out, FieldWriter.utf8(m.identity()));
    }

    static Claim claim(FieldReader in) {
        ShardId shard = in.shard();
        int client = client(in);
        long request = request(in);
        int session = in.natural("session");
        long generation = in.naturalLong("generation");
        boolean force = in.bool("force");
        String identity = in.text("identity", 1, Entry.MAX_IDENTITY_BYTES);
        return new Claim(shard, client, request, session, identity, generation, force);
    }

    /**
     * Writes a Release, type 19.
     *
     * <pre>
     * size field
     *    8 shard
     *    4 client
     *    8 request
     *    4 session
     *    8 generation
     * </pre>
     */
    private static void release(Release m, ByteBuf out) {
        session(PeerCodec.TYPE_RELEASE, m, m.session(), out);
        out.writeLong(m.generation());
    }

    static Release release(FieldReader in) {
        return new Release(
                in.shard(),
                client(in),
                request(in),
                in.natural("session"),
                in.naturalLong("generation"));
    }

    /**
     * Writes a Write, type 20.
     *
     * <pre>
     * size field
     *    8 shard
     *    4 client
     *    8 request
     *    4 session
     *    8 lowWater
     *    8 generation
     *    4 layer
     *    8 block            block + count at most 2^51
     *    4 count            1 to Blocks.MAX_PER_ENTRY
     *   16 nonce            key id 4 (from 1), session 4 (from 1), counter 8
     *    8 expectedSequence -1: unconditional; else count is 1
     *    1 fua
     *      payload          count sealed blocks
     * </pre>
     */
    private static void write(Write m, ByteBuf out) {
        session(PeerCodec.TYPE_WRITE, m, m.session(), out);
        out.writeLong(m.lowWater()).writeLong(m.generation());
        out.writeInt(m.layer()).writeLong(m.block()).writeInt(m.count());
        FieldWriter.nonce(out, m.nonce());
        out.writeLong(m.expectedSequence());
        FieldWriter.bool(out, m.fua());
        out.writeBytes(m.payload());
    }

    static Write write(FieldReader in) {
        ShardId shard = in.shard();
        int client = client(in);
        long request = request(in);
        int session = in.natural("session");
        long lowWater = in.naturalLong("lowWater");
        long generation = in.naturalLong("generation");
        int layer = in.natural("layer");
        long block = in.block();
        int count = in.intIn("count", 1, Blocks.MAX_PER_ENTRY);
        in.endOf(block, count);
        Nonce nonce = in.nonce();
        long expected = in.longFrom("expectedSequence", ClientRequest.UNCONDITIONAL);
        in.require(
                expected == ClientRequest.UNCONDITIONAL || count == 1,
                "expectedSequence",
                expected + " with count " + count);
        boolean fua = in.bool("fua");
        return new Write(
                shard,
                client,
                request,
                session,
                lowWater,
                generation,
                layer,
                block,
                count,
                nonce,
                expected,
                fua,
                in.sealed(count));
    }

    /**
     * Writes a Zero, type 21.
     *
     * <pre>
     * size field
     *    8 shard
     *    4 client
     *    8 request
     *    4 session
     *    8 lowWater
     *    8 generation
     *    4 layer
     *    8 block            block + count at most 2^51
     *    4 count            1 to Blocks.MAX_PER_ZERO
     *    1 trim
     *    1 fua
     * </pre>
     */
    private static void zero(Zero m, ByteBuf out) {
        session(PeerCodec.TYPE_ZERO, m, m.session(), out);
        out.writeLong(m.lowWater()).writeLong(m.generation());
        out.writeInt(m.layer()).writeLong(m.block()).writeInt(m.count());
        FieldWriter.bool(out, m.trim());
        FieldWriter.bool(out, m.fua());
    }

    static Zero zero(FieldReader in) {
        Zero zero =
                new Zero(
                        in.shard(),
                        client(in),
                        request(in),
                        in.natural("session"),
                        in.naturalLong("lowWater"),
                        in.naturalLong("generation"),
                        in.natural("layer"),
                        in.block(),
                        in.intIn("count", 1, Blocks.MAX_PER_ZERO),
                        in.bool("trim"),
                        in.bool("fua"));
        in.endOf(zero.block(), zero.count());
        return zero;
    }

    /**
     * Writes a Read, type 23.
     *
     * <pre>
     * size field
     *    8 shard
     *    4 client
     *    8 request
     *    4 layer
     *    8 block            block + count at most 2^51
     *    4 count            1 to Blocks.MAX_PER_READ
     *    4 copy             0: the leader's own; else a node, and count is 1
     * </pre>
     */
    private static void read(Read m, ByteBuf out) {
        begin(PeerCodec.TYPE_READ, m, out);
        out.writeInt(m.layer()).writeLong(m.block()).writeInt(m.count()).writeInt(m.copy());
    }

    static Read read(FieldReader in) {
        Read read =
                new Read(
                        in.shard(),
                        client(in),
                        request(in),
                        in.natural("layer"),
                        in.block(),
                        in.intIn("count", 1, Blocks.MAX_PER_READ),
                        in.natural("copy"));
        in.endOf(read.block(), read.count());
        in.require(
                read.copy() == ClientRequest.OWN_COPY || read.count() == 1,
                "copy",
                read.copy() + " with count " + read.count());
        return read;
    }
}
