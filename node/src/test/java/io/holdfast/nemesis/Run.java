package io.holdfast.nemesis;

import io.holdfast.integration.Tool;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;

/**
 * One run: starts a cluster and clients, does one fault after another, and looks at the whole
 * history at rest now and then and in the end.
 */
final class Run implements AutoCloseable {
    private static final String SHARED = "shared";
    private static final String EXCLUSIVE = "exclusive";
    private static final int SHARED_CLIENTS = 6;

    /** And one of the exclusive volume. */
    static final int CLIENTS = SHARED_CLIENTS + 1;

    private static final int FAULTS_PER_CHECK = 6;
    private static final long MILLI = 1_000_000;
    private static final long SECOND = 1000 * MILLI;
    private static final Duration START_LIMIT = Duration.ofMinutes(4);
    private static final Duration HEAL_LIMIT = Duration.ofMinutes(3);

    /** Longer than the most patient client waits. */
    private static final Duration REST_LIMIT = Duration.ofSeconds(90);

    /**
     * For every client to get a write done. The one of the exclusive volume needs the longest: it
     * may wait for an opening and for its last claim to be broken, before the bound of a request.
     */
    private static final Duration WRITE_LIMIT = Duration.ofSeconds(60);

    private static final long WRITE_POLL_NANOS = 20 * MILLI;

    private static final Duration EQUAL_LIMIT = Duration.ofMinutes(1);
    private static final long PROGRESS_NANOS = 15 * SECOND;

    private final Options options;
    private final Consumer<String> log;
    private final Cluster cluster;
    private final Weather weather = new Weather(Cluster.NODES);
    private final Verdict verdict = new Verdict();
    private final List<VolumeHistory> histories = new ArrayList<>();
    private final List<Fault> menu = new ArrayList<>();
    private final List<String> leftOut = new ArrayList<>();
    private final List<String> clientNames = new ArrayList<>();
    private final Gate gate = new Gate(CLIENTS);
    private final Random random;
    private final long beganNanos = System.nanoTime();
    private long progressNanos = beganNanos;
    private long tormentNanos = beganNanos;
    private int faultsDone;
    private int checksDone;

    /**
     * Prepares a run; nothing is started yet.
     *
     * @param launcher the project's
     * @param dir exists, is empty, takes the cluster's files
     * @param log takes lines for people
     */
    Run(Options options, Path launcher, Path dir, Consumer<String> log) {
        this.options = options;
        this.log = log;
        this.random = new Random(options.seed());
        String noNetwork = wants(Fault.Needs.NETWORK) ? Network.missing() : "not asked for";
        String noDisks = wants(Fault.Needs.DISKS) ? SmallDisk.missing() : "not asked for";
        for (Fault fault : options.faults()) {
            String why =
                    switch (fault.needs) {
                        case NOTHING -> "";
                        case NETWORK -> noNetwork;
                        case DISKS -> noDisks;
                    };
            if (why.isEmpty()) {
                menu.add(fault);
            } else {
                leftOut.add(fault.word + ": " + why);
            }
        }
        cluster = new Cluster(dir, launcher, noNetwork.isEmpty(), noDisks.isEmpty());
        histories.add(new VolumeHistory(SHARED, beganNanos));
        histories.add(new VolumeHistory(EXCLUSIVE, beganNanos));
    }

    private boolean wants(Fault.Needs needs) {
        return options.faults().stream().anyMatch(fault -> fault.needs == needs);
    }

    /** Faults that cannot be made on this machine, each with the reason. */
    List<String> leftOut() {
        return leftOut;
    }

    /** Runs to the end or the first broken promise. */
    Verdict run() throws IOException, InterruptedException {
        cluster.prepare();
        cluster.amongClients(this::perform);
        return verdict;
    }

    private void perform() throws InterruptedException {
        log.accept(String.format("seed %d; files in %s", options.seed(), cluster.dir()));
        leftOut.forEach(line -> log.accept("left out: " + line));
        if (menu.isEmpty()) {
            throw new IllegalStateException("no fault is left that this machine can make");
        }
        cluster.start();
        Optional<String> notServing = cluster.awaitServing(START_LIMIT);
        if (notServing.isPresent()) {
            throw new IllegalStateException(notServing.get());
        }
        createVolume(SHARED);
        createVolume(EXCLUSIVE);
        for (NodeProcess node : cluster.nodes()) {
            weather.running(node.number, true);
        }
        List<Thread> clients = startClients();
        log.accept("three nodes serve, " + clients.size() + " clients begin");
        try {
            torment();
        } finally {
            gate.end();
            for (Thread client : clients) {
                client.join();
            }
        }
    }

