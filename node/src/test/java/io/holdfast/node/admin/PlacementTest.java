package io.holdfast.node.admin;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.proto.catalogue.Catalogue;
import io.holdfast.proto.catalogue.Volume;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Function;
import org.junit.jupiter.api.Test;

class PlacementTest {
    private static Volume volume(int number, List<Volume.Shard> shards) {
        return new Volume(
                number,
                "v" + number,
                1 << 20,
                Volume.DEFAULT_STRIPE_BYTES,
                Volume.Durability.FLUSH,
                Volume.Attach.EXCLUSIVE,
                Volume.Reads.LEASE,
                30,
                Volume.State.READY,
                1,
                1,
                "",
                shards);
    }

    @Test
    void spreadsLeadersOverAllNodes() {
        List<Volume.Shard> placed =
                new Placement(List.of(1, 2, 3), Set.of(), Catalogue.EMPTY).place(3, 3);
        assertThat(placed).extracting(s -> s.replicas().getFirst()).containsExactly(1, 2, 3);
        assertThat(placed).allSatisfy(s -> assertThat(s.replicas()).contains(1, 2, 3));
    }

    @Test
    void goesOnWhereTheCatalogueStands() {
        Catalogue one =
                new Catalogue(
                        1, 2, List.of(volume(1, List.of(new Volume.Shard(0, List.of(1), 0, 0)))));
        List<Volume.Shard> placed = new Placement(List.of(1, 2, 3), Set.of(), one).place(2, 1);
        assertThat(placed)
                .extracting(Volume.Shard::replicas)
                .containsExactly(List.of(2), List.of(3));
    }

    @Test
    void takesNodesThatAreDownOnlyWhenItMust() {
        List<Integer> nodes = List.of(1, 2, 3, 4);
        Placement placement = new Placement(nodes, Set.of(1), Catalogue.EMPTY);
        assertThat(placement.place(4, 3))
                .allSatisfy(s -> assertThat(s.replicas()).containsExactlyInAnyOrder(2, 3, 4));
        List<Volume.Shard> all =
                new Placement(List.of(1, 2, 3), Set.of(1), Catalogue.EMPTY).place(2, 3);
        assertThat(all).allSatisfy(s -> assertThat(s.replicas().getLast()).isEqualTo(1));
    }

    /** However volumes come, no node has more than one replica and one leader above another. */
    @Test
    void staysBalancedForRandomVolumes() {
        for (long seed = 0; seed < 50; seed++) {
            Random random = new Random(seed);
            List<Integer> nodes = List.of(1, 2, 3, 4, 5);
            List<Volume> volumes = new ArrayList<>();
            for (int number = 1; number <= 20; number++) {
                Catalogue catalogue = new Catalogue(number, number, volumes);
                int copies = random.nextBoolean() ? 3 : 1;
                List<Volume.Shard> placed =
                        new Placement(nodes, Set.of(), catalogue)
                                .place(1 + random.nextInt(8), copies);
                placed.forEach(
                        s -> assertThat(s.replicas()).doesNotHaveDuplicates().hasSize(copies));
                volumes.add(volume(number, placed));
            }
            assertThat(spread(nodes, volumes, Volume.Shard::replicas))
                    .as("replicas, seed %d", seed)
                    .isLessThanOrEqualTo(1);
        }
    }

    private static int spread(
            List<Integer> nodes,
            List<Volume> volumes,
            Function<Volume.Shard, List<Integer>> counted) {
        Map<Integer, Integer> counts = new TreeMap<>();
        nodes.forEach(node -> counts.put(node, 0));
        for (Volume volume : volumes) {
            for (Volume.Shard shard : volume.shards()) {
                counted.apply(shard).forEach(node -> counts.merge(node, 1, Integer::sum));
            }
        }
        return counts.values().stream().mapToInt(Integer::intValue).max().orElse(0)
                - counts.values().stream().mapToInt(Integer::intValue).min().orElse(0);
    }
}
