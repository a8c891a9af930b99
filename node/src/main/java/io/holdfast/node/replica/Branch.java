package io.holdfast.node.replica;

/**
 * Branches of the core that are taken rarely. Each is reported when it is taken: a test that never
 * takes one says nothing about it.
 */
public enum Branch {
    // Elections
    PRE_VOTE_REFUSED,
    LOST_TO_A_LONGER_LOG,
    CAMPAIGNS_WITH_THE_LONGER_LOG,
    WON_AFTER_POWER_LOSS,
    WON_WHILE_CATCHING_UP,
    WON_BY_DEPENDENTS,
    LEADER_FORSAKEN,
    LEADER_SUPERSEDED,
    OLD_LEADER_TOLD,
    HANDED_OVER,
    HAND_OVER_TIMED_OUT,

    // The log
    TAIL_CUT,
    REJECTED_BEYOND_END,
    REJECTED_OTHER_EPOCH,
    LATE_REJECTION_IGNORED,
    STARTED_OVER,
    WINDOW_FULL,

    // Learners
    FOLLOWER_LOST_POWER,
    LEARNER_LOST_POWER_AGAIN,
    ANSWER_OF_A_FORMER_LIFE,
    LEARNER_PROMOTED,

    // Catch-up by extents
    ENTRIES_GONE,
    CATCH_UP_BEGUN_ANEW,
    CATCH_UP_REPEATED,
    CATCH_UP_OVERTAKEN_BY_ENTRIES,
    CATCH_UP_GIVEN_UP,
    CATCH_UP_PART_UNEXPECTED,
    CATCH_UP_COVERS_LESS_THAN_THE_LOG,
    CATCH_UP_OF_LOST_WRITES,
    CAUGHT_UP,

    // Clients
    REQUEST_UNDER_WAY_ASKED_AGAIN,
    REQUEST_DONE_ASKED_AGAIN,
    SETTLED_REQUEST_REFUSED,
    CONDITION_FAILED,
    CONDITION_HOLDS_AFTER_ALL,
    CONDITION_WAITS_FOR_A_WRITE,
    GRANT_UNDER_WAY_ASKED_AGAIN,
    CLAIM_GRANTED_BEFORE,
    CLAIM_OF_AN_OLDER_ATTACHMENT,
    CLAIM_TAKEN_FROM_A_DEAD_PROCESS,
    SESSION_FORGOTTEN,
    TOO_MANY_UNCOMMITTED,
    TOO_MANY_PARKED,
    TOO_MANY_SYNC_WAITERS,
    NUMBERS_TOO_FAR_APART,
    REQUEST_INVALID,

    // Copies of corrupt blocks
    COPY_FETCHED,
    COPY_NOT_ANSWERED,
    COPY_OF_ANOTHER_VERSION,
    COPY_UNREADABLE,
    TOO_MANY_FETCHES;

    /** Hears of branches. On the replica's thread. */
    @FunctionalInterface
    public interface Listener {
        void taken(Branch branch);

        /** Hears nothing. */
        Listener NONE = branch -> {};
    }
}
