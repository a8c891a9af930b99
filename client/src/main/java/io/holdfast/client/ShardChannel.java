package io.holdfast.client;

import io.holdfast.client.BlockDevice.Outcome;
import io.holdfast.proto.catalogue.Volume;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ClientReply.Refused;
import io.holdfast.proto.peer.ShardId;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.function.Consumer;

/**
 * A volume client's way to one shard: knows or guesses the leader, keeps the requests under way,
 * and repeats them under the same number until they are answered or their time is up.
 *
 * <p><b>Order and settling</b> (promise P4). Numbers rise, and {@link #lowWater} is the smallest
 * one still under way: the leader refuses everything below it. A write that failed in doubt
 * (time-out, disk error) may still be on its way somewhere. It must not run after a later write of
 * ours, so no later write starts before the low water has passed it ({@link #abandoned}). Usually
 * it has at once, because older requests time out earlier; not always: a merged write starts late
 * in its call's time and may time out before requests with smaller numbers.
 *
 * <p><b>Fenced</b> requests. A request under a claim that was taken over never starts again: the
 * whole attachment is over then (see {@link Attachment}). What starts again is a request whose
 * session was forgotten. With the session its history is gone: a request that was sent once is
 * certain not to have run, and starts again in a new session; one that was sent more than once may
 * have run by its first copy, and fails in doubt. Until it is known which of the two it is, the
 * request waits in {@link #fenced}.
 */
final class ShardChannel {
    private static final long MS = 1_000_000;

    /** An unanswered request is repeated after this time first, then after twice as long. */
    static final long SILENCE_NANOS = 1_000 * MS;

    /** Longest time between two repetitions of an unanswered request. */
    static final long SILENCE_MAX_NANOS = 5_000 * MS;

    /** Pause before asking on when nobody knows the leader. */
    static final long NO_LEADER_NANOS = 50 * MS;

    /** Pause before asking on when a replica does not know the shard. */
    static final long UNKNOWN_SHARD_NANOS = 200 * MS;

    /** First and longest pause after BUSY. */
    static final long BUSY_NANOS = 20 * MS;

    static final long BUSY_MAX_NANOS = 1_000 * MS;

    /** Most requests repeated at once; the others follow with the next sweeps. */
    static final int MAX_REPEATS_PER_SWEEP = 64;

    /** As above, while no leader is known: somebody's answer will tell where the others belong. */
    static final int MAX_PROBES_PER_SWEEP = 4;

    /** How often in a row a request follows a replica's word about the leader without a pause. */
    static final int MAX_REDIRECTS = 2;

    /** How often a request may start again after it was fenced. */
    static final int MAX_FENCINGS = 3;

    final ShardId id;
    final int index;

    private final VolumeClient client;
    private List<Integer> replicas;
    private int leader;
    private long epoch;
    private int candidate;

    /** Under way, by number, in order of number: those covered by the session, and the others. */
    private final LinkedHashMap<Long, Request> sequenced = new LinkedHashMap<>();

    private final LinkedHashMap<Long, Request> others = new LinkedHashMap<>();

    /** Not started yet, in order of arrival. */
    private final ArrayDeque<Request> waiting = new ArrayDeque<>();

    private final ArrayDeque<Request> waitingOthers = new ArrayDeque<>();
    private final ArrayDeque<Request> fenced = new ArrayDeque<>();

    /** Highest number that was settled without knowing whether it ran or will. */
    private long abandoned;

    private boolean pumping;

    ShardChannel(VolumeClient client, Volume.Shard shard, ShardId id) {
        this.client = client;
        this.id = id;
        this.index = shard.index();
        this.replicas = shard.replicas();
        this.leader = shard.leader();
        this.epoch = shard.epoch();
        this.candidate = Math.max(0, replicas.indexOf(client.node()));
    }

    // ---- what the client asks for ------------------------------------------------------------

    /** Takes a request; it starts now or when it may. */
    void submit(Request request) {
        Outcome condition = client.condition();
        if (condition != null && !request.isControl()) {
            request.failed(condition);
            return;
        }
        if (request.isControl()) {
            start(request);
        } else if (request.sequenced()) {
            waiting.add(request);
            pump();
        } else {
            waitingOthers.add(request);
            pump();
        }
        client.armSweep();
    }

