package io.holdfast.node.store;

import io.holdfast.node.store.ExtentPage.Extent;
import io.holdfast.proto.peer.ShardId;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.TreeMap;

/**
 * Everything that one checkpoint changes in the database, captured on the data loop and written by
 * the checkpoint's thread as one batch: shards dropped, rows of extents, live bytes of segments,
 * shard rows, store row.
 */
final class MapChanges implements ExtentPage.RowSink, SegmentUsage.RowSink {
    private static final int PUT_BYTES = 1 + ExtentRow.KEY_SIZE + ExtentRow.VALUE_SIZE;

    final List<ShardId> dropped;
    final TreeMap<ShardId, ShardRow> shards = new TreeMap<>();
    final StoreRow store;

    final List<UsageRow> usage = new ArrayList<>();

    /** Operations in a row: 1 and key and value, or 0 and key. */
    private ByteBuffer rows = ByteBuffer.allocate(64 << 10);

    MapChanges(List<ShardId> dropped, StoreRow store) {
        this.dropped = new ArrayList<>(dropped);
        this.store = store;
    }

    private void ensureRoom() {
        if (rows.remaining() < PUT_BYTES) {
            ByteBuffer larger =
                    ByteBuffer.wrap(
                            Arrays.copyOf(rows.array(), Math.multiplyExact(rows.capacity(), 2)));
            rows = larger.position(rows.position());
        }
    }

    @Override
    public void put(ExtentPage page, Extent row) {
        ensureRoom();
        rows.put((byte) 1);
        ExtentRow.key(rows, page.owner.shard, page.layer, page.firstBlock() + row.start);
        ExtentRow.value(rows, row);
    }

    @Override
    public void delete(ExtentPage page, int start) {
        ensureRoom();
        rows.put((byte) 0);
        ExtentRow.key(rows, page.owner.shard, page.layer, page.firstBlock() + start);
    }

    @Override
    public void usage(ShardId shard, int segment, long live) {
        usage.add(new UsageRow(shard, segment, live));
    }

    /** Takes the rows' operations in order. */
    interface RowVisitor<E extends Exception> {
        void put(byte[] key, byte[] value) throws E;

        void delete(byte[] key) throws E;
    }

    <E extends Exception> void rows(RowVisitor<E> visitor) throws E {
        ByteBuffer in = rows.duplicate().flip();
        byte[] key = new byte[ExtentRow.KEY_SIZE];
        byte[] value = new byte[ExtentRow.VALUE_SIZE];
        while (in.hasRemaining()) {
            boolean put = in.get() == 1;
            in.get(key);
            if (put) {
                in.get(value);
                visitor.put(key, value);
            } else {
                visitor.delete(key);
            }
        }
    }
}
