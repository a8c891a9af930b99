package io.holdfast.client.admin;

import com.fasterxml.jackson.annotation.JsonValue;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * How the scrub of one node's replicas is: the run under way, or the last one since the node was
 * started. {@code GET /v1/scrub}.
 *
 * @param node id
 * @param scheduled whether the run was the schedule's; false: somebody asked for it
 * @param started ISO 8601 in UTC; null: never
 * @param finished the same; null: not yet, or never
 * @param verifiedBytes so far, as they are on disk
 * @param totalBytes to be verified; an estimate while it runs
 * @param bytesPerSecond of the run so far, its pauses included
 * @param secondsLeft at that speed; null: it does not run, or cannot tell yet
 * @param counts of all volumes
 * @param volumes of the run, in the order in which they were made
 */
public record ScrubDocument(
        String node,
        State state,
        boolean scheduled,
        @Nullable String started,
        @Nullable String finished,
        long verifiedBytes,
        long totalBytes,
        long bytesPerSecond,
        @Nullable Long secondsLeft,
        Counts counts,
        List<VolumeScrub> volumes) {
    public ScrubDocument {
        volumes = List.copyOf(volumes);
    }

    /** How a run is. */
    public enum State {
        /** There was none since the node was started. */
        NEVER,
        RUNNING,
        DONE,
        /** A replica went away meanwhile, or the node's store has failed. */
        STOPPED;

        @JsonValue
        @Override
        public String toString() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /**
     * What was found and done.
     *
     * @param blocks verified, zeroes not among them
     * @param compared with the leader's replica, zeroes included; the leader compares with nobody
     * @param notCompared could not be: no leader, or no answer
     * @param damaged in a record with a wrong checksum, or unreadable
     * @param differing from the leader's, in version or bytes
     * @param repaired of the damaged and differing ones
     * @param unrepairable of them. What is missing was written anew meanwhile
     */
    public record Counts(
            long blocks,
            long compared,
            long notCompared,
            long damaged,
            long differing,
            long repaired,
            long unrepairable) {}

    /**
     * A volume of the run.
     *
     * @param lastCompleted when the last of its replicas here was scrubbed to the end, ISO 8601 in
     *     UTC; null: one never was
     */
    public record VolumeScrub(
            String volume, State state, Counts counts, @Nullable String lastCompleted) {}
}