    /** Starts what may start. */
    void pump() {
        if (pumping) {
            // A request that ended in the loop below made room; the loop goes on anyway.
            return;
        }
        pumping = true;
        try {
            while (!waitingOthers.isEmpty() && client.hasRoom(waitingOthers.element())) {
                start(waitingOthers.remove());
            }
            while (pumpOne()) {
                // until none is waiting, or the first one has to go on waiting
            }
        } finally {
            pumping = false;
        }
    }

    private boolean pumpOne() {
        if (waiting.isEmpty() && fenced.isEmpty()) {
            return false;
        }
        Request request = fenced.isEmpty() ? waiting.element() : fenced.element();
        return switch (client.attachment().readiness(this, request)) {
            case WAIT -> false;
            case HELD -> {
                takeFirst();
                client.events().writeRefused(id.volume());
                request.failed(Outcome.NOT_PERMITTED);
                yield true;
            }
            case READY -> {
                if (request.fencings > 0 && wasPossiblyRun(request) && !request.isRepeatable()) {
                    takeFirst();
                    request.failed(Outcome.IO_ERROR);
                    yield true;
                }
                if (abandoned >= lowWater() || !client.hasRoom(request)) {
                    yield false;
                }
                takeFirst();
                start(request);
                yield true;
            }
        };
    }

    private void takeFirst() {
        if (fenced.isEmpty()) {
            waiting.remove();
        } else {
            fenced.remove();
        }
    }

    private boolean wasPossiblyRun(Request request) {
        return request.session != client.attachment().session() && request.sends > 1;
    }

    /** Smallest number of the session that is under way here; the next number when none is. */
    private long lowWater() {
        var first = sequenced.firstEntry();
        return first == null ? client.peekNumber() : first.getKey();
    }

    private void start(Request request) {
        request.number = client.takeNumber();
        request.session = client.attachment().session();
        request.generation = client.attachment().generation();
        request.sends = 0;
        request.sentTo = 0;
        request.silences = 0;
        request.refusals = 0;
        (request.sequenced() ? sequenced : others).put(request.number, request);
        client.occupy(request);
        request.message = request.make(request.number, lowWater());
        if (request.pauseNanos == 0) {
            send(request, client.now());
        } else {
            request.nextSendNanos = client.now() + request.pauseNanos;
        }
    }

    /** Nodes that have a replica, as far as this client knows. */
    List<Integer> replicas() {
        return replicas;
    }

    /** Node that is believed to lead, 0: none. */
    int leader() {
        return leader;
    }

    /** Whether a request is under way or waiting. */
    boolean isBusy() {
        return !(sequenced.isEmpty()
                && others.isEmpty()
                && waiting.isEmpty()
                && waitingOthers.isEmpty()
                && fenced.isEmpty());
    }

    // ---- routing -----------------------------------------------------------------------------

    /** Where requests go now; 0: nobody can be reached. */
    private int target() {
        ShardLinks links = client.links();
        if (leader != 0 && links.connected(leader)) {
            return leader;
        }
        for (int i = 0; i < replicas.size(); i++) {
            int node = replicas.get((candidate + i) % replicas.size());
            if (links.connected(node)) {
                return node;
            }
        }
        return 0;
    }

    /** Stops believing in {@code node}; the next replica is asked. */
    private void rotatePast(int node) {
        if (leader == node) {
            leader = 0;
        }
        int at = replicas.indexOf(node);
        candidate = (at < 0 ? candidate + 1 : at + 1) % replicas.size();
    }

    /** Somebody says who leads. The newest epoch wins; a leader out of reach is of no use. */
    void onLeader(int node, long itsEpoch) {
        if (node == 0 || itsEpoch < epoch || !replicas.contains(node)) {
            return;
        }
        epoch = itsEpoch;
        if (node != leader && client.links().connected(node)) {
            leader = node;
            repeatElsewhere();
        }
    }

    void onConnected(int node) {
        if (!replicas.contains(node)) {
            return;
        }
        long now = client.now();
        forEachUnderWay(request -> {
            if (request.sentTo == node || request.sends == 0) {
                request.awaiting = false;
                request.nextSendNanos = now;
            }
        });
        repeatDue(now);
    }

