package io.holdfast.proto.peer;

import io.holdfast.proto.peer.ReplicaMessage.Append;
import io.holdfast.proto.peer.ReplicaMessage.AppendReply;
import io.holdfast.proto.peer.ReplicaMessage.Cursor;
import io.holdfast.proto.peer.ReplicaMessage.FetchBlock;
import io.holdfast.proto.peer.ReplicaMessage.FetchedBlock;
import io.holdfast.proto.peer.ReplicaMessage.HandOver;
import io.holdfast.proto.peer.ReplicaMessage.InstallBegin;
import io.holdfast.proto.peer.ReplicaMessage.InstallExtents;
import io.holdfast.proto.peer.ReplicaMessage.InstallReply;
import io.holdfast.proto.peer.ReplicaMessage.PromiseReply;
import io.holdfast.proto.peer.ReplicaMessage.PromiseRequest;
import io.netty.buffer.ByteBuf;
import java.util.List;

/**
 * Fields of each {@link ReplicaMessage}. All begin with the shard (volume 4, index 4) and the epoch
 * (8); a boolean is one byte, 0 or 1; numbers are not negative unless said otherwise.
 */
final class ReplicaMessageCodec {
    private ReplicaMessageCodec() {}

    /** Shard and epoch. */
    private static final int COMMON_SIZE = FieldWriter.SHARD_SIZE + 8;

    private static final int PROMISE_REQUEST_SIZE = COMMON_SIZE + 1 + 1 + 8 + 8 + 1;
    private static final int PROMISE_REPLY_SIZE = COMMON_SIZE + 1 + 1 + 8 + 1 + 8 + 8;
    private static final int APPEND_BEFORE_ENTRIES = COMMON_SIZE + 8 + 8 + 8 + 8 + 1 + 8;
    private static final int APPEND_REPLY_SIZE = COMMON_SIZE + 1 + 8 + 8 + 8 + 8 + 1 + 1 + 8;
    private static final int BEGIN_BEFORE_STATE = COMMON_SIZE + 8 + 8 + 8 + 4;
    private static final int EXTENTS_BEFORE_ENTRIES =
            COMMON_SIZE + 8 + 2 * FieldWriter.CURSOR_SIZE + 1;
    private static final int INSTALL_REPLY_SIZE = COMMON_SIZE + 8 + FieldWriter.CURSOR_SIZE + 1;

    private static final int FETCH_BLOCK_SIZE = COMMON_SIZE + 8 + 4 + 8;
    private static final int FETCHED_BEFORE_PAYLOAD =
            FETCH_BLOCK_SIZE + 8 + FieldWriter.NONCE_SIZE + 1 + 1;

    /** Most bytes of fields before the first entry, its count included, in any message. */
    static final int LARGEST_BEFORE_ENTRIES =
            4 + Math.max(APPEND_BEFORE_ENTRIES, EXTENTS_BEFORE_ENTRIES);

    /** Bytes of the message's fields. */
    static long size(ReplicaMessage message) {
        return switch (message) {
            case PromiseRequest _ -> PROMISE_REQUEST_SIZE;
            case PromiseReply _ -> PROMISE_REPLY_SIZE;
            case Append m -> APPEND_BEFORE_ENTRIES + FieldWriter.entriesSize(m.entries());
            case AppendReply _ -> APPEND_REPLY_SIZE;
            case InstallBegin m -> BEGIN_BEFORE_STATE + stateSize(m.state());
            case InstallExtents m -> EXTENTS_BEFORE_ENTRIES + FieldWriter.entriesSize(m.extents());
            case InstallReply _ -> INSTALL_REPLY_SIZE;
            case HandOver _ -> COMMON_SIZE;
            case FetchBlock _ -> FETCH_BLOCK_SIZE;
            case FetchedBlock m -> FETCHED_BEFORE_PAYLOAD + copySize(m);
        };
    }

    private static int stateSize(byte[] state) {
        PeerCodec.check(
                state.length <= PeerCodec.MAX_STATE_BYTES,
                "install state",
                state.length,
                PeerCodec.MAX_STATE_BYTES);
        return state.length;
    }

