package io.holdfast.node.runtime;

import java.util.OptionalLong;

/**
 * How far a follower's catch-up is, as its leader sees it, for people and metrics.
 *
 * @param node the follower
 * @param by what is sent at the moment
 * @param percent 0 to 99.9: it is over when the follower is in sync. Never falls while one replica
 *     leads, whatever is written meanwhile and however often it is interrupted
 * @param doneBytes moved and confirmed, what an interruption made moot included
 * @param totalBytes these and what is left, an estimate; empty: not known yet
 * @param bytesPerSecond moved over the last seconds
 * @param secondsLeft at the pace at which what is left has become less; empty: it has not
 */
public record CatchUpProgress(
        int node,
        By by,
        double percent,
        long doneBytes,
        OptionalLong totalBytes,
        long bytesPerSecond,
        OptionalLong secondsLeft) {
    /** What brings the follower forward. */
    public enum By {
        /** What the map holds of newer writes: the log no longer reaches back. */
        EXTENTS,
        /** The log. */
        ENTRIES
    }
}
