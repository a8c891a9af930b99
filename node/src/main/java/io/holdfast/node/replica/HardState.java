package io.holdfast.node.replica;

/**
 * What a replica must never forget, synced before anything that depends on it leaves.
 *
 * @param promised newest epoch promised or followed, 0: none yet
 * @param promisedTo node that {@code promised} was promised to, or that was followed in it: the log
 *     of that node held everything committed that this replica had acknowledged. 0: nobody, or this
 *     replica does not know what it acknowledged
 * @param standing whether this replica may vote
 * @param catchUp newest catch-up by extents that was begun
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
     * The base of a catch-up by extents. Until the log reaches it, the map may hold extents of
     * anything through there, and all of that was committed.
     *
     * @param epoch of the entry at {@code through}
     * @param through sequence, 0: never begun
     */
    public record CatchUp(long epoch, long through) {
        public static final CatchUp NONE = new CatchUp(0, 0);

        /**
         * Whether an entry, in the log of a leader, shows that a power loss took some of the base's
         * entries out of history: extents of these may be in the map, newer for ever than what
         * replaced them.
         */
        boolean isContradictedBy(long entryEpoch, long sequence) {
            return sequence <= through && entryEpoch > epoch;
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
        return new HardState(promised, promisedTo, newStanding, catchUp);
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
     * Whether it lost its disk, and has not yet got everything from a leader: what it acknowledged
     * before is not known, so it must not say that any node holds that.
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
