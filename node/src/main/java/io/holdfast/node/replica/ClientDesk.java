package io.holdfast.node.replica;

import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ClientReply.Refusal;
import io.holdfast.proto.peer.ClientRequest;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.EntryKind;
import io.holdfast.proto.peer.ReplicaMessage.FetchBlock;
import io.holdfast.proto.peer.ReplicaMessage.FetchedBlock;
import io.holdfast.proto.peer.Room;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * A leader's side towards clients. Every decision about a request (is its session open, has it run,
 * does its claim hold, does its condition hold) is made here, when the entry is numbered, from the
 * applied state and what is numbered but not applied. So the log holds only entries that are to be
 * carried out, and applying them needs no decision.
 */
final class ClientDesk {
    /**
     * Sessions and generations that the volume's first shard grants reach the others one by one;
     * one that is so far ahead was never granted, and taking it would use all numbers up.
     */
    private static final int MAX_STEP = 1 << 20;

    /** Names a numbered write, to recognise its repetition through any connection. */
    private record Key(int session, long request) {}

    /**
     * Names a request for a session or a claim: the process that asks, and its numbers. A client
     * that hears nothing for a while repeats it, and must not be granted a second number while the
     * first waits for its sync: with the second, it would fence itself.
     */
    private record Ask(
            Class<? extends ClientRequest> kind,
            int origin,
            long incarnation,
            int client,
            long request) {}

    /** A numbered request. Its reply goes to where it was last asked from. */
    private static final class Pending {
        final long sequence;
        final @Nullable Key key;
        final @Nullable Ask ask;
        final long value;
        final boolean needsSync;
        int origin;
        int client;
        long request;

        Pending(
                long sequence,
                @Nullable Key key,
                @Nullable Ask ask,
                long value,
                boolean needsSync,
                int origin,
                ClientRequest from) {
            this.sequence = sequence;
            this.key = key;
            this.ask = ask;
            this.value = value;
            this.needsSync = needsSync;
            askedFrom(origin, from);
        }

        void askedFrom(int newOrigin, ClientRequest from) {
            origin = newOrigin;
            client = from.client();
            request = from.request();
        }
    }

    /**
     * A read, a flush, or a write whose condition failed, that waits until leadership is confirmed
     * by a heartbeat sent after it came.
     */
    private record Parked(long neededNanos, int origin, ClientRequest request) {}

    /**
     * A conditional write of a block that write {@code by}, not applied yet, is about to change.
     * Were it told CONFLICT at once, its client would read the block as it still is and come again
     * with the same condition, as fast as it can and for as long as no majority answers.
     */
    private record Overtaken(long by, int origin, ClientRequest.Write write) {}

    /** A read that waits for another replica's copy of its block. */
    private record Fetch(int node, long deadlineNanos, int origin, ClientRequest.Read read) {}

    /** Answered when a majority has synced through {@code sequence}. */
    private record SyncWaiter(
            long sequence, @Nullable Ask ask, int origin, int client, long request, long value) {}

    private final ReplicaData data;
    private final Leadership leadership;
    private final Liveness liveness;

    private final ArrayDeque<Pending> pending = new ArrayDeque<>();
    private final Map<Key, Pending> pendingByKey = new HashMap<>();

    /** Sessions and claims that are numbered but not answered. */
    private final Set<Ask> asked = new HashSet<>();

    private final ArrayDeque<Parked> parked = new ArrayDeque<>();
    private final ArrayDeque<Overtaken> overtaken = new ArrayDeque<>();
    private final ArrayDeque<SyncWaiter> syncWaiters = new ArrayDeque<>();

    /** By their number, so in the order of their deadlines. */
    private final LinkedHashMap<Long, Fetch> fetches = new LinkedHashMap<>();

    private long newestFetch;

    // What numbered entries will have changed once they are applied.
    private Claim claim;
    private int newestSession;
    private final TreeMap<Integer, Long> lowWaters = new TreeMap<>();