    private static int copySize(FetchedBlock m) {
        int expected = m.payload().length == 0 ? 0 : Blocks.SEALED_SIZE;
        PeerCodec.check(
                m.payload().length == expected,
                "FetchedBlock.payload",
                m.payload().length,
                expected);
        return expected;
    }

    /** Writes type and fields. */
    static void write(ReplicaMessage message, ByteBuf out) {
        switch (message) {
            case PromiseRequest m -> promiseRequest(m, out);
            case PromiseReply m -> promiseReply(m, out);
            case Append m -> append(m, out);
            case AppendReply m -> appendReply(m, out);
            case InstallBegin m -> installBegin(m, out);
            case InstallExtents m -> installExtents(m, out);
            case InstallReply m -> installReply(m, out);
            case HandOver m -> begin(PeerCodec.TYPE_HAND_OVER, m, out);
            case FetchBlock m -> fetchBlock(m, out);
            case FetchedBlock m -> fetchedBlock(m, out);
        }
    }

    private static void begin(int type, ReplicaMessage message, ByteBuf out) {
        out.writeByte(type);
        FieldWriter.shard(out, message.shard());
        out.writeLong(message.epoch());
    }

    /**
     * Writes a PromiseRequest, type 1.
     *
     * <pre>
     * size field
     *    8 shard
     *    8 epoch
     *    1 preliminary
     *    1 handOver
     *    8 lastEpoch
     *    8 lastSequence
     *    1 learner
     * </pre>
     */
    private static void promiseRequest(PromiseRequest m, ByteBuf out) {
        begin(PeerCodec.TYPE_PROMISE_REQUEST, m, out);
        FieldWriter.bool(out, m.preliminary());
        FieldWriter.bool(out, m.handOver());
        out.writeLong(m.lastEpoch()).writeLong(m.lastSequence());
        FieldWriter.bool(out, m.learner());
    }

    static PromiseRequest promiseRequest(FieldReader in) {
        return new PromiseRequest(
                in.shard(),
                in.naturalLong("epoch"),
                in.bool("preliminary"),
                in.bool("handOver"),
                in.naturalLong("lastEpoch"),
                in.naturalLong("lastSequence"),
                in.bool("learner"));
    }

    /**
     * Writes a PromiseReply, type 2.
     *
     * <pre>
     * size field
     *    8 shard
     *    8 epoch
     *    1 preliminary
     *    1 granted
     *    8 promised
     *    1 voice
     *    8 lastEpoch
     *    8 lastSequence
     * </pre>
     */
    private static void promiseReply(PromiseReply m, ByteBuf out) {
        begin(PeerCodec.TYPE_PROMISE_REPLY, m, out);
        FieldWriter.bool(out, m.preliminary());
        FieldWriter.bool(out, m.granted());
        out.writeLong(m.promised());
        out.writeByte(m.voice().code);
        out.writeLong(m.lastEpoch()).writeLong(m.lastSequence());
    }

    static PromiseReply promiseReply(FieldReader in) {
        return new PromiseReply(
                in.shard(),
                in.naturalLong("epoch"),
                in.bool("preliminary"),
                in.bool("granted"),
                in.naturalLong("promised"),
                Voice.of(in.unsignedByte("voice")),
                in.naturalLong("lastEpoch"),
                in.naturalLong("lastSequence"));
    }

    /**
     * Writes an Append, type 3.
     *
     * <pre>
     * size field
     *    8 shard
     *    8 epoch
     *    8 previousEpoch
     *    8 previousSequence
     *    8 commit
     *    8 syncThrough
     *    1 promote
     *    8 sentNanos        any number
     *    4 entry count      at most MAX_ENTRIES
     *      entries          {@link Entry}, none moved, sequences from previousSequence + 1
     * </pre>
     */
    private static void append(Append m, ByteBuf out) {
        begin(PeerCodec.TYPE_APPEND, m, out);
        out.writeLong(m.previousEpoch()).writeLong(m.previousSequence());
        out.writeLong(m.commit()).writeLong(m.syncThrough());
        FieldWriter.bool(out, m.promote());
        out.writeLong(m.sentNanos());
        FieldWriter.entries(out, m.entries());
    }

