package io.holdfast.simulation;

import static io.holdfast.simulation.SimOptions.MICROS;
import static io.holdfast.simulation.SimOptions.MILLIS;
import static io.holdfast.simulation.SimOptions.SECONDS;
import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.node.replica.ReplicaStatus;
import io.holdfast.proto.peer.ClientRequest;
import io.holdfast.proto.peer.ShardId;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/**
 * A follower whose network or disk has 200 ms more than the others', again and again. Minutes of
 * simulated time: {@code -Dholdfast.simulation.slow.minutes}, 10 by default.
 */
final class SlowReplicaScenarioTest {
    private static final ShardId SHARD = new ShardId(1, 0);
    private static final int MINUTES = Integer.getInteger("holdfast.simulation.slow.minutes", 10);
    private static final long LATER = 200 * MILLIS;

    /** Every write takes it: a sync, too. */
    private static final SimOptions.Disk SLOW = new SimOptions.Disk(LATER, LATER, LATER, 0, 0);

    private static final long STEADY = 50 * MILLIS;
    private static final long BURST = MILLIS;

    private final SimCluster cluster = new SimCluster(SimOptions.CALM, new SimRandom(1));
    private final SimClient client = cluster.clients().getFirst();
    private final List<Long> latencies = new ArrayList<>();
    private final List<ReplicaStatus.State> states = new ArrayList<>();
    private int leader;
    private int slow;
    private long block;

    /** Writes at a rate, and notes what the leader says of the slow follower. */
    private void write(long every, long duration) {
        for (long end = cluster.queue.now() + duration; cluster.queue.now() < end; ) {
            long began = cluster.queue.now();
            client.write(
                    SHARD,
                    block++ % 16,
                    1,
                    ClientRequest.UNCONDITIONAL,
                    false,
                    done -> latencies.add(cluster.queue.now() - began));
            cluster.run(every);
            ReplicaStatus.State state = state();
            if (states.isEmpty() || states.getLast() != state) {
                states.add(state);
            }
        }
    }

    private ReplicaStatus.State state() {
        return cluster.node(leader).replica(SHARD).status().followers().stream()
                .filter(follower -> follower.node() == slow)
                .findFirst()
                .orElseThrow()
                .state();
    }

    /** A minute: at its own pace, in a hurry for 2 s, then with time to get back. */
    private void minute() {
        write(STEADY, 20 * SECONDS);
        write(BURST, 2 * SECONDS);
        write(STEADY, 38 * SECONDS);
    }

    @Test
    void aSlowFollowerLeavesThePathOnceAMinuteAndNobodyWaitsForIt() {
        cluster.start();
        assertThat(cluster.runUntil(() -> cluster.leader(SHARD) != 0, 10 * SECONDS)).isTrue();
        leader = cluster.leader(SHARD);
        slow = leader % 3 + 1;
        client.timeout(20 * SECONDS);
        client.attach(client.agent());
        assertThat(
                        cluster.runUntil(
                                () -> client.standing() == SimClient.Standing.ATTACHED,
                                20 * SECONDS))
                .isTrue();
        SimNode follower = cluster.node(slow);
        SimOptions.Disk fast = follower.disk();

        for (int minute = 0; minute < MINUTES; minute++) {
            boolean far = minute % 2 == 0;
            cluster.network.far(slow, far ? LATER : 0);
            follower.disk(far ? fast : SLOW);
            states.clear();
            minute();
            // It leaves in the hurry if it is too slow for that, and comes back, each once.
            assertThat(states.size()).as("minute %d: %s", minute, states).isLessThanOrEqualTo(3);
            assertThat(states).endsWith(ReplicaStatus.State.IN_SYNC);
        }

        assertThat(cluster.leader(SHARD)).isEqualTo(leader);
        latencies.sort(null);
        assertThat(latencies.get(latencies.size() / 2)).isLessThan(2 * MILLIS);
        assertThat(latencies.getLast()).as("the longest, %d us", MICROS).isLessThan(LATER);
        cluster.network.far(slow, 0);
        follower.disk(fast);
        assertThat(cluster.runUntil(cluster::allEqual, 20 * SECONDS)).isTrue();
        cluster.checkEnd();
    }
}
