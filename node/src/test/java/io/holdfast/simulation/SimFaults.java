package io.holdfast.simulation;

import io.holdfast.node.replica.HardState.Standing;
import io.holdfast.proto.peer.Room;
import io.holdfast.proto.peer.ShardId;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Lets things go wrong at random, as far as the run's options allow, and always undoes it after a
 * while. Unless {@code majorityPowerLoss} is on, a majority of voters always remembers everything,
 * so that nothing acknowledged may be lost.
 */
final class SimFaults {
    private static final int CATCH_UP_LOOKS = 5000;
    private static final long CATCH_UP_LOOK_NANOS = 500 * SimOptions.MICROS;
    private static final long CATCH_UP_NANOS = 10 * SimOptions.MILLIS;

    private final SimCluster cluster;
    private final SimOptions.Faults allowed;
    private final SimRandom random;
    private final SimRandom midStep;
    private final List<SimNode> down = new ArrayList<>();

    /** The node whose disk is the bad one; null: none is yet. */
    private @Nullable SimNode unreadable;

    private boolean over;

    SimFaults(SimCluster cluster, SimRandom random) {
        this.cluster = cluster;
        this.random = random;
        this.midStep = random.child("mid-step");
        this.allowed = cluster.options.faults();
    }

    /** Begins. */
    void start() {
        List<Runnable> kinds = new ArrayList<>();
        if (allowed.crash()) {
            kinds.add(this::crashOne);
            kinds.add(this::crashSeveral);
        }
        if (allowed.powerLoss()) {
            kinds.add(this::powerLoss);
        }
        if (allowed.majorityPowerLoss()) {
            kinds.add(this::powerLossOfMany);
            kinds.add(() -> powerLossInACatchUp(CATCH_UP_LOOKS));
        }
        if (allowed.pause()) {
            kinds.add(() -> pause(anyNode(), false));
            kinds.add(this::suspend);
        }
        if (allowed.freeze()) {
            kinds.add(() -> pause(anyNode(), true));
        }
        if (allowed.partition()) {
            kinds.add(this::isolate);
            kinds.add(this::cutOneWay);
            kinds.add(this::split);
            kinds.add(this::flap);
        }
        if (allowed.wipe()) {
            kinds.add(this::wipe);
        }
        if (cluster.options.storage().real()) {
            SimOptions.Storage storage = cluster.options.storage();
            if (storage.stops()) {
                kinds.add(this::stop);
            }
            if (storage.damage()) {
                kinds.add(this::damage);
            }
            if (storage.failing()) {
                kinds.add(this::failDisk);
            }
            if (storage.unreadable() && cluster.nodes().size() > 1) {
                kinds.add(this::failReads);
                kinds.add(this::failReads);
            }
        }
        if (allowed.wrongHints()) {
            kinds.add(this::wrongHint);
        }
        if (allowed.fullDisk()) {
            kinds.add(this::fillDisk);
        }
        if (allowed.slowDisk()) {
            kinds.add(this::slowDown);
        }
        if (allowed.rot()) {
            kinds.add(this::rot);
            kinds.add(this::rot);
        }
        if (!kinds.isEmpty()) {
            next(kinds);
        }
    }

    private void next(List<Runnable> kinds) {
        cluster.queue.after(
                random.between(SimOptions.MILLIS, allowed.gapMaxNanos()),
                () -> {
                    if (!over) {
                        random.pick(kinds).run();
                        next(kinds);
                    }
                });
    }

    /**
     * Nothing goes wrong from now on; what did is undone.
     *
     * @param keptDown nodes that are down for now; somebody else starts them
     */
    void end(List<SimNode> keptDown) {
        over = true;
        cluster.network.mendAll();
        for (SimNode node : cluster.nodes()) {
            heal(node);
            giveRoom(node);
            node.slowDisk(false);
            if (keptDown.contains(node)) {
                if (node.isUp()) {
                    node.crash();
                }
                cluster.coordinator().nodeDead(node.number);
            } else {
                node.resume();
                if (node.isOutOfService()) {
                    node.crash();
                }
                startNow(node);
            }
        }
        down.addAll(keptDown);
    }

