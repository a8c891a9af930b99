package io.holdfast.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.holdfast.client.BlockDevice.Outcome;
import io.holdfast.proto.catalogue.Volume.Attach;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ClientRequest;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.Test;

final class VolumeClientTest {
    private static final int BLOCK = Blocks.SIZE;

    /** Counts what the client reports. */
    private static final class Counts implements ClientEvents {
        int repeated;
        int timedOut;
        int conflicts;
        int malformed;
        final List<Long> corrupt = new ArrayList<>();
        final List<Long> recovered = new ArrayList<>();
        final List<Long> unreadable = new ArrayList<>();

        @Override
        public void requestRepeated(int volume) {
            repeated++;
        }

        @Override
        public void requestTimedOut(int volume) {
            timedOut++;
        }

        @Override
        public void writeConflicted(int volume) {
            conflicts++;
        }

        @Override
        public void replyMalformed(int volume, int node) {
            malformed++;
        }

        @Override
        public void blockCorrupt(int volume, long block) {
            corrupt.add(block);
        }

        @Override
        public void blockRecovered(int volume, long block) {
            recovered.add(block);
        }

        @Override
        public void blockUnreadable(int volume, long block) {
            unreadable.add(block);
        }
    }

    private final Counts counts = new Counts();

    private static ModelCluster cluster(int shards, Attach attach) {
        return new ModelCluster(1, shards, attach, 30);
    }

    private static byte[] bytes(int length, int value) {
        byte[] bytes = new byte[length];
        Arrays.fill(bytes, (byte) value);
        return bytes;
    }

    /** A call's result once it has one. */
    private static List<Outcome> write(BlockDevice device, long offset, byte[] bytes) {
        List<Outcome> outcome = new ArrayList<>();
        device.write(offset, Unpooled.wrappedBuffer(bytes), false, outcome::add);
        return outcome;
    }

    private static List<Outcome> flush(BlockDevice device) {
        List<Outcome> outcome = new ArrayList<>();
        device.flush(outcome::add);
        return outcome;
    }

    private static Outcome await(ModelCluster cluster, List<Outcome> outcome, long millis) {
        cluster.runUntil(() -> !outcome.isEmpty(), millis);
        assertThat(outcome).hasSize(1);
        return outcome.getFirst();
    }

    private static Outcome await(ModelCluster cluster, List<Outcome> outcome) {
        return await(cluster, outcome, 1_000);
    }

    private static byte[] read(ModelCluster cluster, BlockDevice device, long offset, int length) {
        ByteBuf target = Unpooled.directBuffer(length + 3, length + 3);
        target.writerIndex(3);
        List<Outcome> outcome = new ArrayList<>();
        device.read(offset, target, outcome::add);
        assertThat(await(cluster, outcome)).isEqualTo(Outcome.OK);
        assertThat(target.writerIndex()).isEqualTo(length + 3);
        byte[] bytes = new byte[length];
        target.getBytes(3, bytes);
        target.release();
        return bytes;
    }

    @Test
    void readsBackWhatItWroteAcrossShardsAndAtOddOffsets() {
        ModelCluster cluster = cluster(3, Attach.EXCLUSIVE);
        VolumeClient client = cluster.client(1, "a");
        byte[] model = new byte[96 * BLOCK];
        int[][] ranges = {
            {0, 5 * BLOCK},
            {7 * BLOCK, 20 * BLOCK},
            {100, 10},
            {4095, 2},
            {8 * BLOCK - 1, 9 * BLOCK + 3},
            {95 * BLOCK + 1, BLOCK - 1}
        };
        for (int[] range : ranges) {
            byte[] data = bytes(range[1], range[0] + range[1]);
            assertThat(await(cluster, write(client, range[0], data))).isEqualTo(Outcome.OK);
            System.arraycopy(data, 0, model, range[0], data.length);
        }
        assertThat(read(cluster, client, 0, model.length)).isEqualTo(model);
        assertThat(read(cluster, client, 4_090, 10))
                .isEqualTo(Arrays.copyOfRange(model, 4_090, 4_100));
        assertThat(await(cluster, flush(client))).isEqualTo(Outcome.OK);
        assertThat(cluster.shards).allMatch(shard -> shard.flushes == 1);
    }

    @Test
    void zeroesExactlyTheRangeAndSendsNoDataForWholeBlocks() {
        ModelCluster cluster = cluster(2, Attach.EXCLUSIVE);
        VolumeClient client = cluster.client(1, "a");
        await(cluster, write(client, 0, bytes(40 * BLOCK, 9)));
        List<Outcome> outcome = new ArrayList<>();
        client.zero(BLOCK - 5, 30 * BLOCK + 11, true, true, outcome::add);
        assertThat(await(cluster, outcome)).isEqualTo(Outcome.OK);
        byte[] model = bytes(40 * BLOCK, 9);
        Arrays.fill(model, BLOCK - 5, 31 * BLOCK + 6, (byte) 0);
        assertThat(read(cluster, client, 0, 40 * BLOCK)).isEqualTo(model);
        assertThat(cluster.sent.stream().filter(ClientRequest.Zero.class::isInstance))
                .allMatch(zero -> ((ClientRequest.Zero) zero).trim())
                .allMatch(zero -> ((ClientRequest.Zero) zero).fua());
    }

