package io.holdfast.node.store;

import io.holdfast.node.store.ExtentPage.Extent;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.MalformedException;
import io.holdfast.proto.peer.ReplicaMessage.Cursor;
import io.holdfast.proto.peer.ShardId;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.Consumer;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.Cache;
import org.rocksdb.ColumnFamilyDescriptor;
import org.rocksdb.ColumnFamilyHandle;
import org.rocksdb.ColumnFamilyOptions;
import org.rocksdb.DBOptions;
import org.rocksdb.FlushOptions;
import org.rocksdb.InfoLogLevel;
import org.rocksdb.LRUCache;
import org.rocksdb.ReadOptions;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;
import org.rocksdb.Slice;
import org.rocksdb.WriteBatch;
import org.rocksdb.WriteOptions;

/**
 * The extent map, the segments' live bytes, the shards and the store's own row in RocksDB, as the
 * last checkpoint left them. The only class that knows RocksDB.
 *
 * <p>One write policy for all families: no log of RocksDB's own; one batch per checkpoint; then a
 * flush of all families that is atomic over them. A crash leaves the state of one checkpoint or of
 * the one before, never a mixture.
 *
 * <p>Thread-safe, except that {@link #close} must come last.
 */
final class MapDatabase implements AutoCloseable {
    private static final byte[] STORE_KEY = "store".getBytes(StandardCharsets.UTF_8);

    /** Families: default (unused, RocksDB wants it), extents, shards, meta, usage. */
    private static final List<String> FAMILIES =
            List.of("default", "extents", "shards", "meta", "usage");

    private static final long BLOCK_CACHE_BYTES = 16L << 20;
    private static final long WRITE_BUFFER_BYTES = 16L << 20;
    private static final int OPEN_FILES = 256;
    private static final int KEPT_LOGS = 4;
    private static final long LOG_BYTES = 4L << 20;

    static {
        RocksDB.loadLibrary();
    }

    private final List<AutoCloseable> owned = new ArrayList<>();
    private final RocksDB database;
    private final ColumnFamilyHandle extents;
    private final ColumnFamilyHandle shards;
    private final ColumnFamilyHandle meta;
    private final ColumnFamilyHandle usage;
    private final List<ColumnFamilyHandle> handles = new ArrayList<>();
    private final WriteOptions unlogged;
    private final FlushOptions flushAndWait;

    MapDatabase(Path directory) throws IOException {
        // RocksDB syncs the names in its directory, but not the directory's own.
        Segments.makeDirectory(directory);
        Cache cache = own(new LRUCache(BLOCK_CACHE_BYTES));
        BlockBasedTableConfig table =
                new BlockBasedTableConfig()
                        .setBlockCache(cache)
                        .setCacheIndexAndFilterBlocks(true)
                        .setFormatVersion(5);
        ColumnFamilyOptions family =
                own(
                        new ColumnFamilyOptions()
                                .setTableFormatConfig(table)
                                .setWriteBufferSize(WRITE_BUFFER_BYTES));
        List<ColumnFamilyDescriptor> descriptors =
                FAMILIES.stream()
                        .map(name ->
                                new ColumnFamilyDescriptor(
                                        name.getBytes(StandardCharsets.UTF_8), family))
                        .toList();
        DBOptions options =
                own(
                        new DBOptions()
                                .setCreateIfMissing(true)
                                .setCreateMissingColumnFamilies(true)
                                .setAtomicFlush(true)
                                .setAvoidFlushDuringShutdown(true)
                                .setMaxOpenFiles(OPEN_FILES)
                                .setMaxBackgroundJobs(2)
                                .setInfoLogLevel(InfoLogLevel.WARN_LEVEL)
                                .setKeepLogFileNum(KEPT_LOGS)
                                .setMaxLogFileSize(LOG_BYTES));
        unlogged = own(new WriteOptions().setDisableWAL(true));
        flushAndWait = own(new FlushOptions().setWaitForFlush(true));
        try {
            database = RocksDB.open(options, directory.toString(), descriptors, handles);
        } catch (RocksDBException e) {
            closeOwned();
            throw new StoreException("cannot open the map in " + directory, e);
        }
        extents = handles.get(1);
        shards = handles.get(2);
        meta = handles.get(3);
        usage = handles.get(4);
    }

    private <T extends AutoCloseable> T own(T made) {
        owned.add(made);
        return made;
    }

    /** The store's row; empty: the database is new. */
    Optional<StoreRow> store() throws IOException {
        try {
            byte[] row = database.get(meta, STORE_KEY);
            return row == null ? Optional.empty() : Optional.of(StoreRow.decode(row));
        } catch (RocksDBException e) {
            throw new IOException("cannot read the map's own row", e);
        }
    }

    /**
     * Brings the rows to the present format: one of version 1 has no live bytes of segments, which
     * are counted once. A crash leaves one version or the other.
     */
    void upgrade() throws IOException {
        try {
            byte[] row = database.get(meta, STORE_KEY);
            if (row == null || StoreRow.version(row) != StoreRow.WITHOUT_USAGE) {
                return;
            }
            StoreRow store = StoreRow.decode(row);
            MapChanges changes = new MapChanges(List.of(), store);
            changes.usage.addAll(count());
            write(changes);
        } catch (RocksDBException e) {
            throw new IOException("cannot read the map's own row", e);
        }
    }

