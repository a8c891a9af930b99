package io.holdfast.integration;

import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.EntryKind;
import io.holdfast.proto.peer.MalformedException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** Bytes that change in a node's segment files behind its back. */
final class Rot {
    private static final int RECORD_ALIGNMENT = 8;

    private Rot() {}

    /** Changes a byte of the newest copy of a block in a node's journal, whatever else is there. */
    static void damage(LocalCluster cluster, int node, long block) throws IOException {
        Path newestFile = null;
        long newestAt = 0;
        long newestSequence = -1;
        for (Path file : segments(cluster, node)) {
            ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(file));
            int at = 0;
            while (at + Entry.HEADER_SIZE <= bytes.limit()) {
                Entry entry = entryAt(bytes, at);
                if (entry == null) {
                    at += RECORD_ALIGNMENT;
                    continue;
                }
                boolean covers =
                        entry.kind() == EntryKind.WRITE
                                && entry.block() <= block
                                && block < entry.block() + entry.count();
                if (covers && entry.sequence() >= newestSequence) {
                    newestSequence = entry.sequence();
                    newestFile = file;
                    newestAt =
                            at
                                    + Entry.HEADER_SIZE
                                    + (block - entry.block()) * Blocks.SEALED_SIZE
                                    + 1234;
                }
                at += (entry.sizeBytes() + RECORD_ALIGNMENT - 1) & -RECORD_ALIGNMENT;
            }
        }
        if (newestFile == null) {
            throw new AssertionError("block " + block + " is not in the journal of node " + node);
        }
        try (FileChannel channel =
                FileChannel.open(newestFile, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            ByteBuffer one = ByteBuffer.allocate(1);
            channel.read(one, newestAt);
            one.put(0, (byte) (one.get(0) ^ 0x10)).flip();
            channel.write(one, newestAt);
        }
    }

    private static List<Path> segments(LocalCluster cluster, int node) throws IOException {
        try (Stream<Path> files = Files.walk(cluster.nodeDir(node))) {
            return files.filter(file -> file.toString().endsWith(".seg")).sorted().toList();
        }
    }

    private static @Nullable Entry entryAt(ByteBuffer bytes, int at) {
        if (bytes.getInt(at) != Entry.MAGIC) {
            return null;
        }
        try {
            return Entry.decode(bytes.duplicate().position(at));
        } catch (MalformedException e) {
            return null; // damaged before, or no record at all
        }
    }
}
