package io.holdfast.node.coordination;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.proto.catalogue.Catalogue;
import io.holdfast.proto.catalogue.Change;
import io.holdfast.proto.catalogue.Change.ClaimLeader;
import io.holdfast.proto.catalogue.Change.CreateVolume;
import io.holdfast.proto.catalogue.Change.DeleteVolume;
import io.holdfast.proto.catalogue.Change.MarkReady;
import io.holdfast.proto.catalogue.Volume;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

class CatalogueStateTest {
    private final CatalogueState state = new CatalogueState();

    @Test
    void createGivesTheNextNumberAndStateCreating() {
        assertThat(create("b")).isEqualTo(new Change.Result(true, 1, 1, ""));
        assertThat(create("a")).isEqualTo(new Change.Result(true, 2, 2, ""));

        assertThat(state.catalogue().volumes()).extracting(Volume::name).containsExactly("a", "b");
        assertThat(state.catalogue().volumes())
                .extracting(Volume::state)
                .containsOnly(Volume.State.CREATING);
        assertThat(state.catalogue().nextVolume()).isEqualTo(3);
    }

    @Test
    void createRefusesATakenName() {
        create("a");
        assertRefused(create("a"), "exists");
    }

    @Test
    void aNumberIsNeverGivenTwice() {
        create("a");
        state.apply(new DeleteVolume(1, "a"));
        assertThat(create("a").volume()).isEqualTo(2);
    }

    @Test
    void deleteRefusesWhenNumberAndNameDoNotBelongTogether() {
        create("a");
        create("b");
        assertRefused(state.apply(new DeleteVolume(1, "b")), "volume 1 is a, not b");
        assertRefused(state.apply(new DeleteVolume(3, "a")), "no volume 3");
        assertThat(state.apply(new DeleteVolume(1, "a")).applied()).isTrue();
        assertThat(state.catalogue().volume("a")).isEmpty();
    }

    @Test
    void markReadyTwiceChangesNothingTheSecondTime() {
        create("a");
        assertThat(state.apply(new MarkReady(1))).isEqualTo(new Change.Result(true, 2, 0, ""));
        assertThat(state.apply(new MarkReady(1))).isEqualTo(new Change.Result(true, 2, 0, ""));
        assertThat(state.catalogue().volumes().getFirst().state()).isEqualTo(Volume.State.READY);
        assertRefused(state.apply(new MarkReady(9)), "no volume 9");
    }

    @Test
    void claimNeedsAnEpochAboveTheRecordedOne() {
        create("a");
        assertThat(claim(0, 2, 5).applied()).isTrue();
        assertRefused(claim(0, 2, 5), "not above 5");
        assertRefused(claim(0, 3, 4), "not above 5");
        assertThat(claim(0, 3, 6).applied()).isTrue();

        Volume.Shard shard = state.catalogue().volumes().getFirst().shards().getFirst();
        assertThat(shard).isEqualTo(new Volume.Shard(0, List.of(1, 2, 3), 3, 6));
    }

    @Test
    void claimIsForReplicasOfShardsThatExist() {
        create("a");
        assertRefused(claim(0, 4, 1), "node 4 has no replica");
        assertRefused(claim(1, 1, 1), "no shard 1/1");
        assertRefused(claim(-1, 1, 1), "no shard 1/-1");
        assertRefused(state.apply(new ClaimLeader(7, 0, 1, "n", 1)), "no volume 7");
        assertRefused(state.apply(new ClaimLeader(1, 0, 1, "n".repeat(129), 1)), "incarnation");
    }

