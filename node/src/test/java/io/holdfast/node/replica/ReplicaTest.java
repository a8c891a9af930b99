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
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

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
}