    @Test
    void emptyCallsCompleteAtOnce() {
        ModelCluster cluster = cluster(1, Attach.EXCLUSIVE);
        VolumeClient client = cluster.client(1, "a");
        assertThat(write(client, 5, new byte[0])).containsExactly(Outcome.OK);
        assertThat(cluster.sent).isEmpty();
    }

    @Test
    void refusesToGoBeyondTheEnd() {
        VolumeClient client = cluster(1, Attach.EXCLUSIVE).client(1, "a");
        assertThatThrownBy(() -> write(client, 96 * BLOCK - 1, new byte[2]))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("out of range");
    }

    @Test
    void plaintextNeverLeaves() {
        ModelCluster cluster = cluster(2, Attach.EXCLUSIVE);
        VolumeClient client = cluster.client(1, "a");
        byte[] secret = "the quick brown fox, in the clear".getBytes(StandardCharsets.US_ASCII);
        byte[] data = new byte[20 * BLOCK];
        for (int i = 0; i + secret.length <= data.length; i += 64) {
            System.arraycopy(secret, 0, data, i, secret.length);
        }
        await(cluster, write(client, 0, data));
        await(cluster, write(client, 30 * BLOCK + 7, secret));
        int payloads = 0;
        for (ClientRequest request : cluster.sent) {
            if (request instanceof ClientRequest.Write write) {
                payloads++;
                String text = new String(write.payload(), StandardCharsets.ISO_8859_1);
                assertThat(text).doesNotContain("the quick", "brown");
            }
        }
        assertThat(payloads).isGreaterThan(2);
    }

    @Test
    void followsTheLeaderThatAReplicaNames() {
        ModelCluster cluster = cluster(1, Attach.EXCLUSIVE);
        VolumeClient client = cluster.client(1, "a");
        await(cluster, write(client, 0, bytes(BLOCK, 1)));
        cluster.lead(0, 3);
        assertThat(await(cluster, write(client, 0, bytes(BLOCK, 2)), 20)).isEqualTo(Outcome.OK);
    }

    @Test
    void findsTheNewLeaderSoonAfterTheOldOneDied() {
        ModelCluster cluster = cluster(1, Attach.EXCLUSIVE);
        VolumeClient client = cluster.client(1, "a", counts);
        await(cluster, write(client, 0, bytes(BLOCK, 1)));
        cluster.drop = request -> true;
        List<Outcome> stalled = write(client, 0, bytes(BLOCK, 2));
        cluster.pass(10);
        cluster.drop = request -> false;
        cluster.down.add(1);
        cluster.lead(0, 0);
        client.onDisconnected(1);
        cluster.pass(300);
        assertThat(stalled).isEmpty();
        cluster.lead(0, 3);
        assertThat(await(cluster, stalled, 150)).isEqualTo(Outcome.OK);
        assertThat(counts.repeated).isBetween(2, 20);
    }

    @Test
    void asksAnotherReplicaWhenTheLeaderIsSilent() {
        ModelCluster cluster = cluster(1, Attach.EXCLUSIVE);
        VolumeClient client = cluster.client(1, "a");
        await(cluster, write(client, 0, bytes(BLOCK, 1)));
        // Node 1 hangs with its connection open; node 2 has taken over.
        cluster.down.add(1);
        ModelCluster.Host blind =
                cluster.new Host() {
                    @Override
                    public boolean connected(int node) {
                        return true;
                    }
                };
        VolumeClient other =
                new VolumeClient(
                        2,
                        0,
                        cluster.volume,
                        new ClientIdentity("a"),
                        cluster.key,
                        VolumeClient.Window.DEFAULT,
                        blind,
                        cluster,
                        ClientEvents.NONE);
        blind.receiver = other::onReply;
        other.open();
        cluster.lead(0, 2);
        assertThat(await(cluster, write(other, 0, bytes(BLOCK, 2)), 1_500)).isEqualTo(Outcome.OK);
    }

    @Test
    void newerEpochWinsOverOlderNews() {
        ModelCluster cluster = cluster(1, Attach.EXCLUSIVE);
        VolumeClient client = cluster.client(1, "a", counts);
        await(cluster, write(client, 0, bytes(BLOCK, 1)));
        cluster.lead(0, 2);
        client.onLeader(0, 2, cluster.epochs[0]);
        client.onLeader(0, 3, 1);
        await(cluster, write(client, 0, bytes(BLOCK, 2)));
        assertThat(counts.repeated).isZero();
    }

