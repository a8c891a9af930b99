package io.holdfast.node.replica;

import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.EntryKind;
import io.holdfast.proto.peer.ReplicaMessage.Append;
import io.holdfast.proto.peer.ReplicaMessage.AppendReply;
import io.holdfast.proto.peer.ReplicaMessage.HandOver;
import io.holdfast.proto.peer.ReplicaMessage.InstallBegin;
import io.holdfast.proto.peer.ReplicaMessage.InstallReply;
import io.holdfast.proto.peer.Room;
import io.holdfast.proto.peer.ShardId;
import java.util.ArrayList;
import java.util.List;

/**
 * The leader's role in one epoch: numbers entries, sends them, decides what is committed, keeps the
 * lease. Made when the election is won, dropped when leadership ends.
 */
final class Leadership {
    /** A follower that says nothing for this many heartbeats is shown as offline. */
    private static final int OFFLINE_HEARTBEATS = 10;

    /** Part of a catch-up that is not answered is sent again after this many heartbeats. */
    private static final int INSTALL_RESEND_HEARTBEATS = 10;

    /** A follower that was far behind is in sync again once it has kept up for this long. */
    private static final int STEADY_HEARTBEATS = 30;

    private final ReplicaData data;
    private final Timing timing;
    private final long epoch;
    private final long firstSequence;
    private final List<Progress> followers = new ArrayList<>();
    private final ClientDesk desk;

    private boolean serving;
    private Room followersRoom = Room.ENOUGH;
    private final long electedNanos;
    private long lastSentNanos;
    private long nextHeartbeatNanos;
    private boolean heartbeatDue = true;
    private long syncIssued;
    private long syncSent;

    private int handOverTo;
    private long handOverDeadlineNanos;

    /**
     * Begins to lead in the epoch that {@code data} has promised to itself.
     *
     * @param afterPowerLoss the election counted promises of replicas that may have forgotten
     */
    Leadership(ReplicaData data, boolean afterPowerLoss, Liveness liveness, long nowNanos) {
        this.data = data;
        timing = data.options.timing();
        epoch = data.hard().promised();
        electedNanos = nowNanos;
        lastSentNanos = nowNanos;
        nextHeartbeatNanos = nowNanos;
        firstSequence = data.log.last() + 1;
        for (int node : data.options.replicas()) {
            if (node != data.options.self()) {
                followers.add(new Progress(node, firstSequence, data.options.branches()));
            }
        }
        desk = new ClientDesk(data, this, liveness);
        EntryKind kind = afterPowerLoss ? EntryKind.POWER_LOSS : EntryKind.NOOP;
        data.append(Entry.builder(shard(), kind).at(epoch, firstSequence, data.commit()).build());
    }

    private ShardId shard() {
        return data.options.shard();
    }

    ClientDesk desk() {
        return desk;
    }

    boolean isServing() {
        return serving;
    }

    boolean isHandingOver() {
        return handOverTo != 0;
    }

    // ---- confirmation: the lease, and rounds for quorum reads

    /** A heartbeat sent at this reading or later confirms whatever arrives now. */
    long nextConfirmation() {
        return lastSentNanos + 1;
    }

    private long takeSentNanos(long nowNanos) {
        // Readings are made to rise, so that a confirmation never belongs to an earlier frame.
        lastSentNanos = Math.max(nowNanos, lastSentNanos + 1);
        return lastSentNanos;
    }

    /** Since when a majority of voters has followed, at least. */
    private long confirmedNanos() {
        return answeredNanos(false);
    }

    private long answeredNanos(boolean learnersToo) {
        long[] values = new long[followers.size() + 1];
        values[followers.size()] = Long.MAX_VALUE;
        for (int i = 0; i < followers.size(); i++) {
            Progress follower = followers.get(i);
            values[i] = follower.learner && !learnersToo ? Long.MIN_VALUE : follower.confirmedNanos;
        }
        return Quorum.reachedBy(data.options.majority(), values);
    }

    /** Whether a majority followed this leader recently enough to rule out a newer one. */
    boolean hasLease(long nowNanos) {
        return nowNanos - timing.leaseNanos() < confirmedNanos();
    }