    /** The reply still owed for a sync reaches through this sequence. */
    private long syncWanted;

    ClientDesk(ReplicaData data, Leadership leadership, Liveness liveness) {
        this.data = data;
        this.leadership = leadership;
        this.liveness = liveness;
        begin();
    }

    /**
     * Starts from the applied state. Called again when this replica begins to serve: entries of
     * earlier epochs that it held at its election are applied only by then.
     */
    void begin() {
        claim = data.state().claim();
        newestSession = data.state().newestSession();
    }

    /** A majority should sync through here. */
    long syncWanted() {
        return syncWanted;
    }

    boolean hasParked() {
        return !parked.isEmpty();
    }

    /**
     * The heartbeat that confirms the newest parked request must be sent at this reading or later.
     */
    long newestParkedNeeds() {
        return parked.isEmpty() ? Long.MIN_VALUE : parked.getLast().neededNanos();
    }

    boolean isIdle() {
        return pending.isEmpty()
                && parked.isEmpty()
                && overtaken.isEmpty()
                && syncWaiters.isEmpty()
                && fetches.isEmpty();
    }

    void onRequest(int origin, ClientRequest request) {
        if (!isPossible(request)) {
            data.options.taken(Branch.REQUEST_INVALID);
            refuse(origin, request, Refusal.INVALID);
            return;
        }
        switch (request) {
            case ClientRequest.Read read -> park(origin, read);
            case ClientRequest.Flush flush -> {
                if (flush.session() != 0 && !data.state().isOpen(flush.session())) {
                    refuseUnknownSession(origin, flush, flush.session());
                } else {
                    park(origin, flush);
                }
            }
            case ClientRequest.AskHolder ask -> park(origin, ask);
            case ClientRequest.Write write -> onWrite(origin, write);
            case ClientRequest.Zero zero -> onZero(origin, zero);
            case ClientRequest.OpenSession open -> onOpenSession(origin, open);
            case ClientRequest.CloseSession close -> onCloseSession(origin, close);
            case ClientRequest.Claim wish -> onClaim(origin, wish);
            case ClientRequest.Release release -> onRelease(origin, release);
        }
    }

    /**
     * Whether it is one that a client of this volume may send. Whatever gets a number is applied by
     * all replicas, whenever they start: what they could not bear must be refused before.
     */
    private boolean isPossible(ClientRequest request) {
        return switch (request) {
            case ClientRequest.Read read ->
                    data.options.has(read.layer(), read.block(), read.count());
            case ClientRequest.Write write ->
                    data.options.has(write.layer(), write.block(), write.count());
            case ClientRequest.Zero zero ->
                    data.options.has(zero.layer(), zero.block(), zero.count());
            case ClientRequest.OpenSession open ->
                    open.session() <= (long) newestSession + MAX_STEP;
            case ClientRequest.Claim wish -> wish.generation() - claim.generation() <= MAX_STEP;
            case ClientRequest.CloseSession _, ClientRequest.Release _ -> true;
            case ClientRequest.Flush _, ClientRequest.AskHolder _ -> true;
        };
    }

    private void park(int origin, ClientRequest request) {
        if (refusedAsTooManyWait(origin, request)) {
            return;
        }
        parked.addLast(new Parked(leadership.nextConfirmation(), origin, request));
    }

    private boolean refusedAsTooManyWait(int origin, ClientRequest request) {
        if (parked.size() + overtaken.size() < data.options.limits().parked()) {
            return false;
        }
        data.options.taken(Branch.TOO_MANY_PARKED);
        refuse(origin, request, Refusal.BUSY);
        return true;
    }