    @Test
    void withoutAMajorityACallFailsAfterTheVolumesTimeAndLaterOnesWork() {
        ModelCluster cluster = cluster(1, Attach.EXCLUSIVE);
        VolumeClient client = cluster.client(1, "a", counts);
        await(cluster, write(client, 0, bytes(BLOCK, 1)));
        cluster.drop = request -> true;
        List<Outcome> lost = write(client, 0, bytes(BLOCK, 2));
        cluster.pass(29_900);
        assertThat(lost).isEmpty();
        assertThat(await(cluster, lost, 200)).isEqualTo(Outcome.IO_ERROR);
        assertThat(counts.timedOut).isEqualTo(1);
        assertThat(counts.repeated).isBetween(5, 12);
        cluster.drop = request -> false;
        assertThat(await(cluster, write(client, 0, bytes(BLOCK, 3)))).isEqualTo(Outcome.OK);
    }

    @Test
    void callsWaitForTheMajorityAndCompleteWhenItReturnsInTime() {
        ModelCluster cluster = cluster(2, Attach.EXCLUSIVE);
        cluster.drop = request -> true;
        VolumeClient client = cluster.client(1, "a", counts);
        List<Outcome> waiting = write(client, 0, bytes(20 * BLOCK, 2));
        cluster.pass(20_000);
        assertThat(waiting).isEmpty();
        cluster.drop = request -> false;
        assertThat(await(cluster, waiting, 9_000)).isEqualTo(Outcome.OK);
        assertThat(counts.timedOut).isZero();
    }

    /** Promise P4, the stalled-write bug. */
    @Test
    void aTimedOutWriteNeverRunsAfterALaterOne() {
        ModelCluster cluster = new ModelCluster(1, 1, Attach.EXCLUSIVE, 5);
        VolumeClient client = cluster.client(1, "a");
        await(cluster, write(client, 0, bytes(BLOCK, 1)));
        int before = cluster.sent.size();
        cluster.drop = request -> true;
        assertThat(await(cluster, write(client, 0, bytes(BLOCK, 2)), 6_000))
                .isEqualTo(Outcome.IO_ERROR);
        ClientRequest stalled = cluster.sent.get(before);
        cluster.drop = request -> false;
        assertThat(await(cluster, write(client, 0, bytes(BLOCK, 3)))).isEqualTo(Outcome.OK);
        ClientReply late = cluster.shards.getFirst().decide(cluster.leaders[0], stalled);
        assertThat(late).isInstanceOf(ClientReply.Refused.class);
        assertThat(read(cluster, client, 0, BLOCK)).isEqualTo(bytes(BLOCK, 3));
    }

    /**
     * A merged write starts late in its call's time and so times out before a write with a smaller
     * number. A later write must not start while the low water is still below the merged one.
     */
    @Test
    void aLaterWriteWaitsUntilTheLowWaterHasPassedATimedOutOne() {
        ModelCluster cluster = new ModelCluster(1, 1, Attach.EXCLUSIVE, 5);
        VolumeClient client = cluster.client(1, "a");
        await(cluster, write(client, 0, bytes(BLOCK, 1)));
        boolean[] readable = new boolean[1];
        cluster.drop =
                request ->
                        request instanceof ClientRequest.Write
                                || (request instanceof ClientRequest.Read && !readable[0]);
        List<Outcome> merged = write(client, 10, bytes(10, 2));
        cluster.pass(2_000);
        List<Outcome> older = write(client, 9 * BLOCK, bytes(BLOCK, 4));
        readable[0] = true;
        cluster.pass(2_900);
        assertThat(merged).isEmpty();
        assertThat(await(cluster, merged, 200)).isEqualTo(Outcome.IO_ERROR);
        ClientRequest.Write stalled = null;
        for (ClientRequest request : cluster.sent) {
            if (request instanceof ClientRequest.Write write && write.expectedSequence() >= 0) {
                stalled = write;
            }
        }
        if (stalled == null) {
            throw new AssertionError("the merged write was never sent");
        }
        List<Outcome> later = write(client, 0, bytes(BLOCK, 3));
        cluster.drop = request -> false;
        assertThat(await(cluster, later, 5_000)).isEqualTo(Outcome.OK);
        assertThat(older).hasSize(1);
        assertThat(cluster.shards.getFirst().decide(cluster.leaders[0], stalled))
                .isInstanceOf(ClientReply.Refused.class);
        ClientRequest.Write last = (ClientRequest.Write) cluster.sent.getLast();
        assertThat(last.lowWater()).isGreaterThan(stalled.request());
    }

