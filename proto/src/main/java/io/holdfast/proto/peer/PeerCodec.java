package io.holdfast.proto.peer;

import io.netty.buffer.ByteBuf;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.zip.CRC32C;

/**
 * Puts every {@link PeerMessage} into a frame and takes it out again. All numbers are big-endian.
 *
 * <pre>
 * offset size field
 *      0    4 length     of everything after this field, 5 to MAX_FRAME - 4
 *      4    4 checksum   CRC32C over the type and the fields
 *      8    1 type       see the constants TYPE_...
 *      9      fields     by type, see the tables in docs/protocol.md and at each codec method
 * </pre>
 *
 * <p>The checksum is there because TCP's is weak and a message must never arrive altered: one bit
 * of an acknowledged position could lose data. A change of the layout is a new version of the
 * protocol, told apart by {@link Hello}; frames carry none.
 *
 * <p>Decoding validates everything and allocates no more than the bytes that are really there.
 * Payloads are copied once, into the heap array that the message keeps. Stateless, any thread.
 */
public final class PeerCodec {
    /** Bytes of the length field. */
    public static final int LENGTH_SIZE = 4;

    /** Bytes before the fields: length, checksum, type. */
    public static final int HEADER_SIZE = 9;

    /** Largest frame in bytes, length field included (4 MiB): a dozen of the largest entries. */
    public static final int MAX_FRAME = 4 << 20;

    /** Smallest value of the length field: checksum and type. */
    static final int MIN_LENGTH = HEADER_SIZE - LENGTH_SIZE;

    /** Most entries in an {@code Append} or {@code InstallExtents}. */
    public static final int MAX_ENTRIES = 8192;

    /** Most runs in a {@code Data}: one per block of the largest read. */
    public static final int MAX_RUNS = Blocks.MAX_PER_READ;

    /**
     * Longest {@code Refused.text} in bytes of UTF-8. It is for people: a longer one is cut by the
     * sender at a character.
     */
    public static final int MAX_TEXT_BYTES = 1024;

    /**
     * Largest {@code InstallBegin.state} in bytes. The core bounds its sessions so that it fits; a
     * larger one is an invariant error at the sender.
     */
    public static final int MAX_STATE_BYTES = 3 << 20;

    static final int TYPE_PROMISE_REQUEST = 1;
    static final int TYPE_PROMISE_REPLY = 2;
    static final int TYPE_APPEND = 3;
    static final int TYPE_APPEND_REPLY = 4;
    static final int TYPE_INSTALL_BEGIN = 5;
    static final int TYPE_INSTALL_EXTENTS = 6;
    static final int TYPE_INSTALL_REPLY = 7;
    static final int TYPE_HAND_OVER = 8;
    static final int TYPE_FETCH_BLOCK = 9;
    static final int TYPE_FETCHED_BLOCK = 10;
    static final int TYPE_ASK_VERSIONS = 11;
    static final int TYPE_VERSIONS = 12;
    static final int TYPE_OPEN_SESSION = 16;
    static final int TYPE_CLOSE_SESSION = 17;
    static final int TYPE_CLAIM = 18;
    static final int TYPE_RELEASE = 19;
    static final int TYPE_WRITE = 20;
    static final int TYPE_ZERO = 21;
    static final int TYPE_FLUSH = 22;
    static final int TYPE_READ = 23;
    static final int TYPE_ASK_HOLDER = 24;
    static final int TYPE_DONE = 32;
    static final int TYPE_REFUSED = 33;
    static final int TYPE_DATA = 34;
    static final int TYPE_HOLDER = 35;

    private PeerCodec() {}

    /**
     * The whole frame's size for a length field from outside.
     *
     * @return bytes, length field included, at most {@link #MAX_FRAME}
     * @throws MalformedException when no frame has that length
     */
    public static int frameSize(int lengthField) {
        if (lengthField < MIN_LENGTH || lengthField > MAX_FRAME - LENGTH_SIZE) {
            throw new MalformedException("frame length is " + lengthField);
        }
        return LENGTH_SIZE + lengthField;
    }

    /**
     * Exact size of the message's frame in bytes.
     *
     * @throws IllegalStateException when the message breaks a limit of the protocol, which its
     *     sender had to keep
     */
    public static int encodedSize(PeerMessage message) {
        long fields =
                switch (message) {
                    case ReplicaMessage m -> ReplicaMessageCodec.size(m);
                    case ScrubMessage m -> ScrubMessageCodec.size(m);
                    case ClientRequest m -> ClientRequestCodec.size(m);
                    case ClientReply m -> ClientReplyCodec.size(m);
                };
        long size = HEADER_SIZE + fields;
        check(size <= MAX_FRAME, "frame", size, MAX_FRAME);
        return (int) size;
    }

    /**
     * Appends the message's frame.
     *
     * @throws IllegalStateException as {@link #encodedSize}; nothing was written then
     */
    public static void encode(PeerMessage message, ByteBuf out) {
        int size = encodedSize(message);
        int start = out.writerIndex();
        out.ensureWritable(size);
        out.writeInt(size - LENGTH_SIZE);
        out.writeInt(0);
        switch (message) {
            case ReplicaMessage m -> ReplicaMessageCodec.write(m, out);
            case ScrubMessage m -> ScrubMessageCodec.write(m, out);
            case ClientRequest m -> ClientRequestCodec.write(m, out);
            case ClientReply m -> ClientReplyCodec.write(m, out);
        }
        int written = out.writerIndex() - start;
        if (written != size) {
            throw new IllegalStateException(
                    message.getClass().getSimpleName() + " took " + written + ", not " + size);
        }
        out.setInt(start + 4, checksum(view(out, start + 8, size - 8)));
    }

