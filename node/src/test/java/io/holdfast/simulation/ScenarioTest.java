package io.holdfast.simulation;

import static io.holdfast.simulation.SimOptions.MILLIS;
import static io.holdfast.simulation.SimOptions.SECONDS;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.holdfast.node.replica.Branch;
import io.holdfast.node.replica.Effect;
import io.holdfast.node.replica.Event;
import io.holdfast.node.replica.HardState.Standing;
import io.holdfast.node.replica.Limits;
import io.holdfast.proto.peer.ClientRequest;
import io.holdfast.proto.peer.EntryKind;
import io.holdfast.proto.peer.PeerMessage;
import io.holdfast.proto.peer.ReplicaMessage.Append;
import io.holdfast.proto.peer.ReplicaMessage.InstallExtents;
import io.holdfast.proto.peer.ReplicaMessage.PromiseReply;
import io.holdfast.proto.peer.ShardId;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;

/**
 * Short scripts on a quiet cluster of three, one per rule or past bug. The oracles watch here as
 * they do in random runs; each script ends with all replicas equal and a linearizable history.
 */
final class ScenarioTest {
    private static final ShardId SHARD = new ShardId(1, 0);

    private static final Limits ONE_AT_A_TIME = new Limits(1, 100, 1 << 20, 100, 100, 100, 8, 100);

    private SimCluster cluster = cluster(SimOptions.CALM);
    private SimClient client = cluster.clients().getFirst();

    private static SimCluster cluster(SimOptions options) {
        SimCluster cluster = new SimCluster(options, new SimRandom(1));
        cluster.start();
        return cluster;
    }

    // ---- words of the scripts

    private int leader() {
        assertThat(cluster.runUntil(() -> cluster.leader(SHARD) != 0, 10 * SECONDS)).isTrue();
        return cluster.leader(SHARD);
    }

    private List<Integer> followers() {
        int leader = leader();
        return cluster.nodeNumbers().stream().filter(n -> n != leader).toList();
    }

    private void attach(SimClient who) {
        attach(who, who.agent());
    }

    private void attach(SimClient who, int through) {
        who.timeout(20 * SECONDS);
        who.attach(through);
        assertThat(
                        cluster.runUntil(
                                () -> who.standing() == SimClient.Standing.ATTACHED, 20 * SECONDS))
                .isTrue();
    }

    private SimOp begin(SimClient who, long block) {
        return who.write(SHARD, block, 1, ClientRequest.UNCONDITIONAL, false, op -> {});
    }

    private SimOp write(long block) {
        SimOp op = begin(client, block);
        ends(op);
        assertThat(op.state).isEqualTo(SimOp.State.DONE);
        return op;
    }

    private void flush() {
        SimOp op = client.flush(SHARD, done -> {});
        ends(op);
        assertThat(op.state).isEqualTo(SimOp.State.DONE);
    }

    private void ends(SimOp op) {
        assertThat(cluster.runUntil(() -> op.state != SimOp.State.PENDING, 30 * SECONDS)).isTrue();
    }

    private long read(SimClient who, long block) {
        SimOp op = who.read(SHARD, block, 1, runs -> {});
        ends(op);
        assertThat(op.state).isEqualTo(SimOp.State.DONE);
        return op.seen[0];
    }

    private void isolate(int node) {
        for (int other : cluster.endpoints()) {
            if (other != node) {
                cluster.network.cut(node, other);
                cluster.network.cut(other, node);
            }
        }
    }

    private void healAndCheck() {
        cluster.network.mendAll();
        for (SimNode node : cluster.nodes()) {
            node.resume();
            if (!node.isUp()) {
                cluster.start(node);
            }
        }
        assertThat(cluster.runUntil(cluster::allEqual, 60 * SECONDS)).isTrue();
        cluster.checkEnd();
    }

    // ---- scripts

    @Test
    void writeIsReadBackThroughEveryNode() {
        attach(client);
        SimOp op = write(3);
        for (int node : cluster.nodeNumbers()) {
            SimClient reader = cluster.addClient();
            reader.attach(node);
            assertThat(read(reader, 3)).isEqualTo(op.values[0]);
        }
        healAndCheck();
    }