    /** The simulator's seeds 600005 and 600014: the newer one failed after 142 ms. */
    @Test
    void eachPartOfAMergedWriteFailsWhenItsOwnTimeIsUp() {
        ModelCluster cluster = new ModelCluster(1, 1, Attach.EXCLUSIVE, 5);
        VolumeClient client = cluster.client(1, "a");
        await(cluster, write(client, 0, bytes(BLOCK, 1)));
        boolean[] readable = new boolean[1];
        cluster.drop =
                request ->
                        request instanceof ClientRequest.Write
                                || (request instanceof ClientRequest.Read && !readable[0]);
        List<Outcome> older = write(client, 10, bytes(10, 2));
        cluster.pass(2_000);
        List<Outcome> newer = write(client, 30, bytes(10, 3));
        readable[0] = true;
        cluster.pass(2_900);
        assertThat(cluster.sent)
                .as("one request for both")
                .last()
                .isInstanceOfSatisfying(
                        ClientRequest.Write.class,
                        merged -> assertThat(merged.expectedSequence()).isNotNegative());
        assertThat(older).isEmpty();
        assertThat(await(cluster, older, 200)).isEqualTo(Outcome.IO_ERROR);
        cluster.pass(1_000);
        assertThat(newer).isEmpty();
        cluster.drop = request -> false;
        assertThat(await(cluster, newer, 900)).isEqualTo(Outcome.OK);
        assertThat(read(cluster, client, 30, 10)).isEqualTo(bytes(10, 3));
    }

    @Test
    void twoClientsThatWriteTheHalvesOfABlockBothWin() {
        ModelCluster cluster = cluster(1, Attach.SHARED);
        VolumeClient a = cluster.client(1, "a", counts);
        VolumeClient b = cluster.client(2, "b", counts);
        for (int round = 1; round <= 20; round++) {
            List<Outcome> left = write(a, 0, bytes(BLOCK / 2, round));
            List<Outcome> right = write(b, BLOCK / 2, bytes(BLOCK / 2, 100 + round));
            assertThat(await(cluster, left)).isEqualTo(Outcome.OK);
            assertThat(await(cluster, right)).isEqualTo(Outcome.OK);
            byte[] model = bytes(BLOCK, round);
            Arrays.fill(model, BLOCK / 2, BLOCK, (byte) (100 + round));
            assertThat(read(cluster, a, 0, BLOCK)).isEqualTo(model);
        }
        assertThat(counts.conflicts).isPositive();
    }

    @Test
    void partialWritesOfOneClientToOneBlockShareMergesAndNeverConflict() {
        ModelCluster cluster = cluster(1, Attach.EXCLUSIVE);
        VolumeClient client = cluster.client(1, "a", counts);
        List<List<Outcome>> outcomes = new ArrayList<>();
        byte[] model = new byte[BLOCK];
        for (int i = 0; i < 40; i++) {
            byte[] data = bytes(150, i + 1);
            outcomes.add(write(client, i * 100L, data));
            System.arraycopy(data, 0, model, i * 100, Math.min(150, BLOCK - i * 100));
        }
        for (List<Outcome> outcome : outcomes) {
            assertThat(await(cluster, outcome)).isEqualTo(Outcome.OK);
        }
        assertThat(read(cluster, client, 0, BLOCK)).isEqualTo(model);
        assertThat(counts.conflicts).isZero();
        assertThat(cluster.sent.stream().filter(ClientRequest.Write.class::isInstance).count())
                .isLessThan(6);
    }

    @Test
    void aMergeNeverBringsBackWhatAWholeBlockWriteReplaced() {
        for (int seed = 0; seed < 30; seed++) {
            ModelCluster cluster = new ModelCluster(seed, 1, Attach.EXCLUSIVE, 30);
            cluster.maxDelay = 5 * ModelCluster.MS;
            VolumeClient client = cluster.client(1, "a");
            await(cluster, write(client, 0, bytes(BLOCK, 1)));
            List<Outcome> partial = write(client, 0, bytes(10, 2));
            cluster.pass(seed % 10);
            List<Outcome> whole = write(client, 0, bytes(BLOCK, 3));
            await(cluster, partial);
            await(cluster, whole);
            byte[] now = read(cluster, client, 0, BLOCK);
            assertThat(Arrays.copyOfRange(now, 10, BLOCK)).isEqualTo(bytes(BLOCK - 10, 3));
        }
    }

    @Test
    void anotherHoldersVolumeRefusesWritesUntilItIsReleased() {
        ModelCluster cluster = cluster(2, Attach.EXCLUSIVE);
        VolumeClient a = cluster.client(1, "a");
        VolumeClient b = cluster.client(2, "b");
        assertThat(await(cluster, write(a, 0, bytes(20 * BLOCK, 1)))).isEqualTo(Outcome.OK);
        assertThat(await(cluster, write(b, 0, bytes(BLOCK, 2)))).isEqualTo(Outcome.NOT_PERMITTED);
        assertThat(read(cluster, b, 0, BLOCK)).isEqualTo(bytes(BLOCK, 1));
        int asked = cluster.sent.size();
        assertThat(write(b, 0, bytes(BLOCK, 2))).containsExactly(Outcome.NOT_PERMITTED);
        assertThat(cluster.sent).hasSize(asked);
        boolean[] closed = new boolean[1];
        a.close(() -> closed[0] = true);
        cluster.runUntil(() -> closed[0], 1_000);
        assertThat(cluster.shards).allMatch(shard -> shard.holder.isEmpty());
        cluster.pass(1_000);
        assertThat(await(cluster, write(b, 0, bytes(20 * BLOCK, 2)))).isEqualTo(Outcome.OK);
        assertThat(read(cluster, a2(cluster), 0, BLOCK)).isEqualTo(bytes(BLOCK, 2));
    }

