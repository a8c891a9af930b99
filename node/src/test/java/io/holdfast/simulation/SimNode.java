package io.holdfast.simulation;

import io.holdfast.node.replica.Event;
import io.holdfast.node.replica.HardState;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ClientRequest;
import io.holdfast.proto.peer.PeerMessage;
import io.holdfast.proto.peer.ReplicaMessage;
import io.holdfast.proto.peer.Room;
import io.holdfast.proto.peer.ScrubMessage;
import io.holdfast.proto.peer.ShardId;
import java.io.UncheckedIOException;
import java.util.ArrayDeque;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * One node: a process with one data loop that runs whatever waits, in order, unless it is paused or
 * dead, and disks that outlive it.
 */
final class SimNode {
    final int number;
    final SimClock clock;
    private final SimCluster cluster;
    private final SimRandom random;

    /** Models of the disk; empty: the production store is used. */
    private final TreeMap<ShardId, SimStore> models = new TreeMap<>();

    /** The production store; null: models are used. */
    private final @Nullable SimJournal journal;

    private final TreeMap<ShardId, SimReplica> replicas = new TreeMap<>();
    private final ArrayDeque<Runnable> work = new ArrayDeque<>();
    private final SimOptions.Disk ownDisk;
    private SimOptions.Disk disk;
    private boolean up;
    private Room room = Room.ENOUGH;
    private boolean paused;
    private boolean working;
    private boolean lostPower;
    private boolean tickWaits;
    private int incarnation;
    private int pauses;
    private boolean repairRefused;

    SimNode(SimCluster cluster, int number, SimRandom random, SimClock clock) {
        this.cluster = cluster;
        this.number = number;
        this.random = random;
        this.clock = clock;
        this.ownDisk = cluster.options.disk().ofNode(random.child("speed of the disk"));
        this.disk = ownDisk;
        if (cluster.options.storage().real()) {
            journal = new SimJournal(cluster, this, random.child("journal"));
            return;
        }
        journal = null;
        for (ShardId shard : cluster.shards()) {
            models.put(
                    shard,
                    new SimStore(
                            shard,
                            HardState.FRESH,
                            cluster.options.bug(),
                            cluster.oracle(shard).watcher(number)));
        }
    }

    // ---- the process ----

    /** Whether the process is there (perhaps paused). */
    boolean isUp() {
        return up;
    }

    /** Whether the process makes progress. */
    boolean isRunning() {
        return up && !paused;
    }

    boolean isPaused() {
        return paused;
    }

    /** How often it was paused. */
    int pauses() {
        return pauses;
    }

    /** Rises with every start. */
    int incarnation() {
        return incarnation;
    }

    SimReplica replica(ShardId shard) {
        SimReplica replica = replicas.get(shard);
        if (replica == null) {
            throw new IllegalStateException("node " + number + " is down");
        }
        return replica;
    }

    SimStorage store(ShardId shard) {
        if (journal != null) {
            return journal.shard(shard);
        }
        SimStore store = models.get(shard);
        if (store == null) {
            throw new IllegalStateException("no shard " + shard);
        }
        return store;
    }

    /** How long this node's disk takes now. */
    SimOptions.Disk disk() {
        return disk;
    }

    /** From now on the disk is slow, or as fast as it was. */
    void slowDisk(boolean slow) {
        disk = slow ? ownDisk.slow() : ownDisk;
    }

    /** From now on the disk takes this long. */
    void disk(SimOptions.Disk other) {
        disk = other;
    }

    /** What room the disk has for new data; the process, if there is one, is told. */
    void setRoom(Room newRoom) {
        if (room != newRoom) {
            room = newRoom;
            cluster.trace.add(name(), "room on its disk: " + room);
            if (journal != null && room != Room.ENOUGH) {
                cluster.counters.add(room == Room.NONE ? Rare.STORE_FULL : Rare.STORE_FULL_FOR_NOW);
            }
            if (up) {
                tellSpace();
            }
        }
    }

    private void tellSpace() {
        cluster.shards().forEach(shard -> tell(shard, new Event.RoomChanged(room)));
    }

    /** Starts the process; false: its disk does not let it. */
    boolean start() {
        up = true;
        tickWaits = false;
        incarnation++;
        cluster.trace.add(name(), lostPower ? "starts after power loss" : "starts");
        if (journal != null) {
            room = Room.ENOUGH;
            if (!openJournal(journal)) {
                up = false;
                return false;
            }
        }
        boolean unclean = lostPower && cluster.options.bug() != PlantedBug.POWER_LOSS_UNNOTICED;
        lostPower = false;
        try {
            openReplicas(unclean);
        } catch (UncheckedIOException e) {
            crash();
            return false;
        }
        if (room != Room.ENOUGH) {
            tellSpace();
        }
        int mine = incarnation;
        cluster.queue.after(
                random.between(0, cluster.options.timing().tickNanos()), () -> tick(mine));
        return true;
    }

    private void openReplicas(boolean unclean) {
        for (ShardId shard : cluster.shards()) {
            replicas.put(
                    shard,
                    new SimReplica(
                            cluster,
                            this,
                            store(shard),
                            random.child("replica " + shard + " " + incarnation),
                            unclean));
        }
        if (journal != null) {
            journal.opened();
        }
    }

    /** A store that refuses to start is replaced by an empty one, as the manual says. */
    private boolean openJournal(SimJournal real) {
        try {
            return real.open();
        } catch (SimJournal.Refused e) {
            forget(real);
            lostPower = false;
            return real.open();
        }
    }