    private void onWrite(int origin, ClientRequest.Write write) {
        Key key = new Key(write.session(), write.request());
        if (!mayNumber(origin, write, key, write.lowWater(), write.generation())) {
            return;
        }
        if (leadership.room() != Room.ENOUGH) {
            // Of what is no new data, trims above all, the disks' reserves have room for plenty.
            refuse(origin, write, leadership.room() == Room.SOON ? Refusal.BUSY : Refusal.NO_SPACE);
            return;
        }
        if (!conditionHolds(write)) {
            onConditionFailed(origin, write);
            return;
        }
        Entry.Builder entry =
                entry(EntryKind.WRITE)
                        .blocks(write.layer(), write.block(), write.count())
                        .request(
                                write.session(),
                                write.request(),
                                write.lowWater(),
                                write.generation())
                        .sealed(write.nonce(), write.payload());
        number(origin, write, key, null, entry, 0, write.fua());
        lowWaters.merge(write.session(), write.lowWater(), Math::max);
    }

    /**
     * A leader that has been deposed without knowing it may lack the very entry that this write
     * became elsewhere; its client would take CONFLICT for "did not run", and merge and write once
     * more over what came after. So it is not said before leadership is confirmed.
     */
    private void onConditionFailed(int origin, ClientRequest.Write write) {
        long newest = data.newestSequence(write.layer(), write.block());
        if (newest <= data.applied()) {
            park(origin, write);
        } else if (!refusedAsTooManyWait(origin, write)) {
            data.options.taken(Branch.CONDITION_WAITS_FOR_A_WRITE);
            overtaken.addLast(new Overtaken(newest, origin, write));
        }
    }

    private boolean conditionHolds(ClientRequest.Write write) {
        return write.expectedSequence() == ClientRequest.UNCONDITIONAL
                || (write.count() == 1
                        && data.newestSequence(write.layer(), write.block())
                                == write.expectedSequence());
    }

    /** Leadership is confirmed since a write's condition failed. */
    private void refuseConflict(int origin, ClientRequest.Write write) {
        Key key = new Key(write.session(), write.request());
        if (mayNumber(origin, write, key, write.lowWater(), write.generation())) {
            boolean holds = conditionHolds(write);
            data.options.taken(holds ? Branch.CONDITION_HOLDS_AFTER_ALL : Branch.CONDITION_FAILED);
            refuse(origin, write, holds ? Refusal.BUSY : Refusal.CONFLICT);
        }
    }

    private void onZero(int origin, ClientRequest.Zero zero) {
        Key key = new Key(zero.session(), zero.request());
        if (!mayNumber(origin, zero, key, zero.lowWater(), zero.generation())) {
            return;
        }
        Entry.Builder entry =
                entry(EntryKind.ZERO)
                        .blocks(zero.layer(), zero.block(), zero.count())
                        .request(zero.session(), zero.request(), zero.lowWater(), zero.generation())
                        .flags(zero.trim() ? Entry.FLAG_TRIM : 0);
        number(origin, zero, key, null, entry, 0, zero.fua());
        lowWaters.merge(zero.session(), zero.lowWater(), Math::max);
    }

    /**
     * Whether a write may get a number now; if not, it has been answered, or is under way already.
     */
    private boolean mayNumber(
            int origin, ClientRequest request, Key key, long lowWater, long generation) {
        if (!data.state().isOpen(key.session())) {
            refuseUnknownSession(origin, request, key.session());
            return false;
        }
        Pending known = pendingByKey.get(key);
        if (known != null) {
            data.options.taken(Branch.REQUEST_UNDER_WAY_ASKED_AGAIN);
            known.askedFrom(origin, request);
            return false;
        }
        if (data.state().hasRun(key.session(), key.request())) {
            // Its reply was lost. That it was committed is all that the client needs to know;
            // should it have asked for FUA, the sync is owed again.
            data.options.taken(Branch.REQUEST_DONE_ASKED_AGAIN);
            answerWhenSynced(origin, request, data.commit(), 0, isFua(request));
            return false;
        }
        long settledBelow =
                Math.max(
                        data.state().lowWater(key.session()),
                        lowWaters.getOrDefault(key.session(), 0L));
        if (key.request() < settledBelow) {
            // The client gave up on it and may have overwritten the block since: it must never run.
            data.options.taken(Branch.SETTLED_REQUEST_REFUSED);
            refuse(origin, request, Refusal.FENCED);
            return false;
        }
        if (data.options.exclusive() && !(claim.held() && claim.generation() == generation)) {
            refuse(origin, request, Refusal.FENCED);
            return false;
        }
        boolean within =
                CompletedRequests.withinSpan(
                        key.request(), lowWater, data.options.limits().numberSpan());
        if (!within) {
            data.options.taken(Branch.NUMBERS_TOO_FAR_APART);
        }
        if (isFull() || !within) {
            refuse(origin, request, Refusal.BUSY);
            return false;
        }
        return true;
    }