    private static VolumeClient a2(ModelCluster cluster) {
        return cluster.client(3, "a");
    }

    /** Promise P4: what a user left behind must not undo what it wrote elsewhere since. */
    @Test
    void anAttachmentIsOverOnceItsUserHasClaimedThroughAnother() {
        ModelCluster cluster = cluster(2, Attach.EXCLUSIVE);
        VolumeClient first = cluster.client(1, "a");
        VolumeClient second = cluster.client(2, "a");
        await(cluster, write(first, 0, bytes(20 * BLOCK, 1)));
        assertThat(await(cluster, write(second, 0, bytes(20 * BLOCK, 2)))).isEqualTo(Outcome.OK);
        assertThat(await(cluster, write(first, 0, bytes(20 * BLOCK, 3))))
                .isEqualTo(Outcome.IO_ERROR);
        assertThat(first.isUnusable()).isTrue();
        assertThat(write(first, 0, bytes(BLOCK, 4))).containsExactly(Outcome.IO_ERROR);
        assertThat(await(cluster, write(second, 0, bytes(BLOCK, 5)))).isEqualTo(Outcome.OK);
        assertThat(read(cluster, second, 0, BLOCK)).isEqualTo(bytes(BLOCK, 5));
        VolumeClient third = cluster.client(3, "a");
        assertThat(await(cluster, write(third, 0, bytes(20 * BLOCK, 6)))).isEqualTo(Outcome.OK);
    }

    @Test
    void anOlderAttachmentTakesNoClaimFromANewerOne() {
        ModelCluster cluster = cluster(1, Attach.EXCLUSIVE);
        VolumeClient first = cluster.client(1, "a");
        assertThat(await(cluster, flush(first))).isEqualTo(Outcome.OK);
        VolumeClient second = cluster.client(2, "a");
        assertThat(await(cluster, write(second, 0, bytes(BLOCK, 2)))).isEqualTo(Outcome.OK);
        assertThat(await(cluster, write(first, 0, bytes(BLOCK, 1))))
                .isEqualTo(Outcome.NOT_PERMITTED);
        assertThat(await(cluster, write(second, 0, bytes(BLOCK, 3)))).isEqualTo(Outcome.OK);
        boolean[] closed = new boolean[1];
        second.close(() -> closed[0] = true);
        cluster.runUntil(() -> closed[0], 1_000);
        cluster.pass(1_000);
        assertThat(await(cluster, write(first, 0, bytes(BLOCK, 1))))
                .isEqualTo(Outcome.NOT_PERMITTED);
        assertThat(read(cluster, first, 0, BLOCK)).isEqualTo(bytes(BLOCK, 3));
    }

    @Test
    void closedIsSaidAfterTheLastCallHasEnded() {
        ModelCluster cluster = cluster(1, Attach.EXCLUSIVE);
        VolumeClient client = cluster.client(1, "a");
        List<String> order = new ArrayList<>();
        client.read(0, Unpooled.buffer(BLOCK, BLOCK), outcome -> order.add("read " + outcome));
        client.close(() -> order.add("closed"));
        cluster.runUntil(() -> order.size() == 2, 1_000);
        assertThat(order).containsExactly("read OK", "closed");
    }

    @Test
    void aForgottenSessionIsReplacedAndARequestSentOnceRunsInTheNewOne() {
        for (Attach attach : Attach.values()) {
            ModelCluster cluster = cluster(2, attach);
            VolumeClient client = cluster.client(1, "a");
            await(cluster, write(client, 0, bytes(20 * BLOCK, 1)));
            cluster.shards.forEach(ModelShard::evictAll);
            assertThat(await(cluster, write(client, 0, bytes(20 * BLOCK, 2))))
                    .isEqualTo(Outcome.OK);
            cluster.shards.forEach(ModelShard::evictAll);
            assertThat(await(cluster, flush(client))).isEqualTo(Outcome.OK);
            assertThat(read(cluster, client, 0, 20 * BLOCK)).isEqualTo(bytes(20 * BLOCK, 2));
        }
    }

    @Test
    void aRepeatedRequestOfAForgottenSessionFailsInDoubt() {
        ModelCluster cluster = cluster(1, Attach.SHARED);
        VolumeClient client = cluster.client(1, "a");
        await(cluster, write(client, 0, bytes(BLOCK, 1)));
        cluster.drop = request -> true;
        List<Outcome> outcome = write(client, 0, bytes(BLOCK, 2));
        cluster.pass(1_100);
        cluster.shards.forEach(ModelShard::evictAll);
        cluster.drop = request -> false;
        assertThat(await(cluster, outcome, 6_000)).isEqualTo(Outcome.IO_ERROR);
        assertThat(await(cluster, write(client, 0, bytes(BLOCK, 3)))).isEqualTo(Outcome.OK);
    }

