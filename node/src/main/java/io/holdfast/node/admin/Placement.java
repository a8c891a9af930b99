package io.holdfast.node.admin;

import io.holdfast.proto.catalogue.Catalogue;
import io.holdfast.proto.catalogue.Volume;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * Chooses where the shards of a new volume live: on the nodes with the fewest replicas, the one
 * that is first in the fewest lists leading. Nodes that are down come last. Pure.
 */
final class Placement {
    private final Map<Integer, Integer> replicas = new TreeMap<>();
    private final Map<Integer, Integer> leaders = new TreeMap<>();
    private final Set<Integer> down;

    /**
     * @param nodes all nodes of the cluster
     * @param down those of them that do not seem to be there
     */
    Placement(List<Integer> nodes, Set<Integer> down, Catalogue catalogue) {
        this.down = down;
        for (int node : nodes) {
            replicas.put(node, 0);
            leaders.put(node, 0);
        }
        for (Volume volume : catalogue.volumes()) {
            for (Volume.Shard shard : volume.shards()) {
                count(shard.replicas());
            }
        }
    }

    /** Shards for a volume, each with {@code copies} replicas, the preferred leader first. */
    List<Volume.Shard> place(int shards, int copies) {
        List<Volume.Shard> placed = new ArrayList<>();
        for (int index = 0; index < shards; index++) {
            List<Integer> chosen =
                    new ArrayList<>(
                            replicas.keySet().stream()
                                    .sorted(
                                            Comparator.<Integer, Boolean>comparing(down::contains)
                                                    .thenComparingInt(this::replicasOf)
                                                    .thenComparingInt(this::leadersOf)
                                                    .thenComparing(Comparator.naturalOrder()))
                                    .limit(copies)
                                    .toList());
            chosen.sort(
                    Comparator.<Integer, Boolean>comparing(down::contains)
                            .thenComparingInt(this::leadersOf)
                            .thenComparing(Comparator.naturalOrder()));
            count(chosen);
            placed.add(new Volume.Shard(index, chosen, 0, 0));
        }
        return placed;
    }

    private void count(List<Integer> chosen) {
        for (int node : chosen) {
            replicas.merge(node, 1, Integer::sum);
        }
        leaders.merge(chosen.getFirst(), 1, Integer::sum);
    }

    private int replicasOf(int node) {
        return replicas.getOrDefault(node, 0);
    }

    private int leadersOf(int node) {
        return leaders.getOrDefault(node, 0);
    }
}
