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

    /** Entries under way to one follower at most; a slower one lags instead of filling memory. */
    static final int WINDOW = 128;

    final int node;
    Mode mode = Mode.PROBE;
    long next;
    long matched;
    long durable;
    long applied;
    boolean learner;

    /** On its disk. */
    Room room = Room.ENOUGH;

    long lastHeardNanos;
    boolean heard;

    /** Newest of the leader's clock readings that the follower sent back, for the lease. */
    long confirmedNanos = Long.MIN_VALUE;

    /** Answers to frames sent before this are from a life that the follower has forgotten. */
    private long ignoreBefore = Long.MIN_VALUE;

    boolean probeUnderWay;

    /** What the catch-up began with; repeated as it is, since its state belongs to its base. */
    @Nullable InstallBegin installBegin;

    Cursor installCursor = Cursor.START;
    boolean installBegun;
    long installHeardNanos;

    Progress(int node, long next) {
        this.node = node;
        this.next = next;
    }

    /** Takes the news of an answer; false: it is from before the follower's disk forgot. */
    boolean onReply(AppendReply reply, long newestSentNanos) {
        if (reply.sentNanos() < ignoreBefore) {
            return false;
        }
        if (reply.learner() && !learner) {
            // It acknowledged entries that it may hold no longer. An old answer, still on its way,
            // must not count for them again.
            matched = 0;
            durable = 0;
            mode = mode == Mode.INSTALL ? mode : Mode.PROBE;
            probeUnderWay = false;
            ignoreBefore = newestSentNanos + 1;
        }
        learner = reply.learner();
        room = reply.room();
        confirmedNanos = Math.max(confirmedNanos, reply.sentNanos());
        applied = reply.applied();
        return true;
    }

    void toProbe(long newNext) {
        mode = Mode.PROBE;
        next = newNext;
        probeUnderWay = false;
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

    /** Whether it takes part in commits as far as it was heard: votes and has its own log. */
    boolean isFollower() {
        return !learner && mode != Mode.INSTALL;
    }

    boolean isStale(long nowNanos, long limitNanos) {
        return !heard || nowNanos - lastHeardNanos > limitNanos;
    }
}
