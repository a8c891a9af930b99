package io.holdfast.node.store;

import io.holdfast.node.port.Store.Copy;
import io.holdfast.node.store.ExtentPage.Extent;
import io.holdfast.proto.peer.ClientReply.Run;
import io.holdfast.proto.peer.Nonce;
import io.holdfast.proto.peer.ShardId;
import java.io.IOException;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads one block together with the whole record that it is in, to verify the record's checksum.
 */
final class BlockCopy {
    private static final Logger LOG = LoggerFactory.getLogger(BlockCopy.class);
    private static final byte[] NOTHING = new byte[0];

    private final ShardId shard;
    private final int layer;
    private final Extent extent;
    private final SegmentTable segments;
    private final Executor pool;
    private final Executor loop;

    /**
     * A read that has not begun.
     *
     * @param extent of one block; kept
     */
    BlockCopy(
            ShardId shard,
            int layer,
            Extent extent,
            SegmentTable segments,
            Executor pool,
            Executor loop) {
        this.shard = shard;
        this.layer = layer;
        this.extent = extent;
        this.segments = segments;
        this.pool = pool;
        this.loop = loop;
    }

    /** Of a block that was never written. */
    static Copy never(long block) {
        return new Copy(new Run(block, 1, 0, Nonce.NONE, NOTHING), true, "nowhere");
    }

    /** On the loop, where {@code done} is called, too. */
    void read(Consumer<Copy> done) {
        if (extent.place == Place.NONE) {
            done.accept(copy(NOTHING, true));
            return;
        }
        SegmentTable.Handle handle;
        try {
            handle = segments.pin(Place.segment(extent.place));
        } catch (IOException e) {
            done.accept(unreadable(": " + e));
            return;
        }
        pool.execute(() -> {
            Copy copy = read(handle);
            onLoop(() -> {
                segments.unpin(handle);
                done.accept(copy);
            });
        });
    }

    private Copy copy(byte[] payload, boolean intact) {
        return new Copy(
                new Run(extent.start, 1, extent.sequence, extent.nonce(), payload),
                intact,
                Place.text(extent.place));
    }

    private Copy unreadable(String why) {
        LOG.error(
                "Cannot read block {} of shard {} at {}{}",
                extent.start,
                shard,
                Place.text(extent.place),
                why);
        return copy(NOTHING, false);
    }

    private Copy read(SegmentTable.Handle file) {
        RecordReader.Found found = new RecordReader(shard).read(file, layer, extent);
        return switch (found.verdict()) {
            case INTACT -> copy(found.sealed(), true);
            case DAMAGED -> copy(found.sealed(), false);
            case UNREADABLE -> unreadable("");
        };
    }

    private void onLoop(Runnable task) {
        try {
            loop.execute(task);
        } catch (RejectedExecutionException e) {
            LOG.debug("The data loop has ended; nobody waits for a copy any more", e);
        }
    }
}
