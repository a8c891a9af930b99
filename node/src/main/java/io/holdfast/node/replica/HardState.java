package io.holdfast.node.replica;

/**
 * What a replica must never forget, synced before anything that depends on it leaves.
 *
 * @param promised newest epoch promised or followed, 0: none yet
 * @param promisedTo node that {@code promised} was promised to, 0: nobody
 * @param standing whether this replica may vote
 */
public record HardState(long promised, int promisedTo, Standing standing) {
    /** State of a replica of a volume that is just being created. */
    public static final HardState FRESH = new HardState(0, 0, Standing.VOTER);

    /** State of a replica that once knew more and has lost it all (wiped or replaced disk). */
    public static final HardState FORGETFUL = new HardState(0, 0, Standing.INSTALLING);

    /** The code is part of the disk format. */
    public enum Standing {
        /** Votes and counts. */
        VOTER(1),
        /**
         * Lost power and may have forgotten unsynced entries that it acknowledged: does not count
         * until it again holds the leader's commit point. Its promise counts only in an election
         * after a majority lost power.
         */
        LEARNER(2),
        /**
         * Holds nothing to rely on: it lost its disk, or its map is half-way through a catch-up by
         * extents. Never promises.
         */
        INSTALLING(3);

        public final int code;

        Standing(int code) {
            this.code = code;
        }
    }

    HardState withPromise(long epoch, int node) {
        return new HardState(epoch, node, standing);
    }

    HardState withStanding(Standing newStanding) {
        return new HardState(promised, promisedTo, newStanding);
    }
}
