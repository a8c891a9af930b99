package io.holdfast.simulation;

import io.holdfast.node.replica.HardState.Standing;
import io.holdfast.node.replica.ReplicaStatus;
import io.holdfast.proto.peer.ShardId;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * One run of one seed. First a time with faults, in which only safety counts; then everything heals
 * (sometimes only a majority at first), and each volume must soon be served again, every request be
 * answered, replicas must become equal, and the history must be that of linearizable registers.
 */
final class Simulation {
    /** Within this time after everything has healed somebody is answered, whatever it was. */
    private static final long SERVED_NANOS = 10 * SimOptions.SECONDS;

    private static final long ANSWER_NANOS = 40 * SimOptions.SECONDS;
    private static final long PATIENCE_SECONDS = 300;
    private static final long PATIENCE_NANOS = PATIENCE_SECONDS * SimOptions.SECONDS;

    /**
     * How a run went.
     *
     * @param hash over all events: the same for the same seed and code
     * @param failure null: all promises held
     * @param lastEvents in words
     */
    record Result(
            long seed,
            SimOptions options,
            long hash,
            long events,
            long simulatedNanos,
            long operations,
            Counters counters,
            @Nullable Throwable failure,
            List<String> lastEvents) {
        boolean failed() {
            return failure != null;
        }

        /** What somebody needs who is to find out why. */
        String report() {
            StringBuilder text = new StringBuilder();
            text.append("seed ").append(seed).append(" fails\n");
            text.append("commit: ").append(Commit.of(Path.of(""))).append('\n');
            text.append("checker: ").append(checker()).append('\n');
            text.append("options: ").append(options).append('\n');
            text.append("reached: ").append(counters.all()).append('\n');
            text.append("last ").append(lastEvents.size()).append(" events:\n");
            lastEvents.forEach(event -> text.append("  ").append(event).append('\n'));
            text.append("broken: ").append(failure).append('\n');
            if (failure != null && !(failure instanceof SimFailure)) {
                for (StackTraceElement frame : failure.getStackTrace()) {
                    text.append("    at ").append(frame).append('\n');
                }
            }
            text.append("again: ").append(command()).append('\n');
            return text.toString();
        }

        /** Name of the checker that failed; an invariant of production code goes by its type. */
        String checker() {
            return switch (failure) {
                case null -> "none";
                case SimFailure broken -> broken.checker();
                case Throwable other -> other.getClass().getSimpleName();
            };
        }

        private String command() {
            String bug = options.bug() == PlantedBug.NONE ? "" : " --bug " + options.bug();
            return "./holdfast simulate --seed " + seed + bug;
        }
    }

    private final SimCluster cluster;
    private final SimRandom random;

    private Simulation(SimCluster cluster, SimRandom random) {
        this.cluster = cluster;
        this.random = random;
    }

    /**
     * Runs a seed.
     *
     * @throws OutOfMemoryError whatever runs beside it is worth nothing either
     */
    static Result run(long seed, PlantedBug bug) {
        return run(seed, options(seed, bug));
    }

    /** The same run without its bug, which has a say in the options. */
    static Result runWithout(long seed, PlantedBug bug) {
        return run(seed, options(seed, bug).with(PlantedBug.NONE));
    }

    private static SimOptions options(long seed, PlantedBug bug) {
        return SimOptions.draw(new SimRandom(seed).child("options"), bug);
    }

    private static Result run(long seed, SimOptions options) {
        SimRandom root = new SimRandom(seed);
        SimCluster cluster = new SimCluster(options, root);
        Throwable failure = null;
        try {
            new Simulation(cluster, root.child("end")).run();
        } catch (OutOfMemoryError e) {
            // Of this process, not of the cluster: it says nothing about a promise.
            throw e;
        } catch (RuntimeException | Error broken) {
            // A checker's verdict, or an invariant of the core's.
            failure = broken;
        }
        return new Result(
                seed,
                options,
                cluster.trace.hash(),
                cluster.trace.count(),
                cluster.queue.now(),
                cluster.operations(),
                cluster.counters,
                failure,
                cluster.trace.last());
    }

