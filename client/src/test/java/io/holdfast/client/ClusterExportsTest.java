package io.holdfast.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.client.BlockDevice.Outcome;
import io.holdfast.client.Exports.Description;
import io.holdfast.client.crypto.ClusterKey;
import io.holdfast.proto.catalogue.Catalogue;
import io.holdfast.proto.catalogue.Volume;
import io.holdfast.proto.catalogue.Volume.Attach;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.ClientRequest;
import io.holdfast.proto.peer.ShardId;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

final class ClusterExportsTest {
    private static final int BLOCK = Blocks.SIZE;
    private static final ClientIdentity ALICE = new ClientIdentity("192.0.2.1@node1");
    private static final ClientIdentity BOB = new ClientIdentity("192.0.2.2@node2");

    private final ModelCluster cluster = new ModelCluster(1, 2, Attach.EXCLUSIVE, 30);
    private Catalogue catalogue = cluster.catalogue();
    private final ClusterExports here = exports(1);
    private final ClusterExports there = exports(2);

    private ClusterExports exports(int node) {
        ModelCluster.Host process = cluster.new Host();
        ClusterExports exports =
                new ClusterExports(
                        node,
                        process,
                        cluster,
                        () -> catalogue,
                        cluster.clusterKey,
                        ClientEvents.NONE);
        process.receiver = exports::onReply;
        return exports;
    }

    private List<Optional<BlockDevice>> opening(ClusterExports exports, ClientIdentity client) {
        List<Optional<BlockDevice>> opened = new ArrayList<>();
        exports.open("vol", client, opened::add);
        return opened;
    }

    private BlockDevice open(ClusterExports exports, ClientIdentity client) {
        List<Optional<BlockDevice>> opened = opening(exports, client);
        cluster.runUntil(() -> !opened.isEmpty(), 2_100);
        assertThat(opened).hasSize(1);
        return opened.getFirst().orElseThrow();
    }

    private Outcome write(BlockDevice device, int value) {
        byte[] bytes = new byte[20 * BLOCK];
        Arrays.fill(bytes, (byte) value);
        List<Outcome> outcome = new ArrayList<>();
        device.write(0, Unpooled.wrappedBuffer(bytes), false, outcome::add);
        cluster.runUntil(() -> !outcome.isEmpty(), 1_000);
        return outcome.getFirst();
    }

    private int firstByte(BlockDevice device) {
        ByteBuf target = Unpooled.buffer(1, 1);
        List<Outcome> outcome = new ArrayList<>();
        device.read(0, target, outcome::add);
        cluster.runUntil(() -> !outcome.isEmpty(), 1_000);
        assertThat(outcome).containsExactly(Outcome.OK);
        return target.readByte();
    }

    private List<Description> describe(ClusterExports exports, ClientIdentity client) {
        List<Description> described = new ArrayList<>();
        exports.describe("vol", client, found -> described.add(found.orElseThrow()));
        cluster.runUntil(() -> !described.isEmpty(), 2_100);
        return described;
    }

    @Test
    void offersReadyVolumesOnly() {
        Volume ready = cluster.volume;
        Volume creating =
                new Volume(
                        8,
                        "another",
                        ready.sizeBytes(),
                        ready.stripeBytes(),
                        ready.durability(),
                        ready.attach(),
                        ready.reads(),
                        30,
                        Volume.State.CREATING,
                        1,
                        1,
                        ready.wrappedKey(),
                        ready.shards());
        catalogue = new Catalogue(2, 9, List.of(creating, ready));
        assertThat(here.names(ALICE)).containsExactly("vol");
        List<Optional<?>> found = new ArrayList<>();
        here.open("another", ALICE, found::add);
        here.describe("nothing", ALICE, found::add);
        assertThat(found).containsExactly(Optional.empty(), Optional.empty());
    }

    @Test
    void offersNothingThatTheClusterKeyDoesNotUnwrap() {
        byte[] wrong = new byte[32];
        wrong[0] = 1;
        ClusterExports exports =
                new ClusterExports(
                        1,
                        cluster.new Host(),
                        cluster,
                        () -> catalogue,
                        new ClusterKey(wrong),
                        ClientEvents.NONE);
        List<Optional<BlockDevice>> opened = opening(exports, ALICE);
        assertThat(opened).containsExactly(Optional.empty());
    }

