package io.holdfast.node.store;

import io.holdfast.node.port.Store.Copy;
import io.holdfast.node.store.ExtentPage.Extent;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.ClientReply.Run;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.EntryKind;
import io.holdfast.proto.peer.MalformedException;
import io.holdfast.proto.peer.Nonce;
import io.holdfast.proto.peer.ShardId;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads one block together with the whole record that it is in, to verify the record's checksum.
 *
 * <p>The map names the block's bytes, not its record; but a record's blocks stand in a row behind
 * its header, and the header says which block is the first: so it is at one of {@link
 * Blocks#MAX_PER_ENTRY} places before them. Where none of these fits, the header is damaged.
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
            done.accept(unreadable(e));
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

    private Copy unreadable(IOException cause) {
        LOG.error("Could not read block {} of shard {}", extent.start, shard, cause);
        return copy(NOTHING, false);
    }

    private Copy read(SegmentTable.Handle file) {
        byte[] payload = new byte[Blocks.SEALED_SIZE];
        try {
            file.read(payload, Place.offset(extent.place));
        } catch (IOException e) {
            return unreadable(e);
        }
        try {
            return copy(payload, recordIsIntact(file));
        } catch (IOException e) {
            LOG.warn("Could not read the record of block {} of {}", extent.start, shard, e);
            return copy(payload, false);
        }
    }

    private boolean recordIsIntact(SegmentTable.Handle file) throws IOException {
        long offset = Place.offset(extent.place);
        byte[] header = new byte[Entry.HEADER_SIZE];
        for (int before = 0; before < Blocks.MAX_PER_ENTRY; before++) {
            long start = offset - (long) before * Blocks.SEALED_SIZE - Entry.HEADER_SIZE;
            if (start < SegmentHeader.SIZE) {
                return false;
            }
            file.read(header, start);
            if (ByteBuffer.wrap(header).getInt() == Entry.MAGIC
                    && isIntact(file, header, start, before)) {
                return true;
            }
        }
        return false;
    }

    private boolean isIntact(SegmentTable.Handle file, byte[] header, long start, int before)
            throws IOException {
        try {
            byte[] record = new byte[Entry.lengthOf(ByteBuffer.wrap(header))];
            file.read(record, start);
            Entry entry = Entry.decode(ByteBuffer.wrap(record));
            return entry.shard().equals(shard)
                    && entry.kind() == EntryKind.WRITE
                    && entry.layer() == layer
                    && entry.sequence() == extent.sequence
                    && entry.block() == extent.start - before
                    && before < entry.count()
                    && entry.nonce().plus(before).equals(extent.nonce());
        } catch (MalformedException e) {
            LOG.debug("No record of block {} of {} at {}", extent.start, shard, start, e);
            return false;
        }
    }

    private void onLoop(Runnable task) {
        try {
            loop.execute(task);
        } catch (RejectedExecutionException e) {
            LOG.debug("The data loop has ended; nobody waits for a copy any more", e);
        }
    }
}