    private void createVolume(String name) {
        Tool.Result made =
                cluster.cli(
                        "volume",
                        "create",
                        name,
                        "--size",
                        (VolumeHistory.VOLUME_BYTES >> 20) + "M",
                        "--shards",
                        "2",
                        "--attach",
                        name,
                        "--timeout",
                        Stage.VOLUME_TIMEOUT_SECONDS + "s");
        if (made.exit() != 0) {
            throw new IllegalStateException("volume create " + name + ": " + made.output());
        }
    }

    private List<Thread> startClients() {
        List<Endpoint> endpoints = cluster.nodes().stream().map(node -> node.endpoint).toList();
        Stage stage = new Stage(endpoints, new Judge(weather), verdict, gate);
        List<Client> clients = new ArrayList<>();
        for (int i = 0; i < SHARED_CLIENTS; i++) {
            clients.add(client("shared" + (i + 1), false, 1 + i % Cluster.NODES, stage, i));
        }
        clients.add(client("alone", true, 1, stage, SHARED_CLIENTS));
        clients.forEach(client -> clientNames.add(client.name()));
        return clients.stream()
                .map(client -> Thread.ofPlatform().name(client.name()).start(client))
                .toList();
    }

    private Client client(String name, boolean exclusive, int node, Stage stage, int number) {
        // Each its own stream, so that one client's luck does not change the others'.
        Random own = new Random(options.seed() * 31 + number + 1);
        return new Client(name, exclusive, node, stage, histories.get(exclusive ? 1 : 0), own);
    }

    // ---- faults

    private boolean isOver() {
        return options.rounds() > 0
                ? faultsDone >= options.rounds()
                : System.nanoTime() - tormentNanos > options.length().toNanos();
    }

    private boolean broken() {
        return verdict.violation() != null;
    }

    private void torment() throws InterruptedException {
        tormentNanos = System.nanoTime();
        int perCheck = options.rounds() > 0 ? 1 : FAULTS_PER_CHECK;
        while (!isOver() && !broken()) {
            pause(300 * MILLI, 3 * SECOND);
            oneFault();
            faultsDone++;
            if (faultsDone % perCheck == 0 && !isOver() && !broken()) {
                lookAtRest();
                gate.open();
            }
            progress();
        }
        if (!broken()) {
            lookAtRest();
        }
        // Still at rest: what is being written has no hash.
        for (String volume : List.of(SHARED, EXCLUSIVE)) {
            if (!broken()) {
                cluster.awaitEqual(volume, EQUAL_LIMIT)
                        .ifPresent(why -> verdict.violation("replicas are equal", why, List.of()));
            }
        }
    }

    /** A fault, sometimes with another one at another node; then everything is well again. */
    private void oneFault() throws InterruptedException {
        Faults faults = new Faults(cluster, weather, verdict);
        int victim = 1 + random.nextInt(Cluster.NODES);
        Fault fault = menu.get(random.nextInt(menu.size()));
        StringBuilder what = new StringBuilder(fault.word + " node" + victim);
        List<Faults.Heal> heals = new ArrayList<>();
        heals.add(faults.inflict(fault, victim, random));
        boolean two = random.nextInt(4) == 0;
        int second = 1 + (victim + random.nextInt(Cluster.NODES - 1)) % Cluster.NODES;
        Fault more = menu.get(random.nextInt(menu.size()));
        if (two && options.rounds() == 0 && fault != Fault.KILL_ALL && more != Fault.KILL_ALL) {
            pause(0, 2 * SECOND);
            heals.add(faults.inflict(more, second, random));
            what.append(" and ").append(more.word).append(" node").append(second);
        }
        long held = hold(fault == Fault.KILL_ALL || options.rounds() > 0);
        for (Faults.Heal heal : heals) {
            heal.heal();
        }
        long healed = System.nanoTime();
        Optional<String> notServing = cluster.awaitServing(HEAL_LIMIT);
        if (notServing.isPresent()) {
            verdict.violation(
                    "every node serves again when the fault is over",
                    notServing.get() + ", after " + what,
                    List.of());
            return;
        }
        for (NodeProcess node : cluster.nodes()) {
            weather.full(node.number, false);
            weather.running(node.number, true);
        }
        trace(
                "%s for %.1f s; all serve after %.1f s"
                        .formatted(what, held / 1e9, (System.nanoTime() - healed) / 1e9));
    }