    boolean isConfirmed(long neededNanos, long nowNanos) {
        return data.options.quorumReads() ? confirmedNanos() >= neededNanos : hasLease(nowNanos);
    }

    /**
     * Nobody has followed for so long that others may have a leader by now. Learners count as
     * followers: after a power loss of a majority all others are that, and what they get from this
     * leader, extent by extent perhaps, makes them voters again. Without it they would be replicas
     * with half a map, of which none may lead nor elect, for good.
     */
    boolean isForsaken(long nowNanos) {
        long answered = Math.max(answeredNanos(true), electedNanos);
        return nowNanos - 2 * timing.pausedNanos() > answered;
    }

    // ---- commit

    /** A majority has synced its log through here. */
    long majorityDurable() {
        return majority(true);
    }

    private long majority(boolean durable) {
        long[] values = new long[followers.size() + 1];
        values[followers.size()] = durable ? data.outbox.durable() : data.outbox.written();
        for (int i = 0; i < followers.size(); i++) {
            Progress follower = followers.get(i);
            values[i] =
                    follower.learner
                            ? Long.MIN_VALUE
                            : durable ? follower.durable : follower.matched;
        }
        return Quorum.reachedBy(data.options.majority(), values);
    }

    /** Commits and answers what a majority holds by now. */
    void advance(long nowNanos) {
        long held = majority(data.options.syncWrites());
        // Entries of older epochs count only through one of ours (Raft, section 5.4.2): a majority
        // may hold one of them and yet lose it to a candidate whose last entry is newer.
        if (held > data.commit() && held >= firstSequence) {
            data.commitThrough(held);
            data.applyCommitted();
            if (!serving) {
                serving = true;
                desk.begin();
                data.outbox.add(
                        new Effect.Announce(Effect.Role.LEADER, epoch, data.options.self()));
            }
            desk.onApplied();
        }
        followersRoom = followersRoom(nowNanos);
        desk.onDurable(majorityDurable());
        desk.onConfirmed(nowNanos);
        desk.releaseOvertaken();
    }

    // ---- followers' answers

    private Progress follower(int node) {
        for (Progress follower : followers) {
            if (follower.node == node) {
                return follower;
            }
        }
        throw Invariant.broken("answers come from replicas of the shard", node);
    }

    void onAppendReply(int from, AppendReply reply, long nowNanos) {
        Progress follower = follower(from);
        follower.heard = true;
        follower.lastHeardNanos = nowNanos;
        if (!follower.onReply(reply, lastSentNanos)) {
            return;
        }
        InstallBegin begin = follower.installBegin;
        if (begin != null) {
            if (follower.applied < begin.since()) {
                // It was restarted and has less than this catch-up builds on.
                data.options.taken(Branch.CATCH_UP_BEGUN_ANEW);
                beginInstall(follower);
            } else if (follower.applied >= begin.baseSequence()) {
                // It got there by entries that were still on their way, or its last answer is lost.
                data.options.taken(Branch.CATCH_UP_OVERTAKEN_BY_ENTRIES);
                follower.installBegin = null;
                follower.toProbe(follower.applied + 1, lastSentNanos);
            }
            return;
        }
        if (reply.accepted()) {
            Invariant.check(
                    reply.matched() <= data.log.last(),
                    "a follower matches nothing beyond the leader's log",
                    from,
                    reply.matched(),
                    data.log.last());
            follower.matched = Math.max(follower.matched, reply.matched());
            follower.durable =
                    Math.max(follower.durable, Math.min(reply.durable(), reply.matched()));
            follower.toReplicate();
        } else {
            follower.onRejected(reply, lastSentNanos);
        }
    }

    // ---- catch-up by extents

    void onEntriesGone(int node) {
        Progress follower = follower(node);
        if (follower.mode != Progress.Mode.INSTALL) {
            data.options.taken(Branch.ENTRIES_GONE);
            beginInstall(follower);
        }
    }