    private static boolean isFua(ClientRequest request) {
        return switch (request) {
            case ClientRequest.Write write -> write.fua();
            case ClientRequest.Zero zero -> zero.fua();
            default -> false;
        };
    }

    private boolean isFull() {
        Limits limits = data.options.limits();
        boolean tooMany =
                pending.size() >= limits.uncommitted()
                        || data.log.unappliedBytes() >= limits.unappliedBytes();
        if (tooMany) {
            data.options.taken(Branch.TOO_MANY_UNCOMMITTED);
        }
        return tooMany || tooManySyncWaiters() || leadership.isHandingOver();
    }

    private boolean tooManySyncWaiters() {
        boolean tooMany = syncWaiters.size() >= data.options.limits().syncWaiters();
        if (tooMany) {
            data.options.taken(Branch.TOO_MANY_SYNC_WAITERS);
        }
        return tooMany;
    }

    private Ask ask(int origin, ClientRequest request) {
        return new Ask(
                request.getClass(),
                origin,
                liveness.incarnation(origin),
                request.client(),
                request.request());
    }

    private void onOpenSession(int origin, ClientRequest.OpenSession open) {
        Ask ask = ask(origin, open);
        if (asked.contains(ask)) {
            data.options.taken(Branch.GRANT_UNDER_WAY_ASKED_AGAIN);
            return;
        }
        int number = open.session() == 0 ? newestSession + 1 : open.session();
        if (data.state().isOpen(number)) {
            answerWhenSynced(origin, open, data.commit(), number, true);
        } else if (number <= newestSession) {
            refuseUnknownSession(origin, open, number);
        } else if (isFull()) {
            refuse(origin, open, Refusal.BUSY);
        } else {
            newestSession = number;
            lowWaters.keySet().removeIf(session -> !data.state().isOpen(session));
            // The number begins the nonces of everything this session writes: it is answered only
            // when a majority has synced it, or a power loss could grant it twice.
            number(
                    origin,
                    open,
                    null,
                    ask,
                    entry(EntryKind.OPEN_SESSION).request(number, 0, 0, 0),
                    number,
                    true);
        }
    }

    private void onCloseSession(int origin, ClientRequest.CloseSession close) {
        if (!data.state().isOpen(close.session())) {
            reply(origin, done(close, 0));
        } else if (isFull()) {
            refuse(origin, close, Refusal.BUSY);
        } else {
            // Requests that come after this one must not be numbered behind it.
            lowWaters.put(close.session(), Long.MAX_VALUE);
            number(
                    origin,
                    close,
                    null,
                    null,
                    entry(EntryKind.CLOSE_SESSION).request(close.session(), 0, 0, 0),
                    0,
                    false);
        }
    }

