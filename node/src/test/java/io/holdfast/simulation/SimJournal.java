package io.holdfast.simulation;

import static io.holdfast.simulation.SimFailure.check;

import io.holdfast.node.port.Store;
import io.holdfast.node.replica.HardState;
import io.holdfast.node.store.JournalStore;
import io.holdfast.node.store.Rows;
import io.holdfast.node.store.StoreException;
import io.holdfast.node.store.StoreInside;
import io.holdfast.node.store.StoreOptions;
import io.holdfast.proto.peer.ClientReply.Run;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.Room;
import io.holdfast.proto.peer.ShardId;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.jspecify.annotations.Nullable;

/**
 * The production store of one node, on a simulated disk with simulated threads, and what happens to
 * it. Outlives processes: each start opens the store anew on what the last one left.
 */
final class SimJournal {
    private static final String DIRECTORY = "/data";

    /** Probability that a process is killed while it opens the store. */
    private static final double KILLED_AT_START = 0.2;

    private static final int MOST_WRITTEN_AT_START = 100_000;

    /** A torn record is not longer as a rule. */
    private static final int MOST_CUT_FIRST = 8_000;

    private final SimCluster cluster;
    private final SimNode node;
    private final SimRandom random;
    private final SimOptions.Storage options;
    private final SimDisk disk;
    private final SimRows rows;
    private final TreeMap<ShardId, JournalShard> shards = new TreeMap<>();

    /** The first start of all may find nothing. */
    private boolean isNew = true;

    private int boot = 1;
    private boolean damaged;

    /** Pages may have been lost once: damage may turn up at any time. */
    private boolean distrusted;

    private boolean closed;
    private boolean wasClosed;
    private boolean killInNextWrite;
    private long damagedPlace;
    private boolean outOfService;
    private boolean dying;
    private @Nullable JournalStore store;
    private @Nullable SimThreads threads;
    private @Nullable SimFileSystem files;

    SimJournal(SimCluster cluster, SimNode node, SimRandom random) {
        this.cluster = cluster;
        this.node = node;
        this.random = random;
        this.options = cluster.options.storage();
        disk =
                new SimDisk(
                        random.child("disk"),
                        options.sectorBytes(),
                        cluster.options.bug(),
                        cluster.counters);
        rows = new SimRows(disk, cluster.options.bug(), cluster.counters);
        mount();
        for (ShardId shard : cluster.shards()) {
            shards.put(
                    shard,
                    new JournalShard(
                            shard,
                            HardState.FRESH,
                            cluster.oracle(shard).watcher(node.number),
                            this));
        }
    }