    /** Promise P5. */
    @Test
    void afterAPowerLossEverythingFailsUntilTheVolumeIsOpenedAgain() {
        ModelCluster cluster = cluster(2, Attach.EXCLUSIVE);
        VolumeClient client = cluster.client(1, "a");
        await(cluster, write(client, 0, bytes(20 * BLOCK, 1)));
        cluster.shards.forEach(ModelShard::losePower);
        List<Outcome> partial = write(client, 1, bytes(5, 2));
        assertThat(await(cluster, flush(client))).isEqualTo(Outcome.IO_ERROR);
        assertThat(await(cluster, partial)).isEqualTo(Outcome.IO_ERROR);
        assertThat(flush(client)).containsExactly(Outcome.IO_ERROR);
        assertThat(write(client, 0, bytes(5, 2))).containsExactly(Outcome.IO_ERROR);
        List<Outcome> read = new ArrayList<>();
        client.read(0, Unpooled.buffer(10, 10), read::add);
        assertThat(read).containsExactly(Outcome.IO_ERROR);
        assertThat(client.isUnusable()).isTrue();
        cluster.shards.forEach(shard -> shard.powerLost = false);
        VolumeClient again = cluster.client(2, "a");
        assertThat(await(cluster, write(again, 0, bytes(20 * BLOCK, 2)))).isEqualTo(Outcome.OK);
    }

    @Test
    void aFullDiskGivesNoSpaceAndReadsGoOn() {
        ModelCluster cluster = cluster(1, Attach.EXCLUSIVE);
        VolumeClient client = cluster.client(1, "a");
        await(cluster, write(client, 0, bytes(BLOCK, 1)));
        cluster.shards.getFirst().full = true;
        assertThat(await(cluster, write(client, 0, bytes(BLOCK, 2)))).isEqualTo(Outcome.NO_SPACE);
        assertThat(await(cluster, write(client, 3, bytes(5, 2)))).isEqualTo(Outcome.NO_SPACE);
        assertThat(read(cluster, client, 0, BLOCK)).isEqualTo(bytes(BLOCK, 1));
        cluster.shards.getFirst().full = false;
        assertThat(await(cluster, write(client, 0, bytes(BLOCK, 3)))).isEqualTo(Outcome.OK);
    }

    /** Promise P8. */
    @Test
    void corruptDataIsNeverReturned() {
        ModelCluster cluster = cluster(1, Attach.EXCLUSIVE);
        VolumeClient client = cluster.client(1, "a", counts);
        await(cluster, write(client, 0, bytes(4 * BLOCK, 1)));
        ModelShard shard = cluster.shards.getFirst();
        ModelShard.Stored stored = Objects.requireNonNull(shard.map.get(2L));
        byte[] damaged = ModelShard.sealedOf(stored).clone();
        damaged[77] ^= 1;
        shard.map.put(2L, new ModelShard.Stored(stored.sequence(), stored.nonce(), damaged));
        List<Outcome> outcome = new ArrayList<>();
        client.read(0, Unpooled.buffer(4 * BLOCK, 4 * BLOCK), outcome::add);
        assertThat(await(cluster, outcome)).isEqualTo(Outcome.IO_ERROR);
        assertThat(await(cluster, write(client, 2 * BLOCK + 1, bytes(4, 4))))
                .isEqualTo(Outcome.IO_ERROR);
        // Each time the leader's copy, and then every replica's.
        assertThat(counts.corrupt).hasSize(8).containsOnly(2L);
        assertThat(counts.unreadable).containsExactly(2L, 2L);
        assertThat(read(cluster, client, 0, 2 * BLOCK)).isEqualTo(bytes(2 * BLOCK, 1));
        // Another block's bytes, valid in themselves, are found out too.
        shard.map.put(2L, Objects.requireNonNull(shard.map.get(1L)));
        client.read(2 * BLOCK, Unpooled.buffer(BLOCK, BLOCK), outcome::add);
        cluster.runUntil(() -> outcome.size() == 2, 1_000);
        assertThat(outcome.getLast()).isEqualTo(Outcome.IO_ERROR);
    }

    /** Promise P8. */
    @Test
    void blocksThatAreBadAtTheLeaderAreReadFromAnotherReplica() {
        ModelCluster cluster = cluster(1, Attach.EXCLUSIVE);
        VolumeClient client = cluster.client(1, "a", counts);
        await(cluster, write(client, 0, bytes(4 * BLOCK, 1)));
        ModelShard shard = cluster.shards.getFirst();
        shard.copiesOf(1).corrupt.add(1L);
        shard.copiesOf(1).corrupt.add(2L);
        shard.copiesOf(2).corrupt.add(2L);
        assertThat(read(cluster, client, 0, 4 * BLOCK)).isEqualTo(bytes(4 * BLOCK, 1));
        assertThat(counts.recovered).containsExactlyInAnyOrder(1L, 2L);
        assertThat(counts.unreadable).isEmpty();
        assertThat(shard.copiesAskedFor).containsExactlyInAnyOrder(2, 2, 3);
    }

