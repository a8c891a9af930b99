package io.holdfast.node.admin;

import io.holdfast.client.admin.CreateVolume;
import io.holdfast.client.admin.Health;
import io.holdfast.client.admin.NodeVersion;
import io.holdfast.client.admin.ScrubDocument;
import io.holdfast.client.admin.StatusDocument;
import io.holdfast.client.admin.StatusDocument.VolumeLine;
import io.holdfast.client.admin.VolumeHash;
import io.holdfast.client.admin.VolumeHash.ShardHash;
import io.holdfast.client.crypto.ClusterKey;
import io.holdfast.config.NodeConfig;
import io.holdfast.node.port.Coordinator;
import io.holdfast.node.port.Store;
import io.holdfast.node.runtime.DataLoop;
import io.holdfast.node.scrub.Scrubber;
import io.holdfast.proto.catalogue.Volume;
import io.holdfast.proto.peer.ShardId;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What the admin interface can do, without HTTP. Calls may block for as long as their documents in
 * {@code docs/admin-api.md} say; any thread but the data loop.
 */
public final class ClusterAdmin implements AutoCloseable {
    private final NodeConfig config;
    private final DataLoop loop;
    private final Coordinator coordinator;
    private final NodeHealth health;
    private final String version;
    private final LocalStatus local;
    private final ClusterStatus cluster;
    private final Readiness readiness;
    private final VolumeMaker volumes;
    private final ReplicaHash hash;
    private final ScrubAdmin scrub;

    /**
     * The administration of one node and, through it, of its cluster.
     *
     * @param version of the program
     */
    public ClusterAdmin(
            NodeConfig config,
            DataLoop loop,
            Store store,
            Coordinator coordinator,
            ClusterKey clusterKey,
            NodeHealth health,
            Scrubber scrubber,
            String version) {
        this.config = config;
        this.loop = loop;
        this.coordinator = coordinator;
        this.health = health;
        this.version = version;
        this.local = new LocalStatus(config, loop, store, coordinator);
        this.cluster = new ClusterStatus(config, coordinator, local);
        this.readiness = new Readiness(coordinator, cluster);
        this.volumes = new VolumeMaker(config, coordinator, clusterKey, cluster, readiness, health);
        this.hash = new ReplicaHash(loop, store);
        this.scrub = new ScrubAdmin(config.self().id(), loop, scrubber);
    }

    /** Begins to look after volumes whose creator has died. */
    public void start() {
        readiness.start();
    }

    Health health() {
        return health.health();
    }

    NodeVersion version() {
        return new NodeVersion(version, config.self().id());
    }

    StatusDocument local() {
        return local.document();
    }

    StatusDocument status() {
        return cluster.document();
    }

    List<VolumeLine> volumes() {
        return cluster.document().volumes();
    }

    VolumeLine volume(String name) {
        return cluster.merge(find(name), cluster.gather());
    }

    VolumeLine create(CreateVolume wanted) {
        return volumes.create(wanted);
    }

    void delete(String name, boolean force) {
        volumes.delete(name, force);
    }

    VolumeHash hash(String name) {
        Volume volume = find(name);
        List<ShardId> here = LoopAnswers.get(loop.thread().submit(loop::shards));
        List<ShardHash> hashes =
                here.stream()
                        .filter(shard -> shard.volume() == volume.number())
                        .map(hash::of)
                        .toList();
        return new VolumeHash(config.self().id(), hashes);
    }

    ScrubDocument scrub() {
        return scrub.document();
    }

    ScrubDocument startScrub(@Nullable String name) {
        return scrub.start(name == null ? null : find(name).number());
    }

    private Volume find(String name) {
        return coordinator.catalogue().volume(name).orElseThrow(() -> noSuchVolume(name));
    }

    static AdminRefusal noSuchVolume(String name) {
        return new AdminRefusal(
                AdminRefusal.NOT_FOUND,
                "there is no volume " + name,
                "see what there is with: holdfast volume list");
    }

    @Override
    public void close() {
        readiness.close();
        cluster.close();
    }
}