    @Test
    void writeSurvivesItsLeadersDeathInTheMiddle() {
        attach(client);
        int leader = leader();
        cluster.network.hold(message -> message instanceof Append);
        SimOp op = begin(client, 1);
        cluster.run(5 * MILLIS);
        cluster.node(leader).crash();
        cluster.network.release();
        ends(op);
        assertThat(op.state).isEqualTo(SimOp.State.DONE);
        assertThat(read(client, 1)).isEqualTo(op.values[0]);
        healAndCheck();
    }

    @Test
    void stalledWriteNeverRevertsANewerOne() {
        attach(client);
        write(2);
        cluster.network.hold(message -> message instanceof ClientRequest.Write);
        client.timeout(SECONDS);
        SimOp stalled = begin(client, 2);
        cluster.run(2 * SECONDS);
        assertThat(stalled.state).isEqualTo(SimOp.State.IN_DOUBT);
        cluster.network.hold(message -> isOld(message, stalled.client));
        attach(client, followers().getFirst());
        SimOp newer = write(2);
        cluster.network.release();
        cluster.run(SECONDS);
        assertThat(read(client, 2)).isEqualTo(newer.values[0]);
        assertThat(stalled.sequence).isZero();
        healAndCheck();
    }

    private static boolean isOld(PeerMessage message, int oldClient) {
        return message instanceof ClientRequest.Write write && write.client() == oldClient;
    }

    @Test
    void twoLeadersNamedAtOnceAreOneInTheEnd() {
        attach(client);
        write(1);
        for (int node : cluster.nodeNumbers()) {
            cluster.node(node).tell(SHARD, new Event.Campaign());
        }
        cluster.run(2 * SECONDS);
        write(1);
        healAndCheck();
    }

    @Test
    void partitionedLeaderServesNoReadOnceItsLeaseIsOver() {
        SimClient reader = cluster.addClient();
        attach(client);
        SimOp old = write(5);
        int leader = leader();
        reader.timeout(SECONDS);
        reader.attach(leader);
        isolate(leader);
        SimOp newer = write(5);
        SimOp stale = reader.read(SHARD, 5, 1, runs -> {});
        ends(stale);
        assertThat(stale.state).isEqualTo(SimOp.State.FAILED);
        assertThat(newer.values[0]).isNotEqualTo(old.values[0]);
        healAndCheck();
    }

    private void suspendLeaderWhileAnotherWrites() {
        SimClient reader = cluster.addClient();
        attach(client);
        write(5);
        int leader = leader();
        reader.timeout(100 * MILLIS);
        reader.attach(leader);
        cluster.run(50 * MILLIS);
        cluster.node(leader).pause(false);
        isolate(leader);
        write(5);
        cluster.run(MILLIS);
        cluster.node(leader).resume();
        ends(reader.read(SHARD, 5, 1, runs -> {}));
        healAndCheck();
    }

    @Test
    void suspendedLeaderServesNoReadWhenItGoesOn() {
        suspendLeaderWhileAnotherWrites();
    }

    @Test
    void plantedLeaseThatOutlivesAPauseIsFound() {
        cluster = cluster(SimOptions.CALM.with(PlantedBug.LEASE_OUTLIVES_PAUSE));
        client = cluster.clients().getFirst();
        assertThatThrownBy(this::suspendLeaderWhileAnotherWrites)
                .isInstanceOf(SimFailure.class)
                .hasMessageStartingWith("linearizable");
    }

    @Test
    void followerBehindTheLogStartCatchesUpByExtents() {
        attach(client);
        write(0);
        int late = followers().getFirst();
        cluster.node(late).crash();
        for (int block = 0; block < 12; block++) {
            write(block);
        }
        SimOp zero = client.zero(SHARD, 0, 2, true, op -> {});
        ends(zero);
        for (SimNode node : cluster.nodes()) {
            if (node.isUp()) {
                node.replica(SHARD).checkpoint();
            }
        }
        cluster.run(SECONDS);
        for (SimNode node : cluster.nodes()) {
            node.store(SHARD).moveLogStart(Long.MAX_VALUE);
        }
        cluster.start(cluster.node(late));
        healAndCheck();
        assertThat(cluster.counters.get("bases installed")).isPositive();
    }