    static Append append(FieldReader in) {
        ShardId shard = in.shard();
        long epoch = in.naturalLong("epoch");
        long previousEpoch = in.naturalLong("previousEpoch");
        long previousSequence = in.naturalLong("previousSequence");
        long commit = in.naturalLong("commit");
        long syncThrough = in.naturalLong("syncThrough");
        boolean promote = in.bool("promote");
        long sentNanos = in.anyLong("sentNanos");
        List<Entry> entries = in.entries("entries", shard);
        long sequence = previousSequence;
        for (Entry entry : entries) {
            sequence++;
            in.require(entry.sequence() == sequence, "entry sequence", entry.sequence());
            in.require(!entry.isMoved(), "entry flag moved", 1);
        }
        return new Append(
                shard,
                epoch,
                previousEpoch,
                previousSequence,
                commit,
                syncThrough,
                promote,
                sentNanos,
                entries);
    }

    /**
     * Writes an AppendReply, type 4.
     *
     * <pre>
     * size field
     *    8 shard
     *    8 epoch
     *    1 accepted
     *    8 matched
     *    8 durable          at most matched
     *    8 last
     *    8 applied
     *    1 learner
     *    1 room             {@link Room#code}
     *    8 sentNanos        any number
     * </pre>
     */
    private static void appendReply(AppendReply m, ByteBuf out) {
        begin(PeerCodec.TYPE_APPEND_REPLY, m, out);
        FieldWriter.bool(out, m.accepted());
        out.writeLong(m.matched()).writeLong(m.durable());
        out.writeLong(m.last()).writeLong(m.applied());
        FieldWriter.bool(out, m.learner());
        out.writeByte(m.room().code).writeLong(m.sentNanos());
    }

    static AppendReply appendReply(FieldReader in) {
        AppendReply reply =
                new AppendReply(
                        in.shard(),
                        in.naturalLong("epoch"),
                        in.bool("accepted"),
                        in.naturalLong("matched"),
                        in.naturalLong("durable"),
                        in.naturalLong("last"),
                        in.naturalLong("applied"),
                        in.bool("learner"),
                        Room.of(in.unsignedByte("room")),
                        in.anyLong("sentNanos"));
        in.require(
                reply.durable() <= reply.matched(),
                "durable",
                reply.durable() + " with matched " + reply.matched());
        return reply;
    }

    /**
     * Writes an InstallBegin, type 5.
     *
     * <pre>
     * size field
     *    8 shard
     *    8 epoch
     *    8 since
     *    8 baseEpoch
     *    8 baseSequence
     *    4 state length     at most MAX_STATE_BYTES
     *      state
     * </pre>
     */
    private static void installBegin(InstallBegin m, ByteBuf out) {
        begin(PeerCodec.TYPE_INSTALL_BEGIN, m, out);
        out.writeLong(m.since()).writeLong(m.baseEpoch()).writeLong(m.baseSequence());
        out.writeInt(m.state().length).writeBytes(m.state());
    }

    static InstallBegin installBegin(FieldReader in) {
        return new InstallBegin(
                in.shard(),
                in.naturalLong("epoch"),
                in.naturalLong("since"),
                in.naturalLong("baseEpoch"),
                in.naturalLong("baseSequence"),
                in.sizedBytes("state", PeerCodec.MAX_STATE_BYTES));
    }

    /**
     * Writes an InstallExtents, type 6.
     *
     * <pre>
     * size field
     *    8 shard
     *    8 epoch
     *    8 baseSequence
     *   12 from             layer 4, block 8
     *   12 next             layer 4, block 8
     *    1 done
     *    4 entry count      at most MAX_ENTRIES
     *      entries          {@link Entry}, all moved
     * </pre>
     */
    private static void installExtents(InstallExtents m, ByteBuf out) {
        begin(PeerCodec.TYPE_INSTALL_EXTENTS, m, out);
        out.writeLong(m.baseSequence());
        FieldWriter.cursor(out, m.from());
        FieldWriter.cursor(out, m.next());
        FieldWriter.bool(out, m.done());
        FieldWriter.entries(out, m.extents());
    }

