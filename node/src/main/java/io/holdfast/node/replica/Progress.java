package io.holdfast.node.replica;

import io.holdfast.proto.peer.ReplicaMessage.AppendReply;
import io.holdfast.proto.peer.ReplicaMessage.Cursor;
import io.holdfast.proto.peer.ReplicaMessage.InstallBegin;
import io.holdfast.proto.peer.Room;
import org.jspecify.annotations.Nullable;

/** What a leader knows of one follower. */
final class Progress {
    /** How entries are sent. */
    enum Mode {
        /** Where the logs part is not known: one frame at a time. */
        PROBE,
        /** The logs agree: frames follow each other without waiting. */
        REPLICATE,
        /** The entries it lacks are gone here: it gets extents. */
        INSTALL
    }

    /** Windows behind the leader's log. */
    private static final long BEHIND_WINDOWS = 2;

    final int node;
    Mode mode = Mode.PROBE;
    long next;
    long matched;
    long durable;
    long applied;
    boolean learner;

    /** On its disk. */
    Room room = Room.ENOUGH;

    /** So far behind the log, for all that is known, that it is shown as catching up. */
    private boolean behind = true;

    /** When it was last found that far behind. */
    private long strayedNanos = Long.MIN_VALUE / 2;

    long lastHeardNanos;
    boolean heard;

    /** Newest of the leader's clock readings that the follower sent back, for the lease. */
    long confirmedNanos = Long.MIN_VALUE;

    /** Answers to frames sent before this are from a life that the follower has forgotten. */
    private long ignoreBefore = Long.MIN_VALUE;

    boolean probeUnderWay;

    /** Only rejections of frames sent after this say where the logs part now. */
    private long probedSinceNanos = Long.MIN_VALUE;

    /** What the catch-up began with; repeated as it is, since its state belongs to its base. */
    @Nullable InstallBegin installBegin;

    Cursor installCursor = Cursor.START;
    boolean installBegun;
    long installHeardNanos;

    private final Branch.Listener branches;

    Progress(int node, long next, Branch.Listener branches) {
        this.node = node;
        this.next = next;
        this.branches = branches;
    }

    /** Takes the news of an answer; false: it is from before the follower's disk forgot. */
    boolean onReply(AppendReply reply, long newestSentNanos) {
        if (reply.sentNanos() < ignoreBefore) {
            branches.taken(Branch.ANSWER_OF_A_FORMER_LIFE);
            return false;
        }
        if (reply.learner() && !learner) {
            // It acknowledged entries that it may hold no longer. An old answer, still on its way,
            // must not count for them again.
            branches.taken(Branch.FOLLOWER_LOST_POWER);
            matched = 0;
            durable = 0;
            mode = mode == Mode.INSTALL ? mode : Mode.PROBE;
            probeUnderWay = false;
            ignoreBefore = newestSentNanos + 1;
        } else if (learner && !reply.learner()) {
            // What it said as a learner it may have forgotten once more before it became a voter.
            matched = 0;
            durable = 0;
        }
        learner = reply.learner();
        room = reply.room();
        confirmedNanos = Math.max(confirmedNanos, reply.sentNanos());
        applied = reply.applied();
        return true;
    }

    /**
     * Takes a rejection as the place where the logs part. One of a frame sent before the last move
     * says nothing new: many frames are under way when the first one is rejected, and going back
     * for each would send the log anew as often, without end if each of these is rejected too.
     */
    void onRejected(AppendReply reply, long newestSentNanos) {
        if (reply.sentNanos() <= probedSinceNanos || reply.last() + 1 >= next) {
            branches.taken(Branch.LATE_REJECTION_IGNORED);
            return;
        }
        if (learner && mode == Mode.PROBE) {
            // The frame was sent when all of `matched` was known of: a learner that lost its disk
            // or its unsynced entries once more. (A frame of a burst may just have been overtaken.)
            if (reply.last() < matched) {
                branches.taken(Branch.LEARNER_LOST_POWER_AGAIN);
            }
            matched = Math.min(matched, reply.last());
            durable = Math.min(durable, matched);
        }
        toProbe(Math.max(matched + 1, reply.last() + 1), newestSentNanos);
    }

    /** Goes back, or on, to one frame at a time. */
    void toProbe(long newNext, long newestSentNanos) {
        mode = Mode.PROBE;
        next = newNext;
        probeUnderWay = false;
        probedSinceNanos = newestSentNanos;
    }

    void toReplicate() {
        mode = Mode.REPLICATE;
        next = Math.max(next, matched + 1);
        probeUnderWay = false;
    }

    void toInstall(InstallBegin begin) {
        mode = Mode.INSTALL;
        installBegin = begin;
        installCursor = Cursor.START;
        installBegun = false;
        installHeardNanos = Long.MIN_VALUE / 2;
    }

    /**
     * Notes how far it is behind. It is so from two windows on, and until it has been nearer than
     * that for {@code steadyNanos} and is within one: a follower at the edge of its pace does not
     * change its state with every look.
     */
    void noteLag(long entries, long window, long steadyNanos, long nowNanos) {
        if (entries > BEHIND_WINDOWS * window) {
            behind = true;
            strayedNanos = nowNanos;
        } else if (entries <= window && nowNanos - steadyNanos >= strayedNanos) {
            behind = false;
        }
    }

    /** Whether it follows the leader closely: what it lacks is on its way. */
    boolean isInSync() {
        return isFollower() && !behind;
    }

    /** Whether it takes part in commits as far as it was heard: votes and has its own log. */
    boolean isFollower() {
        return !learner && mode != Mode.INSTALL;
    }

    boolean isStale(long nowNanos, long limitNanos) {
        return !heard || nowNanos - lastHeardNanos > limitNanos;
    }
}
