package io.holdfast.proto.catalogue;

import io.holdfast.proto.peer.ShardId;
import java.util.List;

/**
 * A volume's definition.
 *
 * @param number from 1
 * @param name matches {@link #NAME_PATTERN}
 * @param sizeBytes multiple of the block size, up to {@link #MAX_SIZE_BYTES}
 * @param stripeBytes bytes that stay together in one shard
 * @param timeoutSeconds how long a request waits for a majority (promise P6)
 * @param layer top layer, the one that is written
 * @param keyId id of the key that new writes use, from 1
 * @param wrappedKey that key, wrapped with the cluster key, in base64
 * @param shards by index
 */
public record Volume(
        int number,
        String name,
        long sizeBytes,
        long stripeBytes,
        Durability durability,
        Attach attach,
        Reads reads,
        int timeoutSeconds,
        State state,
        int layer,
        int keyId,
        String wrappedKey,
        List<Shard> shards) {
    /** What a volume may be called. {@code @} is kept for snapshots. */
    public static final String NAME_PATTERN = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}";

    /** 64 TiB. */
    public static final long MAX_SIZE_BYTES = 1L << 46;

    public static final long DEFAULT_STRIPE_BYTES = 4L << 20;
    public static final int DEFAULT_TIMEOUT_SECONDS = 30;

    public Volume {
        shards = List.copyOf(shards);
    }

    /** The same volume under a number, in a state. */
    public Volume with(int newNumber, State newState) {
        return with(newNumber, newState, shards);
    }

    /** The same volume with its shards elsewhere, or under other leaders. */
    public Volume with(List<Shard> newShards) {
        return with(number, state, newShards);
    }

    private Volume with(int newNumber, State newState, List<Shard> newShards) {
        return new Volume(
                newNumber,
                name,
                sizeBytes,
                stripeBytes,
                durability,
                attach,
                reads,
                timeoutSeconds,
                newState,
                layer,
                keyId,
                wrappedKey,
                newShards);
    }

    /** Identity of one of this volume's shards. */
    public ShardId shardId(int index) {
        return new ShardId(number, index);
    }

    /**
     * Where one shard lives.
     *
     * @param replicas node numbers, in campaign order
     * @param leader node recorded as leader, 0: none yet
     * @param epoch of that leader
     */
    public record Shard(int index, List<Integer> replicas, int leader, long epoch) {
        public Shard {
            replicas = List.copyOf(replicas);
        }
    }

    /** When a write is answered. */
    public enum Durability {
        FLUSH,
        SYNC
    }

    /** Who may write. */
    public enum Attach {
        EXCLUSIVE,
        SHARED
    }

    /** How the leader knows that it may answer a read. */
    public enum Reads {
        LEASE,
        QUORUM
    }

    /**
     * CREATING until its replicas exist: a node that finds no past of a volume that is READY has
     * lost it and starts as a learner; of one that is CREATING, it starts as a voter.
     */
    public enum State {
        CREATING,
        READY
    }
}