    private void onClaim(int origin, ClientRequest.Claim wish) {
        Ask ask = ask(origin, wish);
        if (asked.contains(ask)) {
            data.options.taken(Branch.GRANT_UNDER_WAY_ASKED_AGAIN);
            return;
        }
        if (wish.generation() == 0 && isAnsweredAsFirst(origin, wish)) {
            return;
        }
        if (wish.generation() != 0 && wish.generation() == claim.generation()) {
            answerWhenSynced(origin, wish, data.log.last(), wish.generation(), true);
            return;
        }
        if (wish.generation() != 0 && wish.generation() < claim.generation()) {
            refuse(origin, wish, Refusal.FENCED);
            return;
        }
        boolean free =
                !claim.held()
                        || claim.identity().equals(wish.identity())
                        || wish.force()
                        || wish.generation() != 0
                        || isHoldersProcessGone();
        if (!free) {
            refuse(origin, wish, Refusal.HELD, claim.identity());
        } else if (isFull()) {
            refuse(origin, wish, Refusal.BUSY);
        } else {
            long generation = wish.generation() == 0 ? claim.generation() + 1 : wish.generation();
            claim =
                    new Claim(
                            generation,
                            true,
                            origin,
                            liveness.incarnation(origin),
                            wish.identity(),
                            wish.session());
            number(
                    origin,
                    wish,
                    null,
                    ask,
                    entry(EntryKind.CLAIM)
                            .request(wish.session(), 0, 0, generation)
                            .payload(claim.payload()),
                    generation,
                    true);
        }
    }

    private boolean isHoldersProcessGone() {
        boolean gone = liveness.isGone(claim);
        if (gone) {
            data.options.taken(Branch.CLAIM_TAKEN_FROM_A_DEAD_PROCESS);
        }
        return gone;
    }

    /** Answers the first claim of an attachment unless it may be granted. */
    private boolean isAnsweredAsFirst(int origin, ClientRequest.Claim wish) {
        if (!data.state().isOpen(wish.session())) {
            // A copy that was held up on its way must not take the volume from whoever has it now.
            refuseUnknownSession(origin, wish, wish.session());
            return true;
        }
        if (claim.isHeldBy(wish.identity(), wish.session())) {
            // Granted by an earlier leader, perhaps, and the reply lost. Another generation would
            // fence what the client begins when that reply comes after all.
            data.options.taken(Branch.CLAIM_GRANTED_BEFORE);
            answerWhenSynced(origin, wish, data.log.last(), claim.generation(), true);
            return true;
        }
        if (!wish.force() && claim.isLeftBehind(wish.identity(), wish.session())) {
            data.options.taken(Branch.CLAIM_OF_AN_OLDER_ATTACHMENT);
            refuse(origin, wish, Refusal.HELD, claim.identity());
            return true;
        }
        return false;
    }

    private void onRelease(int origin, ClientRequest.Release release) {
        if (!claim.held() || claim.generation() != release.generation()) {
            reply(origin, done(release, 0));
        } else if (isFull()) {
            refuse(origin, release, Refusal.BUSY);
        } else {
            claim = claim.released();
            number(
                    origin,
                    release,
                    null,
                    null,
                    entry(EntryKind.RELEASE).request(0, 0, 0, release.generation()),
                    0,
                    false);
        }
    }

    private Entry.Builder entry(EntryKind kind) {
        return Entry.builder(data.options.shard(), kind)
                .at(data.hard().promised(), data.log.last() + 1, data.commit());
    }

    private void number(
            int origin,
            ClientRequest request,
            @Nullable Key key,
            @Nullable Ask ask,
            Entry.Builder entry,
            long value,
            boolean needsSync) {
        Entry numbered = entry.build();
        data.append(numbered);
        long sequence = numbered.sequence();
        Pending one = new Pending(sequence, key, ask, value, needsSync, origin, request);
        pending.addLast(one);
        if (key != null) {
            pendingByKey.put(key, one);
        }
        if (ask != null) {
            asked.add(ask);
        }
        if (needsSync) {
            syncWanted = Math.max(syncWanted, sequence);
        }
    }