    private void mount() {
        try {
            disk.create(Path.of(DIRECTORY), true);
            disk.sync(disk.find(Path.of(DIRECTORY)), "/");
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    JournalShard shard(ShardId shard) {
        JournalShard found = shards.get(shard);
        if (found == null) {
            throw new IllegalArgumentException("no shard " + shard);
        }
        return found;
    }

    JournalStore store() {
        JournalStore open = store;
        if (open == null) {
            throw new IllegalStateException("the store of " + node.name() + " is not open");
        }
        return open;
    }

    // ---- the process ----

    /**
     * Opens the store in a new process; false: that failed with an error of the disk, or for want
     * of room.
     */
    boolean open() {
        SimRandom start = random.child("start " + node.incarnation());
        if (cluster.options.faults().crash() && start.chance(KILLED_AT_START)) {
            int most = start.chance(0.7) ? MOST_CUT_FIRST : MOST_WRITTEN_AT_START;
            disk.dying(start.between(0, most));
        }
        try {
            boolean opened = openStore();
            if (disk.isKilled()) {
                throw new SimDisk.Killed();
            }
            return opened;
        } catch (SimDisk.Killed killed) {
            end();
            closed = wasClosed;
            cluster.counters.add(Rare.STORE_KILLED_AT_START);
            cluster.trace.add(node.name(), "is killed while it starts, and starts again");
            return openStore();
        } finally {
            disk.dying(-1);
        }
    }

    private boolean openStore() {
        int incarnation = node.incarnation();
        files = new SimFileSystem(disk, cluster.options.bug());
        SimThreads own =
                new SimThreads(node, cluster.queue, random.child("threads " + incarnation));
        threads = own;
        outOfService = false;
        wasClosed = closed;
        closed = false;
        if (disk.hasSyncFailed() && !isFailureNoted()) {
            cluster.counters.add(Rare.STORE_DISK_REPLACED);
            throw new Refused();
        }
        try {
            JournalStore opened =
                    new JournalStore(
                            files.getPath(DIRECTORY),
                            new StoreOptions(
                                    options.segmentBytes(),
                                    options.checkpointBytes(),
                                    options.cacheBytes(),
                                    options.logCacheBytes(),
                                    2,
                                    "boot-" + boot,
                                    options.storeBytes()),
                            task -> node.enqueue(incarnation, task),
                            own,
                            directory -> rows);
            store = opened;
            if (StoreInside.tailWasCut(opened)) {
                cluster.counters.add(Rare.STORE_TAIL_CUT);
            }
        } catch (StoreException refused) {
            end();
            check(
                    damaged || distrusted,
                    "store",
                    node.name(),
                    " refuses to start: ",
                    refused.getMessage());
            cluster.counters.add(Rare.STORE_REFUSED);
            cluster.trace.add(node.name(), "refuses to start: " + refused.getMessage());
            throw new Refused();
        } catch (IOException failed) {
            end();
            closed = wasClosed;
            check(
                    disk.isFailing() || disk.isFull() || disk.readsFail(),
                    "store",
                    node.name(),
                    " cannot start: ",
                    failed);
            cluster.counters.add(Rare.STORE_NOT_STARTED);
            cluster.trace.add(node.name(), "cannot start: " + failed.getMessage());
            return false;
        }
        check(!damaged, "store", node.name(), " has not noticed that its journal is damaged");
        distrusted |= disk.hasSyncFailed();
        disk.trust();
        return true;
    }

    /** Whether the store could still say that a sync had failed, when it did. */
    private boolean isFailureNoted() {
        byte[] row = rows.get(Rows.Family.META, StoreInside.storeKey());
        return row != null && StoreInside.saysSyncFailed(row);
    }

    /** Whether what the last process had done was safe when it ended. */
    boolean wasClosed() {
        return wasClosed;
    }

    /** The store says that what it has is damaged. */
    static final class Refused extends RuntimeException {
        private static final long serialVersionUID = 1L;
    }

    /** All replicas are opened. */
    void opened() {
        isNew = false;
    }

    /** What a replica begins with that is not found. */
    HardState stateOfNew(ShardId shard) {
        check(isNew, "store", "shard ", shard, " is gone from ", node.name());
        return shard(shard).syncedState();
    }

    /** The process dies, perhaps in the middle of a write. */
    void crash() {
        JournalStore dead = store;
        if (dead != null && !outOfService) {
            dying = true;
            disk.dying(random.chance(0.7) ? random.between(0, 12_000) : Long.MAX_VALUE);
            try {
                dead.write();
            } catch (SimDisk.Killed e) {
                cluster.counters.add(Rare.STORE_KILLED_IN_WRITE);
            }
            dying = false;
        }
        end();
    }

    /** The process will die in the middle of its next write. */
    void killInNextWrite() {
        killInNextWrite = true;
    }

    /** The process is stopped in an orderly way. */
    void close() {
        dying = true;
        store().close();
        dying = false;
        byte[] row = rows.get(Rows.Family.META, StoreInside.storeKey());
        closed = !outOfService && row != null && StoreInside.saysClean(row);
        end();
        cluster.counters.add(closed ? Rare.STORE_CLOSED_CLEANLY : Rare.STORE_CLOSED_UNCLEANLY);
    }

    private void end() {
        killInNextWrite = false;
        JournalStore dead = store;
        if (dead != null) {
            Store.Usage usage = dead.usage();
            cluster.counters.add(Rare.STORE_BYTES_MOVED, usage.movedBytes());
        }
        if (threads != null) {
            threads.end();
        }
        if (files != null) {
            files.end();
        }
        disk.dead();
        if (dead != null) {
            StoreInside.abandon(dead);
        }
        store = null;
        threads = null;
        files = null;
    }

    /** The machine loses power, after its process has died. */
    void powerLoss() {
        disk.powerLoss();
        if (damaged && !isProvenByCheckpoint()) {
            // It may have been an unsynced record, or the mark that proves the contrary was one and
            // is gone: the record may be cut now. Who cuts does not vote.
            damaged = false;
            distrusted = true;
        }
        if (cluster.options.bug() != PlantedBug.POWER_LOSS_UNNOTICED) {
            boot++;
        }
    }

    private boolean isProvenByCheckpoint() {
        byte[] row = rows.get(Rows.Family.META, StoreInside.storeKey());
        return row != null && damagedPlace < StoreInside.syncedThrough(row);
    }

    /** The disk is replaced by an empty one. */
    void wipe() {
        disk.wipe();
        rows.wipe();
        mount();
        isNew = true;
        damaged = false;
        distrusted = false;
        closed = false;
        shards.values().forEach(JournalShard::wiped);
    }

    // ---- failures of the disk ----

    /** Whether the store has failed: the node neither hears nor says anything. */
    boolean isOutOfService() {
        return outOfService;
    }

    /** The store has failed. */
    void failed(Exception cause) {
        for (Throwable why = cause; why != null; why = why.getCause()) {
            if (why instanceof OutOfMemoryError ofThisProcess) {
                throw ofThisProcess;
            }
        }
        if (!outOfService && !dying) {
            outOfService = true;
            cluster.counters.add(Rare.STORE_FAILED);
            cluster.trace.add(node.name(), "store has failed: " + cause.getMessage());
            node.storeFailed();
        }
    }

    SimDisk disk() {
        return disk;
    }

    /** Whether what is there may lack what was promised. */
    boolean isDoubtful() {
        return damaged || disk.isFailing() || disk.hasSyncFailed();
    }

    /** Damage at rest, while no process runs, in what nobody may have forgotten. */
    void damage() {
        byte[] row = rows.get(Rows.Family.META, StoreInside.storeKey());
        if (row == null) {
            return;
        }
        List<StoreInside.Stored> records = StoreInside.records(row, this::segment);
        List<StoreInside.Stored> candidates =
                records.stream().filter(each -> each.proven() || hasPayload(each)).toList();
        if (candidates.isEmpty()) {
            return;
        }
        StoreInside.Stored hit = random.pick(candidates);
        // Of what is not proven only damage to the payload can be told from a torn write.
        int at =
                hit.proven()
                        ? random.between(0, hit.length() - 1)
                        : random.between(Entry.HEADER_SIZE, hit.length() - 2);
        try {
            disk.flip(disk.find(file(hit.segment())), hit.offset() + at, random.between(0, 7));
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
        damaged = true;
        damagedPlace = hit.place();
        cluster.counters.add(Rare.STORE_RECORD_DAMAGED);
        cluster.trace.add(node.name(), "is damaged: " + hit);
    }

    private boolean hasPayload(StoreInside.Stored record) {
        if (record.length() <= Entry.HEADER_SIZE) {
            return false;
        }
        byte[] bytes = segment(record.segment());
        return bytes[(int) record.offset() + record.length() - 1] != 0;
    }

    private static Path file(int segment) {
        return Path.of(DIRECTORY, "journal", "%010d.seg".formatted(segment));
    }

    private byte[] segment(int number) {
        if (!disk.exists(file(number))) {
            return new byte[0];
        }
        try {
            SimDisk.Inode file = disk.find(file(number));
            byte[] bytes = new byte[(int) file.size()];
            disk.read(file, ByteBuffer.wrap(bytes), 0);
            return bytes;
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    // ---- all shards together ----

    boolean write() {
        if (killInNextWrite) {
            killInNextWrite = false;
            cluster.faults().kill(node);
            return false;
        }
        long place = store().write();
        if (outOfService) {
            return false;
        }
        shards.values().forEach(shard -> shard.written(place));
        return true;
    }

    void sync(Runnable done) {
        store().sync(place -> {
            shards.values().forEach(shard -> shard.synced(place));
            done.run();
        });
    }

    void turnEnded() {
        JournalStore open = store;
        if (open == null || outOfService) {
            return;
        }
        open.turnEnded();
        if (random.chance(options.cleanChance())) {
            StoreInside.clean(open);
        }
        Store.Usage usage = open.usage();
        node.setRoom(
                switch (usage.space()) {
                    case OK, WARN -> Room.ENOUGH;
                    case FULL -> usage.cleanable() ? Room.SOON : Room.NONE;
                });
    }

    void checkpoint() {
        StoreInside.checkpoint(store());
    }

    /** Checks what the store says of itself. */
    void checkEnd() {
        SimThreads own = threads;
        JournalStore open = store();
        if (own == null) {
            throw new IllegalStateException("no process");
        }
        own.runAll();
        StoreInside.checkpoint(open);
        own.runAll();
        check(!outOfService, "store", node.name(), " has failed at the end");
        check(
                StoreInside.isUsageRight(open),
                "store",
                node.name(),
                " counts live bytes of segments wrongly");
    }

    /** Reads all blocks. */
    List<Run> readAll(ShardId shard) {
        CompletableFuture<List<Run>> read = new CompletableFuture<>();
        store().read(shard, SealedBlocks.LAYER, 0, cluster.options.blocks(), read::complete);
        SimThreads own = threads;
        if (own == null) {
            throw new IllegalStateException("no process");
        }
        try {
            return own.await(read);
        } catch (ExecutionException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
