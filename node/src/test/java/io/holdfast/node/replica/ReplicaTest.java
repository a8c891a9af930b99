package io.holdfast.node.replica;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.InstanceOfAssertFactories.type;

import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ClientReply.Refusal;
import io.holdfast.proto.peer.ClientRequest;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.EntryKind;
import io.holdfast.proto.peer.Nonce;
import io.holdfast.proto.peer.ReplicaMessage;
import io.holdfast.proto.peer.Room;
import io.holdfast.proto.peer.Voice;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class ReplicaTest {
    private final ReplicaGroup group = new ReplicaGroup(3, false);

    private static ClientRequest.Write write(
            int session, long request, long lowWater, long generation, long block, long expected) {
        return new ClientRequest.Write(
                ReplicaGroup.SHARD,
                1,
                request,
                session,
                lowWater,
                generation,
                1,
                block,
                1,
                new Nonce(1, session, request),
                expected,
                false,
                new byte[Blocks.SEALED_SIZE]);
    }

    private static ClientRequest.Write write(int session, long request, long block) {
        return write(session, request, 1, 0, block, ClientRequest.UNCONDITIONAL);
    }

    private int openSession(ReplicaGroup in) {
        List<ClientReply> replies =
                in.ask(
                        in.leader(),
                        new ClientRequest.OpenSession(ReplicaGroup.SHARD, 1, in.nextRequest(), 0));
        return (int) ((ClientReply.Done) replies.getFirst()).value();
    }

    private static Refusal refusal(List<ClientReply> replies) {
        return ((ClientReply.Refused) replies.getFirst()).why();
    }

    private static void assertDone(List<ClientReply> replies) {
        assertThat(replies).hasSize(1);
        assertThat(replies.getFirst()).isInstanceOf(ClientReply.Done.class);
    }

    /** What gets a number is applied at every start: a wild one would stop all nodes for good. */
    @Test
    void whatNoClientOfTheVolumeAsksForIsRefused() {
        group.run(600);
        int session = openSession(group);
        int layer = ReplicaGroup.LAYER;
        long end = ReplicaGroup.BLOCKS;
        List<ClientRequest> wild =
                List.of(
                        write(session, 1, end),
                        write(session, 2, Blocks.END - 1),
                        zero(session, 3, layer, end - 1, 2),
                        zero(session, 4, layer + 1, 0, 1),
                        read(layer, end - 1, 2),
                        read(layer, Blocks.END - 1, 1),
                        read(layer + 1, 0, 1),
                        new ClientRequest.OpenSession(ReplicaGroup.SHARD, 1, 5, Integer.MAX_VALUE),
                        new ClientRequest.Claim(
                                ReplicaGroup.SHARD, 1, 6, session, "a", Long.MAX_VALUE, false));
        for (ClientRequest each : wild) {
            assertThat(group.ask(1, each))
                    .as("%s", each)
                    .singleElement()
                    .extracting(reply -> ((ClientReply.Refused) reply).why())
                    .isEqualTo(Refusal.INVALID);
        }
        assertThat(openSession(group)).isEqualTo(session + 1);
        assertDone(group.ask(1, write(session, 7, end - 1)));
        assertThat(group.effects(2, new Event.FromPeer(1, fetch(layer, end)))).isEmpty();
        assertThat(group.effects(2, new Event.FromPeer(1, fetch(layer, end - 1))))
                .hasOnlyElementsOfType(Effect.SendCopy.class);
    }

    private static ReplicaMessage.FetchBlock fetch(int layer, long block) {
        return new ReplicaMessage.FetchBlock(ReplicaGroup.SHARD, 1, 1, layer, block);
    }

    private static ClientRequest.Read read(int layer, long block, int count) {
        return new ClientRequest.Read(ReplicaGroup.SHARD, 1, 1, layer, block, count, 0);
    }

    private static ClientRequest.Zero zero(
            int session, long request, int layer, long block, int count) {
        return new ClientRequest.Zero(
                ReplicaGroup.SHARD, 1, request, session, 1, 0, layer, block, count, true, false);
    }

    @Test
    void firstInCampaignOrderLeads() {
        group.run(600);
        assertThat(group.leader()).isEqualTo(1);
    }

    @Test
    void aloneReplicaLeadsItself() {
        ReplicaGroup alone = new ReplicaGroup(1, false);
        alone.run(600);
        assertThat(alone.leader()).isEqualTo(1);
        assertDone(alone.ask(1, write(openSession(alone), 1, 7)));
        assertThat(alone.map(1)).containsKey(7L);
    }

    @Test
    void writeIsAnsweredOnceAndAppliedEverywhere() {
        group.run(600);
        int session = openSession(group);
        assertDone(group.ask(1, write(session, 1, 7)));
        group.run(200);
        assertThat(group.map(1)).isNotEmpty().isEqualTo(group.map(2)).isEqualTo(group.map(3));
        assertThat(group.status(2).applied()).isEqualTo(group.status(1).last());
    }

    @Test
    void withoutMajorityNothingIsAnswered() {
        group.run(600);
        int session = openSession(group);
        group.cut(2);
        group.cut(3);
        assertThat(group.ask(1, write(session, 1, 7))).isEmpty();
    }

    @Test
    void followerPointsToTheLeader() {
        group.run(600);
        ClientReply.Refused refused = (ClientReply.Refused) group.ask(2, write(1, 1, 7)).getFirst();
        assertThat(refused.why()).isEqualTo(Refusal.NOT_LEADER);
        assertThat(refused.leader()).isEqualTo(1);
    }

    @Test
    void repeatedRequestRunsOnceAcrossLeaders() {
        group.run(600);
        int session = openSession(group);
        assertDone(group.ask(1, write(session, 1, 7)));
        long sequence = group.map(1).get(7L);
        group.cut(1);
        group.run(1000);
        assertThat(group.leader()).isIn(2, 3);
        assertDone(group.ask(group.leader(), write(session, 1, 7)));
        assertThat(group.map(group.leader())).containsEntry(7L, sequence);
    }

    @Test
    void settledRequestNeverRuns() {
        group.run(600);
        int session = openSession(group);
        assertDone(group.ask(1, write(session, 2, 2, 0, 7, ClientRequest.UNCONDITIONAL)));
        assertThat(refusal(group.ask(1, write(session, 1, 7)))).isEqualTo(Refusal.FENCED);
    }

    /** Promise P9: a replica that misses writes is none for long, so one full disk is enough. */
    @Test
    void aFullDiskOfAnyFollowerRefusesWritesButNotTrims() {
        group.run(600);
        int session = openSession(group);
        assertDone(group.ask(1, write(session, 1, 7)));
        group.step(3, new Event.RoomChanged(Room.NONE));
        group.run(200);
        assertThat(refusal(group.ask(1, write(session, 2, 8)))).isEqualTo(Refusal.NO_SPACE);
        assertDone(group.ask(1, zero(session, 3, ReplicaGroup.LAYER, 7, 1)));
        group.step(3, new Event.RoomChanged(Room.SOON));
        group.run(200);
        assertThat(refusal(group.ask(1, write(session, 4, 8)))).isEqualTo(Refusal.BUSY);
        group.step(3, new Event.RoomChanged(Room.ENOUGH));
        group.run(200);
        assertDone(group.ask(1, write(session, 4, 8)));
        group.run(200);
        assertThat(group.map(1)).isEqualTo(group.map(2)).isEqualTo(group.map(3));
    }

    @Test
    void aFullDiskOfTheLeaderRefusesWritesAndOneThatIsGoneDoesNot() {
        group.run(600);
        int session = openSession(group);
        group.step(1, new Event.RoomChanged(Room.NONE));
        assertThat(refusal(group.ask(1, write(session, 1, 7)))).isEqualTo(Refusal.NO_SPACE);
        group.step(1, new Event.RoomChanged(Room.ENOUGH));
        group.step(2, new Event.RoomChanged(Room.NONE));
        group.run(200);
        assertThat(refusal(group.ask(1, write(session, 2, 7)))).isEqualTo(Refusal.NO_SPACE);
        group.cut(2);
        group.run(1500);
        assertDone(group.ask(1, write(session, 3, 7)));
    }

    /** A leader that is starved for half a second, not dead, keeps its office. */
    @Test
    void followersWaitLongerForALeaderWhoseLinkStands() {
        group.run(600);
        for (int follower : List.of(2, 3)) {
            group.step(follower, new Event.NodeAlive(1, 5));
        }
        group.run(100);
        group.cut(1);
        group.run(400);
        group.heal(1);
        group.run(200);
        assertThat(group.leader()).isEqualTo(1);
        group.cut(1);
        group.run(100);
        for (int follower : List.of(2, 3)) {
            group.step(follower, new Event.NodeLost(1));
        }
        group.run(500);
        assertThat(group.leader()).isIn(2, 3);
    }

    /** The simulator's seed 134: the leader went on with entries, its follower waited for ever. */
    @Test
    void followerGivesUpACatchUpThatTheLeaderHasGivenUp() {
        group.run(600);
        int session = openSession(group);
        assertDone(group.ask(1, write(session, 1, 7)));
        group.run(200);
        ReplicaStatus leader = group.status(1);
        ReplicaMessage.InstallBegin late =
                new ReplicaMessage.InstallBegin(
                        ReplicaGroup.SHARD,
                        leader.promised(),
                        leader.applied(),
                        leader.promised(),
                        leader.applied() + 1,
                        group.replica(1).shardState());
        group.step(3, new Event.FromPeer(1, late));
        assertDone(group.ask(1, write(session, 2, 8)));
        assertDone(group.ask(1, write(session, 3, 9)));
        group.run(500);
        assertThat(group.status(3).applied()).isEqualTo(group.status(1).last());
        assertThat(group.map(3)).isEqualTo(group.map(1));
        assertThat(group.status(3).standing()).isEqualTo(HardState.Standing.VOTER);
    }

    // ---- what a leader makes of node 3's answers, with node 3 cut off

    private void threeWritesWithoutNode3() {
        group.run(600);
        int session = openSession(group);
        group.cut(3);
        for (int request = 1; request <= 3; request++) {
            assertDone(group.ask(1, write(session, request, request)));
        }
    }

    private void answer(boolean accepted, long matched, long last, boolean learner, long sent) {
        ReplicaMessage.AppendReply reply =
                new ReplicaMessage.AppendReply(
                        ReplicaGroup.SHARD,
                        group.status(1).promised(),
                        accepted,
                        matched,
                        matched,
                        last,
                        0,
                        learner,
                        Room.ENOUGH,
                        sent);
        group.step(1, new Event.FromPeer(3, reply));
    }

    /** What the leader sends node 3 at the end of its turn. */
    private List<Effect.SendEntries> entriesFor3() {
        List<Effect.SendEntries> found = new ArrayList<>();
        for (Effect effect : group.effects(1, new Event.TurnEnd())) {
            if (effect instanceof Effect.SendEntries sent && sent.to() == 3) {
                found.add(sent);
            }
        }
        return found;
    }

    /** The simulator's seeds 30333 and 31856: the leader insisted on what was gone, for ever. */
    @Test
    void learnerThatForgetsOnceMoreGetsEverything() {
        threeWritesWithoutNode3();
        long last = group.status(1).last();
        answer(true, last - 1, last - 1, true, 0);
        answer(false, 0, 0, true, Long.MAX_VALUE);
        answer(true, last - 1, last - 1, true, Long.MAX_VALUE);
        answer(false, 0, 0, true, Long.MAX_VALUE);
        long probe = entriesFor3().getFirst().frame().sentNanos();
        answer(false, 0, 0, true, probe);
        assertThat(entriesFor3())
                .singleElement()
                .satisfies(sent -> assertThat(sent.frame().previousSequence()).isZero());
    }

    /** Each of them sent the log anew, and each of these frames was rejected in its turn. */
    @Test
    void rejectionsOfABurstMoveTheLeaderBackOnce() {
        threeWritesWithoutNode3();
        answer(false, 0, 0, false, Long.MAX_VALUE);
        long probe = entriesFor3().getFirst().frame().sentNanos();
        answer(true, 1, 1, false, probe);
        assertThat(entriesFor3()).hasSize(1);
        answer(false, 0, 0, false, probe - 1);
        answer(false, 0, 0, false, probe - 1);
        assertThat(entriesFor3()).isEmpty();
    }

    /** A promotion may be carried out by a learner that has forgotten again since it was sent. */
    @Test
    void newVoterHoldsWhatItSaysAsAVoter() {
        threeWritesWithoutNode3();
        long last = group.status(1).last();
        answer(true, last, last, true, Long.MAX_VALUE / 2);
        answer(true, last - 2, last - 2, false, Long.MAX_VALUE / 2);
        assertThat(group.status(1).followers().getLast().matched()).isEqualTo(last - 2);
    }

    /** Node 3 holds the most, and is told of a catch-up that it has no need of any more. */
    private ReplicaMessage.InstallBegin catchUpOf3() {
        group.run(600);
        int session = openSession(group);
        assertDone(group.ask(1, write(session, 1, 7)));
        group.run(200);
        group.cut(2);
        assertDone(group.ask(1, write(session, 2, 8)));
        ReplicaStatus leader = group.status(1);
        ReplicaMessage.InstallBegin begin =
                new ReplicaMessage.InstallBegin(
                        ReplicaGroup.SHARD,
                        leader.promised(),
                        group.status(3).applied(),
                        leader.promised(),
                        leader.applied(),
                        group.replica(1).shardState());
        group.step(3, new Event.FromPeer(1, begin));
        assertThat(group.status(3).standing()).isEqualTo(HardState.Standing.CATCHING_UP);
        return begin;
    }

    /** Seed 219 of an earlier state: nobody could lead, since nobody else had all of it. */
    @Test
    void replicaThatCatchesUpLeadsWhenItHoldsTheMost() {
        catchUpOf3();
        group.cut(1);
        group.heal(2);
        group.run(5000);
        assertThat(group.leader()).isEqualTo(3);
        assertThat(group.map(2)).containsKey(8L).isEqualTo(group.map(3));
    }

    /** Seen on real disks: it stepped down, and the others had half a map each. */
    @Test
    void leaderAfterAPowerLossOfAllStaysWhileTheOthersCatchUp() {
        ReplicaGroup lost =
                new ReplicaGroup(
                        3, false, HardState.FRESH.withStanding(HardState.Standing.LEARNER));
        lost.catchingUp.addAll(List.of(2, 3));
        lost.run(20_000);
        ReplicaStatus elected = lost.status(1);
        assertThat(elected.leader()).isEqualTo(1);
        lost.run(20_000);
        assertThat(lost.status(1).promised()).isEqualTo(elected.promised());
        assertThat(lost.status(1).leader()).isEqualTo(1);
        lost.catchingUp.clear();
        lost.run(1000);
        assertThat(lost.leader()).isEqualTo(1);
        assertDone(lost.ask(1, write(openSession(lost), 1, 7)));
        // Who hears nothing steps down as before.
        lost.cut(2);
        lost.cut(3);
        lost.run(5000);
        assertThat(lost.status(1).leader()).isZero();
    }

    /** Extents of lost entries would be newer for ever than what is written in their place. */
    @Test
    void replicaThatCatchesUpStartsOverWhenEntriesWereLostWithPower() {
        ReplicaMessage.InstallBegin begin = catchUpOf3();
        ReplicaStatus status = group.status(3);
        ReplicaMessage.Append lost =
                new ReplicaMessage.Append(
                        ReplicaGroup.SHARD,
                        begin.epoch() + 1,
                        begin.epoch(),
                        status.applied(),
                        status.applied(),
                        0,
                        false,
                        1,
                        List.of(
                                Entry.builder(ReplicaGroup.SHARD, EntryKind.POWER_LOSS)
                                        .at(begin.epoch() + 1, status.applied() + 1, 0)
                                        .build()));
        assertThat(group.effects(3, new Event.FromPeer(1, lost)))
                .hasAtLeastOneElementOfType(Effect.StartOver.class);
        assertThat(group.status(3).standing()).isEqualTo(HardState.Standing.INSTALLING);
    }

    /** The simulator's seed 81382: the leader may have lost, with power, what is committed here. */
    @Test
    void followerSpeaksForNoMoreThanItsLeaderHasShown() {
        group.run(600);
        int session = openSession(group);
        assertDone(group.ask(1, write(session, 1, 7)));
        group.run(200);
        ReplicaStatus status = group.status(3);
        assertThat(status.commit()).isGreaterThan(1);
        ReplicaMessage.Append heartbeat =
                new ReplicaMessage.Append(
                        ReplicaGroup.SHARD,
                        status.promised() + 1,
                        status.promised(),
                        1,
                        1,
                        0,
                        false,
                        1,
                        List.of());
        group.effects(3, new Event.FromPeer(2, heartbeat));
        assertThat(group.effects(3, new Event.TurnEnd()))
                .filteredOn(Effect.Persist.class::isInstance)
                .singleElement(type(Effect.Persist.class))
                .satisfies(persist ->
                        assertThat(persist.thenSend())
                                .singleElement()
                                .satisfies(out ->
                                        assertThat(out.message())
                                                .isInstanceOfSatisfying(
                                                        ReplicaMessage.AppendReply.class,
                                                        reply ->
                                                                assertThat(reply.matched())
                                                                        .isEqualTo(1))));
    }

    @Test
    void conditionalWriteNeedsTheSequenceThatWasRead() {
        group.run(600);
        int session = openSession(group);
        assertDone(group.ask(1, write(session, 1, 1, 0, 7, 0)));
        long sequence = group.map(1).get(7L);
        assertThat(refusal(group.ask(1, write(session, 2, 1, 0, 7, 0))))
                .isEqualTo(Refusal.CONFLICT);
        assertDone(group.ask(1, write(session, 3, 1, 0, 7, sequence)));
    }

    @Test
    void olderGenerationIsFencedByNewerClaim() {
        ReplicaGroup exclusive = new ReplicaGroup(3, true);
        exclusive.run(600);
        int session = openSession(exclusive);
        assertThat(refusal(exclusive.ask(1, write(session, 1, 7)))).isEqualTo(Refusal.FENCED);
        assertDone(exclusive.ask(1, claim(session, 2, "a@node1", false)));
        assertDone(exclusive.ask(1, write(session, 3, 1, 1, 7, ClientRequest.UNCONDITIONAL)));
        assertThat(refusal(exclusive.ask(1, claim(session, 4, "b@node2", false))))
                .isEqualTo(Refusal.HELD);
        assertDone(exclusive.ask(1, claim(session, 5, "b@node2", true)));
        assertThat(
                        refusal(
                                exclusive.ask(
                                        1,
                                        write(session, 6, 1, 1, 7, ClientRequest.UNCONDITIONAL))))
                .isEqualTo(Refusal.FENCED);
    }

    @Test
    void repeatedClaimIsGrantedOnce() {
        ReplicaGroup exclusive = new ReplicaGroup(3, true);
        exclusive.run(600);
        int session = openSession(exclusive);
        exclusive.cut(2);
        exclusive.cut(3);
        assertThat(exclusive.ask(1, claim(session, 1, "a@node1", false))).isEmpty();
        assertThat(exclusive.ask(1, claim(session, 1, "a@node1", false))).isEmpty();
        exclusive.heal(2);
        int before = exclusive.replies.size();
        exclusive.run(200);
        assertThat(exclusive.replies.subList(before, exclusive.replies.size()))
                .containsExactly(new ClientReply.Done(ReplicaGroup.SHARD, 1, 1, 1));
    }

    @Test
    void claimRepeatedToALaterLeaderIsGrantedOnce() {
        ReplicaGroup exclusive = new ReplicaGroup(3, true);
        exclusive.run(600);
        int session = openSession(exclusive);
        assertDone(exclusive.ask(1, claim(session, 1, "a@node1", false)));
        exclusive.cut(1);
        exclusive.run(1000);
        int leader = exclusive.leader();
        assertThat(leader).isIn(2, 3);
        assertThat(exclusive.ask(leader, claim(session, 1, "a@node1", false)))
                .containsExactly(new ClientReply.Done(ReplicaGroup.SHARD, 1, 1, 1));
    }

    @Test
    void olderAttachmentOfAClientNeverClaimsAfterANewerOne() {
        ReplicaGroup exclusive = new ReplicaGroup(3, true);
        exclusive.run(600);
        int older = openSession(exclusive);
        int newer = openSession(exclusive);
        assertDone(exclusive.ask(1, claim(newer, 2, "a", false)));
        assertThat(refusal(exclusive.ask(1, claim(older, 3, "a", false)))).isEqualTo(Refusal.HELD);
        assertDone(exclusive.ask(1, new ClientRequest.Release(ReplicaGroup.SHARD, 1, 4, newer, 1)));
        assertThat(refusal(exclusive.ask(1, claim(older, 5, "a", false)))).isEqualTo(Refusal.HELD);
        assertDone(exclusive.ask(1, claim(older, 6, "b", false)));
    }

    @Test
    void claimOfAClosedSessionIsFenced() {
        ReplicaGroup exclusive = new ReplicaGroup(3, true);
        exclusive.run(600);
        int session = openSession(exclusive);
        assertDone(
                exclusive.ask(
                        1, new ClientRequest.CloseSession(ReplicaGroup.SHARD, 1, 2, session)));
        assertThat(refusal(exclusive.ask(1, claim(session, 3, "a", false))))
                .isEqualTo(Refusal.FENCED);
    }

    @Test
    void claimEndsWithTheProcessOfItsNode() {
        ReplicaGroup exclusive = new ReplicaGroup(3, true);
        exclusive.run(600);
        int session = openSession(exclusive);
        exclusive.step(1, new Event.NodeAlive(ReplicaGroup.CLIENT, 5));
        assertDone(exclusive.ask(1, claim(session, 1, "a@node9", false)));
        assertThat(refusal(exclusive.ask(1, claim(session, 2, "b@node2", false))))
                .isEqualTo(Refusal.HELD);
        exclusive.step(1, new Event.NodeAlive(ReplicaGroup.CLIENT, 6));
        assertDone(exclusive.ask(1, claim(session, 3, "b@node2", false)));
    }

    private static ClientRequest.Claim claim(
            int session, long request, String identity, boolean force) {
        return new ClientRequest.Claim(ReplicaGroup.SHARD, 1, request, session, identity, 0, force);
    }

    /** Its client may have had the same write carried out by the next leader. */
    @Test
    void cutLeaderSaysNothingOfAConditionOnceItsLeaseIsOver() {
        group.run(600);
        int session = openSession(group);
        assertDone(group.ask(1, write(session, 1, 1, 0, 7, 0)));
        assertThat(refusal(group.ask(1, write(session, 2, 2, 0, 7, 0))))
                .isEqualTo(Refusal.CONFLICT);
        group.cut(1);
        group.run(350);
        assertThat(group.ask(1, write(session, 3, 3, 0, 7, 0))).isEmpty();
    }

    /**
     * Told at once, its client would read the block as it still is, and come again with the same
     * condition, without end (found by seed 179614304701965).
     */
    @Test
    void conditionThatAnUncommittedWriteBrokeIsRefusedOnceThatWriteCanBeRead() {
        group.run(600);
        int session = openSession(group);
        assertDone(group.ask(1, write(session, 1, 1, 0, 7, 0)));
        long read = group.map(1).get(7L);
        group.cut(2);
        group.cut(3);
        assertThat(group.ask(1, write(session, 2, 2, 0, 7, ClientRequest.UNCONDITIONAL))).isEmpty();
        assertThat(group.ask(1, write(session, 3, 2, 0, 7, read)))
                .as("while the block is as it was read")
                .isEmpty();
        group.heal(2);
        group.heal(3);
        int before = group.replies.size();
        group.run(200);
        List<ClientReply> replies = group.replies.subList(before, group.replies.size());
        assertThat(replies).extracting(ClientReply::request).containsExactly(2L, 3L);
        assertDone(replies.subList(0, 1));
        assertThat(refusal(replies.subList(1, 2))).isEqualTo(Refusal.CONFLICT);
        assertThat(group.map(1).get(7L)).isGreaterThan(read);
    }

    /** Its client asks the next leader. */
    @Test
    void conditionThatAnUncommittedWriteBrokeIsNotForgottenWithTheLeader() {
        group.run(600);
        int session = openSession(group);
        assertDone(group.ask(1, write(session, 1, 1, 0, 7, 0)));
        long read = group.map(1).get(7L);
        group.cut(1);
        assertThat(group.ask(1, write(session, 2, 2, 0, 7, ClientRequest.UNCONDITIONAL))).isEmpty();
        assertThat(group.ask(1, write(session, 3, 2, 0, 7, read))).isEmpty();
        int before = group.replies.size();
        group.run(3000);
        group.heal(1);
        group.run(600);
        assertThat(group.replies.subList(before, group.replies.size()))
                .filteredOn(reply -> reply.request() == 3)
                .singleElement()
                .satisfies(
                        reply -> assertThat(refusal(List.of(reply))).isEqualTo(Refusal.NOT_LEADER));
    }

    @Test
    void cutLeaderReadsNothingOnceItsLeaseIsOver() {
        group.run(600);
        ClientRequest.Read read = new ClientRequest.Read(ReplicaGroup.SHARD, 1, 1, 1, 7, 1, 0);
        group.ask(1, read);
        assertThat(group.reads).hasSize(1);
        group.cut(1);
        group.run(300);
        group.ask(1, read);
        assertThat(group.reads).hasSize(1);
    }

    private static ClientRequest.Read copy(long block, int node) {
        return new ClientRequest.Read(ReplicaGroup.SHARD, 1, 99, 1, block, 1, node);
    }

    /** Promise P8. */
    @Test
    void anotherReplicasCopyIsTakenOnceItIsOfTheLeadersVersion() {
        group.run(600);
        int session = openSession(group);
        assertDone(group.ask(1, write(session, 1, 7)));
        // Its follower does not know yet that the write is committed.
        assertThat(refusal(group.ask(1, copy(7, 3)))).isEqualTo(Refusal.COPY_UNAVAILABLE);
        group.run(200);
        assertThat(group.ask(1, copy(7, 3))).isEmpty();
        assertThat(group.copies).hasSize(1);
        assertThat(group.copies.getFirst().from()).isEqualTo(3);
        assertThat(group.copies.getFirst().copy().sequence()).isEqualTo(group.map(1).get(7L));
        group.ask(1, copy(7, 1));
        assertThat(group.reads).as("its own").containsExactly(copy(7, 1));
    }

    @Test
    void aCopyThatDoesNotComeIsGivenUp() {
        group.run(600);
        group.cut(3);
        assertThat(group.ask(1, copy(7, 3))).isEmpty();
        group.run(400);
        assertThat(refusal(group.replies)).isEqualTo(Refusal.COPY_UNAVAILABLE);
        group.heal(3);
        group.run(400);
        assertThat(group.copies).isEmpty();
    }

    @Test
    void aCopyThatNoDiskCanGiveIsRefusedForGood() {
        group.run(600);
        group.unreadable.add(2);
        assertThat(refusal(group.ask(1, copy(7, 2)))).isEqualTo(Refusal.IO_ERROR);
        assertThat(refusal(group.ask(1, copy(7, 8)))).as("no replica").isEqualTo(Refusal.IO_ERROR);
    }

    @Test
    void returningLeaderTakesTheNewHistory() {
        group.run(600);
        int session = openSession(group);
        group.cut(1);
        group.ask(1, write(session, 1, 7));
        group.run(1000);
        int next = group.leader();
        assertDone(group.ask(next, write(session, 2, 8)));
        group.heal(1);
        group.run(400);
        assertThat(group.map(1)).isEqualTo(group.map(next)).doesNotContainKey(7L);
        assertThat(group.status(1).last()).isEqualTo(group.status(next).last());
    }

    @Test
    void flushIsAnsweredByAMajorityOfSyncs() {
        group.run(600);
        int session = openSession(group);
        group.cut(3);
        assertDone(group.ask(1, write(session, 1, 7)));
        assertDone(group.ask(1, new ClientRequest.Flush(ReplicaGroup.SHARD, 1, 2, session)));
        assertThat(group.status(2).durable()).isEqualTo(group.status(2).last());
    }

    @Test
    void plannedMoveHandsOver() {
        group.run(600);
        group.step(1, new Event.StepAside(3));
        group.run(40);
        assertThat(group.leader()).isEqualTo(3);
    }

    // ---- one replica alone, and what it does about what it finds and hears

    /** In the middle of a catch-up to sequence 6 of epoch 4, which no majority holds any more. */
    private static LoneReplica withABaseOfEpoch4(HardState.Standing standing) {
        HardState half = new HardState(4, 1, standing, new HardState.CatchUp(4, 6));
        return new LoneReplica(3, half, LoneReplica.entries(1, 1, 2));
    }

    /** Its extents of the base would be newer for ever than what the older tail wrote there. */
    @ParameterizedTest
    @EnumSource(names = {"CATCHING_UP", "INSTALLING"})
    void replicaThatCatchesUpStartsOverWhenAnOlderTailReachesBeyondItsBase(
            HardState.Standing standing) {
        LoneReplica lone = withABaseOfEpoch4(standing);
        assertThat(lone.hears(2, LoneReplica.append(5, 1, 2, LoneReplica.entries(3, 3, 5))))
                .as("epoch 4 may still follow")
                .doesNotHaveAnyElementsOfTypes(Effect.StartOver.class);
        assertThat(lone.hears(2, LoneReplica.append(5, 3, 5, LoneReplica.entries(3, 6, 7))))
                .hasAtLeastOneElementOfType(Effect.StartOver.class);
        assertThat(lone.status().last()).isZero();
    }

    @ParameterizedTest
    @EnumSource(names = {"CATCHING_UP", "INSTALLING"})
    void replicaThatCatchesUpStartsOverWhenTheNextBaseIsOnAnOlderTail(HardState.Standing standing) {
        EpochHistory older = new EpochHistory();
        older.extend(1, 1);
        older.extend(3, 3);
        LoneReplica lone = withABaseOfEpoch4(standing);
        assertThat(lone.hears(2, LoneReplica.catchUp(5, 0, 3, 8, lone.history(older, 8))))
                .hasAtLeastOneElementOfType(Effect.StartOver.class);
        assertThat(lone.status().standing()).isEqualTo(HardState.Standing.INSTALLING);
    }

    @Test
    void replicaThatCatchesUpGoesOnWhereTheLeadersHistoryHasItsBase() {
        EpochHistory same = new EpochHistory();
        same.extend(1, 1);
        same.extend(3, 4);
        LoneReplica byEntries = withABaseOfEpoch4(HardState.Standing.CATCHING_UP);
        LoneReplica byExtents = withABaseOfEpoch4(HardState.Standing.CATCHING_UP);
        assertThat(byEntries.hears(2, LoneReplica.append(5, 1, 2, LoneReplica.entries(4, 3, 7))))
                .doesNotHaveAnyElementsOfTypes(Effect.StartOver.class);
        assertThat(byExtents.hears(2, LoneReplica.catchUp(5, 0, 4, 8, byExtents.history(same, 8))))
                .doesNotHaveAnyElementsOfTypes(Effect.StartOver.class);
    }

    /** The map may hold extents from anywhere up to the base, and the log not what is before it. */
    @Test
    void replicaThatCatchesUpIsNoVoterBeforeItsLogHasReachedItsBase() {
        for (HardState.Standing standing :
                List.of(HardState.Standing.CATCHING_UP, HardState.Standing.INSTALLING)) {
            LoneReplica lone = withABaseOfEpoch4(standing);
            lone.hears(2, promoting(1, 2, LoneReplica.entries(4, 3, 5)));
            assertThat(lone.status().standing()).isEqualTo(standing);
            lone.hears(2, promoting(4, 5, LoneReplica.entries(4, 6, 6)));
            assertThat(lone.status().standing()).isEqualTo(HardState.Standing.VOTER);
        }
    }

    private static ReplicaMessage.Append promoting(
            long previousEpoch, long previous, List<Entry> entries) {
        long through = previous + entries.size();
        return new ReplicaMessage.Append(
                ReplicaGroup.SHARD, 5, previousEpoch, previous, through, 0, true, 1, entries);
    }

    @Test
    void ofSeveralCatchUpsTheFurthestBaseIsRemembered() {
        EpochHistory same = new EpochHistory();
        same.extend(1, 1);
        same.extend(3, 4);
        LoneReplica lone = withABaseOfEpoch4(HardState.Standing.CATCHING_UP);
        HardState nearer =
                LoneReplica.persisted(
                        lone.hears(2, LoneReplica.catchUp(5, 0, 4, 5, lone.history(same, 5))));
        assertThat(nearer.catchUp()).isEqualTo(new HardState.CatchUp(4, 6));
        HardState further =
                LoneReplica.persisted(
                        lone.hears(2, LoneReplica.catchUp(5, 0, 4, 8, lone.history(same, 8))));
        assertThat(further.catchUp()).isEqualTo(new HardState.CatchUp(4, 8));
    }

    /** What it acknowledges from then on, the losing candidate lacks. */
    @ParameterizedTest
    @EnumSource(names = {"VOTER", "LEARNER", "INSTALLING"})
    void promiseOfAnEpochPassesFromALosingCandidateToTheLeader(HardState.Standing standing) {
        LoneReplica lone = new LoneReplica(5, new HardState(4, 2, standing), List.of());
        assertThat(lone.answers(2, LoneReplica.request(5, 0, 0)).granted()).isTrue();
        List<Effect> turn = lone.hears(1, LoneReplica.append(5, 0, 0, List.of()));
        lone.waitsOutTheGuard();
        assertThat(lone.answers(2, LoneReplica.request(5, 0, 0)).granted()).isFalse();
        HardState kept = LoneReplica.persisted(turn);
        assertThat(kept.promised()).isEqualTo(5);
        assertThat(kept.promisedTo()).isEqualTo(1);
    }

    @Test
    void dependentElectsTheLeaderThatItFollowedAndNotTheCandidateThatItPromisedTo() {
        LoneReplica lone =
                new LoneReplica(5, new HardState(4, 2, HardState.Standing.INSTALLING), List.of());
        assertThat(lone.answers(2, LoneReplica.request(5, 0, 0)).granted()).isTrue();
        lone.hears(1, LoneReplica.append(5, 0, 0, LoneReplica.entries(5, 1, 2)));
        lone.waitsOutTheGuard();
        assertThat(lone.answers(2, LoneReplica.request(6, 5, 9)).granted()).isFalse();
        assertThat(lone.answers(1, LoneReplica.request(6, 5, 2)).granted()).isTrue();
    }

    /** The cut makes the turn reach the disk in two parts, the state in the first of them. */
    @Test
    void acknowledgementOfATurnThatCutsTheLogWaitsUntilItsPromiseIsSynced() {
        LoneReplica lone =
                new LoneReplica(
                        3,
                        new HardState(1, 1, HardState.Standing.VOTER),
                        LoneReplica.entries(1, 1, 3));
        List<Effect> turn =
                lone.hears(2, LoneReplica.append(2, 1, 1, LoneReplica.entries(2, 2, 3)));
        assertThat(turn).hasAtLeastOneElementOfType(Effect.Truncate.class);
        assertThat(LoneReplica.persisted(turn).promised()).isEqualTo(2);
        assertThat(LoneReplica.sent(turn, 2, ReplicaMessage.AppendReply.class))
                .singleElement()
                .satisfies(reply -> assertThat(reply.matched()).isEqualTo(3));
        assertThat(LoneReplica.leavingUnsynced(turn)).isEmpty();
    }

    /** The base splits the turn as a cut does, and no entries come after it. */
    @Test
    void acknowledgementOfATurnThatTakesABaseWaitsUntilItsPromiseIsSynced() {
        EpochHistory history = new EpochHistory();
        history.extend(1, 1);
        LoneReplica lone =
                new LoneReplica(3, new HardState(1, 1, HardState.Standing.VOTER), List.of());
        List<Effect> turn =
                lone.turn(
                        new Event.FromPeer(
                                2, LoneReplica.catchUp(2, 0, 1, 8, lone.history(history, 8))),
                        new Event.FromPeer(2, LoneReplica.lastPart(2, 8)),
                        new Event.FromPeer(2, LoneReplica.append(2, 0, 0, List.of())));
        assertThat(turn).hasAtLeastOneElementOfType(Effect.InstallBase.class);
        assertThat(LoneReplica.sent(turn, 2, ReplicaMessage.AppendReply.class)).hasSize(1);
        assertThat(LoneReplica.leavingUnsynced(turn)).isEmpty();
    }

    /** Of its log nothing counts: after a power loss it may be the longer one. */
    @Test
    void dependentPromisesToTheNodeItDependsOnWhateverTheirLogs() {
        LoneReplica lone =
                new LoneReplica(
                        3,
                        new HardState(4, 1, HardState.Standing.INSTALLING),
                        LoneReplica.entries(3, 1, 3));
        assertThat(lone.answers(2, LoneReplica.request(5, 4, 9)).granted()).isFalse();
        ReplicaMessage.PromiseReply promise = lone.answers(1, LoneReplica.request(5, 3, 1));
        assertThat(promise.granted()).isTrue();
        assertThat(promise.voice()).isEqualTo(Voice.DEPENDENT);
    }

    /** Nothing of that epoch was acknowledged, and what was before is where it was. */
    @Test
    void dependentWhosePromiseWasTornOffItsEntriesDependsOnTheSameNode() {
        LoneReplica lone =
                new LoneReplica(
                        3,
                        new HardState(1, 1, HardState.Standing.INSTALLING),
                        LoneReplica.entries(2, 1, 2));
        assertThat(lone.status().promised()).isEqualTo(2);
        assertThat(lone.answers(2, LoneReplica.request(3, 2, 2)).granted()).isFalse();
        assertThat(lone.answers(1, LoneReplica.request(3, 2, 2)).granted()).isTrue();
    }

    /** Its own acknowledgement makes up the majority by which the old leader reads alone. */
    @Test
    void replicaNamedAsLeaderWaitsOutTheLeaseThatItConfirmedItself() {
        group.run(600);
        group.cut(2);
        group.run(400);
        group.cut(1);
        group.heal(2);
        group.step(3, new Event.Campaign());
        group.step(3, new Event.TurnEnd());
        group.run(40);
        group.ask(1, read(ReplicaGroup.LAYER, 7, 1));
        assertThat(group.reads).as("read under the lease").hasSize(1);
        assertThat(group.leader()).isZero();
        group.run(400);
        assertThat(group.leader()).isIn(2, 3);
    }

    @Test
    void replicaNamedAsLeaderCampaignsOnceTheGuardIsOver() {
        LoneReplica lone =
                new LoneReplica(3, new HardState(1, 1, HardState.Standing.VOTER), List.of());
        lone.hears(1, LoneReplica.append(1, 0, 0, List.of()));
        assertThat(campaigns(lone.takes(new Event.Campaign()))).isFalse();
        assertThat(campaigns(lone.takes(new Event.Tick()))).isFalse();
        lone.waitsOutTheGuard();
        assertThat(campaigns(lone.takes(new Event.Tick()))).isTrue();
    }

    private static boolean campaigns(List<Effect> effects) {
        return !LoneReplica.sent(effects, 1, ReplicaMessage.PromiseRequest.class).isEmpty();
    }

    /** It may lose power, or its disk, and be asked again in the same round. */
    @Test
    void candidateCountsEachReplicaOnce() {
        LoneReplica lone =
                new LoneReplica(5, new HardState(1, 1, HardState.Standing.VOTER), List.of());
        lone.takes(new Event.Campaign());
        for (Voice voice : Voice.values()) {
            lone.hears(1, LoneReplica.granted(2, true, voice));
        }
        assertThat(lone.status().promised()).as("two of five").isEqualTo(1);
        lone.hears(2, LoneReplica.granted(2, true, Voice.VOTER));
        assertThat(lone.status().promised()).as("three of five").isEqualTo(2);
    }

    @Test
    void candidateCountsEachReplicaOnceAfterAPowerLossOfAMajority() {
        Candidacy round = new Candidacy(2, true, false, 0, 0);
        round.grantedBy(3, Voice.LEARNER);
        round.grantedBy(1, Voice.VOTER);
        round.grantedBy(1, Voice.LEARNER);
        round.heard(4, Voice.LEARNER);
        round.heard(5, Voice.LEARNER);
        assertThat(round.isWonAfterPowerLoss(3, 5)).as("two of five").isFalse();
        round.grantedBy(4, Voice.LEARNER);
        assertThat(round.isWonAfterPowerLoss(3, 5)).as("three of five").isTrue();
    }

    /** What it promised as a voter, it promised with all that it ever acknowledged. */
    @Test
    void firstPromiseOfAReplicaThatLosesPowerInARoundStands() {
        Candidacy round = new Candidacy(2, true, false, 0, 0);
        round.grantedBy(3, Voice.VOTER);
        round.grantedBy(1, Voice.VOTER);
        round.grantedBy(1, Voice.LEARNER);
        assertThat(round.isWonByVoters(2, true)).isTrue();
    }

    /** The simulator's seed 1879: it came out as a learner, and learners elected without it. */
    @Test
    void voterInTheMiddleOfACatchUpGoesOnVotingAfterARestart() {
        EpochHistory history = new EpochHistory();
        history.extend(1, 1);
        List<Entry> log = LoneReplica.entries(1, 1, 3);
        LoneReplica lone = new LoneReplica(3, new HardState(1, 1, HardState.Standing.VOTER), log);
        HardState kept =
                LoneReplica.persisted(
                        lone.hears(2, LoneReplica.catchUp(2, 0, 1, 8, lone.history(history, 8))));
        LoneReplica restarted = new LoneReplica(3, kept, log);
        ReplicaMessage.PromiseReply shorter = restarted.answers(1, LoneReplica.request(3, 1, 2));
        assertThat(shorter.granted()).isFalse();
        assertThat(shorter.voice()).isEqualTo(Voice.VOTER);
        assertThat(restarted.answers(1, LoneReplica.request(3, 1, 3)).granted()).isTrue();
        LoneReplica lostPower = new LoneReplica(3, kept.afterPowerLoss(), log);
        assertThat(lostPower.answers(1, LoneReplica.request(3, 1, 3)).voice())
                .isEqualTo(Voice.DEPENDENT);
    }

    /** The simulator's seed 13: its map would have had holes. */
    @Test
    void catchUpThatBuildsOnMoreThanIsAppliedIsNotBegun() {
        EpochHistory history = new EpochHistory();
        history.extend(1, 1);
        LoneReplica lone =
                new LoneReplica(3, new HardState(1, 1, HardState.Standing.VOTER), List.of());
        assertThat(
                        LoneReplica.messages(
                                lone.hears(
                                        1,
                                        LoneReplica.catchUp(1, 2, 1, 8, lone.history(history, 8)))))
                .isEmpty();
        assertThat(lone.status().standing()).isEqualTo(HardState.Standing.VOTER);
    }

    /** Seeds 3571 and 5083: it took no entries any more, and its leader sent nothing else. */
    @Test
    void catchUpThatIsDoneIsNotBegunAgain() {
        LoneReplica lone =
                new LoneReplica(
                        3,
                        new HardState(1, 1, HardState.Standing.VOTER),
                        LoneReplica.entries(1, 1, 3));
        lone.hears(
                1,
                new ReplicaMessage.Append(ReplicaGroup.SHARD, 1, 1, 3, 3, 0, false, 1, List.of()));
        assertThat(lone.status().applied()).isEqualTo(3);
        assertThat(
                        LoneReplica.messages(
                                lone.hears(1, LoneReplica.catchUp(1, 0, 1, 3, lone.shardState()))))
                .isEmpty();
        assertThat(lone.status().standing()).isEqualTo(HardState.Standing.VOTER);
    }

    /** The simulator's seed 128: the answer that was owed went to node 0. */
    @Test
    void candidateOwesTheOldLeaderNoAnswer() {
        LoneReplica lone =
                new LoneReplica(3, new HardState(1, 1, HardState.Standing.VOTER), List.of());
        List<Effect> turn =
                lone.turn(
                        new Event.FromPeer(1, LoneReplica.append(1, 0, 0, List.of())),
                        new Event.FromPeer(1, new ReplicaMessage.HandOver(ReplicaGroup.SHARD, 1)));
        assertThat(campaigns(turn)).isTrue();
        assertThat(LoneReplica.messages(turn))
                .allSatisfy(out ->
                        assertThat(out.message())
                                .isInstanceOf(ReplicaMessage.PromiseRequest.class));
    }

    /** A newer leader's lease is not the old leader's to give up. */
    @Test
    void handOverByALeaderThatWasReplacedWaivesNoLease() {
        for (long newest : List.of(1L, 5L)) {
            LoneReplica lone =
                    new LoneReplica(3, new HardState(1, 1, HardState.Standing.VOTER), List.of());
            lone.hears(1, LoneReplica.append(1, 0, 0, List.of()));
            lone.hears(
                    2,
                    new ReplicaMessage.AppendReply(
                            ReplicaGroup.SHARD,
                            newest,
                            false,
                            0,
                            0,
                            0,
                            0,
                            false,
                            Room.ENOUGH,
                            Long.MIN_VALUE));
            List<Effect> turn = lone.hears(1, new ReplicaMessage.HandOver(ReplicaGroup.SHARD, 1));
            assertThat(LoneReplica.sent(turn, 2, ReplicaMessage.PromiseRequest.class))
                    .singleElement()
                    .satisfies(request -> {
                        assertThat(request.epoch()).isEqualTo(newest + 1);
                        assertThat(request.handOver()).isEqualTo(newest == 1);
                    });
        }
    }

    private static Event asks(ClientRequest request) {
        return new Event.FromClient(ReplicaGroup.CLIENT, request);
    }

    /**
     * The simulator's seed 1: it looked at its state before the earlier epoch's entries were in.
     */
    @Test
    void laterLeaderGrantsNoSessionAndNoClaimThatAnEarlierOneGranted() {
        List<Entry> log = new ArrayList<>(LoneReplica.entries(1, 1, 1));
        log.add(
                Entry.builder(ReplicaGroup.SHARD, EntryKind.OPEN_SESSION)
                        .at(1, 2, 1)
                        .request(1, 0, 0, 0)
                        .build());
        log.add(
                Entry.builder(ReplicaGroup.SHARD, EntryKind.CLAIM)
                        .at(1, 3, 1)
                        .request(1, 0, 0, 1)
                        .payload(new Claim(1, true, 9, 0, "a", 1).payload())
                        .build());
        LoneReplica leader = new LoneReplica(3, new HardState(1, 1, HardState.Standing.VOTER), log);
        leader.isElected();
        leader.takes(asks(new ClientRequest.OpenSession(ReplicaGroup.SHARD, 2, 1, 0)));
        assertThat(leader.isFollowed())
                .contains(new Effect.Reply(9, new ClientReply.Done(ReplicaGroup.SHARD, 2, 1, 2)));
        leader.takes(asks(claim(2, 2, "b", true)));
        assertThat(leader.isFollowed())
                .contains(new Effect.Reply(9, new ClientReply.Done(ReplicaGroup.SHARD, 1, 2, 2)));
    }

    // ---- a leader alone, whose follower 2 catches up by extents

    /** Node 2 had applied {@code applied} of three entries, and the next ones are gone. */
    private static LoneReplica offersACatchUpTo2(long applied) {
        LoneReplica leader = LoneReplica.leading();
        for (int request = 1; request <= 2; request++) {
            leader.takes(asks(new ClientRequest.OpenSession(ReplicaGroup.SHARD, 1, request, 0)));
            leader.isFollowed();
        }
        assertThat(leader.status().applied()).isEqualTo(3);
        leader.hears(2, LoneReplica.accepted(1, applied, applied));
        leader.takes(new Event.EntriesGone(2));
        return leader;
    }

    private static List<Long> catchUpsSince(List<Effect> effects) {
        return LoneReplica.sent(effects, 2, ReplicaMessage.InstallBegin.class).stream()
                .map(ReplicaMessage.InstallBegin::since)
                .toList();
    }

    /** The simulator's seed 13: parts went to a follower that had forgotten the catch-up. */
    @Test
    void leaderBeginsACatchUpAnewForAFollowerThatHasLessThanItBuildsOn() {
        LoneReplica leader = offersACatchUpTo2(1);
        assertThat(catchUpsSince(leader.beats())).containsExactly(1L);
        leader.hears(2, LoneReplica.accepted(1, 0, 0));
        assertThat(catchUpsSince(leader.beats())).containsExactly(0L);
    }

    @Test
    void leaderRepeatsTheBeginningOfACatchUpThatIsNotAnswered() {
        LoneReplica leader = offersACatchUpTo2(1);
        assertThat(catchUpsSince(leader.beats())).containsExactly(1L);
        ReplicaMessage.InstallReply ready =
                new ReplicaMessage.InstallReply(
                        ReplicaGroup.SHARD, 1, 3, ReplicaMessage.Cursor.START, false);
        assertThat(leader.hears(2, ready)).hasAtLeastOneElementOfType(Effect.SendExtents.class);
        List<Effect> later = new ArrayList<>();
        for (int beat = 1; beat <= 12; beat++) {
            later.addAll(leader.beats());
            leader.hears(1, LoneReplica.accepted(1, 3, 3));
        }
        assertThat(later).doesNotHaveAnyElementsOfTypes(Effect.SendExtents.class);
        assertThat(catchUpsSince(later)).containsExactly(1L);
        assertThat(leader.hears(2, ready)).hasAtLeastOneElementOfType(Effect.SendExtents.class);
    }

    /** The simulator's seed 73: it was offered for ever. */
    @Test
    void catchUpThatEntriesHaveOvertakenIsNotOfferedAgain() {
        LoneReplica leader = offersACatchUpTo2(1);
        assertThat(catchUpsSince(leader.beats())).containsExactly(1L);
        leader.hears(2, LoneReplica.accepted(1, 3, 3));
        List<Effect> later = new ArrayList<>();
        for (int beat = 1; beat <= 12; beat++) {
            later.addAll(leader.beats());
            leader.hears(1, LoneReplica.accepted(1, 3, 3));
        }
        assertThat(catchUpsSince(later)).isEmpty();
        assertThat(LoneReplica.sent(later, 2, ReplicaMessage.Append.class))
                .allSatisfy(frame -> assertThat(frame.previousSequence()).isEqualTo(3));
    }
}