    /** Leaves {@code late} in the middle of a catch-up: the first blocks are there, no base is. */
    private void leaveInTheMiddleOfACatchUp(int late) {
        for (int block = 0; block < 12; block++) {
            write(block);
        }
        flush();
        for (SimNode node : cluster.nodes()) {
            if (node.isUp()) {
                node.replica(SHARD).checkpoint();
            }
        }
        cluster.run(SECONDS);
        for (SimNode node : cluster.nodes()) {
            node.store(SHARD).moveLogStart(Long.MAX_VALUE);
        }
        write(0);
        cluster.network.hold(message -> message instanceof InstallExtents part && part.done());
        cluster.start(cluster.node(late));
        cluster.run(300 * MILLIS);
        assertThat(cluster.node(late).replica(SHARD).status().standing())
                .isEqualTo(Standing.INSTALLING);
    }

    @Test
    void extentsOfLostWritesDoNotStayInAReplicaThatCatchesUp() {
        int lost = 0;
        for (int seed = 1; seed <= 20; seed++) {
            cluster = new SimCluster(SimOptions.CALM, new SimRandom(seed));
            cluster.start();
            client = cluster.clients().getFirst();
            attach(client);
            write(0);
            flush();
            int late = followers().getFirst();
            cluster.node(late).powerLoss();
            leaveInTheMiddleOfACatchUp(late);
            long newest = cluster.node(leader()).store(SHARD).last();
            cluster.majorityForgot();
            List<SimNode> losers =
                    cluster.nodes().stream().filter(node -> node.number != late).toList();
            losers.forEach(SimNode::powerLoss);
            cluster.network.hold(message -> false);
            losers.forEach(cluster::start);
            lost += losers.stream().allMatch(n -> n.store(SHARD).last() < newest) ? 1 : 0;
            healAndCheck();
        }
        assertThat(lost).isPositive();
    }

    @Test
    void lostWritesDoNotStayInAReplicaThatHadAppliedThemAndFindsTheLogGone() {
        int lost = 0;
        for (int seed = 1; seed <= 20; seed++) {
            cluster = new SimCluster(SimOptions.CALM, new SimRandom(seed));
            cluster.start();
            client = cluster.clients().getFirst();
            attach(client);
            write(0);
            flush();
            for (int block = 0; block < 8; block++) {
                write(block);
            }
            cluster.run(SECONDS);
            SimNode old = cluster.node(leader());
            List<SimNode> losers = cluster.nodes().stream().filter(node -> node != old).toList();
            old.crash();
            losers.forEach(SimNode::powerLoss);
            cluster.majorityForgot();
            long applied = old.store(SHARD).last();
            losers.forEach(cluster::start);
            lost += losers.stream().allMatch(n -> n.store(SHARD).last() < applied) ? 1 : 0;
            client = cluster.addClient();
            attach(client);
            for (int block = 8; block < 16; block++) {
                write(block);
            }
            losers.forEach(node -> node.replica(SHARD).checkpoint());
            cluster.run(SECONDS);
            losers.forEach(node -> node.store(SHARD).moveLogStart(Long.MAX_VALUE));
            healAndCheck();
        }
        assertThat(lost).isPositive();
    }

    /** Both others in the middle of a catch-up from the leader, which is told. */
    private int leadsTwoThatCatchUp() {
        attach(client);
        write(0);
        flush();
        int leader = leader();
        List<Integer> others = followers();
        cluster.node(others.getFirst()).powerLoss();
        leaveInTheMiddleOfACatchUp(others.getFirst());
        cluster.majorityForgot();
        SimNode second = cluster.node(others.getLast());
        for (int block = 0; block < 12; block++) {
            write(block);
        }
        cluster.node(leader).replica(SHARD).checkpoint();
        cluster.run(10 * MILLIS);
        cluster.node(leader).store(SHARD).moveLogStart(Long.MAX_VALUE);
        second.powerLoss();
        cluster.start(second);
        cluster.run(SECONDS);
        for (int other : others) {
            assertThat(cluster.node(other).replica(SHARD).status().dependsOn()).isEqualTo(leader);
        }
        return leader;
    }

