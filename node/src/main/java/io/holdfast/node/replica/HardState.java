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

    /** State of a replica that may once have known more than it does now. */
    public static final HardState FORGETFUL = new HardState(0, 0, Standing.LEARNER);

    /** The code is part of the disk format. */
    public enum Standing {
        /** Votes and counts. */
        VOTER(1),
        /**
         * May have forgotten entries it acknowledged (power loss, lost disk): neither promises nor
         * counts until it again holds the leader's commit point.
         */
        LEARNER(2),
        /** A learner whose map is half-way through a catch-up by extents. */
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