    void onDisconnected(int node) {
        if (leader == node || target() == node || target() == 0) {
            rotatePast(node);
        }
        long now = client.now();
        forEachUnderWay(request -> {
            if (request.sentTo == node) {
                request.awaiting = false;
                request.nextSendNanos = now;
            }
        });
        repeatDue(now);
    }

    /** A newer version of the volume's definition. */
    void onShard(Volume.Shard shard) {
        replicas = shard.replicas();
        candidate %= replicas.size();
        if (!replicas.contains(leader)) {
            leader = 0;
        }
        onLeader(shard.leader(), shard.epoch());
    }

    private void repeatElsewhere() {
        int target = target();
        long now = client.now();
        forEachUnderWay(request -> {
            if (request.sentTo != target) {
                request.awaiting = false;
                request.nextSendNanos = now;
            }
        });
        repeatDue(now);
    }

    private void forEachUnderWay(Consumer<Request> action) {
        sequenced.values().forEach(action);
        others.values().forEach(action);
    }

    private void send(Request request, long now) {
        int node = target();
        if (node == 0) {
            request.nextSendNanos = now + NO_LEADER_NANOS;
            return;
        }
        request.sends++;
        request.sentTo = node;
        request.awaiting = true;
        request.nextSendNanos =
                now + Math.min(SILENCE_MAX_NANOS, SILENCE_NANOS << Math.min(request.silences, 8));
        if (request.sends > 1) {
            // With the old one, a leader that was too busy for numbers so far apart would stay so.
            request.refresh(lowWater());
            client.events().requestRepeated(id.volume());
        }
        client.send(node, request);
    }

    private void repeatDue(long now) {
        int most = leader != 0 && leader == target() ? MAX_REPEATS_PER_SWEEP : MAX_PROBES_PER_SWEEP;
        List<Request> due = new ArrayList<>();
        forEachUnderWay(request -> {
            if (request.nextSendNanos - now <= 0 && due.size() < most) {
                due.add(request);
            }
        });
        boolean rotated = false;
        for (Request request : due) {
            if (!isUnderWay(request)) {
                continue;
            }
            if (request.awaiting && request.sends > 0) {
                // Silence: the node may be gone without a word. Another replica knows.
                request.silences++;
                if (!rotated && request.sentTo == target()) {
                    rotatePast(request.sentTo);
                    rotated = true;
                }
            }
            send(request, now);
        }
    }

    private boolean isUnderWay(Request request) {
        return (request.sequenced() ? sequenced : others).containsKey(request.number);
    }

    // ---- time --------------------------------------------------------------------------------

    /** Fails what is out of time, repeats what is due, starts what may start. */
    void sweep(long now) {
        for (ArrayDeque<Request> queue : List.of(waiting, waitingOthers, fenced)) {
            List<Request> late = queue.stream().filter(request -> isLate(request, now)).toList();
            for (Request request : late) {
                if (queue.remove(request)) {
                    timeOut(request);
                }
            }
        }
        List<Request> late = new ArrayList<>();
        forEachUnderWay(request -> {
            if (isLate(request, now)) {
                late.add(request);
            }
        });
        for (Request request : late) {
            if (isUnderWay(request)) {
                abandon(request);
                settle(request);
                timeOut(request);
            }
        }
        repeatDue(now);
        pump();
    }

    private static boolean isLate(Request request, long now) {
        return request.deadlineNanos != Request.NO_DEADLINE && request.deadlineNanos - now <= 0;
    }

    private void timeOut(Request request) {
        client.events().requestTimedOut(id.volume());
        request.failed(Outcome.IO_ERROR);
    }

    private void abandon(Request request) {
        if (request.sequenced() && request.sends > 0) {
            abandoned = Math.max(abandoned, request.number);
        }
    }

    private void settle(Request request) {
        (request.sequenced() ? sequenced : others).remove(request.number);
        request.message = null;
        client.vacate(request);
    }

    // ---- answers -----------------------------------------------------------------------------