    /** Answers what has been committed and applied. */
    void onApplied() {
        while (!pending.isEmpty() && pending.getFirst().sequence <= data.applied()) {
            Pending one = pending.removeFirst();
            if (one.key != null) {
                pendingByKey.remove(one.key);
            }
            long value = one.value != 0 ? one.value : one.sequence;
            if (one.needsSync && leadership.majorityDurable() < one.sequence) {
                syncWaiters.addLast(
                        new SyncWaiter(
                                one.sequence, one.ask, one.origin, one.client, one.request, value));
            } else {
                settled(one.ask);
                reply(
                        one.origin,
                        new ClientReply.Done(data.options.shard(), one.client, one.request, value));
            }
        }
    }

    private void settled(@Nullable Ask ask) {
        if (ask != null) {
            asked.remove(ask);
        }
    }

    private void answerWhenSynced(
            int origin, ClientRequest request, long sequence, long value, boolean needsSync) {
        if (!needsSync || leadership.majorityDurable() >= sequence) {
            reply(origin, done(request, value));
        } else if (tooManySyncWaiters()) {
            refuse(origin, request, Refusal.BUSY);
        } else {
            syncWanted = Math.max(syncWanted, sequence);
            syncWaiters.addLast(
                    new SyncWaiter(
                            sequence, null, origin, request.client(), request.request(), value));
        }
    }

    /** Answers whoever waited for a majority to have synced through here. */
    void onDurable(long through) {
        // Waiters are nearly in order; an out-of-order one waits at most for the one before it.
        while (!syncWaiters.isEmpty() && syncWaiters.getFirst().sequence() <= through) {
            SyncWaiter waiter = syncWaiters.removeFirst();
            settled(waiter.ask());
            reply(
                    waiter.origin(),
                    new ClientReply.Done(
                            data.options.shard(),
                            waiter.client(),
                            waiter.request(),
                            waiter.value()));
        }
    }

    /** Carries out parked requests whose confirmation has come. */
    void onConfirmed(long nowNanos) {
        while (!parked.isEmpty()
                && leadership.isConfirmed(parked.getFirst().neededNanos(), nowNanos)) {
            Parked one = parked.removeFirst();
            switch (one.request()) {
                case ClientRequest.Read read -> read(one.origin(), read, nowNanos);
                case ClientRequest.Write write -> refuseConflict(one.origin(), write);
                // Everything acknowledged so far, by anyone who ever led, is committed here: the
                // confirmation rules out a newer leader at the time the flush came.
                case ClientRequest.Flush flush ->
                        answerWhenSynced(one.origin(), flush, data.commit(), 0, true);
                default -> reply(one.origin(), holder(one.request()));
            }
        }
    }

    /**
     * Lets go on who waited for a write that is applied by now. To be called after {@link
     * #onConfirmed}: what this step applies is in the map only when its effects have been carried
     * out, so conditions are looked at in the next one.
     */
    void releaseOvertaken() {
        // Nearly in order, like those who wait for a sync.
        while (!overtaken.isEmpty() && overtaken.getFirst().by() <= data.applied()) {
            Overtaken one = overtaken.removeFirst();
            park(one.origin(), one.write());
        }
    }

    // ---- copies of other replicas, for blocks that are corrupt here

    private void read(int origin, ClientRequest.Read read, long nowNanos) {
        int node = read.copy();
        if (node == ClientRequest.OWN_COPY || node == data.options.self()) {
            data.outbox.add(new Effect.ReadBlocks(origin, read));
        } else if (read.count() != 1 || !data.options.replicas().contains(node)) {
            refuse(origin, read, Refusal.IO_ERROR);
        } else if (fetches.size() >= data.options.limits().fetches()) {
            data.options.taken(Branch.TOO_MANY_FETCHES);
            refuse(origin, read, Refusal.BUSY);
        } else {
            newestFetch++;
            long deadline = nowNanos + data.options.timing().silenceNanos();
            fetches.put(newestFetch, new Fetch(node, deadline, origin, read));
            data.outbox.send(
                    node,
                    new FetchBlock(
                            data.options.shard(),
                            data.hard().promised(),
                            newestFetch,
                            read.layer(),
                            read.block()));
        }
    }

