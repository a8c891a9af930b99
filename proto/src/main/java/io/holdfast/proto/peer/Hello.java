package io.holdfast.proto.peer;

import io.netty.buffer.ByteBuf;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/**
 * First bytes on a connection, in both directions: the dialler's, then the acceptor's answer. Not a
 * frame, because it must stay readable by every later version up to the version field.
 *
 * <p>Layout; all numbers big-endian:
 *
 * <pre>
 * offset size field
 *      0    4 magic        0x48465052 "HFPR"
 *      4    4 version      of the protocol, {@link #VERSION}
 *      8    1 role         1 node, 2 agent
 *      9    1 verdict      {@link Verdict#code}; 0 from the dialler
 *     10    2 name length  1 to {@link #MAX_CLUSTER_BYTES}
 *     12    4 node         the sender's number, from 1; 0 from an agent
 *     16    8 incarnation  random, new with each start of the sender's process
 *     24    8 key check    tells cluster keys apart without telling the key; 0 from an agent
 *     32      cluster      name in UTF-8
 * </pre>
 */
public record Hello(
        int version,
        Role role,
        Verdict verdict,
        int node,
        long incarnation,
        long keyCheck,
        String cluster) {
    /** First four bytes. */
    public static final int MAGIC = 0x48465052;

    /** The version of hello and frames that this code speaks. */
    public static final int VERSION = 3;

    /** Bytes before the cluster's name. */
    public static final int HEADER_SIZE = 32;

    /** Longest cluster name in bytes of UTF-8. */
    public static final int MAX_CLUSTER_BYTES = 255;

    /** Largest hello in bytes. */
    public static final int MAX_SIZE = HEADER_SIZE + MAX_CLUSTER_BYTES;

    private static final int VERSION_END = 8;

    /** Appends the bytes. */
    public void encode(ByteBuf out) {
        byte[] name = cluster.getBytes(StandardCharsets.UTF_8);
        PeerCodec.check(
                name.length >= 1 && name.length <= MAX_CLUSTER_BYTES,
                "cluster name",
                name.length,
                MAX_CLUSTER_BYTES);
        out.writeInt(MAGIC).writeInt(version).writeByte(role.code).writeByte(verdict.code);
        out.writeShort(name.length).writeInt(node).writeLong(incarnation);
        out.writeLong(keyCheck).writeBytes(name);
    }

    /**
     * Takes a hello off the buffer once it is whole. One of another version is given as far as it
     * can be read, and the buffer is not moved: nothing after it can be understood either.
     *
     * @return null: more bytes are needed, at most {@link #MAX_SIZE} in all
     * @throws MalformedException when this cannot become a hello
     */
    public static @Nullable Hello decode(ByteBuf in) {
        int start = in.readerIndex();
        int there = in.readableBytes();
        if (there >= 4 && in.getInt(start) != MAGIC) {
            throw new MalformedException(
                    "hello magic is 0x" + Integer.toHexString(in.getInt(start)));
        }
        if (there < VERSION_END) {
            return null;
        }
        int version = in.getInt(start + 4);
        if (version != VERSION) {
            return new Hello(version, Role.NODE, Verdict.WELCOME, 0, 0, 0, "");
        }
        if (there < HEADER_SIZE) {
            return null;
        }
        int nameLength = in.getUnsignedShort(start + 10);
        if (nameLength < 1 || nameLength > MAX_CLUSTER_BYTES) {
            throw new MalformedException("hello name length is " + nameLength);
        }
        Role role = Role.of(in.getUnsignedByte(start + 8));
        Verdict verdict = Verdict.of(in.getUnsignedByte(start + 9));
        int node = in.getInt(start + 12);
        if (role == Role.NODE ? node < 1 : node != 0) {
            throw new MalformedException("hello node of " + role + " is " + node);
        }
        if (there < HEADER_SIZE + nameLength) {
            return null;
        }
        long incarnation = in.getLong(start + 16);
        long keyCheck = in.getLong(start + 24);
        String cluster = in.toString(start + HEADER_SIZE, nameLength, StandardCharsets.UTF_8);
        in.skipBytes(HEADER_SIZE + nameLength);
        return new Hello(version, role, verdict, node, incarnation, keyCheck, cluster);
    }

    /** Who speaks. The code is the wire format. */
    public enum Role {
        /** A node of the cluster: may say everything. */
        NODE(1),
        /** An attach agent: may send client requests only. */
        AGENT(2);

        public final int code;

        Role(int code) {
            this.code = code;
        }

        private static Role of(int code) {
            for (Role role : values()) {
                if (role.code == code) {
                    return role;
                }
            }
            throw new MalformedException("hello role is " + code);
        }
    }

    /** What the acceptor thinks of the dialler; after anything but WELCOME it closes. */
    public enum Verdict {
        WELCOME(0),
        OTHER_VERSION(1),
        OTHER_CLUSTER(2),
        /** The number is not one of the acceptor's configuration. */
        UNKNOWN_NODE(3),
        /** The dialler says it is the acceptor itself. */
        OWN_NUMBER(4),
        /** Nodes with lower numbers dial those with higher ones, never the other way. */
        WRONG_DIRECTION(5),
        /** No room for another agent. */
        TOO_MANY(6),
        /** The dialler holds another cluster key. */
        OTHER_KEY(7);

        public final int code;

        Verdict(int code) {
            this.code = code;
        }

        private static Verdict of(int code) {
            for (Verdict verdict : values()) {
                if (verdict.code == code) {
                    return verdict;
                }
            }
            throw new MalformedException("hello verdict is " + code);
        }
    }
}
