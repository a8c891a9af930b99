package io.holdfast.node.runtime;

import io.holdfast.node.port.Coordinator;
import io.holdfast.node.replica.Effect;
import io.holdfast.proto.catalogue.Catalogue;
import io.holdfast.proto.catalogue.Change;
import io.holdfast.proto.catalogue.Volume;
import io.holdfast.proto.peer.ShardId;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tells the catalogue which shards this node leads. In the background: a leader serves whether or
 * not the coordinator answers, the record helps others to find it. A claim is repeated with growing
 * pauses until it is recorded, overtaken by a higher epoch, or this node leads no more.
 *
 * <p>All methods on the data loop.
 */
public final class LeaderRecorder {
    private static final long FIRST_PAUSE_NANOS = 250_000_000L;
    private static final long LONGEST_PAUSE_NANOS = 8_000_000_000L;

    private static final Logger LOG = LoggerFactory.getLogger(LeaderRecorder.class);

    private final DataLoop loop;
    private final Coordinator coordinator;
    private final int self;
    private final String incarnation;

    /** Shards led here and not yet recorded, with their epoch. */
    private final Map<ShardId, Long> open = new TreeMap<>();

    /**
     * A recorder that leads nothing yet.
     *
     * @param incarnation names this run of the node, for the coordinator's log
     */
    public LeaderRecorder(DataLoop loop, Coordinator coordinator, int self, String incarnation) {
        this.loop = loop;
        this.coordinator = coordinator;
        this.self = self;
        this.incarnation = incarnation;
    }

    /** A replica of this node has seen a change of leadership. */
    public void onAnnouncement(DataLoop.Announcement announcement) {
        ShardId shard = announcement.shard();
        if (announcement.role() == Effect.Role.LEADER) {
            open.put(shard, announcement.epoch());
            claim(shard, announcement.epoch(), FIRST_PAUSE_NANOS);
        } else {
            open.remove(shard);
        }
    }

    private void claim(ShardId shard, long epoch, long pauseNanos) {
        if (!isOpen(shard, epoch)) {
            return;
        }
        if (recordedEpoch(coordinator.catalogue(), shard) >= epoch) {
            open.remove(shard);
            return;
        }
        var _ =
                coordinator
                        .change(
                                new Change.ClaimLeader(
                                        shard.volume(), shard.index(), self, incarnation, epoch))
                        .whenComplete((result, failure) ->
                                loop.thread()
                                        .execute(() ->
                                                answered(
                                                        shard,
                                                        epoch,
                                                        pauseNanos,
                                                        result,
                                                        failure)));
    }

    private void answered(
            ShardId shard,
            long epoch,
            long pauseNanos,
            Change.@Nullable Result result,
            @Nullable Throwable failure) {
        if (!isOpen(shard, epoch)) {
            return;
        }
        if (result != null) {
            // Refused: a higher epoch is recorded, or the volume is gone. Both end this claim.
            if (!result.applied()) {
                LOG.info(
                        "shard {} epoch {}: claim not recorded: {}", shard, epoch, result.reason());
            }
            open.remove(shard);
            return;
        }
        LOG.debug("shard {} epoch {}: claim unanswered: {}", shard, epoch, String.valueOf(failure));
        loop.thread()
                .schedule(
                        pauseNanos,
                        () -> claim(shard, epoch, Math.min(2 * pauseNanos, LONGEST_PAUSE_NANOS)));
    }

    private boolean isOpen(ShardId shard, long epoch) {
        Long claimed = open.get(shard);
        return claimed != null && claimed == epoch;
    }

    private static long recordedEpoch(Catalogue catalogue, ShardId shard) {
        return catalogue
                .volume(shard.volume())
                .filter(volume -> shard.index() < volume.shards().size())
                .map(volume -> volume.shards().get(shard.index()))
                .map(Volume.Shard::epoch)
                .orElse(0L);
    }
}
