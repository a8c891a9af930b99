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
        /** Votes, counts, may lead. */
        VOTER(1),
        /**
         * Lost power and may have forgotten unsynced entries that it acknowledged: does not count
         * until it again holds the leader's commit point. Its promise counts only in an election
         * after so many lost power that no majority of voters is left.
         */
        LEARNER(2),
        /**
         * Holds nothing to rely on: it lost its disk, or it lost power in the middle of a catch-up
         * by extents. Never promises.
         */
        INSTALLING(3),
        /**
         * A voter in a catch-up by extents. It has forgotten nothing that it acknowledged, so it
         * votes and counts. Its map is mixed from two times, up to a point that is committed; the
         * promises of a majority of voters show that its log reaches that point, so it may lead by
         * these, but not by those of learners.
         */
        CATCHING_UP(4);

        public final int code;

        Standing(int code) {
            this.code = code;
        }

        /** Whether its promises and acknowledgements count as a voter's. */
        public boolean counts() {
            return this == VOTER || this == CATCHING_UP;
        }
    }

    HardState withPromise(long epoch, int node) {
        return new HardState(epoch, node, standing);
    }

    HardState withStanding(Standing newStanding) {
        return new HardState(promised, promisedTo, newStanding);
    }

    /** What is left of it when the machine lost power: entries that were not synced may be gone. */
    public HardState afterPowerLoss() {
        return withStanding(
                switch (standing) {
                    case VOTER, LEARNER -> Standing.LEARNER;
                    // What its map lacks of the log cannot be told any more.
                    case INSTALLING, CATCHING_UP -> Standing.INSTALLING;
                });
    }
}
