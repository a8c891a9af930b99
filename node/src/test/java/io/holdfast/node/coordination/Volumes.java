package io.holdfast.node.coordination;

import io.holdfast.proto.catalogue.Volume;
import java.util.ArrayList;
import java.util.List;

/** Valid volumes for tests. */
final class Volumes {
    /** Base64 of 40 bytes, as AES key wrap of a 256-bit key gives. */
    static final String KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJw==";

    private Volumes() {}

    static Volume volume(String name) {
        return volume(name, 1);
    }

    static Volume volume(String name, int shards) {
        List<Volume.Shard> list = new ArrayList<>();
        for (int i = 0; i < shards; i++) {
            list.add(new Volume.Shard(i, List.of(1, 2, 3), 0, 0));
        }
        return volume(name, 1L << 30, KEY, list);
    }

    static Volume volume(String name, long sizeBytes, String key, List<Volume.Shard> shards) {
        return new Volume(
                0,
                name,
                sizeBytes,
                Volume.DEFAULT_STRIPE_BYTES,
                Volume.Durability.FLUSH,
                Volume.Attach.EXCLUSIVE,
                Volume.Reads.LEASE,
                Volume.DEFAULT_TIMEOUT_SECONDS,
                Volume.State.CREATING,
                0,
                1,
                key,
                shards);
    }
}