    /** Promise P8: EIO for just those blocks that no replica has. */
    @Test
    void aBlockThatNoReplicaHasFailsAlone() {
        ModelCluster cluster = cluster(1, Attach.EXCLUSIVE);
        VolumeClient client = cluster.client(1, "a", counts);
        await(cluster, write(client, 0, bytes(4 * BLOCK, 1)));
        ModelShard shard = cluster.shards.getFirst();
        shard.copiesOf(1).unreadable.add(2L);
        shard.copiesOf(2).corrupt.add(2L);
        shard.copiesOf(3).unreadable.add(2L);
        List<Outcome> outcome = new ArrayList<>();
        client.read(0, Unpooled.buffer(4 * BLOCK, 4 * BLOCK), outcome::add);
        assertThat(await(cluster, outcome)).isEqualTo(Outcome.IO_ERROR);
        assertThat(counts.unreadable).containsExactly(2L);
        assertThat(read(cluster, client, 0, 2 * BLOCK)).isEqualTo(bytes(2 * BLOCK, 1));
        assertThat(read(cluster, client, 3 * BLOCK, BLOCK)).isEqualTo(bytes(BLOCK, 1));
    }

    /** An unreadable block makes the leader refuse the whole range; the others are read there. */
    @Test
    void aRangeThatCannotBeReadIsReadBlockByBlock() {
        ModelCluster cluster = cluster(1, Attach.EXCLUSIVE);
        VolumeClient client = cluster.client(1, "a", counts);
        await(cluster, write(client, 0, bytes(4 * BLOCK, 1)));
        ModelShard shard = cluster.shards.getFirst();
        shard.copiesOf(1).unreadable.add(2L);
        assertThat(read(cluster, client, 0, 4 * BLOCK)).isEqualTo(bytes(4 * BLOCK, 1));
        assertThat(shard.copiesAskedFor).containsExactly(2);
    }

    @Test
    void aWriteOfPartOfABadBlockIsMergedWithAnotherReplicasCopy() {
        ModelCluster cluster = cluster(1, Attach.EXCLUSIVE);
        VolumeClient client = cluster.client(1, "a", counts);
        await(cluster, write(client, 0, bytes(4 * BLOCK, 1)));
        cluster.shards.getFirst().copiesOf(1).corrupt.add(2L);
        assertThat(await(cluster, write(client, 2 * BLOCK + 1, bytes(4, 4)))).isEqualTo(Outcome.OK);
        cluster.shards.getFirst().copies.clear();
        byte[] merged = bytes(BLOCK, 1);
        System.arraycopy(bytes(4, 4), 0, merged, 1, 4);
        assertThat(read(cluster, client, 2 * BLOCK, BLOCK)).isEqualTo(merged);
    }

    /** A replica that may still have the block is waited for, as long as the call has time. */
    @Test
    void aCopyThatCannotBeHadNowIsAskedForAgain() {
        ModelCluster cluster = cluster(1, Attach.EXCLUSIVE);
        VolumeClient client = cluster.client(1, "a", counts);
        await(cluster, write(client, 0, bytes(BLOCK, 1)));
        ModelShard shard = cluster.shards.getFirst();
        shard.copiesOf(1).corrupt.add(0L);
        shard.copiesOf(2).corrupt.add(0L);
        shard.copiesOf(3).away = true;
        List<Outcome> outcome = new ArrayList<>();
        ByteBuf target = Unpooled.buffer(BLOCK, BLOCK);
        client.read(0, target, outcome::add);
        cluster.pass(1_000);
        assertThat(outcome).isEmpty();
        shard.copiesOf(3).away = false;
        assertThat(await(cluster, outcome)).isEqualTo(Outcome.OK);
        assertThat(ByteBufUtil.getBytes(target)).isEqualTo(bytes(BLOCK, 1));
        assertThat(shard.copiesAskedFor).filteredOn(node -> node == 2).hasSize(1);
        assertThat(shard.copiesAskedFor).filteredOn(node -> node == 3).hasSizeBetween(3, 15);
    }

    /** What was found bad was another write's copy: the simulator gave a block up over that. */
    @Test
    void aCopyThatWasBadIsAskedForAgainWhenTheBlockWasOverwritten() {
        ModelCluster cluster = cluster(1, Attach.EXCLUSIVE);
        VolumeClient client = cluster.client(1, "a", counts);
        await(cluster, write(client, 0, bytes(BLOCK, 1)));
        ModelShard shard = cluster.shards.getFirst();
        shard.copiesOf(1).corrupt.add(0L);
        shard.copiesOf(2).corrupt.add(0L);
        shard.copiesOf(3).away = true;
        List<Outcome> outcome = new ArrayList<>();
        ByteBuf target = Unpooled.buffer(BLOCK, BLOCK);
        client.read(0, target, outcome::add);
        cluster.pass(1_000);
        await(cluster, write(client, 0, bytes(BLOCK, 2)));
        shard.copiesOf(2).corrupt.clear();
        shard.copiesOf(3).corrupt.add(0L);
        shard.copiesOf(3).away = false;
        assertThat(await(cluster, outcome)).isEqualTo(Outcome.OK);
        assertThat(ByteBufUtil.getBytes(target)).isEqualTo(bytes(BLOCK, 2));
        assertThat(counts.unreadable).isEmpty();
    }