    private void run() {
        cluster.start();
        cluster.users().forEach(SimUser::start);
        cluster.clients().forEach(SimClient::start);
        cluster.faults().start();
        cluster.run(cluster.options.dutyNanos());
        List<SimNode> keptDown = heal();
        long healed = cluster.queue.now();
        cluster.clients().forEach(client -> client.timeout(PATIENCE_NANOS));
        if (!comesTrue("volumes are served again", () -> isServedSince(healed), SERVED_NANOS)) {
            return;
        }
        cluster.run(random.between(1, 4) * SimOptions.SECONDS);
        cluster.users().forEach(SimUser::stop);
        cluster.clients().forEach(SimClient::stop);
        if (!comesTrue("all is answered with a healthy majority", this::allAnswered)) {
            return;
        }
        cluster.users().forEach(SimUser::closeAll);
        if (!comesTrue(
                        "all volume clients close",
                        () -> cluster.users().stream().allMatch(SimUser::isDetached))
                || !allMakeProgress()) {
            return;
        }
        keptDown.forEach(cluster::start);
        if (readEverything() && comesTrue("replicas become equal", cluster::allEqual)) {
            cluster.checkEnd();
        }
    }

    /** Everybody attaches once more and writes; others may have to go first. */
    private boolean allMakeProgress() {
        List<SimUser> users = new ArrayList<>(cluster.users());
        List<SimClient> clients = new ArrayList<>(cluster.clients());
        int rounds = users.size() + clients.size() + 1;
        for (int round = 0; round < rounds && !users.isEmpty(); round++) {
            for (SimClient client : List.copyOf(clients)) {
                client.attach(client.agent());
                if (!comesTrue("a client attaches", () -> isAttached(client))) {
                    return false;
                }
                if (client.standing() == SimClient.Standing.ATTACHED) {
                    clients.remove(client);
                    client.release();
                }
            }
            for (SimUser user : List.copyOf(users)) {
                SimDevice device = user.attach(user.agent(), (int) PATIENCE_SECONDS);
                SimCall call = device.write(0, Cells.PER_BLOCK - 1, true, done -> {});
                if (!comesTrue("a user writes", () -> call.state != SimOp.State.PENDING)) {
                    return false;
                }
                if (call.state == SimOp.State.DONE) {
                    users.remove(user);
                } else {
                    // A late word of a node that is down now may say that it had no room.
                    cluster.run(SimOptions.SECONDS);
                }
                device.close();
                if (!comesTrue("a volume client closes", device::isGone)) {
                    return false;
                }
            }
        }
        if (!users.isEmpty()) {
            throw new SimFailure("progress", "no write is possible of " + users);
        }
        return true;
    }

    /**
     * Attaches again until it succeeds: one whose session number is overtaken on its way is FENCED.
     */
    private static boolean isAttached(SimClient client) {
        if (client.standing() == SimClient.Standing.DETACHED) {
            client.attach(client.agent());
        }
        return client.standing() == SimClient.Standing.ATTACHED
                || client.standing() == SimClient.Standing.READ_ONLY;
    }

    /** Waits; false: it cannot come true, by a known limitation of the protocol. */
    private boolean comesTrue(String what, BooleanSupplier condition) {
        return comesTrue(what, condition, ANSWER_NANOS);
    }

    private boolean comesTrue(String what, BooleanSupplier condition, long limitNanos) {
        if (cluster.runUntil(condition, limitNanos)) {
            return true;
        }
        if (isKnownToBeStuck()) {
            cluster.counters.add("known: no quorum after a loss during a catch-up", 1);
            cluster.checkHistory();
            return false;
        }
        throw new SimFailure("liveness", "not so: " + what + ": " + waiting());
    }