    @Test
    void leaderThatEndsWhileAllOthersCatchUpFromItLeadsAgain() {
        int leader = leadsTwoThatCatchUp();
        cluster.node(leader).crash();
        cluster.network.hold(message -> false);
        cluster.run(5 * SECONDS);
        assertThat(cluster.leader(SHARD)).isZero();
        healAndCheck();
        assertThat(cluster.counters.get(Counters.core(Branch.WON_BY_DEPENDENTS))).isPositive();
    }

    @Test
    void leaderThatLosesPowerWhileAllOthersCatchUpFromItLeadsAgain() {
        int leader = leadsTwoThatCatchUp();
        cluster.node(leader).powerLoss();
        cluster.network.hold(message -> false);
        cluster.run(5 * SECONDS);
        assertThat(cluster.leader(SHARD)).isZero();
        healAndCheck();
    }

    @Test
    void replicaThatLostItsDiskPromisesToNobody() {
        attach(client);
        write(1);
        flush();
        int leader = leader();
        List<Integer> others = followers();
        SimNode wiped = cluster.node(others.getFirst());
        wiped.wipe();
        leaveInTheMiddleOfACatchUp(others.getFirst());
        cluster.node(others.getLast()).crash();
        cluster.node(leader).crash();
        cluster.network.hold(message -> false);
        cluster.start(cluster.node(leader));
        cluster.run(5 * SECONDS);
        assertThat(cluster.leader(SHARD)).isZero();
        healAndCheck();
    }

    @Test
    void flushedWritesSurvivePowerLossOfAllNodes() {
        attach(client);
        SimOp op = write(7);
        flush();
        cluster.majorityForgot();
        cluster.nodes().forEach(SimNode::powerLoss);
        cluster.nodes().forEach(cluster::start);
        SimClient reader = cluster.addClient();
        reader.timeout(20 * SECONDS);
        reader.attach(reader.agent());
        assertThat(read(reader, 7)).isEqualTo(op.values[0]);
        healAndCheck();
    }

    @Test
    void sessionFromBeforeAPowerLossOfAllIsTold() {
        attach(client);
        write(7);
        cluster.majorityForgot();
        cluster.nodes().forEach(SimNode::powerLoss);
        cluster.nodes().forEach(cluster::start);
        SimOp after = begin(client, 8);
        ends(after);
        assertThat(after.state).isEqualTo(SimOp.State.IN_DOUBT);
        assertThat(cluster.counters.get("attachments ended by POWER_LOSS")).isEqualTo(1);
        healAndCheck();
    }

    @Test
    void lostPromiseDelaysAnElectionButDoesNotSplitIt() {
        attach(client);
        write(1);
        cluster.node(leader()).crash();
        cluster.network.hold(message -> message instanceof PromiseReply);
        cluster.run(SECONDS);
        cluster.network.hold(message -> false);
        write(1);
        healAndCheck();
    }

    @Test
    void conflictingTailIsCut() {
        attach(client);
        write(1);
        int old = leader();
        isolate(old);
        SimClient lost = cluster.addClient();
        lost.timeout(100 * MILLIS);
        List<SimOp> tail = new ArrayList<>();
        cluster.network.mend(client.agent(), old);
        client.timeout(50 * MILLIS);
        for (int block = 0; block < 3; block++) {
            tail.add(begin(client, block));
        }
        cluster.run(100 * MILLIS);
        long cut = cluster.node(old).store(SHARD).last();
        cluster.network.cut(client.agent(), old);
        client.timeout(20 * SECONDS);
        cluster.run(3 * SECONDS);
        write(9);
        assertThat(cut).isPositive();
        cluster.node(old).crash();
        healAndCheck();
        assertThat(tail).hasSize(3);
    }

