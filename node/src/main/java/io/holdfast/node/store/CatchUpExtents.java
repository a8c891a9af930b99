package io.holdfast.node.store;

import io.holdfast.node.port.Store.Extents;
import io.holdfast.node.store.ExtentPage.Extent;
import io.holdfast.node.store.MapWalk.Piece;
import io.holdfast.node.store.RecordReader.Found;
import io.holdfast.node.store.RecordReader.Verdict;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.ReplicaMessage.Cursor;
import io.holdfast.proto.peer.ShardId;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Part of a walk for a follower's catch-up: the pieces as moved entries.
 *
 * <p>A moved entry gets a checksum of its own, which is right whatever the bytes are. So every
 * record is verified, and what comes from a damaged one is marked ({@link Entry#FLAG_DOUBTFUL}):
 * the receiver has the blocks' versions, as its catch-up needs, and its scrub knows that the bytes
 * want replacing. They are sent all the same, since most blocks of a damaged record are good, this
 * may be the only copy left, and a reader tells by the tag. In the place of what cannot be read go
 * zeroes, which no tag fits: the catch-up must not wait for a disk that will not get better.
 */
final class CatchUpExtents implements MapWalk.Purpose<List<Entry>> {
    private static final Logger LOG = LoggerFactory.getLogger(CatchUpExtents.class);
    private static final byte[] NOTHING = new byte[0];

    private final ShardId shard;
    private final Cursor from;
    private final Consumer<Extents> done;

    CatchUpExtents(ShardId shard, Cursor from, Consumer<Extents> done) {
        this.shard = shard;
        this.from = from;
        this.done = done;
    }

    @Override
    public List<Entry> read(List<Piece> pieces, List<SegmentTable.@Nullable Handle> files) {
        RecordReader reader = new RecordReader(shard);
        List<Entry> moved = new ArrayList<>(pieces.size());
        long doubtful = 0;
        for (int i = 0; i < pieces.size(); i++) {
            Piece piece = pieces.get(i);
            Extent extent = piece.extent();
            if (piece.isZero()) {
                moved.add(extent.moved(shard, piece.layer(), NOTHING, false));
                continue;
            }
            SegmentTable.Handle file = files.get(i);
            Found found =
                    file == null
                            ? new Found(
                                    new byte[extent.count * Blocks.SEALED_SIZE], Verdict.UNREADABLE)
                            : reader.read(file, piece.layer(), extent);
            boolean intact = found.verdict() == Verdict.INTACT;
            doubtful += intact ? 0 : extent.count;
            moved.add(extent.moved(shard, piece.layer(), found.sealed(), !intact));
        }
        if (doubtful > 0) {
            LOG.warn(
                    "Shard {}: {} blocks of damaged records are given to a follower as doubtful",
                    shard,
                    doubtful);
        }
        return moved;
    }

    @Override
    public void done(List<Entry> moved, @Nullable Cursor next) {
        done.accept(new Extents(moved, next == null ? from : next, next == null));
    }

    /** Nobody is told: whoever asked is gone as well, or out of service. */
    @Override
    public void gone() {}
}
