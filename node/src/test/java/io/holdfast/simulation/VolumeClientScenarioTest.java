package io.holdfast.simulation;

import static io.holdfast.simulation.SimOptions.MILLIS;
import static io.holdfast.simulation.SimOptions.SECONDS;
import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.proto.peer.ClientRequest;
import io.holdfast.proto.peer.PeerMessage;
import io.holdfast.proto.peer.ShardId;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Short scripts with production volume clients on a quiet cluster of three; see ScenarioTest. */
final class VolumeClientScenarioTest {
    private static final ShardId SHARD = new ShardId(1, 0);
    private static final int BLOCK = Cells.PER_BLOCK;
    private static final int TIMEOUT_SECONDS = 5;

    private final SimCluster cluster = started();

    /** What becomes of the attachment that a user leaves. */
    enum Leaving {
        /** Its front end does not know. */
        LEFT_OPEN,
        CLOSED,
        KILLED
    }

    // ---- words of the scripts

    private static SimCluster started() {
        SimCluster cluster = new SimCluster(SimOptions.CALM, new SimRandom(1));
        cluster.start();
        return cluster;
    }

    private SimUser user() {
        return cluster.addUser(cluster.volumes().getFirst());
    }

    private int leader() {
        assertThat(cluster.runUntil(() -> cluster.leader(SHARD) != 0, 10 * SECONDS)).isTrue();
        return cluster.leader(SHARD);
    }

    private int follower(int which) {
        int leader = leader();
        return cluster.nodeNumbers().stream().filter(n -> n != leader).toList().get(which);
    }

    private SimCall ends(SimCall call) {
        assertThat(cluster.runUntil(() -> call.state != SimOp.State.PENDING, 30 * SECONDS))
                .isTrue();
        return call;
    }

    /** First cell of a block. */
    private static long at(long block) {
        return block * BLOCK;
    }

    private SimCall write(SimDevice device, long block) {
        return ends(device.write(at(block), BLOCK, false, call -> {}));
    }

    private void writes(SimDevice device, long block) {
        assertThat(write(device, block).state).isEqualTo(SimOp.State.DONE);
    }

    private long read(SimDevice device, long block) {
        SimCall call = ends(device.read(at(block), BLOCK, done -> {}));
        assertThat(call.state).isEqualTo(SimOp.State.DONE);
        return call.seen[0];
    }

    private void check() {
        assertThat(cluster.runUntil(cluster::allEqual, 60 * SECONDS)).isTrue();
        cluster.checkEnd();
    }

    private static boolean isWriteOf(PeerMessage message, SimDevice device) {
        return message instanceof ClientRequest.Write write && write.client() == device.number();
    }

    // ---- scripts

    /**
     * A write is held up between the front end and the leader. Its user loses patience, comes back
     * through another node and overwrites the block. Then the old write arrives.
     */
    @ParameterizedTest
    @EnumSource(Leaving.class)
    void stalledWriteNeverRevertsANewerOne(Leaving leaving) {
        SimUser user = user();
        SimDevice old = user.attach(follower(0), TIMEOUT_SECONDS);
        writes(old, 2);
        cluster.network.hold(message -> isWriteOf(message, old));
        SimCall stalled = old.write(at(2), BLOCK, false, call -> {});
        cluster.run(SECONDS);
        switch (leaving) {
            case LEFT_OPEN -> {}
            case CLOSED -> old.close();
            case KILLED -> old.die();
        }
        SimDevice now = user.attach(follower(1), TIMEOUT_SECONDS);
        SimCall newer = ends(now.write(at(2), BLOCK, false, call -> {}));
        assertThat(newer.state).isEqualTo(SimOp.State.DONE);
        cluster.network.release();
        cluster.run((TIMEOUT_SECONDS + 1) * SECONDS);
        assertThat(stalled.state).isEqualTo(SimOp.State.IN_DOUBT);
        assertThat(read(now, 2)).isEqualTo(newer.value);
        writes(now, 2);
        check();
    }