    /** Mostly shorter than what anyone waits for, sometimes longer than all time-outs. */
    private long hold(boolean briefly) throws InterruptedException {
        long began = System.nanoTime();
        int draw = random.nextInt(10);
        if (briefly || draw < 4) {
            pause(100 * MILLI, 2 * SECOND);
        } else if (draw < 8) {
            pause(2 * SECOND, 8 * SECOND);
        } else {
            pause(8 * SECOND, 25 * SECOND);
        }
        return System.nanoTime() - began;
    }

    private void pause(long least, long most) {
        long until = System.nanoTime() + least + random.nextLong(most - least);
        for (long left = until - System.nanoTime();
                left > 0 && !broken();
                left = until - System.nanoTime()) {
            LockSupport.parkNanos(Math.min(left, 100 * MILLI));
        }
    }

    // ---- checks

    /**
     * Waits until each client has a write done since now, when all nodes serve: a history that
     * hardly anything was done in would be easy to explain.
     */
    private void awaitWrites() {
        Map<String, Long> before = verdict.writesDone();
        long deadline = System.nanoTime() + WRITE_LIMIT.toNanos();
        List<String> without = clientNames;
        while (!broken()) {
            without = verdict.withoutWrite(without, before);
            if (without.isEmpty()) {
                return;
            }
            if (System.nanoTime() > deadline) {
                verdict.violation(
                        "P6: what can be served does not fail",
                        "all nodes serve, and no write gets done in %d s by %s"
                                .formatted(WRITE_LIMIT.toSeconds(), String.join(", ", without)),
                        List.of());
                return;
            }
            // Polling interval of an outside observer.
            LockSupport.parkNanos(WRITE_POLL_NANOS);
        }
    }

    /** Lets clients rest, reads every block through some node, and checks all that happened. */
    private void lookAtRest() throws InterruptedException {
        awaitWrites();
        if (broken()) {
            return;
        }
        if (!gate.close(REST_LIMIT)) {
            verdict.violation("every request ends", "a client does not come to rest", List.of());
            return;
        }
        for (VolumeHistory history : histories) {
            long[] now = ReadBack.all(history, cluster, checksDone, verdict);
            if (broken()) {
                return;
            }
            Optional<VolumeHistory.Violation> wrong = history.check();
            if (wrong.isPresent()) {
                verdict.violation(
                        "P3, P4, P5: blocks are linearizable registers",
                        "block at offset %d of volume %s (register %d): %s"
                                .formatted(
                                        VolumeHistory.offset(wrong.get().register()),
                                        history.volume,
                                        wrong.get().register(),
                                        wrong.get().what()),
                        wrong.get().history());
                return;
            }
            history.cut(now);
        }
        checksDone++;
    }

    // ---- words

    private void trace(String what) {
        log.accept(
                String.format(
                        Locale.ROOT, "%7.1f s  %s", (System.nanoTime() - beganNanos) / 1e9, what));
    }

    private void progress() {
        long now = System.nanoTime();
        if (now - progressNanos >= PROGRESS_NANOS) {
            progressNanos = now;
            trace(
                    "%d operations, %d faults, %d checks, worst answer %.1f s"
                            .formatted(
                                    verdict.total(),
                                    faultsDone,
                                    checksDone,
                                    verdict.worstAnswerSeconds()));
        }
    }

    int faultsDone() {
        return faultsDone;
    }

    int checksDone() {
        return checksDone;
    }

    double seconds() {
        return (System.nanoTime() - beganNanos) / 1e9;
    }

    /** Ends nodes and clients and removes what was made outside the folder. Any thread. */
    @Override
    public void close() {
        gate.end();
        cluster.close();
    }

    /** Removes a folder with everything in it. */
    static void remove(Path dir) throws IOException {
        try (var files = Files.walk(dir)) {
            for (Path file : files.sorted(java.util.Comparator.reverseOrder()).toList()) {
                Files.deleteIfExists(file);
            }
        }
    }
}
