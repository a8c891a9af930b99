package io.holdfast.node.admin;

import io.holdfast.node.admin.ClusterStatus.Answer;
import io.holdfast.node.port.Coordinator;
import io.holdfast.proto.catalogue.Change;
import io.holdfast.proto.catalogue.Volume;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Turns volumes from CREATING to READY once their replicas exist. The node that was asked to create
 * a volume does it at once; should it die in between, every other node takes over after {@link
 * #ADOPT_NANOS}. A replica that is made after READY starts as a learner, which is safe.
 *
 * <p>{@link #isMade} may be called on any thread; the rest runs on a thread of its own.
 */
final class Readiness implements AutoCloseable {
    /** The creator waits this long for all nodes that are alive; then a majority will do. */
    static final long PATIENCE_NANOS = 5_000_000_000L;

    /** After this long, a volume that is still CREATING has lost its creator. */
    static final long ADOPT_NANOS = 15_000_000_000L;

    private static final long LOOK_MILLIS = 2_000;

    private static final Logger LOG = LoggerFactory.getLogger(Readiness.class);

    private final Coordinator coordinator;
    private final ClusterStatus cluster;
    private final Map<Integer, Long> firstSeen = new HashMap<>();

    /** Volumes that a request on this node is making. */
    private final Set<String> making = ConcurrentHashMap.newKeySet();

    private final CountDownLatch closing = new CountDownLatch(1);
    private final Thread thread;

    Readiness(Coordinator coordinator, ClusterStatus cluster) {
        this.coordinator = coordinator;
        this.cluster = cluster;
        this.thread = Thread.ofVirtual().name("readiness").unstarted(this::run);
    }

    void start() {
        thread.start();
    }

    /** This node's request takes care of the volume until {@link #released}. */
    void taken(String volume) {
        making.add(volume);
    }

    void released(String volume) {
        making.remove(volume);
    }

    /** Waits a moment; true: the node stops. */
    boolean pause(Duration duration) {
        try {
            return closing.await(duration.toMillis(), TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return true;
        }
    }

    private void run() {
        while (!pause(Duration.ofMillis(LOOK_MILLIS))) {
            try {
                adopt();
            } catch (RuntimeException e) {
                LOG.warn("looking after volumes in creation failed, will look again", e);
            }
        }
    }

    private void adopt() {
        List<Volume> creating =
                coordinator.catalogue().volumes().stream()
                        .filter(v -> v.state() == Volume.State.CREATING)
                        .toList();
        firstSeen.keySet().retainAll(creating.stream().map(Volume::number).toList());
        long now = System.nanoTime();
        for (Volume volume : creating) {
            long since = firstSeen.computeIfAbsent(volume.number(), _ -> now);
            if (now - since > ADOPT_NANOS
                    && !making.contains(volume.name())
                    && isMade(volume, cluster.gather(), false)) {
                LOG.info("volume {}: adopted from a creator that is gone", volume.name());
                var _ = coordinator.change(new Change.MarkReady(volume.number()));
            }
        }
    }

    /**
     * Whether a volume's replicas exist.
     *
     * @param all on every node that answers, and a majority does; else: on a majority
     */
    boolean isMade(Volume volume, Map<Integer, Answer> answers, boolean all) {
        for (Volume.Shard shard : volume.shards()) {
            int made = 0;
            int answering = 0;
            for (int node : shard.replicas()) {
                Answer answer = answers.get(node);
                if (answer == null || answer.document() == null) {
                    continue;
                }
                answering++;
                if (ClusterStatus.shardLine(answer.document(), volume.name(), shard.index())
                        .isPresent()) {
                    made++;
                }
            }
            boolean majority = made > shard.replicas().size() / 2;
            if (!majority || (all && made < answering)) {
                return false;
            }
        }
        return true;
    }

    @Override
    public void close() {
        closing.countDown();
        thread.interrupt();
    }
}
