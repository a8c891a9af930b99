package io.holdfast.simulation;

import static io.holdfast.simulation.SimOptions.MILLIS;
import static io.holdfast.simulation.SimOptions.SECONDS;
import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.node.port.Store.Space;
import io.holdfast.proto.peer.ClientRequest;
import io.holdfast.proto.peer.ShardId;
import java.lang.ref.WeakReference;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Short scripts with the production store of a quiet cluster, one per past bug of the store. */
final class StoreScenarioTest {
    private static final ShardId SHARD = new ShardId(1, 0);
    private static final long SEGMENT_BYTES = 64L << 10;

    private static final int COLLECTIONS = 20;

    private final SimCluster cluster = quietCluster();

    private static SimCluster quietCluster() {
        SimOptions.Storage storage =
                new SimOptions.Storage(
                        true,
                        SEGMENT_BYTES,
                        SEGMENT_BYTES,
                        16L << 20,
                        1L << 20,
                        0,
                        4096,
                        0,
                        false,
                        false,
                        false,
                        false);
        return new SimCluster(SimOptions.CALM.with(storage), new SimRandom(1));
    }

    private static SimJournal journal(SimNode node) {
        @Nullable SimJournal journal = node.journal();
        if (journal == null) {
            throw new AssertionError("a model");
        }
        return journal;
    }

    private void attach(SimClient client) {
        assertThat(cluster.runUntil(() -> cluster.leader(SHARD) != 0, 10 * SECONDS)).isTrue();
        client.timeout(20 * SECONDS);
        client.attach(client.agent());
        assertThat(
                        cluster.runUntil(
                                () -> client.standing() == SimClient.Standing.ATTACHED,
                                20 * SECONDS))
                .isTrue();
    }

    private boolean isEverywhere(Space space) {
        return cluster.nodes().stream()
                .allMatch(node -> journal(node).store().usage().space() == space);
    }

    /** Nobody writes to a full store, so it must look for itself whether room has been made. */
    @Test
    void aFullStoreNoticesThatTheFileSystemHasRoomAgain() {
        cluster.start();
        SimClient client = cluster.clients().getFirst();
        attach(client);
        cluster.nodes().forEach(node -> journal(node).disk().leaveFree(SEGMENT_BYTES));
        for (int i = 0; i < 20 && !isEverywhere(Space.FULL); i++) {
            client.write(SHARD, i % 16, 1, ClientRequest.UNCONDITIONAL, false, op -> {});
            cluster.run(100 * MILLIS);
        }
        assertThat(isEverywhere(Space.FULL)).isTrue();

        cluster.nodes().forEach(node -> journal(node).disk().grow());
        cluster.run(SECONDS);

        assertThat(isEverywhere(Space.OK)).isTrue();
        SimOp op = client.write(SHARD, 0, 1, ClientRequest.UNCONDITIONAL, false, done -> {});
        cluster.run(SECONDS);
        assertThat(op.state).isEqualTo(SimOp.State.DONE);
        cluster.checkEnd();
    }

    /**
     * It had overwritten the torn record from its beginning on: the next start took the rest for
     * damage.
     */
    @Test
    void aStartKilledWhileItCutsATornRecordIsRepeated() {
        cluster.start();
        SimClient client = cluster.clients().getFirst();
        attach(client);
        for (int round = 0; round < 30; round++) {
            int leader = cluster.leader(SHARD);
            SimNode node = cluster.node(leader % 3 + 1);
            journal(node).killInNextWrite();
            client.write(SHARD, 0, 3, ClientRequest.UNCONDITIONAL, false, op -> {});
            assertThat(cluster.runUntil(() -> !node.isUp(), SECONDS)).isTrue();

            journal(node).disk().dying(400L * round);
            assertThat(node.start()).isTrue();
            cluster.run(SECONDS);
        }
        assertThat(cluster.counters.all())
                .containsKeys(
                        Rare.STORE_KILLED_IN_WRITE.counter(), Rare.STORE_KILLED_AT_START.counter());
        assertThat(cluster.runUntil(cluster::allEqual, 20 * SECONDS)).isTrue();
        cluster.checkEnd();
    }

    /** After 3,000 runs in one process the disks of killed nodes had filled its memory. */
    @Test
    void aStoreThatNobodyClosedIsForgotten() {
        WeakReference<SimDisk> disk = leftOpen();
        for (int i = 0; i < COLLECTIONS && disk.get() != null; i++) {
            System.gc();
        }
        assertThat(disk.get()).isNull();
    }

    private static WeakReference<SimDisk> leftOpen() {
        SimCluster cluster = quietCluster();
        cluster.start();
        return new WeakReference<>(journal(cluster.nodes().getFirst()).disk());
    }
}