    private void tick(int mine) {
        if (mine != incarnation || !up) {
            return;
        }
        if (!tickWaits) {
            tickWaits = true;
            enqueue(
                    mine,
                    () -> {
                        tickWaits = false;
                        cluster.shards().forEach(s -> tell(s, new Event.Tick()));
                    });
        }
        long tick = cluster.options.timing().tickNanos();
        cluster.queue.after(
                clock.trueNanos(random.between(tick - tick / 4, tick)), () -> tick(mine));
    }

    /** The process dies: kill -9. The page cache stays. */
    void crash() {
        if (journal != null) {
            journal.crash();
        }
        die("crashes");
        models.values().forEach(store -> store.crash(random));
    }

    /** The process is stopped in an orderly way. */
    void stop() {
        if (journal != null) {
            journal.close();
        }
        die("is stopped");
    }

    /** The machine loses power; with a planted bug it is not noticed at the next start. */
    void powerLoss() {
        if (up) {
            if (journal != null) {
                journal.crash();
            }
            die("loses power");
        } else {
            cluster.trace.add(name(), "loses power while down");
        }
        if (journal != null) {
            journal.powerLoss();
        }
        models.values().forEach(store -> store.powerLoss(random));
        lostPower = true;
    }

    /** The machine comes back with an empty disk, though its volumes are long in use. */
    void wipe() {
        if (up) {
            if (journal != null) {
                journal.crash();
            }
            die("is wiped");
        }
        if (journal != null) {
            forget(journal);
        } else {
            models.values().forEach(store -> store.wipe(HardState.FORGETFUL));
            tellWiped();
        }
    }

    private void forget(SimJournal real) {
        real.wipe();
        tellWiped();
    }

    private void tellWiped() {
        cluster.shards().forEach(shard -> cluster.oracle(shard).wiped(number));
    }

    /** Whether the disk has failed under the process: it neither hears nor says anything. */
    boolean isOutOfService() {
        return journal != null && journal.isOutOfService();
    }

    /** The disk has failed. */
    void storeFailed() {
        cluster.faults().diskFailed(this);
    }

    /** The production store, if that is what this node has. */
    @Nullable SimJournal journal() {
        return journal;
    }

    private void die(String how) {
        cluster.trace.add(name(), how);
        cluster.coordinator().linksLost(number);
        up = false;
        if (paused) {
            paused = false;
            clock.thaw();
        }
        work.clear();
        replicas.clear();
        cluster.nodeDied(number);
    }

    /** Whether any replica here may have forgotten something and has not caught up since. */
    boolean isForgetful() {
        // What counts is what the disk keeps: a promotion that is not synced may be taken back.
        return (!up && lostPower)
                || (journal != null && journal.isDoubtful())
                || cluster.shards().stream()
                        .anyMatch(s -> !store(s).syncedState().standing().counts())
                || replicas.values().stream().anyMatch(r -> !r.status().standing().counts());
    }

    /**
     * The process stops, as by SIGSTOP; messages wait.
     *
     * @param withClock the machine is frozen together with its clock
     */
    void pause(boolean withClock) {
        if (up && !paused) {
            cluster.trace.add(name(), withClock ? "is frozen" : "is paused");
            paused = true;
            pauses++;
            if (withClock || cluster.options.bug() == PlantedBug.LEASE_OUTLIVES_PAUSE) {
                clock.freeze();
            }
        }
    }

    /** The process goes on. */
    void resume() {
        if (up && paused) {
            cluster.trace.add(name(), "goes on");
            paused = false;
            clock.thaw();
            runWork();
        }
    }

    /** The store had no room for a good copy of a block that it has a bad one of. */
    void repairRefused() {
        repairRefused = true;
    }

    boolean wasRepairRefused() {
        return repairRefused;
    }

    /** The clock as this node's code reads it. */
    long nanos() {
        return clock.nanos();
    }

    // ---- the data loop ----

    /** Runs something on the data loop of this incarnation, now if nothing is before it. */
    void enqueue(int mine, Runnable action) {
        if (up && mine == incarnation) {
            work.addLast(action);
            runWork();
        }
    }

    /** Runs something before everything that waits. */
    void enqueueFirst(int mine, Runnable action) {
        if (up && mine == incarnation) {
            work.addFirst(action);
        }
    }

    private void runWork() {
        if (working) {
            return;
        }
        working = true;
        try {
            while (up && !paused && !work.isEmpty()) {
                cluster.queue.happens();
                work.removeFirst().run();
            }
        } finally {
            working = false;
        }
    }

    /** A message has come over the network. */
    void receive(int from, PeerMessage message) {
        enqueue(
                incarnation,
                () -> {
                    switch (message) {
                        case ReplicaMessage replica ->
                                replica(message.shard()).step(new Event.FromPeer(from, replica));
                        case ClientRequest request ->
                                replica(message.shard()).step(new Event.FromClient(from, request));
                        case ClientReply reply -> cluster.reply(from, number, reply);
                        case ScrubMessage scrub ->
                                throw new IllegalStateException("no scrub is simulated: " + scrub);
                    }
                });
    }

    /** Something of the coordinator's. */
    void tell(ShardId shard, Event event) {
        enqueue(incarnation, () -> replica(shard).step(event));
    }

    String name() {
        return "node " + number;
    }
}
