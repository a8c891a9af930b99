package io.holdfast.node.store;

import io.holdfast.node.port.Store;
import io.holdfast.node.replica.HardState;
import io.holdfast.node.replica.Recovered;
import io.holdfast.node.store.ExtentPage.Extent;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.EntryKind;
import io.holdfast.proto.peer.ReplicaMessage.Cursor;
import io.holdfast.proto.peer.ShardId;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.NavigableSet;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * {@link Store} on a directory: {@code journal/} with the segments, {@code map/} with the database,
 * {@code lock}. See {@code docs/store.md}.
 *
 * <p>Invariant: whatever the map names, in memory or in the database, is in the journal; what the
 * database names is in the synced part of it.
 *
 * <p>Owned by the data loop, except where the port says otherwise. Construction reads the journal
 * from the last checkpoint on, waits for it, and may run on any thread that hands the store over to
 * the loop safely.
 *
 * <p>After a failure of the disk the store writes nothing, completes no sync, and goes on reading
 * what it can. {@link Store.Owner#failed} is called within the method that met the failure, before
 * it returns: a caller of {@link #write} must not report entries as written once it has heard it.
 */
public final class JournalStore implements Store {
    private static final Logger LOG = LoggerFactory.getLogger(JournalStore.class);

    /**
     * Most reads that wait for a reader thread; beyond, the loop reads itself and so slows down.
     */
    static final int MAX_WAITING_READS = 4096;

    /**
     * Log entries between two checkpoints. A replica recovers from the places of all of them, so
     * they must fit {@link LogIndex}, whatever their size; the rest of its room is for what comes
     * while a checkpoint runs.
     */
    private static final long CHECKPOINT_ENTRIES = LogIndex.MAX_PLACES / 4;

    /**
     * Segments without anything live that are worth a checkpoint, so that they can go, while there
     * is room; when it is short, half as many; when it is nearly out, one.
     */
    static final int EMPTY_WORTH_CHECKPOINT = 4;

    /**
     * What is worth a checkpoint only for the room that it gives back is looked for this often, so
     * these are at least as far apart.
     */
    private static final long LOOK_NANOS = 5_000_000_000L;

    private static final int CLOSE_SECONDS = 60;

    /** How often a full store looks whether somebody else has made room on the file system. */
    private static final long MEASURE_AGAIN_NANOS = 200_000_000;

    private final Path journalDirectory;
    private final StoreOptions options;
    private final Executor loop;
    private final DirectoryLock lock;
    private final MapDatabase database;
    private final ExtentMap map;
    private final Journal journal;
    private final Checkpointer checkpointer;
    private final SegmentTable segments;
    private final BlockReader blockReader;
    private final LogReader logReader;
    private final Threads threads;
    private final ExecutorService readers;
    private final SegmentUsage usage;
    private final SpaceMeter meter;
    private final SegmentRemover remover;
    private final Cleaner cleaner;

    /** Reads and removes segments. */
    private final ExecutorService cleaning;

    /** Reads for scrubs, so that no reader of a client's waits behind one. */
    private final ExecutorService scrubbing;

    private final TreeMap<ShardId, ShardStore> shards = new TreeMap<>();

    /** Logs with entries in memory, once per entry, oldest first. */
    private final ArrayDeque<LogIndex> cachedLogs = new ArrayDeque<>();

    /** Shards whose end was found in the journal; the first checkpoint removes their rows. */
    private final List<ShardId> droppedInScan = new ArrayList<>();

    /** Any thread. */
    private volatile Usage published;

    private long clientBytes;
    private long repairedBlocks;
    private long appendedAtTurn;
    private long measuredNanos;
    private long lookedNanos;
    private long cachedLogBytes;
    private long checkpointAt;
    private long entriesSinceCheckpoint;
    private final boolean tailWasCut;
    private boolean isOpen;

    /** Asked by walks on their threads, too, as is {@link #closed}. */
    private volatile boolean failed;

    private volatile boolean closed;

    /**
     * Opens the store in {@code directory}, which is made if it does not exist.
     *
     * @param loop runs what comes from other threads: the data loop
     * @throws StoreException when the directory is in use, the journal is damaged, or a format is
     *     unknown
     */
    public JournalStore(Path directory, StoreOptions options, Executor loop) throws IOException {
        this(directory, options, loop, Disk.REAL, Threads.REAL, RocksRows::new);
    }

    /**
     * Opens a store with threads and a map that somebody else brings, as a simulator does.
     *
     * @param directory of any file system
     * @throws StoreException see the other constructor
     */
    public JournalStore(
            Path directory, StoreOptions options, Executor loop, Threads threads, Rows.Opener rows)
            throws IOException {
        this(directory, options, loop, Disk.REAL, threads, rows);
    }

    JournalStore(Path directory, StoreOptions options, Executor loop, Disk disk)
            throws IOException {
        this(directory, options, loop, disk, Threads.REAL, RocksRows::new);
    }

    private JournalStore(
            Path directory,
            StoreOptions options,
            Executor loop,
            Disk disk,
            Threads threads,
            Rows.Opener rows)
            throws IOException {
        this.options = options;
        this.threads = threads;
        this.loop = loop;
        journalDirectory = directory.resolve("journal");
        Segments.makeDataDirectory(directory);
        Segments.makeDirectory(journalDirectory);
        List<AutoCloseable> opened = new ArrayList<>();
        try {
            lock = opened(opened, DirectoryLock.take(directory));
            database = opened(opened, new MapDatabase(rows.open(directory.resolve("map"))));
            database.upgrade();
            lookedNanos = threads.nanoTime();
            usage = new SegmentUsage(options.segmentBytes(), lookedNanos);
            map = new ExtentMap(database, options.cacheBytes());
            StoreRow row = database.store().orElse(null);
            boolean rebooted = row != null && !row.bootId().equals(options.bootId());
            boolean tailMayBeLost = row != null && rebooted && !row.clean();
            if (row == null) {
                row = firstRow();
            }
            for (var file : Segments.list(journalDirectory).entrySet()) {
                usage.found(file.getKey(), Files.size(file.getValue()));
            }
            loadShards();
            int covered = Place.segment(row.covered());
            List<Integer> deadAtStart = List.copyOf(usage.deadBefore(covered));
            JournalScan.End end = recover(row, tailMayBeLost);
            tailWasCut = end.cut();
            // What the scan cut off; the last segment is counted again when it is begun.
            usage.from(Place.segment(end.place()) + (Place.offset(end.place()) == 0 ? 0 : 1))
                    .forEach(usage::removed);
            meter =
                    new SpaceMeter(
                            journalDirectory, options.storeBytes(), options.segmentBytes(), usage);
            journal =
                    opened(
                            opened,
                            new Journal(
                                    journalDirectory,
                                    row.store(),
                                    options.segmentBytes(),
                                    end,
                                    disk,
                                    loop,
                                    threads,
                                    new SegmentFiles(),
                                    this::fail));
            checkpointAt = options.checkpointBytes() - end.scannedBytes();
            if (tailMayBeLost) {
                demote();
            }
            long synced = firstSync(row);
            StoreRow started =
                    new StoreRow(false, row.store(), row.covered(), synced, options.bootId());
            database.write(new MapChanges(List.of(), started));
            checkpointer =
                    opened(
                            opened,
                            new Checkpointer(
                                    started,
                                    journal,
                                    map,
                                    database,
                                    shards,
                                    usage,
                                    loop,
                                    threads,
                                    new CheckpointEnds()));
            droppedInScan.forEach(checkpointer::drop);
            PageCacheFile.@Nullable Reader pageCache =
                    Libc.of(directory)
                            .map(libc -> new PageCacheFile.Reader(libc, BlockReader.STAGING_BYTES))
                            .orElse(null);
            segments = new SegmentTable(journalDirectory, pageCache);
            readers = threads.pool("store-read", options.readThreads(), MAX_WAITING_READS);
            cleaning = threads.one("store-clean");
            scrubbing = threads.one("store-scrub");
            blockReader = new BlockReader(segments, pageCache, readers, loop);
            logReader = new LogReader(segments);
            remover =
                    new SegmentRemover(
                            journalDirectory,
                            usage,
                            segments,
                            meter,
                            cleaning,
                            loop,
                            threads::nanoTime,
                            this::giveUpLog,
                            this::roomChanged);
            cleaner =
                    new Cleaner(
                            journalDirectory,
                            usage,
                            map,
                            new CleaningWork(),
                            cleaning,
                            loop,
                            threads::nanoTime);
            cleaner.covered(covered);
            remover.release(deadAtStart);
        } catch (IOException | RuntimeException e) {
            for (AutoCloseable each : opened.reversed()) {
                closeAfterFailure(each, e);
            }
            throw e;
        }
        evictLogs();
        meter.update(journal.spareBytes(), journal.isStarved());
        published = usageNow();
        isOpen = true;
        LOG.info(
                "Store in {} is open: {} shards, journal end {}",
                directory,
                shards.size(),
                Place.text(journal.end()));
    }

    private static <T extends AutoCloseable> T opened(List<AutoCloseable> all, T one) {
        all.add(one);
        return one;
    }

    private static void closeAfterFailure(AutoCloseable opened, Exception failure) {
        try {
            opened.close();
        } catch (Exception e) {
            failure.addSuppressed(e);
        }
    }

    private StoreRow firstRow() throws IOException {
        if (!Segments.list(journalDirectory).isEmpty()) {
            throw new StoreException(
                    "the map is damaged: there are segments in "
                            + journalDirectory
                            + " but no map beside them (map/ is new or empty)");
        }
        long start = Place.of(1, 0);
        StoreRow row = new StoreRow(false, UUID.randomUUID(), start, start, options.bootId());
        // Before the first segment exists, so that segments without a map are always an error.
        database.write(new MapChanges(List.of(), row));
        return row;
    }

    private void loadShards() throws IOException {
        for (var each : database.shards().entrySet()) {
            ShardMap pages = new ShardMap(each.getKey(), usage.ofShard(), false);
            shards.put(each.getKey(), new ShardStore(each.getKey(), pages, each.getValue()));
        }
        for (UsageRow row : database.usage()) {
            ShardStore shard = shards.get(row.shard());
            if (shard == null) {
                throw new StoreException(
                        "the map is damaged: live bytes of an unknown shard: " + row);
            }
            if (!usage.has(row.segment())) {
                throw new StoreException(
                        "journal is damaged: "
                                + Segments.file(journalDirectory, row.segment())
                                + " is missing, with "
                                + row.live()
                                + " bytes of shard "
                                + row.shard());
            }
            if (!usage.begun(row.segment()).hasRoomFor(row.live())) {
                throw new StoreException(
                        "journal is damaged: "
                                + Segments.file(journalDirectory, row.segment())
                                + " is too short for its live bytes, "
                                + row.live()
                                + " of them of shard "
                                + row.shard());
            }
            shard.map.usage.load(row.segment(), row.live());
        }
    }

    private JournalScan.End recover(StoreRow row, boolean tailMayBeLost) throws IOException {
        JournalScan scan =
                new JournalScan(journalDirectory, row.store(), row.synced(), tailMayBeLost);
        return scan.run(row.covered(), new Replay());
    }

    /** Brings the shards from the checkpoint's state to the journal's end. */
    private final class Replay implements JournalScan.Visitor {
        @Override
        public void entry(Entry entry, long place) throws IOException {
            ShardStore shard = shards.get(entry.shard());
            if (shard == null || place < shard.from) {
                // Of a shard that was dropped, or is in the map already.
                return;
            }
            if (entry.isMoved()) {
                map.put(shard.map, entry, place);
                return;
            }
            if (entry.sequence() != shard.log.last() + 1) {
                throw new StoreException(
                        "journal is damaged: "
                                + entry
                                + " at "
                                + Place.text(place)
                                + " follows sequence "
                                + shard.log.last());
            }
            addToLog(shard, entry, place);
            shard.recovered.add(entry);
        }

        @Override
        public void mark(Mark mark, long place) throws IOException {
            ShardId id = mark.shard();
            if (id == null) {
                return;
            }
            HardState state = mark.state();
            ShardStore shard = shards.get(id);
            if (mark.type() == Mark.Type.CREATE && state != null) {
                if (shard == null) {
                    boolean stale = droppedInScan.contains(id);
                    shards.put(id, fresh(id, state, stale));
                }
                return;
            }
            if (shard == null || place < shard.from) {
                return;
            }
            shard.hardState = mark.after(shard.hardState);
            switch (mark.type()) {
                case DROP -> {
                    forget(shard);
                    droppedInScan.add(id);
                }
                case TRUNCATE -> {
                    cachedLogBytes -= shard.log.truncate(mark.position());
                    while (!shard.recovered.isEmpty()
                            && shard.recovered.getLast().sequence() > mark.position()) {
                        shard.recovered.removeLast();
                    }
                }
                case BASE -> {
                    for (Entry each : shard.recovered) {
                        if (each.sequence() <= mark.applied()) {
                            map.put(shard.map, each, shard.log.place(each.sequence()));
                        }
                    }
                    shard.recovered.clear();
                    restartLog(shard, mark.epoch(), mark.position(), mark.body());
                }
                case STATE, CREATE, SYNCED -> {}
            }
        }
    }

    private ShardStore fresh(ShardId id, HardState state, boolean rowsAreStale) {
        ShardRow nothing = new ShardRow(state, 0, 0, Place.NONE, new byte[0]);
        return new ShardStore(id, new ShardMap(id, usage.ofShard(), rowsAreStale), nothing);
    }

    private void restartLog(ShardStore shard, long epoch, long sequence, byte[] state) {
        cachedLogBytes -= shard.log.cachedBytes();
        shard.log.restart(sequence);
        shard.base = sequence;
        shard.baseEpoch = epoch;
        shard.baseState = state;
        shard.mapThrough = sequence;
    }

    private void addToLog(ShardStore shard, Entry entry, long place) {
        shard.log.add(entry, place);
        cachedLogs.add(shard.log);
        cachedLogBytes += entry.sizeBytes();
        entriesSinceCheckpoint++;
    }

    private void evictLogs() {
        while (cachedLogBytes > options.logCacheBytes() && !cachedLogs.isEmpty()) {
            cachedLogBytes -= cachedLogs.remove().evictOldest();
        }
    }

    /** After an unclean restart of the machine tails may be gone: nobody here may vote. */
    private void demote() {
        for (ShardStore shard : shards.values()) {
            HardState left = shard.hardState.afterPowerLoss();
            if (!left.equals(shard.hardState)) {
                shard.hardState = left;
                journal.append(Mark.state(shard.id, shard.hardState));
                LOG.warn(
                        "Shard {} does not vote until it has caught up: this machine was restarted"
                                + " without the store having been closed",
                        shard.id);
            }
        }
    }

    private long firstSync(StoreRow row) throws IOException {
        try {
            return syncNow();
        } catch (IOException e) {
            database.noteFailedSync(row);
            throw e;
        }
    }

    /** Writes and syncs all that is queued; waits. */
    private long syncNow() throws IOException {
        journal.write();
        try {
            return threads.await(journal.sync());
        } catch (ExecutionException e) {
            throw new IOException("cannot sync the journal", e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted while the journal is synced", e);
        }
    }

    private void fail(Exception cause) {
        if (failed) {
            return;
        }
        failed = true;
        LOG.error("The store in {} has failed", journalDirectory, cause);
        journal.fail(cause);
        if (isOpen && journal.isSyncFailed()) {
            checkpointer.noteFailedSync();
        }
        for (ShardStore shard : List.copyOf(shards.values())) {
            Owner owner = shard.owner;
            if (owner != null) {
                owner.failed(cause);
            }
        }
    }

    @Override
    public Set<ShardId> shards() {
        return new TreeSet<>(shards.keySet());
    }

    @Override
    public Recovered open(ShardId id, Owner owner) {
        ShardStore shard = shards.get(id);
        if (shard == null || shard.owner != null) {
            throw new IllegalStateException(
                    "shard " + id + (shard == null ? " has no past here" : " is open already"));
        }
        shard.owner = owner;
        List<Entry> entries = List.copyOf(shard.recovered);
        shard.recovered = List.of();
        return new Recovered(
                shard.hardState, shard.baseEpoch, shard.base, shard.baseState, entries);
    }

    /**
     * {@inheritDoc}
     *
     * @throws UncheckedIOException when the disk has failed
     */
    @Override
    public Recovered create(ShardId id, HardState state, Owner owner) {
        if (shards.containsKey(id)) {
            throw new IllegalStateException("shard " + id + " exists already");
        }
        ShardStore shard = fresh(id, state, checkpointer.rowsAreStale(id));
        shard.owner = owner;
        if (!failed) {
            shards.put(id, shard);
            shard.from = journal.append(Mark.create(id, state));
        }
        try {
            syncNow();
        } catch (IOException e) {
            fail(e);
            shards.remove(id);
            throw new UncheckedIOException("cannot create shard " + id, e);
        }
        return Recovered.nothing(state);
    }

    @Override
    public void drop(ShardId id) {
        ShardStore shard = shards.get(id);
        if (shard == null || failed) {
            return;
        }
        journal.append(Mark.drop(id));
        forget(shard);
        checkpointer.drop(id);
        loop.execute(this::afterDrop);
    }

    /** Without shards there may be no turns; the room comes back all the same. */
    private void afterDrop() {
        if (closed) {
            return;
        }
        turnEnded();
        if (map.holdsDropped()) {
            loop.execute(this::afterDrop);
        }
    }

    /** Something has changed that turns would notice, if there were any. */
    private void roomChanged() {
        if (!failed && !closed) {
            makeRoom();
            published = usageNow();
        }
    }

    private void forget(ShardStore shard) {
        shards.remove(shard.id);
        cachedLogBytes -= shard.log.cachedBytes();
        shard.log.restart(shard.log.last());
        map.drop(shard.map);
    }

    @Override
    public void append(ShardId id, List<Entry> entries, @Nullable HardState state) {
        ShardStore shard = shards.get(id);
        if (shard == null || failed) {
            return;
        }
        for (Entry entry : entries) {
            if (entry.isMoved() || !entry.shard().equals(id)) {
                throw new IllegalArgumentException(entry + " in the log of shard " + id);
            }
            addToLog(shard, entry, journal.append(entry));
            if (entry.kind() == EntryKind.WRITE) {
                clientBytes += (long) entry.count() * Blocks.SIZE;
            }
        }
        if (state != null) {
            shard.hardState = state;
            journal.append(Mark.state(id, state));
        }
    }

    @Override
    public void truncate(ShardId id, long sequence) {
        ShardStore shard = shards.get(id);
        if (shard == null || failed || sequence >= shard.log.last()) {
            return;
        }
        Check.that(
                sequence >= shard.mapThrough,
                "what is in the map stays in the log",
                sequence,
                shard.mapThrough);
        cachedLogBytes -= shard.log.truncate(sequence);
        journal.append(Mark.truncate(id, sequence));
    }

    @Override
    public long write() {
        long end = journal.write();
        evictLogs();
        return end;
    }

    @Override
    public void sync(LongConsumer done) {
        if (!failed) {
            journal.sync(done);
        }
    }

    @Override
    public List<Entry> log(ShardId id, long from, long through, int maxBytes) {
        ShardStore shard = shards.get(id);
        if (shard == null) {
            return List.of();
        }
        return logReader.read(shard, from, Math.min(through, shard.log.last()), maxBytes);
    }

    @Override
    public void apply(ShardId id, List<Entry> entries) {
        ShardStore shard = shards.get(id);
        if (shard == null || failed) {
            return;
        }
        try {
            for (Entry entry : entries) {
                long place = shard.log.place(entry.sequence());
                Check.that(
                        place != Place.NONE,
                        "what is applied is in the log",
                        entry.sequence(),
                        shard.log.first(),
                        shard.log.last());
                map.put(shard.map, entry, place);
                shard.mapThrough = Math.max(shard.mapThrough, entry.sequence());
            }
        } catch (DamagedMapException e) {
            fail(e);
        }
    }

    @Override
    public void appendMoved(ShardId id, List<Entry> moved) {
        ShardStore shard = shards.get(id);
        if (shard == null || failed) {
            return;
        }
        try {
            for (Entry entry : moved) {
                if (!entry.isMoved() || !entry.shard().equals(id)) {
                    throw new IllegalArgumentException(entry + " among moved ones of " + id);
                }
                map.put(shard.map, entry, journal.append(entry));
            }
        } catch (DamagedMapException e) {
            fail(e);
        }
    }

    /**
     * {@inheritDoc}
     *
     * <p>When the map cannot be read (the store has failed then) every condition is made to fail.
     */
    @Override
    public long newestSequence(ShardId id, int layer, long block, int count) {
        ShardStore shard = shards.get(id);
        if (shard == null) {
            return 0;
        }
        try {
            return map.newestSequence(shard.map, layer, block, count);
        } catch (DamagedMapException e) {
            fail(e);
            return Long.MAX_VALUE;
        }
    }

    @Override
    public void read(
            ShardId id,
            int layer,
            long block,
            int count,
            Consumer<@Nullable List<ClientReply.Run>> done) {
        ShardStore shard = shards.get(id);
        if (shard == null || closed) {
            done.accept(null);
            return;
        }
        BlockReader.Plan plan = new BlockReader.Plan(block);
        try {
            map.read(shard.map, layer, block, count, plan::add);
        } catch (DamagedMapException e) {
            fail(e);
            done.accept(null);
            return;
        }
        plan.gapTo(block + count);
        // What was appended and applied in this very turn is read from the file, too.
        write();
        if (failed && !plan.isBefore(journal.written())) {
            done.accept(null);
            return;
        }
        blockReader.read(plan, done);
    }

    @Override
    public void copy(ShardId id, int layer, long block, Consumer<Copy> done) {
        Extent extent = closed ? null : extent(id, layer, block);
        if (extent == null) {
            done.accept(BlockCopy.never(block));
            return;
        }
        // What was appended and applied in this very turn is read from the file, too.
        write();
        new BlockCopy(id, layer, extent, segments, readers, loop).read(done);
    }

    /** A block's extent; null: there is none. */
    private @Nullable Extent extent(ShardId id, int layer, long block) {
        ShardStore shard = shards.get(id);
        List<Extent> found = new ArrayList<>();
        if (shard != null) {
            try {
                map.read(shard.map, layer, block, 1, extent -> found.add(extent.kept()));
            } catch (DamagedMapException e) {
                fail(e);
            }
        }
        return found.isEmpty() ? null : found.getFirst();
    }

    @Override
    public boolean repair(ShardId id, int layer, ClientReply.Run copy) {
        Extent extent = extent(id, layer, copy.block());
        if (failed
                || closed
                || meter.space() == Space.FULL
                || extent == null
                || copy.payload().length != Blocks.SEALED_SIZE
                || extent.sequence != copy.sequence()
                || !extent.nonce().equals(copy.nonce())) {
            return false;
        }
        appendMoved(id, List.of(extent.moved(id, layer, copy.payload(), false)));
        repairedBlocks++;
        write();
        return !failed;
    }

    @Override
    public void extents(ShardId id, long since, Cursor from, int maxBytes, Consumer<Extents> done) {
        ShardStore shard = shards.get(id);
        if (shard == null || failed) {
            return;
        }
        walk(shard, new MapWalk.Range(since, from, null, maxBytes), readers)
                .start(new CatchUpExtents(id, from, done));
    }

    @Override
    public void extentBytes(ShardId id, long since, LongConsumer done) {
        ShardStore shard = shards.get(id);
        if (shard == null || failed || closed) {
            return;
        }
        // Not on a reader's thread: it takes seconds for a large map, and clients wait for readers.
        new MapMeasure(shard, since, walkParts(scrubbing)).start(done);
    }

    @Override
    public void verify(
            ShardId id, Cursor from, Cursor to, int maxBytes, Consumer<@Nullable Verified> done) {
        ShardStore shard = shards.get(id);
        if (shard == null || failed || closed) {
            done.accept(null);
            return;
        }
        walk(shard, new MapWalk.Range(0, from, to, maxBytes), scrubbing)
                .start(new VerifyWalk(shard, to, done));
    }

    @Override
    public long liveBytes(ShardId id) {
        ShardStore shard = shards.get(id);
        return shard == null ? 0 : shard.map.usage.total();
    }

    private MapWalk walk(ShardStore shard, MapWalk.Range range, Executor thread) {
        return new MapWalk(shard, range, walkParts(thread));
    }

    private MapWalk.Parts walkParts(Executor thread) {
        return new MapWalk.Parts(
                map, database, segments, journal, thread, loop, () -> failed || closed, this::fail);
    }

    /**
     * {@inheritDoc}
     *
     * <p>The base with its state goes into the journal as one record, so that the journal's sync
     * alone makes it last; the next checkpoint takes it over.
     *
     * @throws IllegalArgumentException when the shard's state is larger than a segment can hold
     */
    @Override
    public void installBase(
            ShardId id,
            long baseEpoch,
            long baseSequence,
            byte[] shardState,
            HardState state,
            Runnable done) {
        ShardStore shard = shards.get(id);
        if (shard == null || failed) {
            return;
        }
        Mark mark = Mark.base(id, state, baseEpoch, baseSequence, shard.mapThrough, shardState);
        if (!journal.fits(mark)) {
            throw new IllegalArgumentException(
                    "state of shard "
                            + id
                            + " has "
                            + shardState.length
                            + " bytes, too many for segments of "
                            + options.segmentBytes());
        }
        journal.append(mark);
        shard.hardState = state;
        restartLog(shard, baseEpoch, baseSequence, shardState);
        write();
        sync(through -> done.run());
    }

    @Override
    public void turnEnded() {
        if (failed) {
            return;
        }
        makeRoom();
        if (!checkpointer.isRunning()
                && (journal.appendedBytes() >= checkpointAt
                        || entriesSinceCheckpoint >= CHECKPOINT_ENTRIES
                        || map.checkpointDue()
                        || emptyOnesWait()
                        || settledOnesWait())) {
            checkpoint();
        }
        published = usageNow();
    }

    /** Everything that has to do with room: cheap when there is enough. */
    private void makeRoom() {
        usage.clock(threads.nanoTime());
        map.forgetDropped();
        journal.retryPreparing();
        measureAgain();
        long segment = options.segmentBytes();
        long free = freeBytes();
        remover.remove((int) Math.ceilDiv(Math.max(0, 2 * lowBytes() - free), segment));
        long empty = deadSegments().size() * segment;
        long used = Math.max(0, usage.bytes() + journal.spareBytes() - empty);
        long appended = journal.appendedBytes() - cleaner.movedBytes();
        cleaner.turnEnded(
                appended - appendedAtTurn,
                Cleaner.Demand.of(free, empty, used, usage.liveBytes(), segment));
        appendedAtTurn = appended;
        if (meter.update(journal.spareBytes(), journal.isStarved())) {
            LOG.info("Space for segments: {}, {} bytes", meter.space(), free);
        }
    }

    /** Without it a full store that nobody writes to would stay so, whatever room it is given. */
    private void measureAgain() {
        long now = threads.nanoTime();
        if (meter.space() == Space.FULL && now - measuredNanos >= MEASURE_AGAIN_NANOS) {
            measuredNanos = now;
            cleaning.execute(meter::measure);
        }
    }

    private long freeBytes() {
        return meter.freeBytes(journal.spareBytes());
    }

    /** Room below which the cleaner works. */
    private long lowBytes() {
        return Cleaner.startBytes(
                meter.capacityBytes(journal.spareBytes()), options.segmentBytes());
    }

    /** Segments that are full and have nothing live, as the map stands now. */
    private NavigableSet<Integer> deadSegments() {
        return usage.deadBefore(Place.segment(journal.end()));
    }

    /** Whether a checkpoint would let enough segments go to be worth it. */
    private boolean emptyOnesWait() {
        int waiting = deadSegments().size() - remover.releasedCount();
        if (waiting <= 0) {
            return false;
        }
        long free = freeBytes();
        int enough = EMPTY_WORTH_CHECKPOINT;
        if (free < Cleaner.HARD_SEGMENTS * options.segmentBytes()) {
            enough = 1;
        } else if (free < lowBytes()) {
            enough = EMPTY_WORTH_CHECKPOINT / 2;
        }
        // The places are looked for only when there is something to win by it.
        return waiting >= enough
                && usage.deadBefore(Place.segment(coveredNow())).size() - remover.releasedCount()
                        >= enough;
    }

    /**
     * Whether a checkpoint would let segments go, or be emptied, that have not changed for a while.
     * However few they are: somebody who has trimmed or deleted something looks for the room now.
     */
    private boolean settledOnesWait() {
        long now = threads.nanoTime();
        if (now - lookedNanos < LOOK_NANOS) {
            return false;
        }
        lookedNanos = now;
        int end = Place.segment(coveredNow());
        for (int each : usage.deadBefore(end)) {
            if (!remover.has(each) && usage.begun(each).isSettled(Cleaner.SETTLED_NANOS, now)) {
                return true;
            }
        }
        for (SegmentUsage.Segment each : usage.sparse(cleaner.covered(), end)) {
            if (each.isSettled(Cleaner.SETTLED_NANOS, now)) {
                return true;
            }
        }
        return false;
    }

    /** What a checkpoint would cover. */
    private long coveredNow() {
        long covered = journal.end();
        for (ShardStore shard : shards.values()) {
            covered = Math.min(covered, shard.from(journal.end()));
        }
        return covered;
    }

    /** The log in segments up to this one is no longer held for followers. */
    private void giveUpLog(int segment) {
        long end = Place.of(segment + 1, 0);
        for (ShardStore shard : shards.values()) {
            cachedLogBytes -= shard.log.forgetBefore(end);
        }
    }

    /** What the journal tells of its files. */
    private final class SegmentFiles implements Journal.SegmentListener {
        @Override
        public void begun(int segment) {
            usage.writing(segment);
        }

        @Override
        public void full(int segment, long filled) {
            usage.full(segment, filled);
        }

        @Override
        public void measured() {
            meter.measure();
        }
    }

    private final class CheckpointEnds implements Checkpointer.Listener {
        @Override
        public void completed(int covered, List<Integer> dead) {
            cleaner.covered(covered);
            remover.release(dead);
            meter.measure();
            roomChanged();
        }

        @Override
        public void failed(Exception cause) {
            fail(cause);
        }
    }

    private final class CleaningWork implements Cleaner.Work {
        @Override
        public @Nullable ShardMap map(ShardId id) {
            ShardStore shard = shards.get(id);
            return shard == null ? null : shard.map;
        }

        @Override
        public void move(ShardId id, List<Entry> moved) {
            appendMoved(id, moved);
        }

        @Override
        public void write() {
            JournalStore.this.write();
        }

        @Override
        public boolean ended() {
            return failed || closed;
        }

        @Override
        public void damaged(DamagedMapException cause) {
            fail(cause);
        }
    }

    /** Empties a segment now, if there is one that is worth it. */
    void clean() {
        cleaner.force();
    }

    /** Whether the cleaner is at work on a segment. */
    boolean cleaning() {
        return cleaner.isBusy();
    }

    /** Whether there is a segment that is worth being emptied. */
    boolean isCleanable() {
        return cleaner.hasVictim();
    }

    /** Live bytes of segments as the database has them, and as its extents add up to. */
    List<List<UsageRow>> recount() throws IOException {
        return List.of(database.usage(), database.count());
    }

    /** Whether the start cut off a torn or unsynced tail. */
    boolean tailWasCut() {
        return tailWasCut;
    }

    /** Begins a checkpoint now; map and owners agree. */
    void checkpoint() {
        checkpointAt = journal.appendedBytes() + options.checkpointBytes();
        entriesSinceCheckpoint = 0;
        checkpointer.begin(false);
    }

    /** Whether a checkpoint is under way. */
    boolean checkpointRunning() {
        return checkpointer.isRunning();
    }

    /** All reads go to the reader threads, as where the file system has none without waiting. */
    void alwaysReadOnPool() {
        blockReader.alwaysUsePool();
    }

    /** Place of an entry of the log. */
    long logPlace(ShardId id, long sequence) {
        ShardStore shard = shards.get(id);
        return shard == null ? Place.NONE : shard.log.place(sequence);
    }

    /** Through here the journal is synced. */
    long syncedThrough() {
        return journal.synced();
    }

    /** Numbers of the segments. */
    List<Integer> segments() {
        return usage.from(0);
    }

    /** Bytes of map pages in memory. */
    long mapBytes() {
        return map.bytes();
    }

    @Override
    public Usage usage() {
        return published;
    }

    private Usage usageNow() {
        boolean full = meter.space() == Space.FULL;
        return new Usage(
                usage.bytes() + journal.spareBytes(),
                freeBytes(),
                checkpointer.extentsEstimate(),
                usage.liveBytes(),
                journal.appendedBytes(),
                clientBytes,
                cleaner.movedBytes(),
                remover.removed(),
                repairedBlocks,
                meter.space(),
                full && (!deadSegments().isEmpty() || cleaner.hasVictim()));
    }

    @Override
    public void close() {
        close(true);
    }

    /** Closes as a crash of the process would: without a checkpoint, what is queued is lost. */
    void abandon() {
        close(false);
    }

    private void close(boolean cleanly) {
        if (closed) {
            return;
        }
        closed = true;
        checkpointer.await();
        if (cleanly && !failed) {
            checkpointer.begin(true);
            checkpointer.await();
        }
        checkpointer.close();
        cleaner.close();
        cleaning.shutdown();
        readers.shutdown();
        scrubbing.shutdown();
        try {
            if (!readers.awaitTermination(CLOSE_SECONDS, TimeUnit.SECONDS)) {
                LOG.warn("Reads still wait for the disk after {} s", CLOSE_SECONDS);
            }
            if (!cleaning.awaitTermination(CLOSE_SECONDS, TimeUnit.SECONDS)) {
                LOG.warn("Segments are still being removed after {} s", CLOSE_SECONDS);
            }
            if (!scrubbing.awaitTermination(CLOSE_SECONDS, TimeUnit.SECONDS)) {
                LOG.warn("A scrub still waits for the disk after {} s", CLOSE_SECONDS);
            }
            segments.close();
            journal.close();
            database.close();
            lock.close();
            failed = true;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (IOException e) {
            LOG.warn("Could not close the store in {}", journalDirectory, e);
        }
    }
}
