package io.holdfast.simulation;

import io.holdfast.client.VolumeClient;
import io.holdfast.node.replica.Limits;
import io.holdfast.node.replica.Timing;
import io.holdfast.proto.peer.Blocks;
import java.util.List;

/**
 * Everything that is fixed for one run, drawn from its seed.
 *
 * @param nodes each holds a replica of every shard
 * @param volumes on the same nodes and journals, with users of their own
 * @param shards of a volume
 * @param blocks of a volume; few, so that requests meet
 * @param stripeBlocks that stay together in one shard
 * @param users of a volume that write and read through volume clients
 * @param rawClients of a volume: users of the bare protocol
 * @param depth calls or requests that a user has under way at most
 * @param timeoutSeconds of the volume: when a call fails
 * @param exclusive the first volume is, and the second is not, or the other way round
 * @param connectionsNoticed volume clients are told when a node can be reached and when not
 * @param checkpointChance per turn of a node
 * @param storage what nodes keep their replicas in
 * @param installBlocks blocks in one part of a catch-up by extents
 * @param driftPerMille by which the clocks of nodes are too slow or too fast at most
 * @param seldomSynced users want hardly anything synced, so that a power loss takes more
 * @param midStepFault probability of a crash, power loss or pause before any one effect
 * @param dutyNanos simulated time with faults, before everything heals
 */
