package io.holdfast.simulation;

import io.holdfast.node.port.PeerLinks;
import io.holdfast.proto.peer.ShardId;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * One user of a volume, as an NBD connection is: attaches through some node, or through an agent of
 * its own, and reads, writes, trims and flushes there, from a few bytes to several blocks. Now and
 * then it attaches again elsewhere, under the same identity, while what it asked for before is
 * still under way: because its process died, because it closed the connection, or because it lost
 * patience with a front end that does not know yet.
 */
final class SimUser {
    /** Most cells that one call covers. */
    private static final int MAX_CELLS = 5 * Cells.PER_BLOCK;

    private final SimCluster cluster;
    private final SimVolume volume;
    private final SimRandom random;
    private final int index;
    private final String identity;

    /** Volume clients of this user, the newest last; all but that one are left to themselves. */
    private final List<SimDevice> devices = new ArrayList<>();

    private @Nullable SimDevice current;
    private boolean busy;

    SimUser(SimCluster cluster, SimVolume volume, int index, SimRandom random) {
        this.cluster = cluster;
        this.volume = volume;
        this.index = index;
        this.random = random;
        this.identity = "user-" + index;
    }

    SimVolume volume() {
        return volume;
    }

    /** The endpoint of this user's own agent. */
    int agent() {
        return PeerLinks.FIRST_AGENT + index;
    }

    /** Attaches through a running process; the device before, if any, stays as it is. */
    SimDevice attach(int through, int timeoutSeconds) {
        SimDevice device =
                new SimDevice(
                        cluster,
                        volume,
                        random.child("device " + devices.size()),
                        identity,
                        through,
                        timeoutSeconds);
        devices.add(device);
        current = device;
        return device;
    }

    /** The newest volume client, if it is there. */
    @Nullable SimDevice current() {
        SimDevice device = current;
        return device == null || device.isGone() ? null : device;
    }

    /** A claim was granted. */
    void claimed(ShardId shard, SimDevice holder, long generation) {
        for (SimDevice device : devices) {
            if (device != holder) {
                device.otherClaims(shard, holder, generation);
            }
        }
    }

    /** Calls under way. */
    int underWay() {
        return devices.stream().mapToInt(SimDevice::pending).sum();
    }

    /** Whether every volume client of this user is closed or dead. */
    boolean isDetached() {
        return devices.stream().allMatch(SimDevice::isGone);
    }

    /** Closes what is open. */
    void closeAll() {
        devices.stream().filter(SimDevice::isOpen).forEach(SimDevice::close);
        current = null;
    }

    /** Begins to use the volume at random. */
    void start() {
        busy = true;
        cluster.queue.after(random.between(0, SimOptions.SECONDS), this::use);
    }

    /** Asks nothing new; what is under way goes on. */
    void stop() {
        busy = false;
    }

    private void use() {
        if (!busy) {
            return;
        }
        SimDevice device = current();
        if (device == null) {
            attachSomewhere();
        } else if (device.isUnusable() || random.chance(0.006)) {
            leave(device);
        } else if (device.isOpen() && device.pending() < cluster.options.depth()) {
            something(device);
        }
        cluster.queue.after(random.between(1, 40) * SimOptions.MILLIS, this::use);
    }

    private void attachSomewhere() {
        int through = random.chance(0.3) ? agent() : random.pick(cluster.nodeNumbers());
        if (through == agent() || cluster.node(through).isRunning()) {
            SimDevice device = attach(through, cluster.options.timeoutSeconds());
            if (random.chance(0.8)) {
                device.open();
            }
        }
    }

    private void leave(SimDevice device) {
        current = null;
        if (device.isUnusable() || random.chance(0.4)) {
            close(device);
        } else if (device.endpoint() == agent() && random.chance(0.5)) {
            cluster.counters.add(Rare.AGENT_KILLED);
            device.die();
        } else {
            cluster.counters.add(Rare.LEFT_OPEN);
            cluster.queue.after(random.between(0, 8 * SimOptions.SECONDS), () -> close(device));
        }
    }

    /** Its process closes it, as soon as it runs. */
    private void close(SimDevice device) {
        if (device.isOpen()) {
            device.close();
        } else if (!device.isGone()) {
            cluster.queue.after(100 * SimOptions.MILLIS, () -> close(device));
        }
    }

    private void something(SimDevice device) {
        long cells = (long) cluster.options.blocks() * Cells.PER_BLOCK;
        int most = (int) Math.min(cells, random.chance(0.7) ? Cells.PER_BLOCK : MAX_CELLS);
        int count = random.between(1, most);
        long first = random.between(0, cells - count);
        if (random.chance(0.5)) {
            // Whole blocks, as file systems write them.
            long block = first / Cells.PER_BLOCK;
            int blocks = (count + Cells.PER_BLOCK - 1) / Cells.PER_BLOCK;
            first = block * Cells.PER_BLOCK;
            count = (int) Math.min((long) blocks * Cells.PER_BLOCK, cells - first);
        }
        Consumer<SimCall> then = random.chance(0.2) ? call -> another(device) : call -> {};
        int kind = random.between(0, 99);
        if (kind < 35) {
            device.read(first, count, then);
        } else if (kind < 85) {
            device.write(first, count, isSynced(), then);
        } else if (kind < 93) {
            device.zero(first, count, random.chance(0.5), isSynced(), then);
        } else if (!cluster.options.seldomSynced() || isSynced()) {
            device.flush(then);
        }
    }

    private boolean isSynced() {
        return random.chance(cluster.options.syncChance());
    }

    /** The next call, made while the one before ends. */
    private void another(SimDevice device) {
        if (busy && device == current && device.isOpen() && !device.isUnusable()) {
            something(device);
        }
    }

    @Override
    public String toString() {
        return identity + " of " + volume;
    }
}
