package io.holdfast.node.replica;

import io.holdfast.node.replica.HardState.CatchUp;
import io.holdfast.node.replica.HardState.Standing;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ClientReply.Refusal;
import io.holdfast.proto.peer.ClientRequest;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.ReplicaMessage;
import io.holdfast.proto.peer.ReplicaMessage.Append;
import io.holdfast.proto.peer.ReplicaMessage.AppendReply;
import io.holdfast.proto.peer.ReplicaMessage.Cursor;
import io.holdfast.proto.peer.ReplicaMessage.FetchBlock;
import io.holdfast.proto.peer.ReplicaMessage.FetchedBlock;
import io.holdfast.proto.peer.ReplicaMessage.HandOver;
import io.holdfast.proto.peer.ReplicaMessage.InstallBegin;
import io.holdfast.proto.peer.ReplicaMessage.InstallExtents;
import io.holdfast.proto.peer.ReplicaMessage.InstallReply;
import io.holdfast.proto.peer.ReplicaMessage.PromiseReply;
import io.holdfast.proto.peer.ReplicaMessage.PromiseRequest;
import io.holdfast.proto.peer.Room;
import io.holdfast.proto.peer.Voice;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * One copy of one shard: a pure state machine, see the package comment. Follows Raft (Ongaro and
 * Ousterhout, 2014) with pre-vote and leader leases; {@code docs/architecture.md} says where it
 * differs.
 *
 * <p>Roles, and what leads from one to another:
 *
 * <pre>
 * FOLLOWER  -> CANDIDATE  the leader was silent, the coordinator named us, or a leader handed over
 * CANDIDATE -> LEADER     a majority promised
 * CANDIDATE -> FOLLOWER   no majority in time, or another one leads
 * LEADER    -> FOLLOWER   a newer epoch was seen, a majority was silent, or leadership handed over
 * </pre>
 *
 * <p>Owned by one thread. {@link #step} first settles the epoch, then hands over to the role.
 */
public final class Replica {
    /** A replica that lost power campaigns this many times later than others: they know more. */
    private static final int LEARNER_PATIENCE = 4;

    private final ReplicaOptions options;
    private final Timing timing;
    private final ReplicaData data;
    private final Liveness liveness = new Liveness();

    /** At most one of these two is there; neither: follower. */
    private @Nullable Leadership leadership;

    private @Nullable Candidacy candidacy;

    /** Node that leads the promised epoch, 0: not known. */
    private int leader;

    /** Leader and epoch that the last announcement named. */
    private int announcedLeader;

    private long announcedEpoch;

    /** Newest epoch seen anywhere, perhaps not promised: campaigns go above it. */
    private long newestSeen;

    /** No promise is given before this: a leader may still be reading under its lease. */
    private long guardUntilNanos;

    /** When to campaign unless a leader is heard, and since when one is waited for. */
    private long campaignAtNanos;

    private long awaitedSinceNanos;

    /**
     * The log equals the leader's through here, as its frames have shown. What is committed here is
     * no proof: after a power loss of a majority the leader may lack it.
     */
    private long matched;

    /** The answer that this turn owes the leader. */
    private @Nullable Append unanswered;

    private @Nullable InstallBegin install;
    private Cursor installCursor = Cursor.START;

    /**
     * A replica as it was found at start. It serves nothing before it has heard from the others.
     *
     * @param nowNanos clock reading at creation
     * @param blocks the map that {@link Effect.Apply} goes to
     */
    public Replica(
            ReplicaOptions options, Recovered recovered, BlockVersions blocks, long nowNanos) {
        this.options = options;
        timing = options.timing();
        data = new ReplicaData(options, recovered, blocks);
        newestSeen = Math.max(data.hard().promised(), data.log.lastEpoch());
        if (newestSeen > data.hard().promised()) {
            // The promise was torn off the entries, so nothing of that epoch was acknowledged. What
            // was before is where it was.
            boolean depends = data.hard().standing() == Standing.INSTALLING;
            data.become(
                    data.hard().withPromise(newestSeen, depends ? data.hard().promisedTo() : 0));
        }
        // It may have acknowledged a heartbeat just before it died. One that never promised
        // anything cannot have.
        boolean isNew = newestSeen == 0;
        guardUntilNanos = isNew ? nowNanos : nowNanos + timing.guardNanos();
        awaitLeader(nowNanos);
    }

    /**
     * Takes one event and tells what is to be done about it, in order.
     *
     * @param nowNanos monotonic clock; never goes back between calls
     */
    public List<Effect> step(Event event, long nowNanos) {
        switch (event) {
            case Event.Tick() -> onTick(nowNanos);
            case Event.FromPeer(int from, ReplicaMessage message) ->
                    onMessage(from, message, nowNanos);
            case Event.FromClient(int origin, ClientRequest request) -> onClient(origin, request);
            case Event.Written(long ticket) -> data.outbox.onWritten(ticket);
            case Event.Synced(long ticket) -> {
                data.outbox.onSynced(ticket);
                maybeWin(nowNanos);
            }
            case Event.TurnEnd() -> onTurnEnd(nowNanos);
            case Event.Campaign() -> {
                if (leadership == null && data.isVoter()) {
                    // What this replica acknowledged itself is part of another leader's lease.
                    campaignAtNanos = Math.min(campaignAtNanos, guardUntilNanos);
                    if (nowNanos >= guardUntilNanos) {
                        campaign(true, false, nowNanos);
                    }
                }
            }
            case Event.StepAside(int target) -> {
                if (leadership != null) {
                    leadership.handOver(target, nowNanos);
                }
            }
            case Event.RoomChanged(Room room) -> data.room = room;
            case Event.NodeLost(int node) -> onNodeLost(node);
            case Event.NodeDead(int node) -> liveness.onDead(node);
            case Event.NodeAlive(int node, long incarnation) -> liveness.onAlive(node, incarnation);
            case Event.EntriesGone(int to) -> {
                if (leadership != null) {
                    leadership.onEntriesGone(to);
                }
            }
        }
        data.applyCommitted();
        if (leadership != null) {
            leadership.advance(nowNanos);
        }
        return data.outbox.drain();
    }

    // ---- time

    /** How long this replica waits for a leader's word before it campaigns. */
    private long patience() {
        long place = 0;
        for (int node : options.replicas()) {
            if (node == options.self()) {
                break;
            }
            if (node != leader) {
                place++;
            }
        }
        long silence = liveness.isConnected(leader) ? timing.pausedNanos() : timing.silenceNanos();
        return silence * (data.isVoter() ? 1 : LEARNER_PATIENCE) + place * timing.staggerNanos();
    }

    private void awaitLeader(long nowNanos) {
        awaitedSinceNanos = nowNanos;
        campaignAtNanos = nowNanos + patience();
    }

    private void onNodeLost(int node) {
        liveness.onLost(node);
        if (node == leader) {
            campaignAtNanos = Math.min(campaignAtNanos, awaitedSinceNanos + patience());
        }
    }

    private void onTick(long nowNanos) {
        if (leadership != null) {
            leadership.onTick(nowNanos);
            if (leadership.isForsaken(nowNanos)) {
                options.taken(Branch.LEADER_FORSAKEN);
                becomeFollower(0, nowNanos);
            }
        } else if (candidacy != null) {
            if (nowNanos >= candidacy.deadlineNanos) {
                becomeFollower(0, nowNanos);
            }
        } else if (nowNanos >= campaignAtNanos) {
            campaign(true, false, nowNanos);
        }
    }

    private void onTurnEnd(long nowNanos) {
        answerLeader();
        if (leadership != null) {
            leadership.prepareTurn();
        }
        data.outbox.endTurn(data.log.last(), options.syncWrites());
        if (leadership != null) {
            leadership.sendTurn(nowNanos);
            if (leadership.finishHandOver()) {
                becomeFollower(0, nowNanos);
            }
        }
    }

    // ---- roles

    private void becomeFollower(int newLeader, long nowNanos) {
        if (leadership != null) {
            leadership.desk().abandon(newLeader);
            leadership = null;
        }
        candidacy = null;
        matched = 0;
        unanswered = null;
        install = null;
        leader = newLeader;
        awaitLeader(nowNanos);
        announce(newLeader);
    }

    private void announce(int newLeader) {
        // Repeated candidacies without a majority are no news.
        long epoch = data.hard().promised();
        if (newLeader != announcedLeader || (newLeader != 0 && epoch != announcedEpoch)) {
            announcedLeader = newLeader;
            announcedEpoch = epoch;
            data.outbox.add(new Effect.Announce(Effect.Role.FOLLOWER, epoch, newLeader));
        }
    }

    /**
     * Follows an epoch above the promised one, which the coming leader asked for or leads.
     *
     * @param newLeader 0: nobody leads it yet
     */
    private void enterEpoch(long epoch, int promisedTo, int newLeader, long nowNanos) {
        Invariant.check(
                epoch > data.hard().promised(), "epochs rise", epoch, data.hard().promised());
        newestSeen = Math.max(newestSeen, epoch);
        data.become(data.hard().withPromise(epoch, promisedTo));
        becomeFollower(newLeader, nowNanos);
    }

    private void campaign(boolean preliminary, boolean handOver, long nowNanos) {
        if (data.hard().standing() == Standing.INSTALLING) {
            awaitLeader(nowNanos);
            return;
        }
        long deadline = nowNanos + timing.silenceNanos();
        long epoch = Math.max(newestSeen, data.hard().promised()) + 1;
        long ownTicket = 0;
        if (!preliminary) {
            newestSeen = epoch;
            data.become(data.hard().withPromise(epoch, options.self()));
            leader = 0;
            unanswered = null;
            install = null;
            matched = 0;
        }
        PromiseRequest request =
                new PromiseRequest(
                        options.shard(),
                        epoch,
                        preliminary,
                        handOver,
                        data.log.lastEpoch(),
                        data.log.last(),
                        !data.counts());
        for (int node : options.replicas()) {
            if (node == options.self()) {
                continue;
            }
            if (preliminary) {
                data.outbox.send(node, request);
            } else {
                data.outbox.sendWhenSynced(node, request);
            }
        }
        if (!preliminary) {
            data.outbox.persistTurn(data.log.last(), options.syncWrites());
            ownTicket = data.outbox.lastTicket();
        }
        candidacy = new Candidacy(epoch, preliminary, handOver, ownTicket, deadline);
        if (preliminary) {
            candidacy.grantedBy(options.self(), voice());
            maybeWin(nowNanos);
        }
    }

    /** Goes on to the next round, or leads, if the promises suffice. */
    private void maybeWin(long nowNanos) {
        Candidacy round = candidacy;
        if (round == null) {
            return;
        }
        if (!round.preliminary && data.outbox.syncedTicket() >= round.ownTicket) {
            round.grantedBy(options.self(), voice());
        }
        boolean won = round.isWonByVoters(options.majority(), data.isVoter());
        // The map of one that catches up may hold extents of entries that nobody has any more. A
        // majority of voters has them all, and would not have promised to a log without them.
        boolean afterPowerLoss =
                !won
                        && data.hard().standing() != Standing.CATCHING_UP
                        && round.isWonAfterPowerLoss(options.majority(), options.replicas().size());
        if (!won && !afterPowerLoss) {
            return;
        }
        if (round.preliminary) {
            campaign(false, round.handOver, nowNanos);
            return;
        }
        if (afterPowerLoss) {
            options.taken(Branch.WON_AFTER_POWER_LOSS);
        }
        if (data.hard().standing() == Standing.CATCHING_UP) {
            options.taken(Branch.WON_WHILE_CATCHING_UP);
        }
        if (won && round.needsDependents(options.majority())) {
            options.taken(Branch.WON_BY_DEPENDENTS);
        }
        candidacy = null;
        leader = options.self();
        data.become(data.hard().withStanding(Standing.VOTER));
        announcedLeader = leader;
        leadership = new Leadership(data, afterPowerLoss, liveness, nowNanos);
    }

    // ---- messages

    private void onMessage(int from, ReplicaMessage message, long nowNanos) {
        if (!options.replicas().contains(from) || from == options.self()) {
            return;
        }
        switch (message) {
            case PromiseRequest request -> onPromiseRequest(from, request, nowNanos);
            case PromiseReply reply -> onPromiseReply(from, reply, nowNanos);
            case Append append -> {
                if (follows(from, append, nowNanos)) {
                    onAppend(from, append);
                }
            }
            case InstallBegin begin -> {
                if (follows(from, begin, nowNanos)) {
                    onInstallBegin(from, begin);
                }
            }
            case InstallExtents extents -> {
                if (follows(from, extents, nowNanos)) {
                    onInstallExtents(from, extents);
                }
            }
            case AppendReply reply -> {
                Leadership leading = leads(reply, nowNanos);
                if (leading != null) {
                    leading.onAppendReply(from, reply, nowNanos);
                }
            }
            case InstallReply reply -> {
                Leadership leading = leads(reply, nowNanos);
                if (leading != null) {
                    leading.onInstallReply(from, reply, nowNanos);
                }
            }
            case FetchBlock fetch -> {
                if (options.has(fetch.layer(), fetch.block(), 1)) {
                    data.outbox.add(new Effect.SendCopy(from, fetch));
                }
            }
            case FetchedBlock copy -> {
                Leadership leading = leads(copy, nowNanos);
                if (leading != null) {
                    leading.desk().onFetched(from, copy);
                }
            }
            case HandOver handOver -> {
                if (handOver.epoch() == data.hard().promised()
                        && leadership == null
                        && data.isVoter()) {
                    // What the leader gave up is the lease of the epoch that it led. Where a newer
                    // epoch is known of, somebody may lead it, and that lease is to be waited out.
                    campaign(false, newestSeen == data.hard().promised(), nowNanos);
                }
            }
        }
    }

    /** Whether a leader's message is of the epoch followed here; a newer one is entered first. */
    private boolean follows(int from, ReplicaMessage message, long nowNanos) {
        long promised = data.hard().promised();
        if (message.epoch() < promised) {
            // It does not know that it was replaced. The answer's epoch tells it.
            options.taken(Branch.OLD_LEADER_TOLD);
            data.outbox.send(
                    from,
                    new AppendReply(
                            options.shard(),
                            promised,
                            false,
                            0,
                            0,
                            data.log.last(),
                            data.applied(),
                            !data.counts(),
                            data.room,
                            Long.MIN_VALUE));
            return false;
        }
        if (message.epoch() > promised) {
            enterEpoch(message.epoch(), from, from, nowNanos);
        } else if (leader != from) {
            Invariant.check(
                    leader == 0 && leadership == null,
                    "one node leads an epoch",
                    promised,
                    leader,
                    from);
            // It may have promised this epoch to another candidate, which lacks what is
            // acknowledged from now on.
            data.become(data.hard().withPromise(promised, from));
            becomeFollower(from, nowNanos);
        }
        // From here on this replica has acknowledged the leader, so its lease must be waited out.
        guardUntilNanos = nowNanos + timing.guardNanos();
        awaitLeader(nowNanos);
        return true;
    }

    /** This replica's leadership if an answer belongs to it; a newer epoch ends it. */
    private @Nullable Leadership leads(ReplicaMessage answer, long nowNanos) {
        long promised = data.hard().promised();
        if (answer.epoch() > promised) {
            newestSeen = Math.max(newestSeen, answer.epoch());
            if (leadership != null) {
                options.taken(Branch.LEADER_SUPERSEDED);
                becomeFollower(0, nowNanos);
            }
            return null;
        }
        return answer.epoch() == promised ? leadership : null;
    }

    // ---- elections

    private void onPromiseRequest(int from, PromiseRequest request, long nowNanos) {
        long promised = data.hard().promised();
        boolean fresh =
                request.epoch() > promised
                        || (request.epoch() == promised
                                && data.hard().promisedTo() == from
                                && leadership == null);
        // The leader that steps down for a successor gives up its lease with it, and its lease is
        // the only one if the epoch it led is the one promised here.
        boolean leaseOver =
                (request.handOver() && request.epoch() == promised + 1)
                        || (nowNanos >= guardUntilNanos
                                && (leadership == null || !leadership.hasLease(nowNanos)));
        boolean advanced =
                request.lastEpoch() > data.log.lastEpoch()
                        || (request.lastEpoch() == data.log.lastEpoch()
                                && request.lastSequence() >= data.log.last());
        // Nothing that one without data has of a log counts; the candidate has all of it.
        boolean holdsAll =
                data.hard().standing() == Standing.INSTALLING
                        ? data.hard().promisedTo() == from
                        : advanced;
        boolean granted = fresh && leaseOver && holdsAll;
        if (granted && !request.preliminary()) {
            if (request.epoch() > promised) {
                enterEpoch(request.epoch(), from, 0, nowNanos);
            }
            awaitLeader(nowNanos);
        }
        PromiseReply reply =
                new PromiseReply(
                        options.shard(),
                        request.epoch(),
                        request.preliminary(),
                        granted,
                        Math.max(data.hard().promised(), newestSeen),
                        voice(),
                        data.log.lastEpoch(),
                        data.log.last());
        if (granted && !request.preliminary()) {
            data.outbox.sendWhenSynced(from, reply);
        } else {
            data.outbox.send(from, reply);
        }
        if (!advanced && leaseOver && leadership == null && candidacy == null && data.counts()) {
            // The one that asks cannot win; with the longer log, this one may.
            options.taken(Branch.CAMPAIGNS_WITH_THE_LONGER_LOG);
            campaignAtNanos = Math.min(campaignAtNanos, nowNanos + timing.staggerNanos());
        }
    }

    private Voice voice() {
        return switch (data.hard().standing()) {
            case VOTER, CATCHING_UP -> Voice.VOTER;
            case LEARNER -> Voice.LEARNER;
            case INSTALLING -> Voice.DEPENDENT;
        };
    }

    private void onPromiseReply(int from, PromiseReply reply, long nowNanos) {
        newestSeen = Math.max(newestSeen, reply.promised());
        Candidacy round = candidacy;
        if (round == null || !round.accepts(reply)) {
            return;
        }
        if (reply.granted()) {
            round.grantedBy(from, reply.voice());
        } else {
            options.taken(
                    round.preliminary ? Branch.PRE_VOTE_REFUSED : Branch.LOST_TO_A_LONGER_LOG);
            round.heard(from, reply.voice());
        }
        maybeWin(nowNanos);
    }

    // ---- following

    private void onAppend(int from, Append append) {
        long previous = append.previousSequence();
        if (install != null) {
            if (previous == 0 && append.entries().isEmpty()) {
                // Entries follow once the base is there; a heartbeat is answered all the same.
                owe(append);
                return;
            }
            // The leader goes on with entries: it heard from this replica that entries on their
            // way have taken it to the base, or what began the catch-up here was a late copy. The
            // extents that came are not newer than the base, so the entries complete them.
            options.taken(Branch.CATCH_UP_GIVEN_UP);
            install = null;
        }
        if (previous > data.log.last()) {
            options.taken(Branch.REJECTED_BEYOND_END);
            reject(from, append, data.log.last());
            return;
        }
        long epochHere = data.log.epochs().epochAt(previous);
        if (epochHere != append.previousEpoch() && epochHere != EpochHistory.UNKNOWN) {
            if (previous <= data.commit()) {
                options.taken(Branch.STARTED_OVER);
                startOver(from, append);
            } else {
                options.taken(Branch.REJECTED_OTHER_EPOCH);
                long hint = data.log.epochs().firstOfEpochAt(previous) - 1;
                reject(from, append, Math.max(hint, data.commit()));
            }
            return;
        }
        for (Entry entry : append.entries()) {
            if (entry.sequence() <= data.log.last()) {
                long have = data.log.epochs().epochAt(entry.sequence());
                if (have == entry.epoch() || have == EpochHistory.UNKNOWN) {
                    continue;
                }
                if (entry.sequence() <= data.commit()) {
                    options.taken(Branch.STARTED_OVER);
                    startOver(from, append);
                    return;
                }
                // A tail that another leader never committed. It goes only when its replacement is
                // here: an empty frame is no reason to forget what was acknowledged.
                options.taken(Branch.TAIL_CUT);
                data.truncate(entry.sequence() - 1);
                matched = Math.min(matched, data.log.last());
            }
            data.append(entry);
        }
        matched = Math.max(matched, previous + append.entries().size());
        CatchUp catchUp = data.hard().catchUp();
        long known = Math.min(matched, catchUp.through());
        if (catchUp.isContradictedBy(known, data.log.epochs().epochAt(known))) {
            options.taken(Branch.CATCH_UP_OF_LOST_WRITES);
            startOver(from, append);
            return;
        }
        data.commitThrough(Math.max(data.commit(), Math.min(append.commit(), matched)));
        // The log has got to where the extents in the map may be from, and to the commit point.
        if (matched >= Math.max(append.commit(), catchUp.through()) && mayBePromoted(append)) {
            options.taken(data.counts() ? Branch.CAUGHT_UP : Branch.LEARNER_PROMOTED);
            data.become(data.hard().withStanding(Standing.VOTER));
        }
        owe(append);
    }

    /** Whether a replica that holds the leader's commit point is a full voter from now on. */
    private boolean mayBePromoted(Append append) {
        return switch (data.hard().standing()) {
            case VOTER -> false;
            case LEARNER, INSTALLING -> append.promote();
            case CATCHING_UP -> append.commit() >= data.hard().catchUp().through();
        };
    }

    private void owe(Append append) {
        // One answer a turn: the newest frame's clock reading, and the furthest sync asked for.
        unanswered =
                unanswered == null || unanswered.syncThrough() <= append.syncThrough()
                        ? append
                        : new Append(
                                append.shard(),
                                append.epoch(),
                                append.previousEpoch(),
                                append.previousSequence(),
                                append.commit(),
                                unanswered.syncThrough(),
                                append.promote(),
                                append.sentNanos(),
                                List.of());
    }

    private void answerLeader() {
        Append append = unanswered;
        if (append == null) {
            return;
        }
        unanswered = null;
        if (data.outbox.hasEntries()) {
            // Leaves with this turn's write, so it may speak for the turn's entries.
            data.outbox.sendWhenWritten(leader, reply(append, matched, data.outbox.durable()));
        } else {
            // Entries of earlier turns may still be on their way to the journal.
            long held = Math.min(matched, data.outbox.written());
            data.outbox.sendWhenWritten(leader, reply(append, held, data.outbox.durable()));
        }
        if (append.syncThrough() > data.outbox.durable()) {
            data.outbox.sendWhenSynced(leader, reply(append, matched, matched));
        }
    }

    private AppendReply reply(Append append, long held, long durable) {
        long synced = options.syncWrites() && data.outbox.hasEntries() ? held : durable;
        return new AppendReply(
                options.shard(),
                append.epoch(),
                true,
                held,
                Math.min(synced, held),
                data.log.last(),
                data.applied(),
                !data.counts(),
                data.room,
                append.sentNanos());
    }

    private void reject(int from, Append append, long hint) {
        data.outbox.send(
                from,
                new AppendReply(
                        options.shard(),
                        append.epoch(),
                        false,
                        0,
                        0,
                        hint,
                        data.applied(),
                        !data.counts(),
                        data.room,
                        append.sentNanos()));
    }

    private void startOver(int from, Append append) {
        data.startOver(from);
        matched = 0;
        reject(from, append, 0);
    }

    // ---- catch-up by extents

    private void onInstallBegin(int from, InstallBegin begin) {
        InstallBegin current = install;
        // One that builds on more than is applied here was meant for an earlier life.
        if (begin.since() > data.applied()) {
            return;
        }
        if (isContradictedBy(begin)) {
            // The next answer to the leader says that nothing is here, and it begins anew.
            data.startOver(from);
            matched = 0;
            install = null;
            unanswered = null;
            return;
        }
        // One that leads no further is a late copy of a catch-up that is done.
        if (begin.baseSequence() <= data.applied()
                || (current != null && begin.baseSequence() < current.baseSequence())) {
            return;
        }
        if (current == null || begin.baseSequence() > current.baseSequence()) {
            install = begin;
            installCursor = Cursor.START;
            data.become(data.hard().catchingUp(from, begin.baseEpoch(), begin.baseSequence()));
        }
        // The map is mixed from the first extent on, so the standing is synced before any comes.
        data.outbox.sendWhenSynced(
                from,
                new InstallReply(
                        options.shard(),
                        begin.epoch(),
                        begin.baseSequence(),
                        installCursor,
                        false));
    }

    /**
     * Whether what is applied here, or what an earlier catch-up left in the map, is no part of the
     * leader's history.
     */
    private boolean isContradictedBy(InstallBegin begin) {
        EpochHistory history = ShardState.decode(options, begin.state()).epochs();
        long common = Math.min(data.applied(), begin.baseSequence());
        if (history.epochAt(common) != data.log.epochs().epochAt(common)) {
            options.taken(Branch.STARTED_OVER);
            return true;
        }
        CatchUp earlier = data.hard().catchUp();
        long known = Math.min(begin.baseSequence(), earlier.through());
        if (earlier.isContradictedBy(known, history.epochAt(known))) {
            options.taken(Branch.CATCH_UP_OF_LOST_WRITES);
            return true;
        }
        return false;
    }

    private void onInstallExtents(int from, InstallExtents part) {
        InstallBegin begin = install;
        if (begin == null
                || part.baseSequence() != begin.baseSequence()
                || !part.from().equals(installCursor)) {
            options.taken(Branch.CATCH_UP_PART_UNEXPECTED);
            return;
        }
        InstallReply reply =
                new InstallReply(
                        options.shard(),
                        part.epoch(),
                        part.baseSequence(),
                        part.next(),
                        part.done());
        if (!part.done()) {
            installCursor = part.next();
            data.outbox.add(
                    new Effect.StoreExtents(
                            data.outbox.nextTicket(data.log.last()),
                            part.extents(),
                            List.of(new Effect.Outbound(from, reply))));
            return;
        }
        data.outbox.add(
                new Effect.StoreExtents(
                        data.outbox.nextTicket(data.log.last()), part.extents(), List.of()));
        data.outbox.persistTurn(data.log.last(), options.syncWrites());
        // One that counts goes on counting only if the base is at least as advanced as the log that
        // it gives up: it must not vote for anyone who lacks what it has acknowledged.
        boolean covers =
                begin.baseEpoch() > data.log.lastEpoch()
                        || (begin.baseEpoch() == data.log.lastEpoch()
                                && begin.baseSequence() >= data.log.last());
        if (data.counts() && !covers) {
            options.taken(Branch.CATCH_UP_COVERS_LESS_THAN_THE_LOG);
        }
        HardState rebased =
                data.counts() && !covers
                        ? data.hard().withStanding(Standing.INSTALLING)
                        : data.hard();
        data.restartAt(begin.baseSequence(), begin.state(), rebased);
        matched = begin.baseSequence();
        install = null;
        data.outbox.add(
                new Effect.InstallBase(
                        data.outbox.nextTicket(begin.baseSequence()),
                        begin.baseEpoch(),
                        begin.baseSequence(),
                        begin.state(),
                        rebased,
                        List.of(new Effect.Outbound(from, reply))));
    }

    // ---- clients

    private void onClient(int origin, ClientRequest request) {
        if (leadership != null && leadership.isServing()) {
            leadership.desk().onRequest(origin, request);
            return;
        }
        data.outbox.add(
                new Effect.Reply(
                        origin,
                        new ClientReply.Refused(
                                options.shard(),
                                request.client(),
                                request.request(),
                                Refusal.NOT_LEADER,
                                leadership == null ? leader : 0,
                                data.hard().promised(),
                                "")));
    }

    // ---- what others see

    /** Sessions, claims and epochs at the applied point, for a checkpoint. */
    public byte[] shardState() {
        return data.state().encode(data.log.epochs(), data.applied());
    }

    /** The map holds exactly the entries up to here once all Apply effects are carried out. */
    public long applied() {
        return data.applied();
    }

    /** Epoch of the entry at {@link #applied}. */
    public long appliedEpoch() {
        return data.appliedEpoch();
    }

    /** What to show people of this replica. */
    public ReplicaStatus status(long nowNanos) {
        Effect.Role role =
                leadership != null && leadership.isServing()
                        ? Effect.Role.LEADER
                        : leadership != null || candidacy != null
                                ? Effect.Role.CANDIDATE
                                : Effect.Role.FOLLOWER;
        return new ReplicaStatus(
                options.self(),
                role,
                data.hard().standing(),
                data.hard().standing() == Standing.INSTALLING ? data.hard().promisedTo() : 0,
                leader,
                data.hard().promised(),
                data.log.last(),
                data.outbox.durable(),
                data.commit(),
                data.applied(),
                data.state().claim().generation(),
                data.state().claim().holder(),
                leadership == null ? List.of() : leadership.status(nowNanos));
    }
}
