package io.holdfast.node.replica;

/**
 * What a replica must never forget, synced before anything that depends on it leaves.
 *
 * @param promised newest epoch promised or followed, 0: none yet
 * @param promisedTo node that {@code promised} was promised to, or, once known, that leads it: its
 *     log holds everything committed that this replica acknowledged before. 0: nobody yet, or this
 *     replica does not know what it acknowledged
 * @param standing whether this replica may vote
 * @param catchUp catch-up by extents that is not over; NONE for one that has its own log and map
 */
public record HardState(long promised, int promisedTo, Standing standing, CatchUp catchUp) {
    /** State of a replica of a volume that is just being created. */
    public static final HardState FRESH = new HardState(0, 0, Standing.VOTER);

    /** State of a replica that once knew more and has lost it all (wiped or replaced disk). */
    public static final HardState FORGETFUL = new HardState(0, 0, Standing.INSTALLING);

    /** One that never began a catch-up by extents. */
    public HardState(long promised, int promisedTo, Standing standing) {
        this(promised, promisedTo, standing, CatchUp.NONE);
    }

    /**
     * The base of a catch-up by extents, of several one after the other the furthest. Until the log
     * reaches it, the map may hold extents of anything through there, and all of that was
     * committed.
     *
     * @param epoch of the entry at {@code through}
     * @param through sequence, 0: none
     */
    public record CatchUp(long epoch, long through) {
        public static final CatchUp NONE = new CatchUp(0, 0);

        /**
         * Whether the log of a leader, or its beginning, shows that a power loss took some of the
         * base's entries out of history: extents of these may be in the map, newer for ever than
         * what replaced them. What replaced them is either of a later epoch, from some place before
         * the base on, or another leader's older tail that reaches beyond the base.
         *
         * @param sequence of an entry in the leader's log
         * @param epochThere of the entry at {@code sequence}, or at the base if that comes first
         */
        boolean isContradictedBy(long sequence, long epochThere) {
            return through > 0 && (sequence >= through ? epochThere != epoch : epochThere > epoch);
        }
    }

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
         * Holds nothing to rely on: it lost its disk, or it lost power before a catch-up by extents
         * was over. Promises only to the node that it has everything from ({@link #promisedTo}):
         * that one holds what this replica acknowledged in former times.
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
        return new HardState(epoch, isForgetful() ? 0 : node, standing, catchUp);
    }

    HardState withStanding(Standing newStanding) {
        boolean whole = newStanding == Standing.VOTER || newStanding == Standing.LEARNER;
        return new HardState(promised, promisedTo, newStanding, whole ? CatchUp.NONE : catchUp);
    }

    /** The same, with a catch-up known from elsewhere. */
    public HardState withCatchUp(CatchUp other) {
        return new HardState(promised, promisedTo, standing, other);
    }

    /** A catch-up from the leader of the promised epoch begins. */
    HardState catchingUp(int leader, long baseEpoch, long baseSequence) {
        return new HardState(
                promised,
                isForgetful() ? 0 : leader,
                standing.counts() ? Standing.CATCHING_UP : Standing.INSTALLING,
                baseSequence > catchUp.through ? new CatchUp(baseEpoch, baseSequence) : catchUp);
    }

    /** Nothing is left but the promise, to the leader of its epoch. */
    HardState startingOver(int leader) {
        return new HardState(promised, isForgetful() ? 0 : leader, Standing.INSTALLING);
    }

    /**
     * Whether it knows nothing of its past (a new disk, most of all), and has not yet got
     * everything from a leader: it must not say of any node that it holds what was acknowledged
     * here.
     */
    public boolean isForgetful() {
        return standing == Standing.INSTALLING && promisedTo == 0;
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
