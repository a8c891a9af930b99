package io.holdfast.node.store;

import io.holdfast.node.port.Store.Extents;
import io.holdfast.node.replica.HardState;
import io.holdfast.node.replica.Recovered;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.ClientReply.Run;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.EntryKind;
import io.holdfast.proto.peer.Nonce;
import io.holdfast.proto.peer.ReplicaMessage.Cursor;
import io.holdfast.proto.peer.ShardId;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/** A store on real files with what tests do to it. */
final class Rig {
    static final ShardId SHARD = new ShardId(7, 0);
    static final ShardId OTHER = new ShardId(7, 1);
    static final StoreOptions OPTIONS = options("boot-1");

    private Rig() {}

    static StoreOptions options(String boot) {
        return new StoreOptions(2 << 20, 1L << 40, 64 << 20, 1 << 20, 2, boot);
    }

    static byte[] payload(int count, long seed) {
        byte[] bytes = new byte[count * Blocks.SEALED_SIZE];
        for (int i = 0; i < count; i++) {
            Arrays.fill(
                    bytes,
                    i * Blocks.SEALED_SIZE,
                    (i + 1) * Blocks.SEALED_SIZE,
                    (byte) (seed * 31 + i + 1));
        }
        return bytes;
    }

    static Entry write(ShardId shard, long epoch, long sequence, long block, int count) {
        return Entry.builder(shard, EntryKind.WRITE)
                .at(epoch, sequence, 0)
                .blocks(1, block, count)
                .sealed(new Nonce(1, 5, sequence * 1000), payload(count, sequence))
                .build();
    }

    static Entry zero(ShardId shard, long epoch, long sequence, long block, int count) {
        return Entry.builder(shard, EntryKind.ZERO)
                .at(epoch, sequence, 0)
                .blocks(1, block, count)
                .flags(Entry.FLAG_TRIM)
                .build();
    }

    static List<Run> read(JournalStore store, Loop loop, ShardId shard, long block, int count) {
        List<List<Run>> got = new ArrayList<>();
        store.read(shard, 1, block, count, got::add);
        loop.until(() -> !got.isEmpty());
        return got.getFirst();
    }

    static void sync(JournalStore store, Loop loop) {
        boolean[] done = {false};
        store.write();
        store.sync(through -> done[0] = true);
        loop.until(() -> done[0]);
    }

    /** A checkpoint, and its end. */
    static void checkpoint(JournalStore store, Loop loop) {
        store.checkpoint();
        loop.until(() -> !store.checkpointRunning());
    }

    static Extents extents(JournalStore store, Loop loop, long since, Cursor from, int bytes) {
        List<Extents> got = new ArrayList<>();
        store.extents(SHARD, since, from, bytes, got::add);
        loop.until(() -> !got.isEmpty());
        return got.getFirst();
    }

    static Recovered create(JournalStore store, ShardId shard, TestOwner owner) {
        return store.create(shard, HardState.FRESH, owner);
    }

    /** Copies a directory as a crash of the process leaves it. */
    static void copy(Path from, Path to) throws IOException {
        try (Stream<Path> files = Files.walk(from)) {
            files.forEach(file -> {
                try {
                    Files.copy(file, to.resolve(from.relativize(file).toString()));
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            });
        }
    }
}
