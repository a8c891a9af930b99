package io.holdfast.node.admin;

import io.holdfast.client.admin.AdminError;
import io.holdfast.client.admin.CreateVolume;
import io.holdfast.client.admin.StatusDocument.AttachMode;
import io.holdfast.client.admin.StatusDocument.DurabilityMode;
import io.holdfast.client.admin.StatusDocument.ShardLine;
import io.holdfast.client.admin.StatusDocument.VolumeLine;
import io.holdfast.client.crypto.ClusterKey;
import io.holdfast.client.crypto.VolumeKey;
import io.holdfast.config.NodeConfig;
import io.holdfast.config.NodeConfig.Member;
import io.holdfast.node.admin.ClusterStatus.Answer;
import io.holdfast.node.port.Coordinator;
import io.holdfast.proto.catalogue.Catalogue;
import io.holdfast.proto.catalogue.Change;
import io.holdfast.proto.catalogue.Volume;
import java.time.Duration;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Creates and deletes volumes. Every call blocks until it is done; any thread. */
final class VolumeMaker {
    private static final int DEFAULT_REPLICAS = 3;
    private static final Duration CHANGE_TIMEOUT = Duration.ofSeconds(20);
    private static final Duration SERVING_TIMEOUT = Duration.ofSeconds(30);
    private static final Duration LOOK = Duration.ofMillis(50);

    /** A client that has just closed its last connection gives the volume back within this time. */
    private static final Duration RELEASE = Duration.ofSeconds(1);

    private static final Logger LOG = LoggerFactory.getLogger(VolumeMaker.class);

    private final NodeConfig config;
    private final Coordinator coordinator;
    private final ClusterKey clusterKey;
    private final ClusterStatus cluster;
    private final Readiness readiness;
    private final NodeHealth health;

    VolumeMaker(
            NodeConfig config,
            Coordinator coordinator,
            ClusterKey clusterKey,
            ClusterStatus cluster,
            Readiness readiness,
            NodeHealth health) {
        this.config = config;
        this.coordinator = coordinator;
        this.clusterKey = clusterKey;
        this.cluster = cluster;
        this.readiness = readiness;
        this.health = health;
    }

    /**
     * Creates a volume.
     *
     * @return when it is READY and each of its shards has a leader that serves
     * @throws AdminRefusal 400 for a wrong value, 409 when the name is taken, 503 when it could not
     *     be created or does not serve yet
     */
    VolumeLine create(CreateVolume wanted) {
        if (health.keyDisputed()) {
            throw new AdminRefusal(
                    AdminRefusal.UNAVAILABLE,
                    "this node's cluster key is not that of the other nodes, which could not read"
                            + " the volume",
                    "put the other nodes' cluster key in place of "
                            + config.clusterKeyFile().getFileName()
                            + " and restart this node, or ask another node");
        }
        Volume volume = define(wanted);
        readiness.taken(volume.name());
        try {
            int number = change(volume);
            LOG.info(
                    "volume {}: created as number {}, {} bytes, {} shards",
                    volume.name(),
                    number,
                    volume.sizeBytes(),
                    volume.shards().size());
            return awaitServing(number, volume.name());
        } finally {
            readiness.released(volume.name());
        }
    }

    /** Checks what was asked for and fills in what was left open. */
    private Volume define(CreateVolume wanted) {
        int nodes = config.nodes().size();
        int replicas =
                Objects.requireNonNullElse(
                        wanted.replicas(), nodes >= DEFAULT_REPLICAS ? DEFAULT_REPLICAS : 1);
        int shards = Objects.requireNonNullElse(wanted.shards(), 1);
        int timeout =
                Objects.requireNonNullElse(wanted.timeoutSeconds(), Volume.DEFAULT_TIMEOUT_SECONDS);
        check(wanted, replicas);
        Catalogue catalogue = coordinator.catalogue();
        if (catalogue.volume(wanted.name()).isPresent()) {
            throw nameTaken(wanted.name());
        }
        Placement placement =
                new Placement(
                        config.nodes().stream().map(Member::number).toList(), down(), catalogue);
        VolumeKey key = VolumeKey.generate(1);
        return new Volume(
                0,
                wanted.name(),
                wanted.sizeBytes(),
                Volume.DEFAULT_STRIPE_BYTES,
                wanted.durability() == DurabilityMode.SYNC
                        ? Volume.Durability.SYNC
                        : Volume.Durability.FLUSH,
                wanted.attach() == AttachMode.SHARED
                        ? Volume.Attach.SHARED
                        : Volume.Attach.EXCLUSIVE,
                Volume.Reads.LEASE,
                timeout,
                Volume.State.CREATING,
                1,
                key.id(),
                clusterKey.wrap(key),
                placement.place(shards, replicas));
    }

    private void check(CreateVolume wanted, int replicas) {
        Optional<AdminError> problem = wanted.problem();
        if (problem.isPresent()) {
            throw new AdminRefusal(
                    AdminRefusal.BAD_REQUEST, problem.get().error(), problem.get().remedy());
        }
        int nodes = config.nodes().size();
        if (replicas > nodes) {
            throw new AdminRefusal(
                    AdminRefusal.BAD_REQUEST,
                    replicas + " replicas need as many nodes, the cluster has " + nodes,
                    "The number of replicas needs to be odd, at most the number of nodes.");
        }
    }

