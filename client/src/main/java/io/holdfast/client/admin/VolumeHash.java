package io.holdfast.client.admin;

import java.util.List;

/**
 * What one node's replicas of a volume hold: {@code GET /v1/volumes/NAME/hash}.
 *
 * @param node id
 * @param shards the node's replicas, by index
 */
public record VolumeHash(String node, List<ShardHash> shards) {
    public VolumeHash {
        shards = List.copyOf(shards);
    }

    /**
     * One replica's contents.
     *
     * @param applied sequence at which the hash was taken
     * @param sha256 of the blocks as the map has them, 64 hexadecimal digits
     */
    public record ShardHash(int index, long applied, String sha256) {}
}
