package io.holdfast.simulation;

import static io.holdfast.simulation.SimFailure.check;

import io.holdfast.node.port.Store;
import io.holdfast.node.replica.HardState;
import io.holdfast.node.store.JournalStore;
import io.holdfast.node.store.StoreException;
import io.holdfast.node.store.StoreInside;
import io.holdfast.node.store.StoreOptions;
import io.holdfast.proto.peer.ClientReply.Run;
import io.holdfast.proto.peer.Room;
import io.holdfast.proto.peer.ShardId;
import java.io.IOException;
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
        rows = new SimRows(disk, cluster.counters);
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
     * Opens the store in a new process; false: that failed with an error of the disk, or for want of
     * room.
     */
    boolean open() {
        int incarnation = node.incarnation();
        files = new SimFileSystem(disk);
        SimThreads own =
                new SimThreads(
                        node,
                        cluster.queue,
                        random.child("threads " + incarnation),
                        cluster.options.disk());
        threads = own;
        outOfService = false;
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
                cluster.counters.add("store: torn tails cut", 1);
            }
        } catch (StoreException refused) {
            end();
            check(damaged, "store", node.name(), " refuses to start: ", refused.getMessage());
            cluster.counters.add("store: damaged stores refused", 1);
            cluster.trace.add(node.name(), "refuses to start: " + refused.getMessage());
            throw new Refused();
        } catch (IOException failed) {
            end();
            check(
                    disk.isFailing() || disk.freeBytes() < Long.MAX_VALUE / 2,
                    "store",
                    node.name(),
                    " cannot start: ",
                    failed);
            cluster.trace.add(node.name(), "cannot start: " + failed.getMessage());
            return false;
        }
        check(!damaged, "store", node.name(), " has not noticed that its journal is damaged");
        return true;
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
            disk.dying(random.chance(0.5) ? random.between(0, 12_000) : Long.MAX_VALUE);
            try {
                dead.write();
            } catch (SimDisk.Killed e) {
                cluster.counters.add("store: killed in a write", 1);
            }
            dying = false;
        }
        end();
    }

    /** The process is stopped in an orderly way. */
    void close() {
        store().close();
        end();
        cluster.counters.add("store: closed cleanly", 1);
    }

    private void end() {
        JournalStore dead = store;
        if (dead != null) {
            Store.Usage usage = dead.usage();
            cluster.counters.add("store: bytes moved by the cleaner", usage.movedBytes());
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
        if (cluster.options.bug() != PlantedBug.POWER_LOSS_UNNOTICED) {
            boot++;
        }
    }

    /** The disk is replaced by an empty one. */
    void wipe() {
        disk.wipe();
        rows.wipe();
        mount();
        isNew = true;
        damaged = false;
        shards.values().forEach(JournalShard::wiped);
    }

    // ---- failures of the disk ----

    /** Whether the store has failed: the node neither hears nor says anything. */
    boolean isOutOfService() {
        return outOfService;
    }

    /** The store has failed. */
    void failed(Exception cause) {
        if (!outOfService && !dying) {
            outOfService = true;
            cluster.counters.add("store: failed", 1);
            cluster.trace.add(node.name(), "store has failed: " + cause.getMessage());
            node.storeFailed();
        }
    }

    SimDisk disk() {
        return disk;
    }

    boolean isDamaged() {
        return damaged;
    }

    // ---- all shards together ----

    boolean write() {
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