    @Test
    void malformedVolumesAreRefusedWithAReason() {
        Volume.Shard good = new Volume.Shard(0, List.of(1, 2, 3), 0, 0);
        Map<Volume, String> bad = new HashMap<>();
        bad.put(Volumes.volume("a@b"), "name");
        bad.put(Volumes.volume(""), "name");
        bad.put(Volumes.volume("a", 4097, Volumes.KEY, List.of(good)), "size 4097");
        bad.put(Volumes.volume("a", 0, Volumes.KEY, List.of(good)), "size 0");
        bad.put(Volumes.volume("a", Long.MIN_VALUE, Volumes.KEY, List.of(good)), "size");
        bad.put(
                Volumes.volume("a", Volume.MAX_SIZE_BYTES + 4096, Volumes.KEY, List.of(good)),
                "size");
        bad.put(Volumes.volume("a", 4096, "no key!", List.of(good)), "wrapped key");
        bad.put(Volumes.volume("a", 4096, "A".repeat(260), List.of(good)), "wrapped key");
        bad.put(Volumes.volume("a", 4096, Volumes.KEY, List.of()), "0 shards");
        bad.put(Volumes.volume("a", 1025), "1025 shards");
        bad.put(shards(new Volume.Shard(1, List.of(1), 0, 0)), "shard 1 in place 0");
        bad.put(shards(new Volume.Shard(0, List.of(), 0, 0)), "replicas []");
        bad.put(shards(new Volume.Shard(0, List.of(1, 1), 0, 0)), "replicas [1, 1]");
        bad.put(shards(new Volume.Shard(0, List.of(0), 0, 0)), "replicas [0]");
        bad.put(shards(new Volume.Shard(0, List.of(1, 2), 3, 1)), "leader 3");
        bad.put(shards(new Volume.Shard(0, List.of(1, 2), 1, -1)), "epoch -1");
        bad.forEach(
                (volume, reason) -> assertRefused(state.apply(new CreateVolume(volume)), reason));
        assertThat(state.catalogue()).isEqualTo(Catalogue.EMPTY);
    }

    @Test
    void aFullCatalogueRefusesVolumesAndTakesThemAgainAfterADelete() {
        CatalogueState small = new CatalogueState(1000);
        int created = 0;
        while (small.apply(new CreateVolume(Volumes.volume("v" + created))).applied()) {
            created++;
        }
        assertThat(created).isBetween(2, 3);
        assertThat(CatalogueCodec.encode(small.catalogue())).hasSizeLessThanOrEqualTo(1000);
        small.apply(new DeleteVolume(1, "v0"));
        assertThat(small.apply(new CreateVolume(Volumes.volume("w"))).applied()).isTrue();
    }

    @Test
    void theLargestCatalogueFitsOneValueWhateverItsEpochs() {
        CatalogueState large = new CatalogueState();
        Volume volume = Volumes.volume("v", 1024);
        for (int i = 0; large.apply(new CreateVolume(withName(volume, "v" + i))).applied(); i++) {
            assertThat(i).isLessThan(100);
        }
        Catalogue full = large.catalogue();
        long epoch = Long.MAX_VALUE;
        for (Volume v : full.volumes()) {
            for (int shard = 0; shard < v.shards().size(); shard++) {
                large.apply(new ClaimLeader(v.number(), shard, 1, "n", epoch));
            }
        }
        assertThat(large.version()).isGreaterThan(full.version() + 5000);
        assertThat(CatalogueCodec.encode(large.catalogue()))
                .hasSizeLessThan(CatalogueCodec.MAX_VALUE_BYTES);
    }

    @Test
    void mergeOfANewerCatalogueIntoItsOwnPastGivesTheNewerOne() {
        create("a");
        create("gone");
        Catalogue past = state.catalogue();
        state.apply(new MarkReady(1));
        claim(0, 2, 7);
        create("b");
        Catalogue saved = state.catalogue();

        CatalogueState cluster = at(past);
        assertThat(cluster.merge(saved).applied()).isTrue();
        assertThat(cluster.catalogue()).isEqualTo(saved);
    }

    @Test
    void mergeOfAnOlderCatalogueOrTheSameChangesNothing() {
        create("a");
        Catalogue past = state.catalogue();
        create("b");
        Catalogue present = state.catalogue();

        state.merge(past);
        state.merge(present);
        assertThat(state.catalogue()).isEqualTo(present);
    }