    void onReply(int from, ClientReply reply) {
        Request request = sequenced.get(reply.request());
        if (request == null) {
            request = others.get(reply.request());
        }
        if (request == null) {
            return; // answered before, or its time is up
        }
        if (reply instanceof Refused refused) {
            onRefused(from, request, refused);
        } else if (request.accepts(reply)) {
            settle(request);
            if (leader == 0 && request.sentTo == from) {
                // Only a leader answers. If it has been deposed since then, it will say so.
                leader = from;
                repeatElsewhere();
            }
            request.succeeded(reply);
            client.pumpAfter(this);
        } else {
            client.onMalformed(from, reply);
        }
    }

    private void onRefused(int from, Request request, Refused refused) {
        long now = client.now();
        switch (refused.why()) {
            case NOT_LEADER -> onNotLeader(from, request, refused, now);
            case UNKNOWN_SHARD -> {
                if (from == target()) {
                    rotatePast(from);
                }
                comeAgain(from, request, now + UNKNOWN_SHARD_NANOS);
            }
            case BUSY -> {
                long pause = BUSY_NANOS << Math.min(request.refusals, 8);
                comeAgain(from, request, now + Math.min(BUSY_MAX_NANOS, pause));
            }
            case POWER_LOSS -> {
                settle(request);
                client.onPowerLoss(this);
                request.refused(refused);
            }
            case FENCED -> {
                settle(request);
                onFenced(request, refused);
                client.pumpAfter(this);
            }
            case HELD, CONFLICT, COPY_UNAVAILABLE -> {
                settle(request);
                request.refused(refused);
                client.pumpAfter(this);
            }
            case NO_SPACE, IO_ERROR, INVALID -> {
                abandon(request);
                settle(request);
                request.refused(refused);
                client.pumpAfter(this);
            }
        }
    }

    private void onNotLeader(int from, Request request, Refused refused, long now) {
        if (from == target()) {
            rotatePast(from);
        }
        if (refused.leader() != from) {
            onLeader(refused.leader(), refused.epoch());
        }
        boolean follow =
                leader != 0
                        && leader == target()
                        && leader != from
                        && request.refusals < MAX_REDIRECTS;
        comeAgain(from, request, follow ? now : now + NO_LEADER_NANOS);
        if (follow) {
            if (isUnderWay(request) && request.nextSendNanos - now <= 0) {
                send(request, now);
            }
        } else {
            request.refusals = 0;
        }
    }

    /** The copy at {@code from} will not be answered; one sent elsewhere since then still may. */
    private static void comeAgain(int from, Request request, long at) {
        request.refusals++;
        if (request.sentTo == from) {
            request.awaiting = false;
            request.nextSendNanos = at;
        }
    }

    private void onFenced(Request request, Refused refused) {
        if (request.isControl()) {
            request.refused(refused);
        } else if (!request.sequenced() || request.fencings == MAX_FENCINGS) {
            client.attachment().onFenced(request);
            request.failed(
                    client.attachment().isExclusive() ? Outcome.NOT_PERMITTED : Outcome.IO_ERROR);
        } else {
            request.fencings++;
            fenced.add(request);
            client.attachment().onFenced(request);
        }
    }

    /** Fails everything that belongs to calls, for good. */
    void failAll(Outcome outcome) {
        List<Request> all = new ArrayList<>(fenced);
        all.addAll(waiting);
        all.addAll(waitingOthers);
        fenced.clear();
        waiting.clear();
        waitingOthers.clear();
        List<Request> underWay = new ArrayList<>();
        forEachUnderWay(request -> {
            if (!request.isControl()) {
                underWay.add(request);
            }
        });
        for (Request request : underWay) {
            abandon(request);
            settle(request);
        }
        all.addAll(underWay);
        for (Request request : all) {
            request.failed(outcome);
        }
    }

    /** Fails the writes that have not started: the session or claim they need cannot be had. */
    void failWaiting(Outcome outcome) {
        List<Request> all = new ArrayList<>(fenced);
        all.addAll(waiting);
        fenced.clear();
        waiting.clear();
        for (Request request : all) {
            request.failed(outcome);
        }
    }

    /** Forgets everything under way, controls too; nothing is called any more. */
    void drop() {
        sequenced.clear();
        others.clear();
    }
}
