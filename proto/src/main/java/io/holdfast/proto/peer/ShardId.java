package io.holdfast.proto.peer;

/**
 * One shard of one volume: the unit of replication and leadership.
 *
 * @param volume number of the volume, from 1, given by the catalogue and never given again
 * @param index position of the shard within its volume, from 0
 */
public record ShardId(int volume, int index) implements Comparable<ShardId> {
    public ShardId {
        if (volume < 1 || index < 0 || index > MAX_INDEX) {
            throw new IllegalArgumentException("no such shard: " + volume + "/" + index);
        }
    }

    /** Highest index a shard can have; one volume has at most 1024 shards. */
    public static final int MAX_INDEX = 1023;

    @Override
    public int compareTo(ShardId other) {
        int byVolume = Integer.compare(volume, other.volume);
        return byVolume != 0 ? byVolume : Integer.compare(index, other.index);
    }

    @Override
    public String toString() {
        return volume + "/" + index;
    }
}