    /** Perhaps something happens just between two effects of a step. */
    void beforeEffect(SimNode node) {
        if (over || !random.chance(cluster.options.midStepFault())) {
            return;
        }
        if (mayLosePower(node) && midStep.chance(0.4)) {
            count(Fault.POWER_LOSS_IN_MID_STEP);
            powerLossOf(List.of(node));
        } else if (allowed.crash() && random.chance(0.5)) {
            count(Fault.CRASH_IN_MID_STEP);
            crash(node);
        } else if (allowed.pause()) {
            count(Fault.PAUSE_IN_MID_STEP);
            pause(node, false);
        }
    }

    private void count(Fault fault) {
        cluster.counters.add(fault.counter(), 1);
    }

    private SimNode anyNode() {
        return random.pick(cluster.nodes());
    }

    private long aWhile() {
        return random.chance(0.5)
                ? random.between(5, 400) * SimOptions.MILLIS
                : random.between(400, 5000) * SimOptions.MILLIS;
    }

    // ---- processes ----

    private void crashOne() {
        crash(anyNode());
    }

    private void crashSeveral() {
        count(Fault.CRASH_OF_SEVERAL);
        for (SimNode node : cluster.nodes()) {
            if (random.chance(0.6)) {
                crash(node);
            }
        }
    }

    private void crash(SimNode node) {
        if (node.isUp()) {
            count(Fault.CRASH);
            SimJournal journal = node.journal();
            if (journal != null && node.isRunning() && random.chance(0.5)) {
                journal.killInNextWrite();
            } else {
                kill(node);
            }
        }
    }

    /** The process dies now, and another will be started. */
    void kill(SimNode node) {
        node.crash();
        comeBack(node);
    }

    private void comeBack(SimNode node) {
        long back = aWhile();
        if (back > SimOptions.SECONDS && random.chance(0.5)) {
            cluster.coordinator().nodeDead(node.number);
        }
        cluster.queue.after(back, () -> startNow(node));
    }

    private void startNow(SimNode node) {
        if (!node.isUp() && !down.contains(node)) {
            if (!cluster.start(node)) {
                comeBack(node);
            }
        }
    }

    private void pause(SimNode node, boolean withClock) {
        if (node.isRunning()) {
            count(withClock ? Fault.FREEZE : Fault.PAUSE);
            node.pause(withClock);
            int incarnation = node.incarnation();
            cluster.queue.after(
                    aWhile(),
                    () -> {
                        if (node.incarnation() == incarnation) {
                            node.resume();
                        }
                    });
        }
    }

    /** As when a virtual machine is moved: it stands still, and its connections are lost. */
    private void suspend() {
        SimNode node = cluster.node(leaderOrAny());
        if (node.isRunning()) {
            count(Fault.SUSPENSION);
            isolate(node.number, random.between(1, 6) * SimOptions.SECONDS);
            pause(node, false);
        }
    }

    private int leaderOrAny() {
        int leader = cluster.coordinator().leader(random.pick(cluster.shards()));
        return leader == 0 ? anyNode().number : leader;
    }

    // ---- power and disks ----

    private boolean mayForget() {
        long forgetful = cluster.nodes().stream().filter(SimNode::isForgetful).count();
        return forgetful + 1 <= (cluster.nodes().size() - 1) / 2;
    }

    private void powerLoss() {
        SimNode node = anyNode();
        if (node.isForgetful() || mayForget()) {
            count(Fault.POWER_LOSS);
            powerLossOf(List.of(node));
        }
    }

    private boolean mayLosePower(SimNode node) {
        return allowed.majorityPowerLoss()
                || (allowed.powerLoss() && (node.isForgetful() || mayForget()));
    }

    private void powerLossOfMany() {
        count(Fault.POWER_LOSS_OF_MANY);
        boolean all = random.chance(0.5);
        powerLossOf(cluster.nodes().stream().filter(n -> all || random.chance(0.6)).toList());
    }