    /** Figure 8 of the Raft paper: an old leader's entry reaches a majority and yet is lost. */
    private void entryOfAnOldEpochReachesAMajorityAndIsReplaced() {
        attach(client);
        write(1);
        int first = leader();
        isolate(first);
        cluster.network.mend(client.agent(), first);
        client.timeout(50 * MILLIS);
        begin(client, 2);
        begin(client, 3);
        cluster.run(100 * MILLIS);
        cluster.network.hold(message -> message instanceof Append append && append.epoch() > 1);
        int second = leaderOtherThan(first);
        cluster.run(5 * MILLIS);
        cluster.node(second).crash();
        cluster.network.mendAll();
        SimStorage third = cluster.node(6 - first - second).store(SHARD);
        cluster.network.hold(message ->
                message instanceof Append append
                        && append.previousSequence() <= third.last()
                        && hasNoop(append, append.epoch()));
        cluster.run(SECONDS);
        cluster.node(first).crash();
        cluster.network.hold(message -> false);
        cluster.start(cluster.node(second));
        cluster.run(3 * SECONDS);
        healAndCheck();
    }

    private static boolean hasNoop(Append append, long epoch) {
        return append.entries().stream()
                .anyMatch(e -> e.kind() == EntryKind.NOOP && e.epoch() == epoch);
    }

    private int leaderOtherThan(int old) {
        BooleanSupplier led =
                () ->
                        cluster.nodes().stream()
                                .anyMatch(node ->
                                        node.number != old
                                                && node.replica(SHARD).status().role()
                                                        == Effect.Role.CANDIDATE
                                                && node.replica(SHARD).status().leader()
                                                        == node.number);
        assertThat(cluster.runUntil(led, 10 * SECONDS)).isTrue();
        return cluster.nodes().stream()
                .filter(node -> node.number != old)
                .filter(node -> node.replica(SHARD).status().leader() == node.number)
                .findFirst()
                .orElseThrow()
                .number;
    }

    @Test
    void entryOfAnOldEpochIsCommittedOnlyByOneOfTheLeadersOwn() {
        cluster = cluster(SimOptions.CALM.with(ONE_AT_A_TIME));
        client = cluster.clients().getFirst();
        entryOfAnOldEpochReachesAMajorityAndIsReplaced();
    }

    @Test
    void plantedCommitOfAnOldEpochIsFound() {
        cluster = cluster(SimOptions.CALM.with(ONE_AT_A_TIME).with(PlantedBug.OLD_EPOCH_COMMITTED));
        client = cluster.clients().getFirst();
        assertThatThrownBy(this::entryOfAnOldEpochReachesAMajorityAndIsReplaced)
                .isInstanceOf(SimFailure.class);
    }

    @Test
    void learnerDoesNotVote() {
        attach(client);
        write(1);
        List<Integer> others = followers();
        int leader = leader();
        SimNode learner = cluster.node(others.getFirst());
        learner.powerLoss();
        cluster.node(others.getLast()).crash();
        cluster.node(leader).crash();
        cluster.start(learner);
        cluster.start(cluster.node(others.getLast()));
        cluster.run(5 * SECONDS);
        assertThat(cluster.leader(SHARD)).isZero();
        assertThat(learner.replica(SHARD).status().standing()).isEqualTo(Standing.LEARNER);
        healAndCheck();
        assertThat(learner.replica(SHARD).status().standing()).isEqualTo(Standing.VOTER);
    }

    @Test
    void laterLeaderNeverGrantsASessionNumberAgain() {
        // Found by seed 1: a new leader looked at its state before the old epoch's entries were in.
        SimClient other = cluster.addClient();
        attach(client);
        client.release();
        other.timeout(20 * SECONDS);
        other.attach(other.agent());
        assertThat(cluster.runUntil(() -> other.session() != 0, 20 * SECONDS)).isTrue();
        // Followers hold its session's entry by now; they are told later that it is committed.
        cluster.node(leader()).crash();
        client.attach(client.agent());
        assertThat(cluster.runUntil(() -> client.session() != 0, 20 * SECONDS)).isTrue();
        assertThat(client.session()).isNotEqualTo(other.session());
        healAndCheck();
    }
}