    private void beginInstall(Progress follower) {
        follower.toInstall(
                new InstallBegin(
                        shard(),
                        epoch,
                        follower.applied,
                        data.appliedEpoch(),
                        data.applied(),
                        data.state().encode(data.log.epochs(), data.applied())));
    }

    private void sendExtents(Progress follower, InstallBegin begin, long nowNanos) {
        follower.installHeardNanos = nowNanos;
        data.outbox.add(
                new Effect.SendExtents(
                        follower.node,
                        epoch,
                        begin.baseSequence(),
                        begin.since(),
                        follower.installCursor));
    }

    void onInstallReply(int from, InstallReply reply, long nowNanos) {
        Progress follower = follower(from);
        follower.heard = true;
        follower.lastHeardNanos = nowNanos;
        InstallBegin begin = follower.installBegin;
        if (begin == null || reply.baseSequence() != begin.baseSequence()) {
            return;
        }
        if (reply.done()) {
            follower.matched = begin.baseSequence();
            follower.durable = begin.baseSequence();
            follower.applied = begin.baseSequence();
            follower.next = begin.baseSequence() + 1;
            follower.installBegin = null;
            follower.toReplicate();
        } else if (!follower.installBegun || !reply.next().equals(follower.installCursor)) {
            follower.installBegun = true;
            follower.installCursor = reply.next();
            sendExtents(follower, begin, nowNanos);
        }
    }

    private void keepInstalling(Progress follower, InstallBegin begin, long nowNanos) {
        boolean silent =
                nowNanos - follower.installHeardNanos
                        > INSTALL_RESEND_HEARTBEATS * timing.heartbeatNanos();
        if (silent) {
            // Begins anew rather than sending the part again: a follower that was restarted knows
            // nothing of this catch-up, and one that does answers with the part that it lacks.
            follower.installHeardNanos = nowNanos;
            if (follower.installBegun) {
                data.options.taken(Branch.CATCH_UP_REPEATED);
            }
            follower.installBegun = false;
            data.outbox.send(follower.node, begin);
        }
    }

    // ---- time and turns

    void onTick(long nowNanos) {
        if (nowNanos >= nextHeartbeatNanos) {
            heartbeatDue = true;
        }
        for (Progress follower : followers) {
            follower.noteLag(
                    data.log.last() - follower.matched,
                    data.options.limits().window(),
                    STEADY_HEARTBEATS * timing.heartbeatNanos(),
                    nowNanos);
        }
        desk.onTick(nowNanos);
        if (handOverTo != 0 && nowNanos >= handOverDeadlineNanos) {
            data.options.taken(Branch.HAND_OVER_TIMED_OUT);
            handOverTo = 0;
        }
    }

    /** Joins the sync that clients wait for to this turn's journal write. */
    void prepareTurn() {
        if (desk.syncWanted() > syncIssued) {
            syncIssued = desk.syncWanted();
            if (data.outbox.durable() < syncIssued) {
                data.outbox.askSync();
            }
        }
    }

    /** Sends each follower what it lacks, and a heartbeat when one is due. */
    void sendTurn(long nowNanos) {
        boolean newSync = syncIssued > syncSent;
        syncSent = syncIssued;
        boolean confirm = desk.hasParked() && desk.newestParkedNeeds() > lastSentNanos;
        boolean everyone = heartbeatDue || confirm;
        if (everyone) {
            nextHeartbeatNanos = nowNanos + timing.heartbeatNanos();
        }
        long sentNanos = lastSentNanos;
        for (Progress follower : followers) {
            if (heartbeatDue) {
                follower.probeUnderWay = false;
            }
            boolean sends = follower.mode != Progress.Mode.INSTALL && hasWork(follower);
            if (sends || everyone || newSync) {
                if (sentNanos == lastSentNanos) {
                    sentNanos = takeSentNanos(nowNanos);
                }
                sendFrame(follower, sends, syncIssued, sentNanos, nowNanos);
            }
        }
        heartbeatDue = false;
    }

    private boolean hasWork(Progress follower) {
        return follower.mode == Progress.Mode.PROBE
                ? !follower.probeUnderWay
                : follower.next <= data.log.last() && !isWindowFull(follower);
    }