    /** Waits for a catch-up by extents to get somewhere; then all others lose power. */
    private void powerLossInACatchUp(int looks) {
        List<SimNode> others =
                cluster.nodes().stream().filter(node -> !isInACatchUp(node)).toList();
        if (others.size() < cluster.nodes().size()) {
            cluster.queue.after(
                    random.between(0, CATCH_UP_NANOS),
                    () -> {
                        if (!over) {
                            count(Fault.POWER_LOSS_IN_CATCH_UP);
                            powerLossOf(random.chance(0.7) ? others : cluster.nodes());
                        }
                    });
        } else if (looks > 0 && !over) {
            cluster.queue.after(CATCH_UP_LOOK_NANOS, () -> powerLossInACatchUp(looks - 1));
        }
    }

    private boolean isInACatchUp(SimNode node) {
        return node.isUp()
                && cluster.shards().stream()
                        .map(shard -> node.replica(shard).status().standing())
                        .anyMatch(s -> s == Standing.INSTALLING || s == Standing.CATCHING_UP);
    }

    private void powerLossOf(Collection<SimNode> nodes) {
        for (SimNode node : nodes) {
            boolean wasUp = node.isUp();
            node.powerLoss();
            if (wasUp) {
                comeBack(node);
            }
        }
        long forgetful = cluster.nodes().stream().filter(SimNode::isForgetful).count();
        if (forgetful >= cluster.nodes().size() / 2 + 1) {
            count(Fault.POWER_LOSS_OF_MAJORITY);
            cluster.majorityForgot();
        }
    }

    private void fillDisk() {
        SimNode node = anyNode();
        count(Fault.FULL_DISK);
        SimJournal journal = node.journal();
        if (journal == null) {
            node.setRoom(random.chance(0.5) ? Room.SOON : Room.NONE);
        } else {
            journal.disk()
                    .leaveFree(random.between(0, 4) * cluster.options.storage().segmentBytes());
        }
        cluster.queue.after(aWhile(), () -> giveRoom(node));
    }

    private void giveRoom(SimNode node) {
        SimJournal journal = node.journal();
        if (journal == null) {
            node.setRoom(Room.ENOUGH);
        } else {
            journal.disk().grow();
        }
    }

    private void slowDown() {
        SimNode node = anyNode();
        count(Fault.SLOW_DISK);
        node.slowDisk(true);
        cluster.queue.after(aWhile(), () -> node.slowDisk(false));
    }

    /** A store has failed: somebody looks after its disk and starts the node again. */
    void diskFailed(SimNode node) {
        int incarnation = node.incarnation();
        cluster.queue.after(
                aWhile(),
                () -> {
                    if (node.incarnation() == incarnation && node.isUp() && !over) {
                        heal(node);
                        node.crash();
                        comeBack(node);
                    }
                });
    }

    private static void heal(SimNode node) {
        SimJournal journal = node.journal();
        if (journal != null) {
            journal.disk().fail(0);
            journal.disk().mendReads();
        }
    }

    private void wipe() {
        SimNode node = anyNode();
        if (mayForget() && !node.isForgetful()) {
            count(Fault.WIPED_DISK);
            boolean wasUp = node.isUp();
            node.wipe();
            if (wasUp) {
                comeBack(node);
            }
        }
    }

    /** An orderly stop, as for an update. */
    private void stop() {
        SimNode node = anyNode();
        if (node.isRunning() && !node.isOutOfService()) {
            count(Fault.STOP);
            node.stop();
            comeBack(node);
        }
    }

    /** A bit of the journal turns over while the node is down. */
    private void damage() {
        SimNode node = anyNode();
        SimJournal journal = node.journal();
        if (journal != null && mayForget() && !node.isForgetful() && !node.isOutOfService()) {
            count(Fault.DAMAGED_DISK);
            boolean wasUp = node.isUp();
            if (wasUp) {
                node.crash();
            }
            journal.damage();
            if (wasUp) {
                comeBack(node);
            }
        }
    }

    /** Some calls fail for a while. */
    private void failDisk() {
        SimNode node = anyNode();
        SimJournal journal = node.journal();
        if (journal != null && mayForget() && !node.isForgetful()) {
            count(Fault.FAILING_DISK);
            journal.disk().fail(random.between(1, 50) / 100.0);
            cluster.queue.after(aWhile(), () -> heal(node));
        }
    }

    private void failReads() {
        if (random.chance(0.5)) {
            failReadsInACatchUp(CATCH_UP_LOOKS);
        } else {
            failReadsNow();
        }
    }

