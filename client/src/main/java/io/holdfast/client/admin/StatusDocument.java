package io.holdfast.client.admin;

import com.fasterxml.jackson.annotation.JsonValue;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * How a cluster is, as one node sees it: {@code GET /v1/status}; {@code GET /v1/local} has only
 * that node's replicas in it.
 *
 * @param nodes by number
 * @param volumes by name
 */
public record StatusDocument(List<NodeLine> nodes, List<VolumeLine> volumes) {
    public StatusDocument {
        nodes = List.copyOf(nodes);
        volumes = List.copyOf(volumes);
    }

    /**
     * A node.
     *
     * @param nbd {@code host:port} for NBD clients
     * @param http {@code host:port} of its admin interface
     * @param usedBytes of its store's journal; null: not known
     * @param freeBytes on its store's file system; null: not known
     * @param failure why its state is {@link NodeState#FAILED}; null otherwise
     */
    public record NodeLine(
            String id,
            int number,
            NodeState state,
            String nbd,
            String http,
            @Nullable Long usedBytes,
            @Nullable Long freeBytes,
            @Nullable String failure) {}

    /**
     * A volume.
     *
     * @param sizeBytes multiple of 4096
     * @param replicas copies of each shard
     * @param timeoutSeconds how long a request waits for a majority
     * @param holder identity of the client that may write; null: nobody has claimed it, or it is
     *     shared
     * @param shards by index
     */
    public record VolumeLine(
            String name,
            long sizeBytes,
            int replicas,
            int timeoutSeconds,
            AttachMode attach,
            DurabilityMode durability,
            @Nullable String holder,
            List<ShardLine> shards) {
        public VolumeLine {
            shards = List.copyOf(shards);
        }
    }

    /**
     * A shard.
     *
     * @param leader id of the node that leads; null: nobody does, or nobody knows
     * @param epoch of that leadership, 0: never led
     * @param commit sequence that a majority holds, as the leader knows it; null: there is no
     *     leader to ask. {@code GET /v1/local}: as far as the node knows it
     * @param replicas by node number
     */
    public record ShardLine(
            int index,
            @Nullable String leader,
            long epoch,
            @Nullable Long commit,
            List<ReplicaLine> replicas) {
        public ShardLine {
            replicas = List.copyOf(replicas);
        }
    }

    /**
     * One copy of a shard.
     *
     * @param node id
     * @param applied sequence up to which its map is; null: not known, it is offline
     * @param catchUp how far it is, if it is catching up and its leader says so; else null
     */
    public record ReplicaLine(
            String node,
            ReplicaRole role,
            ReplicaState state,
            @Nullable Long applied,
            @Nullable CatchUpLine catchUp) {}

    /**
     * How far a replica is that catches up.
     *
     * @param percent 0 to 99.9; never falls while the same node leads
     * @param doneBytes sent to it and taken in
     * @param totalBytes these and what is left, an estimate that grows with what clients write;
     *     null: not known yet
     * @param bytesPerSecond over the last seconds
     * @param secondsLeft null: not known, or what is left does not become less
     */
    public record CatchUpLine(
            CatchUpKind by,
            double percent,
            long doneBytes,
            @Nullable Long totalBytes,
            long bytesPerSecond,
            @Nullable Long secondsLeft) {}

    /** What a replica gets that catches up. */
    public enum CatchUpKind {
        /** The blocks that were written while it was away, as they are now. */
        EXTENTS,
        /** The writes, one by one. */
        ENTRIES;

        @JsonValue
        @Override
        public String toString() {
            return jsonName(this);
        }
    }

    /** How a node is. */
    public enum NodeState {
        ALIVE,
        /** It runs, but its store does not: it serves clients from the other nodes' replicas. */
        FAILED,
        SUSPECT,
        DEAD;

        @JsonValue
        @Override
        public String toString() {
            return jsonName(this);
        }
    }

    /** A replica's part. */
    public enum ReplicaRole {
        LEADER,
        FOLLOWER,
        /** Does not vote until it has caught up. */
        LEARNER;

        @JsonValue
        @Override
        public String toString() {
            return jsonName(this);
        }
    }

    /** How a replica keeps up. */
    public enum ReplicaState {
        IN_SYNC,
        CATCHING_UP,
        OFFLINE;

        @JsonValue
        @Override
        public String toString() {
            return jsonName(this);
        }
    }

    /** Who may write. */
    public enum AttachMode {
        /** One client at a time. */
        EXCLUSIVE,
        /** Every client; they keep out of each other's way themselves. */
        SHARED;

        @JsonValue
        @Override
        public String toString() {
            return jsonName(this);
        }
    }

    /** When a write is answered. */
    public enum DurabilityMode {
        /** When a majority has it in its journal; a flush makes it survive power loss of all. */
        FLUSH,
        /** When a majority has synced it. */
        SYNC;

        @JsonValue
        @Override
        public String toString() {
            return jsonName(this);
        }
    }

    private static String jsonName(Enum<?> value) {
        return value.name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
}