    /**
     * Takes one frame off the buffer.
     *
     * @param in positioned at the frame's length field, the whole frame readable; moved past it
     * @throws MalformedException when anything is wrong; the reader index is then undefined
     */
    public static PeerMessage decode(ByteBuf in) {
        if (in.readableBytes() < HEADER_SIZE) {
            throw new MalformedException("frame cut short at " + in.readableBytes() + " bytes");
        }
        int start = in.readerIndex();
        int size = frameSize(in.getInt(start));
        if (in.readableBytes() < size) {
            throw new MalformedException("frame of " + size + " cut at " + in.readableBytes());
        }
        int checksum = in.getInt(start + 4);
        ByteBuffer body = view(in, start + 8, size - 8);
        int from = body.position();
        if (checksum(body) != checksum) {
            throw new MalformedException("frame checksum does not match");
        }
        body.position(from);
        in.readerIndex(start + size);
        FieldReader fields = new FieldReader(body);
        int type = fields.type();
        PeerMessage message =
                switch (type) {
                    case TYPE_PROMISE_REQUEST -> ReplicaMessageCodec.promiseRequest(fields);
                    case TYPE_PROMISE_REPLY -> ReplicaMessageCodec.promiseReply(fields);
                    case TYPE_APPEND -> ReplicaMessageCodec.append(fields);
                    case TYPE_APPEND_REPLY -> ReplicaMessageCodec.appendReply(fields);
                    case TYPE_INSTALL_BEGIN -> ReplicaMessageCodec.installBegin(fields);
                    case TYPE_INSTALL_EXTENTS -> ReplicaMessageCodec.installExtents(fields);
                    case TYPE_INSTALL_REPLY -> ReplicaMessageCodec.installReply(fields);
                    case TYPE_HAND_OVER -> ReplicaMessageCodec.handOver(fields);
                    case TYPE_FETCH_BLOCK -> ReplicaMessageCodec.fetchBlock(fields);
                    case TYPE_FETCHED_BLOCK -> ReplicaMessageCodec.fetchedBlock(fields);
                    case TYPE_ASK_VERSIONS -> ScrubMessageCodec.askVersions(fields);
                    case TYPE_VERSIONS -> ScrubMessageCodec.versions(fields);
                    case TYPE_OPEN_SESSION -> ClientRequestCodec.openSession(fields);
                    case TYPE_CLOSE_SESSION -> ClientRequestCodec.closeSession(fields);
                    case TYPE_CLAIM -> ClientRequestCodec.claim(fields);
                    case TYPE_RELEASE -> ClientRequestCodec.release(fields);
                    case TYPE_WRITE -> ClientRequestCodec.write(fields);
                    case TYPE_ZERO -> ClientRequestCodec.zero(fields);
                    case TYPE_FLUSH -> ClientRequestCodec.flush(fields);
                    case TYPE_READ -> ClientRequestCodec.read(fields);
                    case TYPE_ASK_HOLDER -> ClientRequestCodec.askHolder(fields);
                    case TYPE_DONE -> ClientReplyCodec.done(fields);
                    case TYPE_REFUSED -> ClientReplyCodec.refused(fields);
                    case TYPE_DATA -> ClientReplyCodec.data(fields);
                    case TYPE_HOLDER -> ClientReplyCodec.holder(fields);
                    default -> throw new MalformedException("unknown message type " + type);
                };
        fields.end();
        return message;
    }

    /**
     * How many entries of a list, from {@code from} on, fit into one {@code Append} (or {@code
     * InstallExtents}).
     *
     * @param maxBytes wanted bound of the frame in bytes; {@link #MAX_FRAME} bounds it anyway
     * @return a count; at least 1 when there is an entry at all, as one always fits a frame
     */
    public static int fitting(List<Entry> entries, int from, int maxBytes) {
        long room =
                (long) Math.min(maxBytes, MAX_FRAME)
                        - HEADER_SIZE
                        - ReplicaMessageCodec.LARGEST_BEFORE_ENTRIES;
        int most = Math.min(entries.size() - from, MAX_ENTRIES);
        int count = 0;
        while (count < most) {
            room -= entries.get(from + count).sizeBytes();
            if (room < 0 && count > 0) {
                break;
            }
            count++;
        }
        return count;
    }

    /** Fails when a sender broke a limit; what it sends comes from inside, so this is our fault. */
    static void check(boolean holds, String what, long value, long limit) {
        if (!holds) {
            throw new IllegalStateException(what + " is " + value + ", the limit " + limit);
        }
    }

    private static int checksum(ByteBuffer bytes) {
        CRC32C crc = new CRC32C();
        crc.update(bytes);
        return (int) crc.getValue();
    }

    private static ByteBuffer view(ByteBuf of, int index, int length) {
        return of.nioBufferCount() == 1
                ? of.internalNioBuffer(index, length)
                : of.nioBuffer(index, length);
    }
}