    /** Waits for a node to catch up by extents: reads may fail where they come from. */
    private void failReadsInACatchUp(int looks) {
        if (cluster.nodes().stream().anyMatch(this::isInACatchUp)) {
            failReadsNow();
        } else if (looks > 0) {
            cluster.queue.after(
                    CATCH_UP_LOOK_NANOS,
                    () -> {
                        if (!over) {
                            failReadsInACatchUp(looks - 1);
                        }
                    });
        }
    }

    /** Reads fail for a while, always on the same node, so that others have what it has. */
    private void failReadsNow() {
        SimNode node = unreadable;
        if (node == null) {
            node = cluster.node(leaderOrAny());
            unreadable = node;
        }
        SimJournal journal = node.journal();
        if (journal == null) {
            return;
        }
        count(Fault.UNREADABLE_DISK);
        if (random.chance(0.5)) {
            journal.disk().failReads(random.chance(0.2) ? 1 : random.between(1, 50) / 100.0);
        } else {
            journal.disk().failReadsInPlaces(random.between(1, 30) / 100.0);
        }
        cluster.queue.after(aWhile(), () -> journal.disk().mendReads());
    }

    /** Some blocks of a node go bad of which another has a good copy. */
    private void rot() {
        ShardId shard = random.pick(cluster.shards());
        SimNode node = random.chance(0.7) ? cluster.node(leaderOrAny()) : anyNode();
        if (!(node.store(shard) instanceof SimStore store)) {
            return;
        }
        for (int blocks = random.between(1, 4); blocks > 0; blocks--) {
            List<SimStorage.Place> places = cluster.copiedElsewhere(shard, node);
            if (!places.isEmpty()) {
                count(Fault.ROT);
                boolean newest = random.chance(0.5);
                store.damage(
                        newest ? places.getLast() : random.pick(places),
                        random.chance(0.8) ? SimStore.Damage.CORRUPT : SimStore.Damage.UNREADABLE,
                        random);
            }
        }
    }

    private void wrongHint() {
        count(Fault.WRONG_HINT);
        int node = anyNode().number;
        cluster.coordinator().nodeDead(node);
        cluster.queue.after(aWhile(), () -> cluster.coordinator().nodeAlive(node));
    }

    // ---- network ----

    private void cut(int from, int to, long nanos) {
        cluster.network.cut(from, to);
        cluster.queue.after(nanos, () -> cluster.network.mend(from, to));
    }

    private void isolate() {
        count(Fault.ISOLATION);
        isolate(anyNode().number, aWhile());
    }

    private void isolate(int node, long nanos) {
        for (int other : cluster.endpoints()) {
            if (other != node) {
                cut(node, other, nanos);
                cut(other, node, nanos);
            }
        }
    }

    private void cutOneWay() {
        count(Fault.ONE_WAY_PARTITION);
        Link link = anyLink();
        cut(link.from, link.to, aWhile());
    }

    private record Link(int from, int to) {}

    /** One direction between a node and somebody else; agents do not talk to each other. */
    private Link anyLink() {
        int node = anyNode().number;
        List<Integer> others = new ArrayList<>(cluster.endpoints());
        others.remove(Integer.valueOf(node));
        int other = random.pick(others);
        return random.chance(0.5) ? new Link(node, other) : new Link(other, node);
    }

    private void split() {
        count(Fault.PARTITION);
        long nanos = aWhile();
        List<Integer> left = new ArrayList<>();
        List<Integer> right = new ArrayList<>();
        for (int endpoint : cluster.endpoints()) {
            (random.chance(0.5) ? left : right).add(endpoint);
        }
        for (int one : left) {
            for (int other : right) {
                cut(one, other, nanos);
                cut(other, one, nanos);
            }
        }
    }

    private void flap() {
        count(Fault.FLAPPING_LINK);
        Link link = anyLink();
        for (int i = random.between(2, 10); i > 0; i--) {
            long begin = aWhile();
            long lasts = random.between(10, 300) * SimOptions.MILLIS;
            cluster.queue.after(
                    begin,
                    () -> {
                        if (!over) {
                            cut(link.from, link.to, lasts);
                        }
                    });
        }
    }
}