    @Test
    void connectionsOfOneIdentityShareOneSessionAndClaim() {
        BlockDevice first = open(here, ALICE);
        BlockDevice second = open(here, ALICE);
        assertThat(write(first, 1)).isEqualTo(Outcome.OK);
        assertThat(write(second, 2)).isEqualTo(Outcome.OK);
        assertThat(cluster.sessionsGranted()).isEqualTo(1);
        first.close();
        cluster.pass(1_000);
        assertThat(cluster.shards.getFirst().holder).isEqualTo(ALICE.name());
        assertThat(write(second, 3)).isEqualTo(Outcome.OK);
        second.close();
        cluster.pass(1_000);
        assertThat(cluster.shards).allMatch(shard -> shard.holder.isEmpty());
        assertThat(cluster.shards).allMatch(shard -> shard.sessions.isEmpty());
    }

    @Test
    void aHeldVolumeIsReadOnlyForOthersAndWritableAfterItsRelease() {
        BlockDevice alice = open(here, ALICE);
        assertThat(write(alice, 1)).isEqualTo(Outcome.OK);
        assertThat(describe(there, BOB).getFirst().readOnly()).isTrue();
        assertThat(describe(there, ALICE).getFirst().readOnly()).isFalse();
        long before = cluster.now;
        BlockDevice bob = open(there, BOB);
        assertThat(cluster.now - before).isBetween(1_000_000_000L, 1_300_000_000L);
        assertThat(bob.readOnly()).isTrue();
        assertThat(firstByte(bob)).isEqualTo(1);
        assertThat(write(bob, 2)).isEqualTo(Outcome.NOT_PERMITTED);
        alice.close();
        bob.close();
        BlockDevice again = open(there, BOB);
        assertThat(again.readOnly()).isFalse();
        assertThat(write(again, 2)).isEqualTo(Outcome.OK);
        assertThat(firstByte(again)).isEqualTo(2);
    }

    @Test
    void openWaitsForAHolderThatIsJustLettingGo() {
        BlockDevice alice = open(here, ALICE);
        assertThat(write(alice, 1)).isEqualTo(Outcome.OK);
        List<Optional<BlockDevice>> opened = opening(there, BOB);
        cluster.pass(500);
        assertThat(opened).isEmpty();
        alice.close();
        cluster.runUntil(() -> !opened.isEmpty(), 300);
        assertThat(opened.getFirst().orElseThrow().readOnly()).isFalse();
    }

    /** A kernel client that was given a read-only device remounts its file system read-only. */
    @Test
    void openWaitsUntilTheClaimOfAHolderWhoseNodeDiedMayBeBroken() {
        BlockDevice alice = open(here, ALICE);
        assertThat(write(alice, 1)).isEqualTo(Outcome.OK);
        cluster.shards.forEach(shard -> shard.holderConnected = false);
        List<Optional<BlockDevice>> opened = opening(there, BOB);
        cluster.pass(10_000);
        assertThat(opened).isEmpty();
        cluster.shards.forEach(shard -> shard.holder = "");
        cluster.runUntil(() -> !opened.isEmpty(), 300);
        assertThat(opened.getFirst().orElseThrow().readOnly()).isFalse();
    }

    @Test
    void openWaitsNoLongerOnceTheHolderIsSeenToBeThere() {
        BlockDevice alice = open(here, ALICE);
        assertThat(write(alice, 1)).isEqualTo(Outcome.OK);
        cluster.shards.forEach(shard -> shard.holderConnected = false);
        List<Optional<BlockDevice>> opened = opening(there, BOB);
        cluster.pass(5_000);
        assertThat(opened).isEmpty();
        cluster.shards.forEach(shard -> shard.holderConnected = true);
        cluster.runUntil(() -> !opened.isEmpty(), 300);
        assertThat(opened.getFirst().orElseThrow().readOnly()).isTrue();
    }