    static InstallExtents installExtents(FieldReader in) {
        ShardId shard = in.shard();
        long epoch = in.naturalLong("epoch");
        long baseSequence = in.naturalLong("baseSequence");
        Cursor from = in.cursor("from");
        Cursor next = in.cursor("next");
        boolean done = in.bool("done");
        List<Entry> extents = in.entries("extents", shard);
        for (Entry extent : extents) {
            in.require(extent.isMoved(), "extent flag moved", 0);
        }
        return new InstallExtents(shard, epoch, baseSequence, from, next, done, extents);
    }

    /**
     * Writes an InstallReply, type 7. (HandOver, type 8, has shard and epoch only.)
     *
     * <pre>
     * size field
     *    8 shard
     *    8 epoch
     *    8 baseSequence
     *   12 next             layer 4, block 8
     *    1 done
     * </pre>
     */
    private static void installReply(InstallReply m, ByteBuf out) {
        begin(PeerCodec.TYPE_INSTALL_REPLY, m, out);
        out.writeLong(m.baseSequence());
        FieldWriter.cursor(out, m.next());
        FieldWriter.bool(out, m.done());
    }

    static InstallReply installReply(FieldReader in) {
        return new InstallReply(
                in.shard(),
                in.naturalLong("epoch"),
                in.naturalLong("baseSequence"),
                in.cursor("next"),
                in.bool("done"));
    }

    static HandOver handOver(FieldReader in) {
        return new HandOver(in.shard(), in.naturalLong("epoch"));
    }

    /**
     * Writes a FetchBlock, type 9.
     *
     * <pre>
     * size field
     *    8 shard
     *    8 epoch
     *    8 fetch            from 1
     *    4 layer
     *    8 block            block + 1 at most 2^51
     * </pre>
     */
    private static void fetchBlock(FetchBlock m, ByteBuf out) {
        begin(PeerCodec.TYPE_FETCH_BLOCK, m, out);
        out.writeLong(m.fetch()).writeInt(m.layer()).writeLong(m.block());
    }

    static FetchBlock fetchBlock(FieldReader in) {
        FetchBlock fetch =
                new FetchBlock(
                        in.shard(),
                        in.naturalLong("epoch"),
                        in.longFrom("fetch", 1),
                        in.natural("layer"),
                        in.block());
        in.endOf(fetch.block(), 1);
        return fetch;
    }

    /**
     * Writes a FetchedBlock, type 10.
     *
     * <pre>
     * size field
     *    8 shard
     *    8 epoch
     *    8 fetch            from 1
     *    4 layer
     *    8 block            block + 1 at most 2^51
     *    8 sequence
     *   16 nonce            key id 4, session 4, counter 8; all 0: zeroes
     *    1 intact           only with a payload, or of zeroes
     *    1 payload follows  only if the key id is not 0
     *      payload          one sealed block
     * </pre>
     */
    private static void fetchedBlock(FetchedBlock m, ByteBuf out) {
        begin(PeerCodec.TYPE_FETCHED_BLOCK, m, out);
        out.writeLong(m.fetch()).writeInt(m.layer()).writeLong(m.block());
        out.writeLong(m.sequence());
        FieldWriter.nonce(out, m.nonce());
        FieldWriter.bool(out, m.intact());
        FieldWriter.bool(out, m.payload().length > 0);
        out.writeBytes(m.payload());
    }

    static FetchedBlock fetchedBlock(FieldReader in) {
        ShardId shard = in.shard();
        long epoch = in.naturalLong("epoch");
        long fetch = in.longFrom("fetch", 1);
        int layer = in.natural("layer");
        long block = in.block();
        in.endOf(block, 1);
        long sequence = in.naturalLong("sequence");
        Nonce nonce = in.nonceOrNone();
        boolean intact = in.bool("intact");
        boolean follows = in.bool("payload follows");
        boolean zero = nonce.keyId() == 0;
        in.require(!(zero && follows), "payload follows", "1 without a nonce");
        in.require(zero || follows || !intact, "intact", "1 without payload");
        return new FetchedBlock(
                shard,
                epoch,
                fetch,
                layer,
                block,
                sequence,
                nonce,
                intact,
                in.sealed(follows ? 1 : 0));
    }
}