    /** Undoes all faults; nodes returned are kept down, a minority that lost nothing. */
    private List<SimNode> heal() {
        List<SimNode> keptDown = new ArrayList<>();
        // With bad blocks the only good copy of one may be on the node that is down.
        if (random.chance(0.3)
                && !cluster.options.faults().rot()
                && !cluster.options.storage().unreadable()
                && cluster.nodes().stream().noneMatch(SimNode::isForgetful)) {
            int most = (cluster.options.nodes() - 1) / 2;
            while (keptDown.size() < most) {
                SimNode node = random.pick(cluster.nodes());
                if (!keptDown.contains(node)) {
                    keptDown.add(node);
                }
            }
        }
        cluster.faults().end(keptDown);
        cluster.coordinator().heal();
        cluster.network.conditions(SimNetwork.Conditions.GOOD);
        return keptDown;
    }

    /**
     * Whether, after a majority lost power, so many replicas are in the middle of a catch-up (from
     * a node that may not lead either) that no majority is left which holds what was flushed:
     * nobody may be elected until somebody steps in.
     */
    private boolean isKnownToBeStuck() {
        return cluster.shards().stream()
                .anyMatch(shard ->
                        cluster.oracle(shard).hasMajorityForgotten() && nobodyMayLead(shard));
    }

    private boolean nobodyMayLead(ShardId shard) {
        List<ReplicaStatus> up =
                cluster.nodes().stream()
                        .filter(SimNode::isUp)
                        .map(node -> node.replica(shard).status())
                        .toList();
        List<ReplicaStatus> holders =
                up.stream().filter(each -> each.standing() != Standing.INSTALLING).toList();
        int nodes = cluster.options.nodes();
        int majority = nodes / 2 + 1;
        return holders.size() < majority
                && holders.stream()
                        .noneMatch(each ->
                                holders.size() + dependents(up, each.node())
                                        >= (each.standing() == Standing.VOTER ? majority : nodes));
    }

    private static long dependents(List<ReplicaStatus> replicas, int node) {
        return replicas.stream().filter(each -> each.dependsOn() == node).count();
    }

    private boolean isServedSince(long time) {
        return cluster.volumes().stream().allMatch(one -> one.history.servedAt() > time);
    }

    private boolean allAnswered() {
        return cluster.users().stream().allMatch(user -> user.underWay() == 0)
                && cluster.clients().stream().allMatch(client -> client.underWay() == 0);
    }

    private String waiting() {
        StringBuilder text = new StringBuilder();
        for (SimVolume volume : cluster.volumes()) {
            for (SimCall call : volume.history.calls()) {
                if (call.state == SimOp.State.PENDING) {
                    text.append(call).append("; ");
                }
            }
            for (SimOp op : volume.history.operations()) {
                if (op.state == SimOp.State.PENDING) {
                    text.append(op).append("; ");
                }
            }
        }
        return text + statuses();
    }

    private String statuses() {
        StringBuilder text = new StringBuilder();
        for (ShardId shard : cluster.shards()) {
            text.append('\n')
                    .append(shard)
                    .append(" committed ")
                    .append(cluster.oracle(shard).committed());
            for (SimNode node : cluster.nodes()) {
                text.append("\n  ").append(node.name()).append(' ');
                text.append(node.isUp() ? node.replica(shard).status() : "down");
            }
        }
        return text.toString();
    }

    /** Reads every block once more, so that the history ends with what is there now. */
    private boolean readEverything() {
        return cluster.volumes().stream().allMatch(this::readEverything);
    }

    private boolean readEverything(SimVolume volume) {
        SimUser user = cluster.addUser(volume);
        SimDevice device = user.attach(user.agent(), (int) PATIENCE_SECONDS);
        int cells = cluster.options.blocks() * Cells.PER_BLOCK;
        SimCall call = device.read(0, cells, done -> {});
        if (!comesTrue("everything can be read", () -> call.state != SimOp.State.PENDING)) {
            return false;
        }
        SimFailure.check(call.state == SimOp.State.DONE, "progress", "not answered: ", call);
        device.close();
        return comesTrue("a volume client closes", device::isGone);
    }
}