    @Test
    void mergeKeepsWhatTheClusterDidSinceItForgot() {
        create("a");
        Catalogue past = state.catalogue();
        claim(0, 1, 5);
        create("lost");
        state.apply(new MarkReady(1));
        Catalogue saved = state.catalogue();

        CatalogueState cluster = at(past);
        cluster.apply(new ClaimLeader(1, 0, 2, "n", 9));
        cluster.merge(saved);

        Volume a = cluster.catalogue().volume("a").orElseThrow();
        assertThat(a.state()).isEqualTo(Volume.State.READY);
        assertThat(a.shards().getFirst().leader()).isEqualTo(2);
        assertThat(a.shards().getFirst().epoch()).isEqualTo(9);
        assertThat(cluster.catalogue().volume("lost")).isPresent();
        assertThat(cluster.version()).isEqualTo(saved.version() + 1);
    }

    @Test
    void mergeDropsASavedVolumeWhoseNumberTheClusterGaveAgainAndKeepsTheClusters() {
        Catalogue past = state.catalogue();
        create("before");
        create("second");
        Catalogue saved = state.catalogue();

        CatalogueState cluster = at(past);
        cluster.apply(new CreateVolume(Volumes.volume("after")));
        cluster.merge(saved);

        assertThat(cluster.catalogue().volumes())
                .extracting(v -> v.number() + v.name())
                .containsExactly("1after", "2second");
        assertThat(cluster.version()).isEqualTo(saved.version() + 1);
        assertThat(cluster.catalogue().nextVolume()).isEqualTo(3);
    }

    @Test
    void mergeOfAnotherHistoryOfTheSameVersionGivesANewVersion() {
        create("a");
        Catalogue saved = state.catalogue();
        CatalogueState cluster = new CatalogueState();
        cluster.apply(new CreateVolume(Volumes.volume("b")));

        cluster.merge(saved);
        assertThat(cluster.version()).isEqualTo(2);
        assertThat(cluster.catalogue().volumes()).extracting(Volume::name).containsExactly("b");
    }

    @Test
    void mergeRefusesACatalogueThatCannotBe() {
        Volume one = Volumes.volume("a").with(1, Volume.State.CREATING);
        Volume two = Volumes.volume("b").with(1, Volume.State.CREATING);
        assertRefused(state.merge(new Catalogue(-1, 1, List.of())), "version -1");
        assertRefused(state.merge(new Catalogue(5, 1, List.of(one))), "volume number 1");
        assertRefused(state.merge(new Catalogue(5, 3, List.of(one, two))), "volume number 1");
        assertRefused(state.merge(new Catalogue(5, 3, List.of(one, one))), "after a");
    }

    /** Random changes, some nonsense, against a map; and on two states, one restored midway. */
    @Test
    void sameChangesGiveEqualBytesAlsoAcrossASnapshotAndMatchADumbModel() throws Exception {
        for (long seed = 1; seed <= 40; seed++) {
            Random random = new Random(seed);
            CatalogueState left = new CatalogueState();
            CatalogueState right = new CatalogueState();
            Model model = new Model();
            for (int i = 0; i < 300; i++) {
                byte[] bytes = CatalogueCodec.encode(randomChange(random));
                Change.Result result = left.apply(CatalogueCodec.decodeChange(bytes));
                assertThat(right.apply(CatalogueCodec.decodeChange(bytes)))
                        .as("seed %d step %d", seed, i)
                        .isEqualTo(result);
                model.check(CatalogueCodec.decodeChange(bytes), result, seed, i);
                if (random.nextInt(40) == 0) {
                    byte[] snapshot = CatalogueCodec.encode(right.catalogue());
                    right = new CatalogueState();
                    right.set(CatalogueCodec.decodeCatalogue(snapshot));
                }
                if (random.nextInt(100) == 0) {
                    Catalogue saved = left.catalogue();
                    assertThat(right.merge(saved)).isEqualTo(left.merge(saved));
                }
            }
            assertThat(CatalogueCodec.encode(right.catalogue()))
                    .as("seed %d", seed)
                    .isEqualTo(CatalogueCodec.encode(left.catalogue()));
            assertThat(CatalogueState.problem(left.catalogue())).isEmpty();
        }
    }