    /** Live bytes of segments as the last checkpoint wrote them, by shard and segment. */
    List<UsageRow> usage() throws IOException {
        List<UsageRow> all = new ArrayList<>();
        try (RocksIterator rows = database.newIterator(usage)) {
            for (rows.seekToFirst(); rows.isValid(); rows.next()) {
                all.add(UsageRow.decode(rows.key(), rows.value()));
            }
            rows.status();
        } catch (RocksDBException | MalformedException e) {
            throw new StoreException("cannot read the segments' live bytes from the map", e);
        }
        return all;
    }

    /** What {@link #usage} must be, from a look at every extent. */
    List<UsageRow> count() throws IOException {
        TreeMap<ShardId, TreeMap<Integer, Long>> live = new TreeMap<>();
        Extent row = new Extent();
        try (RocksIterator rows = database.newIterator(extents)) {
            for (rows.seekToFirst(); rows.isValid(); rows.next()) {
                ExtentRow.decode(rows.value(), row);
                if (row.place != Place.NONE) {
                    ByteBuffer key = ByteBuffer.wrap(rows.key());
                    live.computeIfAbsent(
                                    new ShardId(key.getInt(0), key.getInt(4)),
                                    shard -> new TreeMap<>())
                            .merge(
                                    Place.segment(row.place),
                                    (long) row.count * Blocks.SEALED_SIZE,
                                    Long::sum);
                }
            }
            rows.status();
        } catch (RocksDBException | MalformedException e) {
            throw new StoreException("cannot count the segments' live bytes in the map", e);
        }
        List<UsageRow> all = new ArrayList<>();
        live.forEach((shard, segments) ->
                segments.forEach((segment, bytes) -> all.add(new UsageRow(shard, segment, bytes))));
        return all;
    }

    /** All shard rows. */
    NavigableMap<ShardId, ShardRow> shards() throws IOException {
        TreeMap<ShardId, ShardRow> all = new TreeMap<>();
        try (RocksIterator rows = database.newIterator(shards)) {
            for (rows.seekToFirst(); rows.isValid(); rows.next()) {
                ByteBuffer key = ByteBuffer.wrap(rows.key());
                all.put(new ShardId(key.getInt(0), key.getInt(4)), ShardRow.decode(rows.value()));
            }
            rows.status();
        } catch (RocksDBException | MalformedException e) {
            throw new StoreException("cannot read the shards from the map", e);
        }
        return all;
    }

    /**
     * Reads the rows of one page in order, starts relative to the page.
     *
     * @throws DamagedMapException when they cannot be read
     */
    void page(ShardId shard, int layer, long number, Consumer<Extent> rows) {
        long first = number << ExtentPage.SHIFT;
        Extent row = new Extent();
        try (Slice end = new Slice(ExtentRow.key(shard, layer, first + ExtentPage.BLOCKS));
                ReadOptions options = new ReadOptions().setIterateUpperBound(end);
                RocksIterator found = database.newIterator(extents, options)) {
            for (found.seek(ExtentRow.key(shard, layer, first)); found.isValid(); found.next()) {
                ExtentRow.decode(found.value(), row);
                row.start = ExtentRow.block(found.key()) - first;
                rows.accept(row);
            }
            found.status();
        } catch (RocksDBException | MalformedException e) {
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
        try (Slice end = new Slice(shardEnd(shard));
                ReadOptions options = new ReadOptions().setIterateUpperBound(end);
                RocksIterator found = database.newIterator(extents, options)) {
            for (found.seek(ExtentRow.key(shard, from.layer(), first));
                    found.isValid();
                    found.next()) {
                ExtentRow.decode(found.value(), row);
                byte[] key = found.key();
                row.start = ExtentRow.block(key);
                if (!visitor.row(ExtentRow.layer(key), row)) {
                    break;
                }
            }
            found.status();
        } catch (RocksDBException | MalformedException e) {
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
        try (WriteBatch batch = new WriteBatch()) {
            for (ShardId shard : changes.dropped) {
                batch.deleteRange(extents, shardKey(shard), shardEnd(shard));
                batch.deleteRange(usage, shardKey(shard), shardEnd(shard));
                batch.delete(shards, shardKey(shard));
            }
            changes.rows(
                    new MapChanges.RowVisitor<RocksDBException>() {
                        @Override
                        public void put(byte[] key, byte[] value) throws RocksDBException {
                            batch.put(extents, key, value);
                        }

                        @Override
                        public void delete(byte[] key) throws RocksDBException {
                            batch.delete(extents, key);
                        }
                    });
            for (UsageRow row : changes.usage) {
                if (row.live() == 0) {
                    batch.delete(usage, row.key());
                } else {
                    batch.put(usage, row.key(), row.value());
                }
            }
            for (var shard : changes.shards.entrySet()) {
                batch.put(shards, shardKey(shard.getKey()), shard.getValue().encode());
            }
            batch.put(meta, STORE_KEY, changes.store.encode());
            database.write(unlogged, batch);
            database.flush(flushAndWait, handles);
        } catch (RocksDBException e) {
            throw new IOException("cannot write a checkpoint", e);
        }
    }

    /** Rows of extents, an estimate. */
    long extentsEstimate() {
        try {
            return database.getLongProperty(extents, "rocksdb.estimate-num-keys");
        } catch (RocksDBException e) {
            return 0;
        }
    }

    @Override
    public void close() {
        handles.forEach(ColumnFamilyHandle::close);
        database.close();
        closeOwned();
    }

    private void closeOwned() {
        for (AutoCloseable each : owned.reversed()) {
            try {
                each.close();
            } catch (Exception e) {
                throw new IllegalStateException("RocksDB's options close without errors", e);
            }
        }
    }
}