    /**
     * A replica has sent its copy. Leadership was confirmed after the read came, and what the map
     * here holds by now is that or newer: so it is for the map to say whether the copy is the one
     * to answer with.
     */
    void onFetched(int from, FetchedBlock copy) {
        Fetch fetch = fetches.get(copy.fetch());
        if (fetch == null
                || fetch.node() != from
                || fetch.read().layer() != copy.layer()
                || fetch.read().block() != copy.block()) {
            return;
        }
        fetches.remove(copy.fetch());
        if (copy.sequence() != data.blocks.newestSequence(copy.layer(), copy.block(), 1)) {
            // It lags, or the block was written meanwhile.
            data.options.taken(Branch.COPY_OF_ANOTHER_VERSION);
            refuse(fetch.origin(), fetch.read(), Refusal.COPY_UNAVAILABLE);
        } else if (copy.nonce().keyId() != 0 && copy.payload().length == 0) {
            data.options.taken(Branch.COPY_UNREADABLE);
            refuse(fetch.origin(), fetch.read(), Refusal.IO_ERROR);
        } else {
            data.options.taken(Branch.COPY_FETCHED);
            data.outbox.add(new Effect.TakeCopy(fetch.origin(), fetch.read(), from, copy));
        }
    }

    /** Gives up copies that do not come. */
    void onTick(long nowNanos) {
        while (!fetches.isEmpty() && fetches.firstEntry().getValue().deadlineNanos() <= nowNanos) {
            Fetch late = fetches.pollFirstEntry().getValue();
            data.options.taken(Branch.COPY_NOT_ANSWERED);
            refuse(late.origin(), late.read(), Refusal.COPY_UNAVAILABLE);
        }
    }

    private ClientReply holder(ClientRequest request) {
        boolean gone = liveness.isGone(claim);
        return new ClientReply.Holder(
                data.options.shard(),
                request.client(),
                request.request(),
                claim.generation(),
                liveness.isConnected(claim),
                gone ? "" : claim.holder());
    }

    /** This replica no longer leads: clients ask the next leader, under the same numbers. */
    void abandon(int leader) {
        for (Pending one : pending) {
            refuseNotLeader(one.origin, one.client, one.request, leader);
        }
        for (SyncWaiter waiter : syncWaiters) {
            refuseNotLeader(waiter.origin(), waiter.client(), waiter.request(), leader);
        }
        for (Fetch one : fetches.values()) {
            refuseNotLeader(one.origin(), one.read().client(), one.read().request(), leader);
        }
        for (Parked one : parked) {
            ClientRequest request = one.request();
            refuseNotLeader(one.origin(), request.client(), request.request(), leader);
        }
        for (Overtaken one : overtaken) {
            refuseNotLeader(one.origin(), one.write().client(), one.write().request(), leader);
        }
    }

    private void refuseNotLeader(int origin, int client, long request, int leader) {
        reply(
                origin,
                new ClientReply.Refused(
                        data.options.shard(),
                        client,
                        request,
                        Refusal.NOT_LEADER,
                        leader,
                        data.hard().promised(),
                        ""));
    }

    private void refuseUnknownSession(int origin, ClientRequest request, int session) {
        refuse(
                origin,
                request,
                data.state().lostByPowerFailure(session) ? Refusal.POWER_LOSS : Refusal.FENCED);
    }

    private void refuse(int origin, ClientRequest request, Refusal why) {
        refuse(origin, request, why, "");
    }

    private void refuse(int origin, ClientRequest request, Refusal why, String text) {
        reply(
                origin,
                new ClientReply.Refused(
                        data.options.shard(),
                        request.client(),
                        request.request(),
                        why,
                        data.options.self(),
                        data.hard().promised(),
                        text));
    }

    private ClientReply done(ClientRequest request, long value) {
        return new ClientReply.Done(
                data.options.shard(), request.client(), request.request(), value);
    }

    private void reply(int origin, ClientReply reply) {
        data.outbox.add(new Effect.Reply(origin, reply));
    }
}
