package io.holdfast.simulation;

/**
 * Bugs that the simulator puts into its own driver and disk, or between them and the core, or
 * between a volume client and the network, to prove that its checkers would find them. Production
 * code has no switch for any of them.
 */
enum PlantedBug {
    NONE,
    /** What waits for the journal leaves at once. */
    ACK_BEFORE_WRITE,
    /** A sync is reported that never happened. */
    SYNC_IS_A_LIE,
    /** Hard state does not survive the process. */
    PROMISE_NOT_PERSISTED,
    /** A replica that lost power does not know it, and votes. */
    POWER_LOSS_UNNOTICED,
    /** A leader counts an entry of an older epoch as committed once a majority holds it. */
    OLD_EPOCH_COMMITTED,
    /** Entries reach the map before they are committed. */
    APPLY_BEFORE_COMMIT,
    /** After a pause the leader still reads the clock from before. */
    LEASE_OUTLIVES_PAUSE,
    /** A conflicting tail comes back at a restart. */
    OLD_TAIL_RECOVERED,
    /** A checkpoint lacks the session table. */
    SESSIONS_NOT_IN_CHECKPOINT,
    /** Catch-up by extents leaves out zeroes. */
    CATCH_UP_SKIPS_ZEROES,
    /** Followers report as synced what is only written. */
    DURABLE_OVERSTATED,
    /** A leader waits for nobody's sync but its own: what followers have written will do. */
    FLUSH_ANSWERED_BY_LEADER_ALONE,
    /** A replica that lost power promises like one that has forgotten nothing. */
    LEARNER_VOTES,
    /** Every write passes as one of the present claim. */
    FENCING_SKIPPED,
    /** Conditional writes always happen. */
    CONDITION_UNCHECKED,
    /** Another replica's copy of a corrupt block is taken whatever version it is of. */
    COPY_OF_ANOTHER_VERSION,
    /** The first entry after a power loss does not say so. */
    POWER_LOSS_DROPPED,
    /** A volume client repeats a write under a new number. */
    REPEATED_AS_ANOTHER,
    /** A merged write does not say which contents of its block it was merged with. */
    MERGED_UNCONDITIONALLY,
    /** A volume client goes on under the claim of the one before it. */
    GENERATION_NOT_RAISED,
    /** The map reaches the disk before the journal bytes it names: each sync is late by one. */
    MAP_BEFORE_JOURNAL,
    /** A start reads the journal from its end, not from where the map leaves off. */
    COVERED_IGNORED,
    /** A record is taken for whole, whatever its checksum says. */
    TORN_RECORD_ACCEPTED,
    /** What a catch-up could not read, its taker believes to be what was written. */
    DOUBTS_DROPPED;

    /** Whether it is one of the model of the disk. */
    boolean isInModel() {
        return switch (this) {
            case PROMISE_NOT_PERSISTED,
                    APPLY_BEFORE_COMMIT,
                    OLD_TAIL_RECOVERED,
                    SESSIONS_NOT_IN_CHECKPOINT,
                    CATCH_UP_SKIPS_ZEROES,
                    COPY_OF_ANOTHER_VERSION ->
                    true;
            default -> false;
        };
    }

    /** Whether it is one of the production store on a simulated disk. */
    boolean isInStore() {
        return switch (this) {
            case MAP_BEFORE_JOURNAL, COVERED_IGNORED, TORN_RECORD_ACCEPTED, DOUBTS_DROPPED -> true;
            default -> false;
        };
    }
}
