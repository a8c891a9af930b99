package io.holdfast.node.store;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.Cache;
import org.rocksdb.ColumnFamilyDescriptor;
import org.rocksdb.ColumnFamilyHandle;
import org.rocksdb.ColumnFamilyOptions;
import org.rocksdb.DBOptions;
import org.rocksdb.FlushOptions;
import org.rocksdb.InfoLogLevel;
import org.rocksdb.LRUCache;
import org.rocksdb.Logger;
import org.rocksdb.Options;
import org.rocksdb.ReadOptions;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;
import org.rocksdb.Slice;
import org.rocksdb.WriteBatch;
import org.rocksdb.WriteOptions;

/**
 * {@link Rows} in RocksDB. The only class that knows RocksDB.
 *
 * <p>One write policy for all families: no log of RocksDB's own; one batch per checkpoint; then a
 * flush of all families that is atomic over them. A crash leaves the state of one checkpoint or of
 * the one before, never a mixture.
 */
final class RocksRows implements Rows {
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
    private final List<ColumnFamilyHandle> handles = new ArrayList<>();
    private final Map<Family, ColumnFamilyHandle> families = new EnumMap<>(Family.class);
    private final WriteOptions unlogged;
    private final FlushOptions flushAndWait;

    /**
     * Opens the database; made when there is none.
     *
     * @throws StoreException when there is one that cannot be opened
     */
    RocksRows(Path directory) throws IOException {
        this(directory, false);
    }

    /**
     * Opens a database to look at it only: not a byte below the directory changes. A family that an
     * older version did not have reads as empty.
     *
     * @throws StoreException when there is none, or one that cannot be opened
     */
    static RocksRows readOnly(Path directory) throws IOException {
        return new RocksRows(directory, true);
    }

    private RocksRows(Path directory, boolean readOnly) throws IOException {
        checkComplete(directory, readOnly);
        if (!readOnly) {
            // RocksDB syncs the names in its directory, but not the directory's own.
            Segments.makeDirectory(directory);
        }
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
        List<ColumnFamilyDescriptor> descriptors = new ArrayList<>();
        // Unused, but RocksDB wants it.
        descriptors.add(descriptor("default", family));
        List<Family> present = present(directory, readOnly);
        for (Family each : present) {
            descriptors.add(descriptor(name(each), family));
        }
        DBOptions options =
                own(
                        new DBOptions()
                                .setCreateIfMissing(!readOnly)
                                .setCreateMissingColumnFamilies(!readOnly)
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
            if (readOnly) {
                // Else RocksDB makes a file for its log.
                options.setLogger(own(new Silence()));
            }
            database =
                    readOnly
                            ? RocksDB.openReadOnly(
                                    options, directory.toString(), descriptors, handles)
                            : RocksDB.open(options, directory.toString(), descriptors, handles);
        } catch (RocksDBException e) {
            closeOwned();
            throw new StoreException("cannot open the map in " + directory, e);
        }
        int next = 1;
        for (Family each : present) {
            families.put(each, handles.get(next++));
        }
    }

    /**
     * RocksDB takes a directory without the file {@code CURRENT} for an empty one, and removes what
     * it finds in it.
     */
    private static void checkComplete(Path directory, boolean readOnly) throws IOException {
        if (Files.exists(directory.resolve("CURRENT"))) {
            return;
        }
        boolean any = Files.isDirectory(directory);
        if (any) {
            try (Stream<Path> files = Files.list(directory)) {
                any = files.anyMatch(file -> file.toString().endsWith(".sst"));
            }
        }
        if (any || readOnly) {
            throw new StoreException(
                    "the map is damaged: "
                            + (any ? directory.resolve("CURRENT") : directory + ", or all in it,")
                            + " is missing");
        }
    }

    private static String name(Family family) {
        return family.name().toLowerCase(Locale.ROOT);
    }

    private List<Family> present(Path directory, boolean readOnly) throws IOException {
        List<Family> all = List.of(Family.values());
        if (!readOnly) {
            return all;
        }
        try (Options options = new Options()) {
            List<String> names =
                    RocksDB.listColumnFamilies(options, directory.toString()).stream()
                            .map(name -> new String(name, StandardCharsets.UTF_8))
                            .toList();
            return all.stream().filter(each -> names.contains(name(each))).toList();
        } catch (RocksDBException e) {
            closeOwned();
            throw new StoreException("cannot open the map in " + directory, e);
        }
    }

    /** A log that nobody reads. */
    private static final class Silence extends Logger {
        Silence() {
            super(InfoLogLevel.FATAL_LEVEL);
        }

        @Override
        protected void log(InfoLogLevel level, String message) {}
    }

    private static ColumnFamilyDescriptor descriptor(String name, ColumnFamilyOptions options) {
        return new ColumnFamilyDescriptor(name.getBytes(StandardCharsets.UTF_8), options);
    }

    private <T extends AutoCloseable> T own(T made) {
        owned.add(made);
        return made;
    }

    private ColumnFamilyHandle handle(Family family) {
        ColumnFamilyHandle handle = families.get(family);
        if (handle == null) {
            throw new IllegalArgumentException("no family " + family);
        }
        return handle;
    }

    @Override
    public byte @Nullable [] get(Family family, byte[] key) throws IOException {
        if (!families.containsKey(family)) {
            return null;
        }
        try {
            return database.get(handle(family), key);
        } catch (RocksDBException e) {
            throw new IOException("RocksDB cannot read a row in " + database.getName(), e);
        }
    }

    @Override
    public void scan(Family family, byte @Nullable [] from, byte @Nullable [] to, Visitor visitor)
            throws IOException {
        if (!families.containsKey(family)) {
            return;
        }
        try (Slice end = to == null ? null : new Slice(to);
                ReadOptions options = new ReadOptions()) {
            if (end != null) {
                options.setIterateUpperBound(end);
            }
            try (RocksIterator found = database.newIterator(handle(family), options)) {
                if (from == null) {
                    found.seekToFirst();
                } else {
                    found.seek(from);
                }
                while (found.isValid() && visitor.row(found.key(), found.value())) {
                    found.next();
                }
                found.status();
            }
        } catch (RocksDBException e) {
            throw new IOException("RocksDB cannot read rows in " + database.getName(), e);
        }
    }

    @Override
    public Batch batch() {
        return new RocksBatch();
    }

    private final class RocksBatch implements Batch {
        private final WriteBatch changes = new WriteBatch();

        @Override
        public void put(Family family, byte[] key, byte[] value) throws IOException {
            try {
                changes.put(handle(family), key, value);
            } catch (RocksDBException e) {
                throw failed(e);
            }
        }

        @Override
        public void delete(Family family, byte[] key) throws IOException {
            try {
                changes.delete(handle(family), key);
            } catch (RocksDBException e) {
                throw failed(e);
            }
        }

        @Override
        public void deleteRange(Family family, byte[] from, byte[] to) throws IOException {
            try {
                changes.deleteRange(handle(family), from, to);
            } catch (RocksDBException e) {
                throw failed(e);
            }
        }

        @Override
        public void commit() throws IOException {
            try {
                database.write(unlogged, changes);
                database.flush(flushAndWait, handles);
            } catch (RocksDBException e) {
                throw failed(e);
            }
        }

        private static IOException failed(RocksDBException cause) {
            return new IOException("RocksDB cannot write", cause);
        }

        @Override
        public void close() {
            changes.close();
        }
    }

    @Override
    public long estimate(Family family) {
        try {
            return database.getLongProperty(handle(family), "rocksdb.estimate-num-keys");
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
