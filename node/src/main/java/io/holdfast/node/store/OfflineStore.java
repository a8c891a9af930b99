package io.holdfast.node.store;

import io.holdfast.node.store.ExtentPage.Extent;
import io.holdfast.node.store.StoreException.Kind;
import io.holdfast.node.store.StoreSummary.SegmentLine;
import io.holdfast.node.store.StoreSummary.ShardLine;
import io.holdfast.proto.peer.MalformedException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * A store that no node uses, looked at from outside. Nothing below its directory is written, made
 * or removed: no recovery, no lock file, no log of the database. As long as it is open, no node
 * starts on the directory.
 *
 * <p>One thread.
 */
public final class OfflineStore implements AutoCloseable {
    /** What to do about a damaged store. */
    public static final String REMEDY = StoreException.REMEDY;

    private final Path directory;
    private final DirectoryLock lock;
    private final MapDatabase database;
    private final StoreRow row;
    private final int mapFormat;

    /** Is told how far a long look has come. */
    public interface Progress {
        /** So many bytes of the journal have been read, of so many. */
        void read(long bytes, long all);
    }

    private OfflineStore(
            Path directory, DirectoryLock lock, MapDatabase database, StoreRow row, int mapFormat) {
        this.directory = directory;
        this.lock = lock;
        this.database = database;
        this.row = row;
        this.mapFormat = mapFormat;
    }

    /** Whether there is something of a store in the directory. */
    public static boolean isStore(Path directory) {
        return Files.isDirectory(directory.resolve("journal"))
                || Files.isDirectory(directory.resolve("map"));
    }

    /**
     * Opens the store in a data directory.
     *
     * @throws StoreException when there is none, a process uses it, it is of another format, or its
     *     database cannot be opened
     */
    public static OfflineStore open(Path directory) throws IOException {
        if (!isStore(directory)) {
            throw new StoreException(
                    Kind.NO_STORE,
                    directory
                            + (Files.isDirectory(directory)
                                    ? " holds no store: neither journal/ nor map/ is in it"
                                    : " is no directory"),
                    "Name a node's data directory (node.data-directory in its configuration), or"
                            + " the node's folder of a local cluster, such as run/node-1.");
        }
        DirectoryLock lock = DirectoryLock.share(directory);
        try {
            if (!Files.isDirectory(directory.resolve("journal"))) {
                throw new StoreException(
                        "the store is damaged: " + directory.resolve("journal") + " is missing");
            }
            return open(directory, lock);
        } catch (IOException | RuntimeException e) {
            lock.close();
            throw e;
        }
    }

    private static OfflineStore open(Path directory, DirectoryLock lock) throws IOException {
        Path map = directory.resolve("map");
        MapDatabase database = new MapDatabase(RocksRows.readOnly(map));
        try {
            StoreRow row =
                    database.store()
                            .orElseThrow(() ->
                                    new StoreException(
                                            "the map is damaged: " + map + " is new or empty"));
            return new OfflineStore(directory, lock, database, row, database.format());
        } catch (IOException | RuntimeException e) {
            database.close();
            throw e;
        }
    }

    /**
     * What the store is. Reads the headers of all records; their checksums are left to {@link
     * #verify}.
     */
    public StoreSummary inspect(Progress progress) throws IOException {
        Survey survey = new Survey(directory, row, database, false, progress);
        survey.run();
        List<SegmentLine> segments = survey.segmentLines();
        List<ShardLine> shards = new ArrayList<>();
        survey.shards.forEach((id, trace) ->
                shards.add(
                        new ShardLine(
                                id.volume(),
                                id.index(),
                                trace.state.promised(),
                                trace.state.promisedTo(),
                                trace.state.standing().name(),
                                trace.applied,
                                trace.applied + 1,
                                trace.last,
                                survey.extents(id))));
        return new StoreSummary(
                directory.toString(),
                row.store().toString(),
                mapFormat,
                SegmentHeader.VERSION,
                row.clean(),
                row.bootId(),
                Place.text(row.covered()),
                Place.text(row.synced()),
                Place.text(survey.end),
                survey.journalBytes,
                survey.liveBytes,
                survey.records,
                survey.extents,
                survey.problems,
                segments,
                shards);
    }

    /** Reads everything and holds it against each other. */
    public StoreCheck verify(Progress progress) throws IOException {
        Survey survey = new Survey(directory, row, database, true, progress);
        survey.run();
        if (mapFormat == StoreRow.WITHOUT_USAGE) {
            survey.notes.add(
                    "the map is of format "
                            + mapFormat
                            + "; the next start brings it to format "
                            + StoreRow.VERSION);
        } else {
            survey.checkUsage();
        }
        return new StoreCheck(
                directory.toString(),
                row.store().toString(),
                survey.problems == 0,
                survey.segmentLines().size(),
                survey.records,
                survey.journalBytes,
                survey.shards.size(),
                survey.extents,
                survey.blocks,
                survey.problems,
                survey.listed,
                survey.notes);
    }

    @Override
    public void close() throws IOException {
        database.close();
        lock.close();
    }

    /**
     * An extent from its row.
     *
     * @throws MalformedException when the row cannot be one
     */
    static ExtentCheck.Claim claim(byte[] key, byte[] value) {
        if (key.length != ExtentRow.KEY_SIZE) {
            throw new MalformedException("extent row with a key of " + key.length + " bytes");
        }
        Extent extent = new Extent();
        ExtentRow.decode(value, extent);
        extent.start = ExtentRow.block(key);
        long page = extent.start >> ExtentPage.SHIFT;
        if (extent.start < 0 || (extent.end() - 1) >> ExtentPage.SHIFT != page) {
            throw new MalformedException(
                    "extent row of blocks " + extent.start + "+" + extent.count);
        }
        try {
            return new ExtentCheck.Claim(MapDatabase.shardOf(key), ExtentRow.layer(key), extent);
        } catch (IllegalArgumentException e) {
            throw new MalformedException(String.valueOf(e.getMessage()));
        }
    }
}
