package io.holdfast.node.store;

import io.holdfast.node.store.ExtentPage.Extent;
import io.holdfast.node.store.Rows.Family;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.MalformedException;
import io.holdfast.proto.peer.ReplicaMessage.Cursor;
import io.holdfast.proto.peer.ShardId;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The extent map, the segments' live bytes, the shards and the store's own row, as the last
 * checkpoint left them: what the keys and values of {@link Rows} mean.
 *
 * <p>Thread-safe, except that {@link #close} must come last.
 */
final class MapDatabase implements AutoCloseable {
    private static final byte[] STORE_KEY = "store".getBytes(StandardCharsets.UTF_8);

    private static final Logger LOG = LoggerFactory.getLogger(MapDatabase.class);

    private final Rows rows;

    MapDatabase(Rows rows) {
        this.rows = rows;
    }

    /** The store's row; empty: the database is new. */
    Optional<StoreRow> store() throws IOException {
        byte[] row = storeRow();
        return row == null ? Optional.empty() : Optional.of(StoreRow.decode(row));
    }

    private byte @Nullable [] storeRow() throws IOException {
        try {
            return rows.get(Family.META, STORE_KEY);
        } catch (IOException e) {
            throw new StoreException("cannot read the store's row from the map", e);
        }
    }

    /**
     * Brings the rows to the present format: one of version 1 has no live bytes of segments, which
     * are counted once. A crash leaves one version or the other.
     */
    void upgrade() throws IOException {
        byte[] row = storeRow();
        if (row == null || StoreRow.version(row) != StoreRow.WITHOUT_USAGE) {
            return;
        }
        StoreRow store = StoreRow.decode(row);
        MapChanges changes = new MapChanges(List.of(), store);
        changes.usage.addAll(count());
        write(changes);
    }

    /** Live bytes of segments as the last checkpoint wrote them, by shard and segment. */
    List<UsageRow> usage() throws IOException {
        List<UsageRow> all = new ArrayList<>();
        scanAll(
                Family.USAGE,
                "the segments' live bytes",
                (key, value) -> all.add(UsageRow.decode(key, value)));
        return all;
    }

    /** What {@link #usage} must be, from a look at every extent. */
    List<UsageRow> count() throws IOException {
        TreeMap<ShardId, TreeMap<Integer, Long>> live = new TreeMap<>();
        Extent row = new Extent();
        scanAll(
                Family.EXTENTS,
                "the extents",
                (key, value) -> {
                    ExtentRow.decode(value, row);
                    if (row.place != Place.NONE) {
                        live.computeIfAbsent(shardOf(key), shard -> new TreeMap<>())
                                .merge(
                                        Place.segment(row.place),
                                        (long) row.count * Blocks.SEALED_SIZE,
                                        Long::sum);
                    }
                });
        List<UsageRow> all = new ArrayList<>();
        live.forEach((shard, segments) ->
                segments.forEach((segment, bytes) -> all.add(new UsageRow(shard, segment, bytes))));
        return all;
    }

    /** Takes the rows of all extents as they are. */
    void extents(BiConsumer<byte[], byte[]> visitor) throws IOException {
        scanAll(Family.EXTENTS, "the extents", visitor);
    }

    /** Version of the rows. */
    int format() throws IOException {
        byte[] row = storeRow();
        return row == null ? 0 : StoreRow.version(row);
    }

    /** All shard rows. */
    NavigableMap<ShardId, ShardRow> shards() throws IOException {
        TreeMap<ShardId, ShardRow> all = new TreeMap<>();
        scanAll(
                Family.SHARDS,
                "the shards",
                (key, value) -> all.put(shardOf(key), ShardRow.decode(value)));
        return all;
    }

    private void scanAll(Family family, String what, BiConsumer<byte[], byte[]> visitor)
            throws IOException {
        try {
            rows.scan(
                    family,
                    null,
                    null,
                    (key, value) -> {
                        visitor.accept(key, value);
                        return true;
                    });
        } catch (IOException | MalformedException e) {
            throw new StoreException("cannot read " + what + " from the map", e);
        }
    }

    static ShardId shardOf(byte[] key) {
        ByteBuffer in = ByteBuffer.wrap(key);
        return new ShardId(in.getInt(0), in.getInt(4));
    }

    /**
     * Reads the rows of one page in order, starts relative to the page.
     *
     * @throws DamagedMapException when they cannot be read
     */
    void page(ShardId shard, int layer, long number, Consumer<Extent> visitor) {
        long first = number << ExtentPage.SHIFT;
        Extent row = new Extent();
        try {
            rows.scan(
                    Family.EXTENTS,
                    ExtentRow.key(shard, layer, first),
                    ExtentRow.key(shard, layer, first + ExtentPage.BLOCKS),
                    (key, value) -> {
                        ExtentRow.decode(value, row);
                        row.start = ExtentRow.block(key) - first;
                        visitor.accept(row);
                        return true;
                    });
        } catch (IOException | MalformedException e) {
            throw new DamagedMapException(
                    "cannot read extents of shard " + shard + " from block " + first, e);
        }
    }

    /** Takes rows of a walk; starts are absolute. */
    interface WalkVisitor {
        /** Takes a row, reused for the next one; says whether the walk goes on. */
        boolean row(int layer, Extent row);
    }

    /**
     * Walks over a shard's rows from a place on.
     *
     * @throws DamagedMapException when they cannot be read
     */
    void walk(ShardId shard, Cursor from, WalkVisitor visitor) {
        Extent row = new Extent();
        // An extent never crosses a page's border, so the one that holds the place starts in it.
        long first = from.block() & -ExtentPage.BLOCKS;
        try {
            rows.scan(
                    Family.EXTENTS,
                    ExtentRow.key(shard, from.layer(), first),
                    shardEnd(shard),
                    (key, value) -> {
                        ExtentRow.decode(value, row);
                        row.start = ExtentRow.block(key);
                        return visitor.row(ExtentRow.layer(key), row);
                    });
        } catch (IOException | MalformedException e) {
            throw new DamagedMapException("cannot walk over extents of shard " + shard, e);
        }
    }

    /** First key behind all of the shard's. */
    private static byte[] shardEnd(ShardId shard) {
        return ByteBuffer.allocate(8).putInt(shard.volume()).putInt(shard.index() + 1).array();
    }

    private static byte[] shardKey(ShardId shard) {
        return ByteBuffer.allocate(8).putInt(shard.volume()).putInt(shard.index()).array();
    }

    /** Makes a checkpoint durable: all of it or, after a crash, nothing. Waits for the disk. */
    void write(MapChanges changes) throws IOException {
        try (Rows.Batch batch = rows.batch()) {
            for (ShardId shard : changes.dropped) {
                batch.deleteRange(Family.EXTENTS, shardKey(shard), shardEnd(shard));
                batch.deleteRange(Family.USAGE, shardKey(shard), shardEnd(shard));
                batch.delete(Family.SHARDS, shardKey(shard));
            }
            changes.rows(
                    new MapChanges.RowVisitor<IOException>() {
                        @Override
                        public void put(byte[] key, byte[] value) throws IOException {
                            batch.put(Family.EXTENTS, key, value);
                        }

                        @Override
                        public void delete(byte[] key) throws IOException {
                            batch.delete(Family.EXTENTS, key);
                        }
                    });
            for (UsageRow row : changes.usage) {
                if (row.live() == 0) {
                    batch.delete(Family.USAGE, row.key());
                } else {
                    batch.put(Family.USAGE, row.key(), row.value());
                }
            }
            for (var shard : changes.shards.entrySet()) {
                batch.put(Family.SHARDS, shardKey(shard.getKey()), shard.getValue().encode());
            }
            batch.put(Family.META, STORE_KEY, changes.store.encode());
            batch.commit();
        } catch (IOException e) {
            throw new IOException("cannot write a checkpoint", e);
        }
    }

    /**
     * Notes that a sync of the journal has failed: the kernel may call pages clean now that never
     * reached the disk, and let them go. So what the next start finds is treated as what a power
     * loss leaves. If not even the note can be written, the disk is to be replaced.
     */
    void noteFailedSync(StoreRow now) {
        StoreRow failed =
                new StoreRow(false, now.store(), now.covered(), now.synced(), StoreRow.SYNC_FAILED);
        try {
            write(new MapChanges(List.of(), failed));
        } catch (IOException e) {
            LOG.error("Cannot note in the map that a sync has failed: replace the disk", e);
        }
    }

    /** Rows of extents, an estimate. */
    long extentsEstimate() {
        return rows.estimate(Family.EXTENTS);
    }

    @Override
    public void close() {
        rows.close();
    }
}
