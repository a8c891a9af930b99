package io.holdfast.node.admin;

import io.holdfast.client.admin.VolumeHash.ShardHash;
import io.holdfast.node.port.Store;
import io.holdfast.node.port.Store.Extents;
import io.holdfast.node.runtime.DataLoop;
import io.holdfast.node.runtime.DataLoop.ReplicaView;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.Nonce;
import io.holdfast.proto.peer.ReplicaMessage.Cursor;
import io.holdfast.proto.peer.ShardId;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.util.HexFormat;
import java.util.concurrent.CompletableFuture;

/**
 * SHA-256 over everything that a replica's map holds, to compare replicas.
 *
 * <p>Replicas with the same applied point have the same hash however their extents are cut, as each
 * block goes in by itself, in order of (layer, block):
 *
 * <pre>
 * size field
 *    4 layer
 *    8 block
 *    8 sequence
 *    4 key id          0: zeroes, nothing follows the nonce
 *    4 nonce session
 *    8 nonce counter   of this block
 * 4112 sealed block
 * </pre>
 */
final class ReplicaHash {
    private static final int HEADER_SIZE = 36;
    private static final int PART_BYTES = 1 << 20;
    private static final Duration PART_TIMEOUT = Duration.ofSeconds(10);

    /** A walk during which the replica applied something is worth nothing and is repeated. */
    private static final int ATTEMPTS = 3;

    private final DataLoop loop;
    private final Store store;

    ReplicaHash(DataLoop loop, Store store) {
        this.loop = loop;
        this.store = store;
    }

    /**
     * Walks one replica's map. Takes as long as reading the whole shard does.
     *
     * <p>Where a block cannot be read, zeroes go in.
     *
     * @throws AdminRefusal 409 when the shard is being written all the time, 503 when the store
     *     gives no answer
     */
    ShardHash of(ShardId shard) {
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            long before = applied(shard);
            String hash = walk(shard);
            if (applied(shard) == before) {
                return new ShardHash(shard.index(), before, hash);
            }
        }
        throw new AdminRefusal(
                AdminRefusal.CONFLICT,
                "shard " + shard + " is being written",
                "hash the volume when nobody writes it");
    }

    private long applied(ShardId shard) {
        return LoopAnswers.get(loop.thread().submit(loop::replicas)).stream()
                .filter(view -> view.shard().equals(shard))
                .map(ReplicaView::status)
                .findFirst()
                .orElseThrow(() ->
                        new AdminRefusal(
                                AdminRefusal.NOT_FOUND,
                                "shard " + shard + " is not here any more",
                                ""))
                .applied();
    }

    private String walk(ShardId shard) {
        MessageDigest digest = sha256();
        Cursor at = Cursor.START;
        boolean done = false;
        while (!done) {
            Extents part = part(shard, at);
            part.moved().forEach(extent -> update(digest, extent));
            at = part.next();
            done = part.done();
        }
        return HexFormat.of().formatHex(digest.digest());
    }

    private Extents part(ShardId shard, Cursor from) {
        CompletableFuture<Extents> answer = new CompletableFuture<>();
        loop.thread().execute(() -> store.extents(shard, 0, from, PART_BYTES, answer::complete));
        return LoopAnswers.get(answer, PART_TIMEOUT, "the store");
    }

    /** Adds an extent, block by block. */
    static void update(MessageDigest digest, Entry extent) {
        ByteBuffer header = ByteBuffer.allocate(HEADER_SIZE);
        for (int i = 0; i < extent.count(); i++) {
            Nonce nonce = extent.nonce().plus(i);
            header.clear()
                    .putInt(extent.layer())
                    .putLong(extent.block() + i)
                    .putLong(extent.sequence())
                    .putInt(nonce.keyId())
                    .putInt(nonce.session())
                    .putLong(nonce.counter());
            digest.update(header.flip());
            if (extent.payload().length > 0) {
                digest.update(extent.payload(), i * Blocks.SEALED_SIZE, Blocks.SEALED_SIZE);
            }
        }
    }

    static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every JDK has SHA-256", e);
        }
    }
}
