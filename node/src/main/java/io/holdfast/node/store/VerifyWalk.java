package io.holdfast.node.store;

import io.holdfast.node.port.Store.Verified;
import io.holdfast.node.store.ExtentPage.Extent;
import io.holdfast.node.store.MapWalk.Piece;
import io.holdfast.node.store.RecordReader.Verdict;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.ReplicaMessage.Cursor;
import io.holdfast.proto.peer.ScrubMessage;
import io.holdfast.proto.peer.ScrubMessage.Stretch;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/** Part of a walk for a scrub: each piece with the verdict on its record and its blocks' sums. */
final class VerifyWalk implements MapWalk.Purpose<List<Verified.Piece>> {
    private static final byte[] NOTHING = new byte[0];

    private final ShardStore shard;
    private final Cursor to;
    private final Consumer<@Nullable Verified> done;
    private long applied;

    VerifyWalk(ShardStore shard, Cursor to, Consumer<@Nullable Verified> done) {
        this.shard = shard;
        this.to = to;
        this.done = done;
    }

    @Override
    public void found() {
        applied = shard.applied();
    }

    @Override
    public List<Verified.Piece> read(
            List<Piece> pieces, List<SegmentTable.@Nullable Handle> files) {
        RecordReader reader = new RecordReader(shard.id);
        List<Verified.Piece> verified = new ArrayList<>(pieces.size());
        for (int i = 0; i < pieces.size(); i++) {
            Piece piece = pieces.get(i);
            if (piece.isZero()) {
                verified.add(piece(piece, true, NOTHING, true));
                continue;
            }
            SegmentTable.Handle file = files.get(i);
            if (file == null) {
                byte[] sums = new byte[piece.extent().count * ScrubMessage.SUM_SIZE];
                verified.add(piece(piece, false, sums, false));
                continue;
            }
            RecordReader.Found found = reader.read(file, piece.layer(), piece.extent());
            verified.add(
                    piece(
                            piece,
                            found.verdict() == Verdict.INTACT,
                            sums(found.sealed()),
                            found.verdict() != Verdict.UNREADABLE));
        }
        return verified;
    }

    private static Verified.Piece piece(
            Piece piece, boolean intact, byte[] sums, boolean readable) {
        Extent extent = piece.extent();
        return new Verified.Piece(
                new Stretch(
                        piece.layer(),
                        extent.start,
                        extent.count,
                        extent.sequence,
                        extent.epoch,
                        extent.nonce(),
                        extent.trim,
                        intact,
                        sums),
                readable,
                Place.text(extent.place));
    }

    private static byte[] sums(byte[] sealed) {
        ByteBuffer sums =
                ByteBuffer.allocate(sealed.length / Blocks.SEALED_SIZE * ScrubMessage.SUM_SIZE);
        CRC32C crc = new CRC32C();
        for (int at = 0; at < sealed.length; at += Blocks.SEALED_SIZE) {
            crc.reset();
            crc.update(sealed, at, Blocks.SEALED_SIZE);
            sums.putInt((int) crc.getValue());
        }
        return sums.array();
    }

    @Override
    public void done(List<Verified.Piece> pieces, @Nullable Cursor next) {
        done.accept(new Verified(applied, pieces, next == null ? to : next));
    }

    @Override
    public void gone() {
        done.accept(null);
    }
}