    /** As above, but the old attachment has not written before: it asks for its claim too late. */
    @Test
    void stalledFirstClaimTakesNothingFromANewerAttachment() {
        SimUser user = user();
        SimDevice old = user.attach(follower(0), TIMEOUT_SECONDS);
        old.open();
        cluster.run(SECONDS);
        cluster.network.hold(message ->
                message instanceof ClientRequest.Claim claim && claim.client() == old.number());
        SimCall stalled = old.write(at(2), BLOCK, false, call -> {});
        cluster.run(SECONDS);
        SimDevice now = user.attach(follower(1), TIMEOUT_SECONDS);
        SimCall newer = ends(now.write(at(2), BLOCK, false, call -> {}));
        cluster.network.release();
        cluster.run(SECONDS);
        assertThat(stalled.state).isEqualTo(SimOp.State.IN_DOUBT);
        assertThat(read(now, 2)).isEqualTo(newer.value);
        writes(now, 2);
        check();
    }

    /** A write that timed out stays behind a later one of the same client. */
    @Test
    void timedOutWriteNeverRunsAfterALaterOne() {
        SimUser user = user();
        SimDevice device = user.attach(follower(0), 1);
        writes(device, 2);
        cluster.network.hold(message -> isWriteOf(message, device));
        SimCall stalled = ends(device.write(at(2), BLOCK, false, call -> {}));
        assertThat(stalled.state).isEqualTo(SimOp.State.IN_DOUBT);
        cluster.network.hold(message -> false);
        SimCall newer = ends(device.write(at(2), BLOCK, false, call -> {}));
        cluster.network.release();
        cluster.run(SECONDS);
        assertThat(read(device, 2)).isEqualTo(newer.value);
        check();
    }

    @Test
    void onlyTheHolderOfAnExclusiveVolumeWrites() {
        SimDevice holder = user().attach(follower(0), TIMEOUT_SECONDS);
        SimDevice other = user().attach(follower(1), TIMEOUT_SECONDS);
        writes(holder, 1);
        SimCall refused = write(other, 1);
        assertThat(refused.state).isEqualTo(SimOp.State.IN_DOUBT);
        assertThat(cluster.counters.get("calls that ended with NOT_PERMITTED")).isEqualTo(1);
        assertThat(read(other, 1)).isEqualTo(read(holder, 1));
        holder.close();
        assertThat(cluster.runUntil(holder::isGone, 10 * SECONDS)).isTrue();
        cluster.run(2 * SECONDS);
        writes(other, 1);
        check();
    }

    @Test
    void deadHolderIsReplaced() {
        int home = follower(0);
        SimDevice holder = user().attach(home, TIMEOUT_SECONDS);
        SimDevice other = user().attach(follower(1), TIMEOUT_SECONDS);
        writes(holder, 1);
        cluster.node(home).crash();
        cluster.coordinator().nodeDead(home);
        cluster.run(100 * MILLIS);
        writes(other, 1);
        cluster.start(cluster.node(home));
        check();
    }

    /** Found by the simulation, seed 59: an attachment claimed again after it was fenced. */
    @Test
    void holderThatWasHeldForDeadWritesNoMore() {
        int home = follower(0);
        SimDevice holder = user().attach(home, TIMEOUT_SECONDS);
        SimDevice other = user().attach(follower(1), TIMEOUT_SECONDS);
        writes(holder, 1);
        cluster.network.hold(message -> isWriteOf(message, holder));
        SimCall stalled = holder.write(at(1), BLOCK, false, call -> {});
        cluster.coordinator().nodeDead(home);
        cluster.run(100 * MILLIS);
        SimCall newer = write(other, 1);
        other.close();
        assertThat(cluster.runUntil(other::isGone, 10 * SECONDS)).isTrue();
        cluster.network.release();
        assertThat(ends(stalled).state).isEqualTo(SimOp.State.IN_DOUBT);
        SimDevice reader = user().attach(follower(1), TIMEOUT_SECONDS);
        assertThat(read(reader, 1)).isEqualTo(newer.value);
        check();
    }
}