    private static AdminRefusal nameTaken(String name) {
        return new AdminRefusal(
                AdminRefusal.CONFLICT,
                "volume " + name + " exists already",
                "choose another name, or delete it first");
    }

    private Set<Integer> down() {
        return coordinator.members().entrySet().stream()
                .filter(member -> member.getValue() == Coordinator.NodeState.DEAD)
                .map(Map.Entry::getKey)
                .collect(Collectors.toSet());
    }

    /** Adds the volume to the catalogue and returns its number. */
    private int change(Volume volume) {
        Optional<Change.Result> result = await(new Change.CreateVolume(volume));
        if (result.isPresent()) {
            if (!result.get().applied()) {
                throw nameTaken(volume.name());
            }
            return result.get().volume();
        }
        // No answer came: it may have happened. The wrapped key tells this volume from another
        // one that somebody else has given the same name.
        return coordinator
                .catalogue()
                .volume(volume.name())
                .filter(found -> found.wrappedKey().equals(volume.wrappedKey()))
                .map(Volume::number)
                .orElseThrow(() ->
                        new AdminRefusal(
                                AdminRefusal.UNAVAILABLE,
                                "no answer from a majority of the nodes: volume "
                                        + volume.name()
                                        + " may still be created later",
                                "Look with: holdfast volume list. See: holdfast status"));
    }

    /** The result; empty: none came in time. */
    private Optional<Change.Result> await(Change change) {
        CompletableFuture<Change.Result> answer = coordinator.change(change);
        try {
            return Optional.of(answer.get(CHANGE_TIMEOUT.toMillis(), TimeUnit.MILLISECONDS));
        } catch (TimeoutException e) {
            return Optional.empty();
        } catch (ExecutionException e) {
            LOG.warn("change of the catalogue failed: {}", String.valueOf(e.getCause()));
            return Optional.empty();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return Optional.empty();
        }
    }

    private VolumeLine awaitServing(int number, String name) {
        long start = System.nanoTime();
        boolean marked = false;
        while (System.nanoTime() - start < SERVING_TIMEOUT.toNanos()) {
            Optional<Volume> volume = coordinator.catalogue().volume(number);
            if (volume.isPresent()) {
                Map<Integer, Answer> answers = cluster.gather();
                VolumeLine line = cluster.merge(volume.get(), answers);
                boolean ready = volume.get().state() == Volume.State.READY;
                if (ready && isServed(line)) {
                    return line;
                }
                boolean all = System.nanoTime() - start < Readiness.PATIENCE_NANOS;
                if (!ready && !marked && readiness.isMade(volume.get(), answers, all)) {
                    marked = await(new Change.MarkReady(number)).isPresent();
                }
            }
            if (readiness.pause(LOOK)) {
                break;
            }
        }
        throw new AdminRefusal(
                AdminRefusal.UNAVAILABLE,
                "volume " + name + " is created, but not every shard has a leader yet",
                "it will serve when a majority of its replicas' nodes is up; see: holdfast status");
    }

    private static boolean isServed(VolumeLine line) {
        return line.shards().stream().map(ShardLine::leader).allMatch(Objects::nonNull);
    }

    /**
     * Deletes a volume, its key first.
     *
     * @param force also when a client holds it for writing
     * @throws AdminRefusal 404 when there is none, 423 when a client holds it, 503 when the change
     *     could not be made
     */
    void delete(String name, boolean force) {
        Volume volume =
                coordinator
                        .catalogue()
                        .volume(name)
                        .orElseThrow(() -> ClusterAdmin.noSuchVolume(name));
        if (!force) {
            refuseWhileHeld(volume);
        }
        Optional<Change.Result> result =
                await(new Change.DeleteVolume(volume.number(), volume.name()));
        if (result.isPresent() && !result.get().applied()) {
            throw ClusterAdmin.noSuchVolume(name);
        }
        if (result.isEmpty() && coordinator.catalogue().volume(volume.number()).isPresent()) {
            throw new AdminRefusal(
                    AdminRefusal.UNAVAILABLE,
                    "no answer from a majority of the nodes: volume "
                            + name
                            + " may still be deleted later",
                    "Look with: holdfast volume list. See: holdfast status");
        }
        LOG.info("volume {}: number {} deleted", name, volume.number());
    }

    /** Where no leader answers, nobody can say that it is held, and nobody writes either. */
    private void refuseWhileHeld(Volume volume) {
        long start = System.nanoTime();
        while (true) {
            String holder = cluster.merge(volume, cluster.gather()).holder();
            if (holder == null) {
                return;
            }
            boolean last = System.nanoTime() - start >= RELEASE.toNanos();
            if (last || readiness.pause(LOOK)) {
                throw new AdminRefusal(
                        AdminRefusal.IN_USE,
                        "volume "
                                + volume.name()
                                + " is in use: "
                                + holder
                                + " holds it for writing",
                        "Detach it there first. Or destroy it under that client with: holdfast"
                                + " volume delete "
                                + volume.name()
                                + " --force (and --yes where there is no terminal).");
            }
        }
    }
}