    @Test
    void dropsRepliesThatNoHonestReplicaSends() {
        ModelCluster cluster = cluster(1, Attach.EXCLUSIVE);
        VolumeClient client = cluster.client(1, "a", counts);
        await(cluster, write(client, 0, bytes(BLOCK, 1)));
        List<Outcome> outcome = new ArrayList<>();
        client.read(0, Unpooled.buffer(BLOCK, BLOCK), outcome::add);
        ClientRequest.Read read = (ClientRequest.Read) cluster.sent.getLast();
        client.onReply(1, new ClientReply.Done(read.shard(), 1, read.request(), 1));
        client.onReply(1, new ClientReply.Data(read.shard(), 1, read.request(), List.of()));
        client.onReply(1, new ClientReply.Done(read.shard(), 99, read.request(), 1));
        assertThat(counts.malformed).isEqualTo(3);
        assertThat(await(cluster, outcome)).isEqualTo(Outcome.OK);
    }

    @Test
    void closingFinishesCallsThenGivesUpClaimAndSession() {
        ModelCluster cluster = cluster(3, Attach.EXCLUSIVE);
        VolumeClient client = cluster.client(1, "a");
        List<Outcome> outcome = write(client, 0, bytes(30 * BLOCK, 1));
        boolean[] closed = new boolean[1];
        client.close(() -> closed[0] = true);
        cluster.runUntil(() -> closed[0], 1_000);
        assertThat(outcome).containsExactly(Outcome.OK);
        assertThat(cluster.shards).allMatch(shard -> shard.holder.isEmpty());
        assertThat(cluster.shards).allMatch(shard -> shard.sessions.isEmpty());
        cluster.pass(10_000);
        assertThat(cluster.step()).isFalse();
    }

    @Test
    void closingIsBoundedWhenNobodyAnswers() {
        ModelCluster cluster = cluster(1, Attach.EXCLUSIVE);
        VolumeClient client = cluster.client(1, "a");
        await(cluster, write(client, 0, bytes(BLOCK, 1)));
        cluster.drop = request -> true;
        boolean[] closed = new boolean[1];
        client.close(() -> closed[0] = true);
        cluster.pass(4_900);
        assertThat(closed[0]).isFalse();
        cluster.runUntil(() -> closed[0], 200);
        cluster.pass(10_000);
        assertThat(cluster.step()).isFalse();
    }

    @Test
    void anIdleClientLeavesNoTimerBehind() {
        ModelCluster cluster = cluster(2, Attach.EXCLUSIVE);
        VolumeClient client = cluster.client(1, "a");
        await(cluster, write(client, 3, bytes(3 * BLOCK, 1)));
        cluster.pass(1_000);
        assertThat(cluster.step()).isFalse();
    }

    /** A leader that is too busy for numbers so far apart would be so for ever (seed 70785). */
    @Test
    void repeatedWriteSaysWhatIsSettledByNow() {
        ModelCluster cluster = cluster(1, Attach.SHARED);
        VolumeClient client = cluster.client(1, "a");
        await(cluster, write(client, 0, bytes(BLOCK, 1)));
        cluster.drop = request -> true;
        List<Outcome> first = write(client, 0, bytes(BLOCK, 2));
        List<Outcome> second = write(client, BLOCK, bytes(BLOCK, 3));
        cluster.drop = request -> request instanceof ClientRequest.Write w && w.block() == 1;
        assertThat(await(cluster, first, 5_000)).isEqualTo(Outcome.OK);
        cluster.pass(3_000);
        ClientRequest.Write repeated = (ClientRequest.Write) cluster.sent.getLast();
        assertThat(repeated.block()).isEqualTo(1);
        assertThat(repeated.lowWater()).isEqualTo(repeated.request());
        cluster.drop = request -> false;
        assertThat(await(cluster, second, 5_000)).isEqualTo(Outcome.OK);
    }

    @Test
    void aBoundedNumberOfRequestsIsUnderWayAndTheOthersWait() {
        ModelCluster cluster = cluster(2, Attach.EXCLUSIVE);
        VolumeClient client = cluster.client(1, "a");
        await(cluster, write(client, 0, bytes(BLOCK, 1)));
        cluster.pass(100);
        cluster.drop = request -> true;
        int before = cluster.sent.size();
        List<List<Outcome>> outcomes = new ArrayList<>();
        for (int i = 0; i < VolumeClient.Window.DEFAULT.requests() + 100; i++) {
            outcomes.add(write(client, 0, bytes(BLOCK, 2)));
        }
        assertThat(cluster.sent.size() - before).isEqualTo(VolumeClient.Window.DEFAULT.requests());
        cluster.drop = request -> false;
        for (List<Outcome> outcome : outcomes) {
            assertThat(await(cluster, outcome, 5_000)).isEqualTo(Outcome.OK);
        }
    }
}
