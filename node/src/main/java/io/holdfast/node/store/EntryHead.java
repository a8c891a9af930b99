package io.holdfast.node.store;

import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.EntryKind;
import io.holdfast.proto.peer.MalformedException;
import io.holdfast.proto.peer.ShardId;
import java.nio.ByteBuffer;

/**
 * The fields of an entry's header that tell what it is about, read without a look at its checksum:
 * also of a damaged record. The layout is {@link Entry}'s.
 */
record EntryHead(
        int length,
        int kind,
        int flags,
        int volume,
        int index,
        long epoch,
        long sequence,
        long block,
        int count,
        int layer,
        int keyId,
        int nonceSession,
        long nonceCounter) {

    /**
     * Whether the fields can be those of an entry: what is told of a record whose checksum nobody
     * has looked at.
     */
    boolean isPlausible() {
        return volume >= 1
                && index >= 0
                && index <= ShardId.MAX_INDEX
                && epoch >= 1
                && sequence >= 1
                && block >= 0
                && count >= 0;
    }

    /** Reads a header. */
    static EntryHead read(ByteBuffer header) {
        ByteBuffer in = header.slice();
        return new EntryHead(
                in.getInt(8),
                in.get(12) & 0xff,
                in.get(13) & 0xff,
                in.getInt(16),
                in.getInt(20),
                in.getLong(24),
                in.getLong(32),
                in.getLong(48),
                in.getInt(56),
                in.getInt(60),
                in.getInt(64),
                in.getInt(68),
                in.getLong(72));
    }

    boolean isMoved() {
        return (flags & Entry.FLAG_MOVED) != 0;
    }

    boolean isDoubtful() {
        return (flags & Entry.FLAG_DOUBTFUL) != 0;
    }

    boolean isWrite() {
        return kind == EntryKind.WRITE.code;
    }

    boolean hasBlocks() {
        return isWrite() || kind == EntryKind.ZERO.code;
    }

    String shard() {
        return volume + "/" + index;
    }

    /** The kind's name, or its number when there is no such kind. */
    String kindName() {
        try {
            return EntryKind.of(kind).name();
        } catch (MalformedException e) {
            return "kind " + kind;
        }
    }
}