    private boolean isWindowFull(Progress follower) {
        boolean full = follower.next - follower.matched > data.options.limits().window();
        if (full) {
            data.options.taken(Branch.WINDOW_FULL);
        }
        return full;
    }

    private void sendFrame(
            Progress follower, boolean withEntries, long sync, long sentNanos, long nowNanos) {
        if (follower.installBegin != null) {
            keepInstalling(follower, follower.installBegin, nowNanos);
            data.outbox.send(follower.node, frame(0, 0, 0, false, sentNanos));
            return;
        }
        long previous = follower.next - 1;
        long previousEpoch = data.log.epochs().epochAt(previous);
        if (previousEpoch == EpochHistory.UNKNOWN) {
            beginInstall(follower);
            return;
        }
        // Only once it has said so itself: until then what is known of it is from before it forgot,
        // and may still make up a majority.
        boolean promote =
                follower.learner
                        && follower.mode == Progress.Mode.REPLICATE
                        && follower.matched >= Math.max(data.commit(), firstSequence);
        Append frame = frame(previousEpoch, previous, sync, promote, sentNanos);
        long through =
                withEntries
                        ? Math.min(
                                data.log.last(),
                                Math.max(follower.matched, previous)
                                        + data.options.limits().window())
                        : previous;
        if (through <= previous) {
            data.outbox.send(follower.node, frame);
        } else {
            data.outbox.add(new Effect.SendEntries(follower.node, frame, through));
        }
        if (follower.mode == Progress.Mode.PROBE) {
            follower.probeUnderWay = true;
        } else {
            follower.next = Math.max(follower.next, through + 1);
        }
    }

    private Append frame(
            long previousEpoch, long previous, long sync, boolean promote, long sentNanos) {
        return new Append(
                shard(),
                epoch,
                previousEpoch,
                previous,
                data.commit(),
                sync,
                promote,
                sentNanos,
                List.of());
    }

    // ---- planned moves

    void handOver(int target, long nowNanos) {
        for (Progress follower : followers) {
            if (follower.node == target
                    && serving
                    && !follower.learner
                    && follower.mode == Progress.Mode.REPLICATE) {
                handOverTo = target;
                handOverDeadlineNanos = nowNanos + 2 * timing.silenceNanos();
            }
        }
    }

    /** Says the word when the target holds everything; true: this replica no longer leads. */
    boolean finishHandOver() {
        if (handOverTo == 0
                || !desk.isIdle()
                || data.commit() != data.log.last()
                || follower(handOverTo).matched != data.log.last()) {
            return false;
        }
        data.options.taken(Branch.HANDED_OVER);
        data.outbox.send(handOverTo, new HandOver(shard(), epoch));
        return true;
    }

    /**
     * The room for writes: here and with the followers that take part. One full disk is enough,
     * because a replica that misses writes is none for long.
     */
    Room room() {
        return data.room.and(followersRoom);
    }

    private Room followersRoom(long nowNanos) {
        Room room = Room.ENOUGH;
        for (Progress follower : followers) {
            if (follower.isFollower() && !isOffline(follower, nowNanos)) {
                room = room.and(follower.room);
            }
        }
        return room;
    }

    private boolean isOffline(Progress follower, long nowNanos) {
        return follower.isStale(nowNanos, OFFLINE_HEARTBEATS * timing.heartbeatNanos());
    }

    List<ReplicaStatus.Follower> status(long nowNanos) {
        List<ReplicaStatus.Follower> lines = new ArrayList<>();
        for (Progress follower : followers) {
            boolean offline = isOffline(follower, nowNanos);
            lines.add(
                    new ReplicaStatus.Follower(
                            follower.node,
                            follower.matched,
                            follower.applied,
                            offline
                                    ? ReplicaStatus.State.OFFLINE
                                    : follower.isInSync()
                                            ? ReplicaStatus.State.IN_SYNC
                                            : ReplicaStatus.State.CATCHING_UP,
                            follower.heard ? nowNanos - follower.lastHeardNanos : Long.MAX_VALUE));
        }
        return lines;
    }
}