record SimOptions(
        int nodes,
        int volumes,
        int shards,
        int blocks,
        int stripeBlocks,
        int users,
        int rawClients,
        int depth,
        int timeoutSeconds,
        boolean connectionsNoticed,
        boolean syncWrites,
        boolean quorumReads,
        boolean exclusive,
        Timing timing,
        Limits limits,
        VolumeClient.Window window,
        SimNetwork.Conditions network,
        Disk disk,
        Storage storage,
        Faults faults,
        SimCoordinator.Mode coordinator,
        double turnEndsAtOnce,
        double checkpointChance,
        double logStartChance,
        int installBlocks,
        int frameEntries,
        int driftPerMille,
        boolean seldomSynced,
        double midStepFault,
        long dutyNanos,
        PlantedBug bug) {
    static final long MICROS = 1_000;
    static final long MILLIS = 1_000_000;
    static final long SECONDS = 1_000_000_000;

    /**
     * Per mille, of a clock against true time: of two nodes one may run at 0.93 and one at 1.07,
     * and the lease (250 ms) just ends before the guard (290 ms).
     */
    static final int MOST_DRIFT = 70;

    /** With fewer, clients that live would fence each other for ever. */
    private static final int FEWEST_SESSIONS = 10;

    /**
     * How long disks take.
     *
     * @param strayedSync probability that a write is synced though nobody asked for it
     * @param slowNodes probability, by node, that its disk is slow all the time
     */
    record Disk(
            long writeMaxNanos,
            long syncMaxNanos,
            long readMaxNanos,
            double strayedSync,
            double slowNodes) {
        private static final long SLOW_WRITE_NANOS = 20 * MILLIS;
        private static final long SLOW_SYNC_NANOS = 60 * MILLIS;
        private static final long SLOW_READ_NANOS = 20 * MILLIS;

        /** The disk of one node. */
        Disk ofNode(SimRandom random) {
            return random.chance(slowNodes) ? slow() : this;
        }

        /** The same, or slower. */
        Disk slow() {
            return new Disk(
                    Math.max(writeMaxNanos, SLOW_WRITE_NANOS),
                    Math.max(syncMaxNanos, SLOW_SYNC_NANOS),
                    Math.max(readMaxNanos, SLOW_READ_NANOS),
                    strayedSync,
                    slowNodes);
        }
    }

    /**
     * What nodes keep their replicas in.
     *
     * @param real the production store on a simulated disk, else a model of it
     * @param storeBytes of segments, 0: as the disk has room
     * @param sectorBytes that the disk writes as a whole
     * @param cleanChance per turn that the cleaner empties a segment without need
     * @param stops nodes are stopped in an orderly way
     * @param damage bits of synced records turn over
     * @param failing writes and syncs fail for a while
     * @param unreadable reads of segments fail for a while, on one node
     */
    record Storage(
            boolean real,
            long segmentBytes,
            long checkpointBytes,
            long cacheBytes,
            long logCacheBytes,
            long storeBytes,
            int sectorBytes,
            double cleanChance,
            boolean stops,
            boolean damage,
            boolean failing,
            boolean unreadable) {
        /** The model. */
        static final Storage MODEL =
                new Storage(false, 0, 0, 0, 0, 0, 0, 0, false, false, false, false);

        static Storage draw(SimRandom random, boolean majorityPowerLoss, PlantedBug bug) {
            boolean wanted = random.chance(REAL_SHARE);
            if (!bug.isInStore() && (bug.isInModel() || !wanted)) {
                return MODEL;
            }
            long segment = random.between(1, 4) * (64L << 10);
            return new Storage(
                    true,
                    segment,
                    random.between(1, 4) * segment / 2,
                    random.chance(0.5) ? random.between(1, 40) * 1000L : 16L << 20,
                    random.chance(0.5) ? random.between(1, 40) * 1000L : 1L << 20,
                    random.chance(0.7) ? random.between(16, 24) * segment : 0,
                    random.chance(0.5) ? 512 : 4096,
                    random.chance(0.5) ? 0.01 : 0,
                    random.chance(0.3),
                    !majorityPowerLoss && random.chance(0.3),
                    !majorityPowerLoss && random.chance(0.3),
                    false);
        }

        /**
         * The same, and reads fail. A raw client does not know what to do then. What a catch-up
         * could not read, a node has no copy of, though it counts: only where no disk forgets
         * anything is there another.
         */
        Storage withUnreadable(int rawClients, PlantedBug bug, SimRandom random) {
            boolean fails =
                    real
                            && rawClients == 0
                            && (bug == PlantedBug.DOUBTS_DROPPED
                                    || (bug == PlantedBug.NONE && random.chance(0.3)));
            return new Storage(
                    real,
                    segmentBytes,
                    checkpointBytes,
                    cacheBytes,
                    logCacheBytes,
                    storeBytes,
                    sectorBytes,
                    cleanChance,
                    stops,
                    damage && !fails,
                    failing && !fails,
                    fails);
        }
    }

    /** Share of the runs with the production store. */
    private static final double REAL_SHARE = 0.3;

    /**
     * Which faults happen, and how far apart.
     *
     * @param powerLoss of a minority at a time, so that nothing may be lost
     * @param majorityPowerLoss of any number of nodes at once: promise P5
     * @param freeze a machine stops together with its clock
     * @param wrongHints a living node is called dead
     * @param slowDisk the disk of one node is slow for a while
     * @param rot blocks of the map go bad on one node, while another has a good copy
     */
    record Faults(
            boolean crash,
            boolean powerLoss,
            boolean majorityPowerLoss,
            boolean pause,
            boolean freeze,
            boolean partition,
            boolean wipe,
            boolean wrongHints,
            boolean fullDisk,
            boolean slowDisk,
            boolean rot,
            long gapMaxNanos) {

        /** The same, and rot, where nothing else takes the last good copy. */
        Faults withRot(boolean real, int rawClients, PlantedBug bug, SimRandom random) {
            boolean wanted = bug == PlantedBug.COPY_OF_ANOTHER_VERSION;
            boolean possible =
                    !real
                            && rawClients == 0
                            && (wanted || !(powerLoss || majorityPowerLoss || wipe));
            boolean rots = possible && (wanted || random.chance(0.7));
            return rots ? withoutLosses(true) : this;
        }

        /** The same, but no disk forgets anything. */
        Faults withoutLosses(boolean rots) {
            return new Faults(
                    crash,
                    false,
                    false,
                    pause,
                    freeze,
                    partition,
                    false,
                    wrongHints,
                    fullDisk,
                    slowDisk,
                    rots,
                    gapMaxNanos);
        }

        static final Faults NONE =
                new Faults(
                        false, false, false, false, false, false, false, false, false, false, false,
                        SECONDS);
    }

    /** Three nodes, one shard, nothing goes wrong: where scenarios start from. */
    static final SimOptions CALM =
            new SimOptions(
                    3,
                    1,
                    1,
                    16,
                    4,
                    0,
                    1,
                    1,
                    5,
                    true,
                    false,
                    false,
                    true,
                    Timing.DEFAULT,
                    Limits.DEFAULT,
                    VolumeClient.Window.DEFAULT,
                    SimNetwork.Conditions.GOOD,
                    new Disk(20 * MICROS, 500 * MICROS, 50 * MICROS, 0, 0),
                    Storage.MODEL,
                    Faults.NONE,
                    SimCoordinator.Mode.SILENT,
                    1,
                    0,
                    0,
                    4,
                    16,
                    0,
                    false,
                    0,
                    SECONDS,
                    PlantedBug.NONE);

    /** The options of a seed. */
    static SimOptions draw(SimRandom random, PlantedBug bug) {
        boolean quorumReads = random.chance(0.3);
        boolean lossy = random.chance(0.6);
        boolean stalls = random.chance(0.5);
        boolean majorityPowerLoss = random.chance(0.2);
        int clients = random.between(1, 4);
        int raw = random.chance(0.6) ? 0 : random.between(1, clients);
        long delayMax = random.chance(0.2) ? 40 * MILLIS : random.between(1, 8) * MILLIS / 4;
        SimNetwork.Conditions network =
                new SimNetwork.Conditions(
                        30 * MICROS,
                        delayMax,
                        lossy ? random.between(0, 40) / 1000.0 : 0,
                        lossy ? random.between(0, 40) / 1000.0 : 0,
                        stalls ? random.between(1, 20) / 1000.0 : 0,
                        random.between(100, 4000) * MILLIS,
                        random.chance(0.5));
        boolean slowDisk = random.chance(0.2);
        Disk disk =
                new Disk(
                        random.between(1, slowDisk ? 20_000 : 300) * MICROS,
                        random.between(100, slowDisk ? 60_000 : 3_000) * MICROS,
                        random.between(1, slowDisk ? 20_000 : 500) * MICROS,
                        random.chance(0.5) ? 0.1 : 0,
                        random.child("slow nodes").chance(0.2) ? 0.3 : 0);
        Faults faults =
                new Faults(
                        random.chance(0.6),
                        random.chance(0.4),
                        majorityPowerLoss,
                        random.chance(0.5),
                        quorumReads && random.chance(0.5),
                        random.chance(0.6),
                        !majorityPowerLoss && random.chance(0.25),
                        random.chance(0.2),
                        random.chance(0.2),
                        random.child("slow disks").chance(0.3),
                        false,
                        random.between(200, 3000) * MILLIS);
        Limits limits =
                random.chance(0.6)
                        ? Limits.DEFAULT
                        : new Limits(
                                random.between(1, 16),
                                random.between(2, 20),
                                random.between(3, 30) * (long) Blocks.SEALED_SIZE,
                                random.between(1, 12),
                                random.between(1, 8),
                                random.between(2, 64),
                                4,
                                random.between(FEWEST_SESSIONS, 20));
        VolumeClient.Window window =
                random.chance(0.6)
                        ? VolumeClient.Window.DEFAULT
                        : new VolumeClient.Window(
                                random.between(1, 6), random.between(1, 8) * Blocks.SEALED_SIZE);
        Storage storage =
                Storage.draw(random.child("storage"), majorityPowerLoss, bug)
                        .withUnreadable(raw, bug, random.child("reads"));
        // What a log no longer holds comes by extents, slowly, and is lost with power meanwhile.
        boolean shortLogs = random.child("short logs").chance(majorityPowerLoss ? 0.5 : 0.1);
        return new SimOptions(
                random.chance(0.65) ? 3 : random.chance(0.8) ? 5 : 1,
                random.child("volumes").chance(0.3) ? 2 : 1,
                random.chance(0.75) ? 1 : 2,
                random.between(2, 24),
                random.between(1, 4),
                clients - raw,
                raw,
                random.between(1, 8),
                random.between(1, 6),
                random.chance(0.7),
                random.chance(0.25),
                quorumReads,
                random.chance(0.6),
                Timing.DEFAULT,
                limits,
                window,
                network,
                disk,
                storage,
                storage.unreadable()
                        ? faults.withoutLosses(false)
                        : faults.withRot(storage.real(), raw, bug, random.child("rot")),
                random.pick(List.of(SimCoordinator.Mode.values())),
                random.chance(0.5) ? random.between(0, 10) / 10.0 : 0.1,
                random.chance(0.3) && !shortLogs ? 0.05 : 0.005,
                shortLogs ? 1 : random.between(0, 10) / 10.0,
                shortLogs ? 1 : random.between(1, 8),
                random.between(1, 16),
                random.chance(0.5) ? random.between(0, MOST_DRIFT) : 0,
                random.child("synced").chance(majorityPowerLoss ? 0.7 : 0.2),
                random.chance(0.4) ? 0.0005 : 0,
                random.between(5, 25) * SECONDS,
                bug);
    }

    /**
     * Whether nodes may say that they have no room: a store says so, too, when the next segment
     * cannot be made for another reason.
     */
    boolean mayRunFull() {
        return faults.fullDisk() || storage.failing() || storage.storeBytes() > 0;
    }

    /** Share of the writes that are synced before they are answered. */
    double syncChance() {
        return seldomSynced ? 0.005 : 0.15;
    }

    /** The same with a bug. */
    SimOptions with(PlantedBug planted) {
        return with(storage, limits, planted);
    }

    /** The same with replicas kept elsewhere. */
    SimOptions with(Storage otherStorage) {
        return with(otherStorage, limits, bug);
    }

    /** The same with other limits. */
    SimOptions with(Limits otherLimits) {
        return with(storage, otherLimits, bug);
    }

    private SimOptions with(Storage otherStorage, Limits otherLimits, PlantedBug planted) {
        return new SimOptions(
                nodes,
                volumes,
                shards,
                blocks,
                stripeBlocks,
                users,
                rawClients,
                depth,
                timeoutSeconds,
                connectionsNoticed,
                syncWrites,
                quorumReads,
                exclusive,
                timing,
                otherLimits,
                window,
                network,
                disk,
                otherStorage,
                faults,
                coordinator,
                turnEndsAtOnce,
                checkpointChance,
                logStartChance,
                installBlocks,
                frameEntries,
                driftPerMille,
                seldomSynced,
                midStepFault,
                dutyNanos,
                planted);
    }
}
