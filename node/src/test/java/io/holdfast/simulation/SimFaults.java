package io.holdfast.simulation;

import io.holdfast.node.replica.HardState.Standing;
import io.holdfast.proto.peer.Room;
import io.holdfast.proto.peer.ShardId;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;

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
    private final List<SimNode> down = new ArrayList<>();
    private boolean over;

    SimFaults(SimCluster cluster, SimRandom random) {
        this.cluster = cluster;
        this.random = random;
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
        }
        if (allowed.wrongHints()) {
            kinds.add(this::wrongHint);
        }
        if (allowed.fullDisk()) {
            kinds.add(this::fillDisk);
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
        if (allowed.crash() && random.chance(0.5)) {
            count("crashes in mid-step");
            crash(node);
        } else if (allowed.pause()) {
            count("pauses in mid-step");
            pause(node, false);
        }
    }

    private void count(String fault) {
        cluster.counters.add("fault: " + fault, 1);
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
        count("several crash at once");
        for (SimNode node : cluster.nodes()) {
            if (random.chance(0.6)) {
                crash(node);
            }
        }
    }

    private void crash(SimNode node) {
        if (node.isUp()) {
            count("crashes");
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
            count(withClock ? "freezes with clock" : "pauses");
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

    // ---- disks ----

    /** As when a virtual machine is moved: it stands still, and its connections are lost. */
    private void suspend() {
        SimNode node = cluster.node(leaderOrAny());
        if (node.isRunning()) {
            count("suspensions");
            isolate(node.number, random.between(1, 6) * SimOptions.SECONDS);
            pause(node, false);
        }
    }

    private int leaderOrAny() {
        int leader = cluster.coordinator().leader(random.pick(cluster.shards()));
        return leader == 0 ? anyNode().number : leader;
    }

    private boolean mayForget() {
        long forgetful = cluster.nodes().stream().filter(SimNode::isForgetful).count();
        return forgetful + 1 <= (cluster.nodes().size() - 1) / 2;
    }

    private void powerLoss() {
        SimNode node = anyNode();
        if (node.isForgetful() || mayForget()) {
            count("power losses");
            boolean wasUp = node.isUp();
            node.powerLoss();
            if (wasUp) {
                comeBack(node);
            }
        }
    }

    private void powerLossOfMany() {
        count("power losses of many");
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
                            count("power losses in a catch-up");
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
            count("power losses of a majority");
            cluster.majorityForgot();
        }
    }

    private void fillDisk() {
        SimNode node = anyNode();
        count("disks full");
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
        }
    }

    private void wipe() {
        SimNode node = anyNode();
        if (mayForget() && !node.isForgetful()) {
            count("disks wiped");
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
            count("nodes stopped");
            node.stop();
            comeBack(node);
        }
    }

    /** A bit of the journal turns over while the node is down. */
    private void damage() {
        SimNode node = anyNode();
        SimJournal journal = node.journal();
        if (journal != null && mayForget() && !node.isForgetful() && !node.isOutOfService()) {
            count("disks damaged");
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
            count("disks failing");
            journal.disk().fail(random.between(1, 50) / 100.0);
            cluster.queue.after(aWhile(), () -> heal(node));
        }
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
                count("blocks damaged");
                boolean newest = random.chance(0.5);
                store.damage(
                        newest ? places.getLast() : random.pick(places),
                        random.chance(0.8) ? SimStore.Damage.CORRUPT : SimStore.Damage.UNREADABLE,
                        random);
            }
        }
    }

    private void wrongHint() {
        count("living nodes called dead");
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
        count("nodes isolated");
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
        count("one-way partitions");
        cut(random.pick(cluster.endpoints()), random.pick(cluster.endpoints()), aWhile());
    }

    private void split() {
        count("partitions");
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
        count("flapping links");
        int from = random.pick(cluster.endpoints());
        int to = random.pick(cluster.endpoints());
        for (int i = random.between(2, 10); i > 0; i--) {
            long begin = aWhile();
            cluster.queue.after(
                    begin, () -> cut(from, to, random.between(10, 300) * SimOptions.MILLIS));
        }
    }
}