    /** What was the past of a catalogue becomes it by a merge, wherever the past ended. */
    @Test
    void aForgottenTailComesBackUnlessItDeletedSomething() {
        for (long seed = 1; seed <= 40; seed++) {
            Random random = new Random(seed);
            CatalogueState whole = new CatalogueState();
            List<Catalogue> pasts = new ArrayList<>();
            for (int i = 0; i < 60; i++) {
                Change change = randomChange(random);
                if (!(change instanceof DeleteVolume)) {
                    whole.apply(change);
                    pasts.add(whole.catalogue());
                }
            }
            for (Catalogue past : pasts) {
                CatalogueState cluster = at(past);
                cluster.merge(whole.catalogue());
                assertThat(cluster.catalogue()).as("seed %d", seed).isEqualTo(whole.catalogue());
            }
        }
    }

    /** Epoch by shard, and number by name. */
    private static final class Model {
        private final Map<String, Integer> numbers = new HashMap<>();
        private final Map<String, Long> epochs = new HashMap<>();
        private int created;

        void check(Change change, Change.Result result, long seed, int step) {
            boolean expected =
                    switch (change) {
                        case CreateVolume c -> {
                            boolean free = !numbers.containsKey(c.volume().name());
                            if (free) {
                                numbers.put(c.volume().name(), ++created);
                                assertThat(result.volume()).isEqualTo(created);
                            }
                            yield free;
                        }
                        case MarkReady c -> numbers.containsValue(c.volume());
                        case DeleteVolume c -> numbers.remove(c.name(), c.volume());
                        case ClaimLeader c -> {
                            String shard = c.volume() + "/" + c.shard();
                            boolean ok =
                                    numbers.containsValue(c.volume())
                                            && c.shard() < 2
                                            && c.node() <= 3
                                            && c.epoch() > epochs.getOrDefault(shard, 0L);
                            if (ok) {
                                epochs.put(shard, c.epoch());
                            }
                            yield ok;
                        }
                    };
            assertThat(result.applied())
                    .as("seed %d step %d %s: %s", seed, step, change, result.reason())
                    .isEqualTo(expected);
        }
    }

    private static Change randomChange(Random random) {
        String name = "v" + random.nextInt(6);
        int volume = 1 + random.nextInt(20);
        return switch (random.nextInt(5)) {
            case 0 -> new CreateVolume(Volumes.volume(name, 2));
            case 1 -> new MarkReady(volume);
            case 2 -> new DeleteVolume(volume, name);
            default ->
                    new ClaimLeader(
                            volume,
                            random.nextInt(3),
                            1 + random.nextInt(4),
                            "node#1",
                            random.nextInt(30));
        };
    }

    private Change.Result create(String name) {
        return state.apply(new CreateVolume(Volumes.volume(name)));
    }

    private Change.Result claim(int shard, int node, long epoch) {
        return state.apply(new ClaimLeader(1, shard, node, "node#1", epoch));
    }

    private static CatalogueState at(Catalogue catalogue) {
        CatalogueState state = new CatalogueState();
        state.set(catalogue);
        return state;
    }

    private static Volume shards(Volume.Shard... shards) {
        return Volumes.volume("a", 4096, Volumes.KEY, List.of(shards));
    }

    private static Volume withName(Volume v, String name) {
        return Volumes.volume(name, v.sizeBytes(), v.wrappedKey(), v.shards());
    }

    private static void assertRefused(Change.Result result, String reason) {
        assertThat(result.applied()).isFalse();
        assertThat(result.reason()).contains(reason);
        assertThat(result.volume()).isZero();
    }
}
