package io.holdfast.proto.peer;

import io.holdfast.proto.peer.ReplicaMessage.Cursor;
import java.util.List;

/**
 * What the scrubs of two nodes say to each other about their replicas of a shard. The replication
 * core hears none of it.
 */
public sealed interface ScrubMessage extends PeerMessage {
    /** Names question and answer, from 1. */
    long ask();

    /**
     * What does your map hold from one place to another? Any node with a replica answers, whatever
     * the replica's state; one that has too many questions does not.
     *
     * @param from first place asked about
     * @param to first place not asked about, behind {@code from}
     */
    record AskVersions(ShardId shard, long ask, Cursor from, Cursor to) implements ScrubMessage {}

    /**
     * The answer, as the map was at one moment; perhaps for the beginning of the range only.
     *
     * @param applied the replica's applied point at that moment: what was committed up to it is in
     *     the map
     * @param from as asked
     * @param next first place not answered for, behind {@code from}
     * @param stretches in order of (layer, block), at most {@link #MAX_STRETCHES}; what lies
     *     between them was never written
     */
    record Versions(
            ShardId shard,
            long ask,
            long applied,
            Cursor from,
            Cursor next,
            List<Stretch> stretches)
            implements ScrubMessage {
        public Versions {
            stretches = List.copyOf(stretches);
        }
    }

    /** Most stretches of an answer. */
    int MAX_STRETCHES = 16384;

    /** Most blocks of a stretch. */
    int MAX_STRETCH_BLOCKS = 1024;

    /** Bytes of {@link Stretch#sums} per block. */
    int SUM_SIZE = 4;

    /** Behind every place that a map can have. */
    Cursor END = new Cursor(Integer.MAX_VALUE, Long.MAX_VALUE);

    /**
     * Blocks in a row of one write.
     *
     * @param count from 1 to {@link #MAX_STRETCH_BLOCKS}
     * @param sequence of the write, from 1
     * @param epoch of the write, from 1
     * @param nonce of the first block; {@link Nonce#NONE}: zeroes
     * @param trim zeroes that came from TRIM
     * @param intact the checksum of the record that they are in is right; of zeroes always
     * @param sums CRC32C of each sealed block as it was read, big-endian; empty of zeroes
     */
    record Stretch(
            int layer,
            long block,
            int count,
            long sequence,
            long epoch,
            Nonce nonce,
            boolean trim,
            boolean intact,
            byte[] sums) {
        /** First block behind it. */
        public long end() {
            return block + count;
        }

        /** Whether it is of zeroes. */
        public boolean isZero() {
            return nonce.keyId() == 0;
        }

        /** The nonce of one of its blocks. */
        public Nonce nonceOf(long which) {
            return isZero() ? Nonce.NONE : nonce.plus(which - block);
        }
    }
}