    @Test
    void openOffersAWritableDeviceWhenNobodyAnswers() {
        cluster.drop = request -> true;
        List<Optional<BlockDevice>> opened = opening(here, ALICE);
        cluster.pass(1_900);
        assertThat(opened).isEmpty();
        cluster.runUntil(() -> !opened.isEmpty(), 200);
        BlockDevice device = opened.getFirst().orElseThrow();
        assertThat(device.readOnly()).isFalse();
        cluster.drop = request -> false;
        List<Outcome> outcome = new ArrayList<>();
        device.write(0, Unpooled.wrappedBuffer(new byte[5]), false, outcome::add);
        cluster.runUntil(() -> !outcome.isEmpty(), 5_000);
        assertThat(outcome).containsExactly(Outcome.OK);
    }

    @Test
    void aDeletedVolumesDevicesSayThatTheyAreShuttingDown() {
        BlockDevice device = open(here, ALICE);
        write(device, 1);
        cluster.drop = request -> true;
        List<Outcome> outcomes = new ArrayList<>();
        device.write(0, Unpooled.wrappedBuffer(new byte[5]), false, outcomes::add);
        catalogue = Catalogue.EMPTY;
        here.onCatalogue(catalogue);
        device.flush(outcomes::add);
        assertThat(outcomes).containsExactly(Outcome.SHUTTING_DOWN, Outcome.SHUTTING_DOWN);
        device.close();
        cluster.pass(100);
        assertThat(cluster.step()).isFalse();
    }

    @Test
    void aPowerLossEndsWithANewOpening() {
        BlockDevice device = open(here, ALICE);
        write(device, 1);
        cluster.shards.forEach(ModelShard::losePower);
        assertThat(write(device, 2)).isEqualTo(Outcome.IO_ERROR);
        BlockDevice again = open(here, ALICE);
        cluster.shards.forEach(shard -> shard.powerLost = false);
        assertThat(write(again, 3)).isEqualTo(Outcome.OK);
        assertThat(write(device, 4)).isEqualTo(Outcome.IO_ERROR);
        device.close();
        assertThat(write(again, 5)).isEqualTo(Outcome.OK);
    }

    @Test
    void newsOfLeadersReachTheClients() {
        BlockDevice device = open(here, ALICE);
        write(device, 1);
        cluster.lead(0, 2);
        here.onLeader(new ShardId(7, 0), 2, cluster.epochs[0]);
        int before = cluster.sent.size();
        write(device, 2);
        assertThat(
                        cluster.sent.subList(before, cluster.sent.size()).stream()
                                .mapToLong(ClientRequest::request))
                .doesNotHaveDuplicates();
        cluster.down.add(2);
        here.onDisconnected(2);
        cluster.lead(0, 3);
        cluster.lead(1, 3);
        assertThat(write(device, 3)).isEqualTo(Outcome.OK);
        cluster.down.clear();
        here.onConnected(2);
        assertThat(write(device, 4)).isEqualTo(Outcome.OK);
    }

    @Test
    void shutdownReleasesClaimsAndSessionsAndRefusesFurtherCalls() {
        BlockDevice device = open(here, ALICE);
        write(device, 1);
        boolean[] done = new boolean[1];
        here.shutdown(() -> done[0] = true);
        cluster.runUntil(() -> done[0], 500);
        assertThat(cluster.shards).allMatch(shard -> shard.holder.isEmpty());
        assertThat(cluster.shards).allMatch(shard -> shard.sessions.isEmpty());
        List<Outcome> outcomes = new ArrayList<>();
        device.flush(outcomes::add);
        assertThat(outcomes).containsExactly(Outcome.SHUTTING_DOWN);
        device.close();
        assertThat(opening(here, ALICE)).containsExactly(Optional.empty());
    }

    @Test
    void shutdownIsBoundedWhenNobodyAnswers() {
        BlockDevice device = open(here, ALICE);
        write(device, 1);
        cluster.drop = request -> true;
        List<Outcome> outcomes = new ArrayList<>();
        device.flush(outcomes::add);
        boolean[] done = new boolean[1];
        here.shutdown(() -> done[0] = true);
        cluster.pass(1_900);
        assertThat(outcomes).isEmpty();
        cluster.pass(200);
        assertThat(outcomes).containsExactly(Outcome.SHUTTING_DOWN);
        assertThat(done[0]).isFalse();
        cluster.runUntil(() -> done[0], 1_000);
    }
}
