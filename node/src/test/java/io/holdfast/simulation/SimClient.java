package io.holdfast.simulation;

import io.holdfast.node.port.PeerLinks;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ClientReply.Refusal;
import io.holdfast.proto.peer.ClientReply.Run;
import io.holdfast.proto.peer.ClientRequest;
import io.holdfast.proto.peer.Nonce;
import io.holdfast.proto.peer.ShardId;
import io.holdfast.simulation.SimOp.Kind;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.function.Consumer;

/**
 * A user of the protocol in {@link ClientRequest} as it stands, beside the volume clients of {@link
 * SimUser}: it does what those never would. It repeats requests at any node whether or not one was
 * asked already, gives up early, goes on writing while older requests are in doubt, drops
 * everything and attaches again elsewhere, under the same identity, with its old requests still
 * under way, and never gives a claim up by itself. What the leaders owe to a client that behaves
 * badly is checked with it, request by request.
 */
final class SimClient implements Replies {
    /** How a request ended: with an answer, a refusal for good, or a stand-in for want of one. */
    record Ended(boolean refused, ClientReply reply) {}

    /** A request under way. */
    private static final class Pending {
        final ClientRequest request;
        final Consumer<Ended> then;
        final boolean counts;
        int tries;

        Pending(ClientRequest request, boolean counts, Consumer<Ended> then) {
            this.request = request;
            this.counts = counts;
            this.then = then;
        }
    }

    /** How a client stands to the volume. */
    enum Standing {
        DETACHED,
        OPENING,
        /** Another client holds the volume: only reads are possible. */
        READ_ONLY,
        ATTACHED
    }

    private static final long[] NONE = new long[0];
    private static final long RESEND_NANOS = 150 * SimOptions.MILLIS;
    private static final int LAYER = SealedBlocks.LAYER;

    private final SimCluster cluster;
    private final SimVolume volume;
    private final SimRandom random;
    private final int index;
    private final String identity;
    private final TreeMap<ShardId, Integer> leaders = new TreeMap<>();

    /** Changes that may take effect late: settled when a newer claim is granted. */
    private final List<SimOp> doubtful = new ArrayList<>();

    // One attachment; a new one has new numbers.
    private Standing standing = Standing.DETACHED;
    private int endpoint;
    private int incarnation;
    private int number;
    private long nextRequest = 1;
    private int session;
    private long sessionSince;
    private long generation;
    private long nonceCounter;
    private final TreeMap<Long, Pending> pending = new TreeMap<>();
    private final TreeMap<ShardId, TreeMap<Long, SimOp>> changes = new TreeMap<>();

    private long timeoutNanos;
    private boolean busy;

    SimClient(SimCluster cluster, SimVolume volume, int index, SimRandom random) {
        this.cluster = cluster;
        this.volume = volume;
        this.index = index;
        this.random = random;
        this.identity = "user-" + index;
        this.timeoutNanos = random.between(1, 6) * SimOptions.SECONDS;
    }

    // ---- attaching ----

    Standing standing() {
        return standing;
    }

    int session() {
        return session;
    }

    long generation() {
        return generation;
    }

    @Override
    public int endpoint() {
        return endpoint;
    }

    /** The endpoint of this client's own agent. */
    int agent() {
        return PeerLinks.FIRST_AGENT + index;
    }

    /** How long requests are tried before they are given up. */
    void timeout(long nanos) {
        timeoutNanos = nanos;
    }

    /** Drops the present attachment, its requests still under way, and begins another. */
    void attach(int through) {
        abandon();
        endpoint = through;
        number = cluster.nextClientNumber(this);
        incarnation = endpoint < PeerLinks.FIRST_AGENT ? cluster.node(endpoint).incarnation() : 0;
        nextRequest = 1;
        session = 0;
        generation = 0;
        nonceCounter = 0;
        standing = Standing.OPENING;
        open(first(), 0);
    }

    private ShardId first() {
        return volume.shards().getFirst();
    }

    private void abandon() {
        standing = Standing.DETACHED;
        List<Pending> dropped = new ArrayList<>(pending.values());
        pending.clear();
        changes.clear();
        for (Pending one : dropped) {
            one.then.accept(new Ended(false, noAnswer(one.request)));
        }
    }

    private static ClientReply noAnswer(ClientRequest request) {
        return new ClientReply.Refused(
                request.shard(), request.client(), request.request(), Refusal.BUSY, 0, 0, "");
    }

    private void open(ShardId shard, int wanted) {
        ask(
                new ClientRequest.OpenSession(shard, number, nextRequest++, wanted),
                false,
                ended -> {
                    if (!(ended.reply instanceof ClientReply.Done done)) {
                        detach();
                        return;
                    }
                    if (wanted == 0) {
                        session = (int) done.value();
                        sessionSince = cluster.queue.now();
                        volume.granted(session, number);
                    }
                    int next = shard.index() + 1;
                    if (next < volume.shards().size()) {
                        open(volume.shards().get(next), session);
                    } else if (volume.exclusive) {
                        claim(first(), 0);
                    } else {
                        standing = Standing.ATTACHED;
                    }
                });
    }

    private void claim(ShardId shard, long wanted) {
        ask(
                new ClientRequest.Claim(
                        shard, number, nextRequest++, session, identity, wanted, false),
                false,
                ended -> {
                    switch (ended.reply) {
                        case ClientReply.Done done -> {
                            if (wanted == 0) {
                                generation = done.value();
                            }
                            settleOlder(shard);
                            int next = shard.index() + 1;
                            if (next < volume.shards().size()) {
                                claim(volume.shards().get(next), generation);
                            } else {
                                standing = Standing.ATTACHED;
                            }
                        }
                        case ClientReply.Refused refused when refused.why() == Refusal.HELD ->
                                standing = Standing.READ_ONLY;
                        default -> detach();
                    }
                });
    }

    /** The newer claim is in force: what is still under way from before must never run. */
    private void settleOlder(ShardId shard) {
        doubtful.removeIf(op -> {
            boolean older = op.shard.equals(shard) && op.generation < generation;
            if (older) {
                op.settled(cluster.queue.now());
            }
            return older;
        });
    }

    /** The attachment is of no use any more. */
    private void detach() {
        abandon();
    }

    /** Gives the volume back: releases the claim and closes the session. */
    void release() {
        int oldSession = session;
        long oldGeneration = generation;
        boolean claimed = standing == Standing.ATTACHED && generation != 0;
        abandon();
        if (oldSession == 0) {
            return;
        }
        for (ShardId shard : volume.shards()) {
            if (claimed) {
                ask(
                        new ClientRequest.Release(
                                shard, number, nextRequest++, oldSession, oldGeneration),
                        false,
                        ended -> {});
            }
            ask(
                    new ClientRequest.CloseSession(shard, number, nextRequest++, oldSession),
                    false,
                    ended -> {
                        if (ended.reply instanceof ClientReply.Done) {
                            settleSession(shard, oldSession);
                        }
                    });
        }
    }

    private void settleSession(ShardId shard, int closed) {
        doubtful.removeIf(op -> {
            boolean over = op.shard.equals(shard) && op.session == closed;
            if (over) {
                op.settled(cluster.queue.now());
            }
            return over;
        });
    }

    /** The process that this client lives in is gone. */
    void hostDied(int node) {
        if (standing != Standing.DETACHED && endpoint == node) {
            abandon();
        } else if (endpoint == node) {
            pending.clear();
        }
    }

    // ---- requests ----

    private long lowWater(ShardId shard) {
        TreeMap<Long, SimOp> open = changes.computeIfAbsent(shard, s -> new TreeMap<>());
        return open.isEmpty() ? nextRequest : open.firstKey();
    }

    /** Writes new values; {@code expected} as in {@link ClientRequest.Write}. */
    SimOp write(
            ShardId shard,
            long block,
            int count,
            long expected,
            boolean fua,
            Consumer<SimOp> then) {
        long lowWater = lowWater(shard);
        Nonce nonce =
                new Nonce(
                        SealedBlocks.key().id(),
                        session == 0 ? Integer.MAX_VALUE - number : session,
                        nonceCounter);
        nonceCounter += count;
        long value = volume.history.newValue((long) count * Cells.PER_BLOCK);
        byte[] payload = volume.history.sealed.seal(value, block, count, nonce);
        long[] values = volume.history.sealed.sent(block, count, nonce, payload);
        SimOp op = op(Kind.WRITE, shard, block, count, values, expected, fua);
        ClientRequest request =
                new ClientRequest.Write(
                        shard,
                        number,
                        op.request,
                        session,
                        lowWater,
                        generation,
                        LAYER,
                        block,
                        count,
                        nonce,
                        expected,
                        fua,
                        payload);
        change(op, request, lowWater, then);
        return op;
    }

    /** Zeroes blocks. */
    SimOp zero(ShardId shard, long block, int count, boolean trim, Consumer<SimOp> then) {
        long lowWater = lowWater(shard);
        SimOp op = op(Kind.ZERO, shard, block, count, NONE, ClientRequest.UNCONDITIONAL, false);
        ClientRequest request =
                new ClientRequest.Zero(
                        shard,
                        number,
                        op.request,
                        session,
                        lowWater,
                        generation,
                        LAYER,
                        block,
                        count,
                        trim,
                        false);
        change(op, request, lowWater, then);
        return op;
    }

    private SimOp op(
            Kind kind,
            ShardId shard,
            long block,
            int count,
            long[] values,
            long expected,
            boolean fua) {
        long barrier = kind == Kind.FLUSH ? cluster.oracle(shard).acknowledged() : 0;
        SimOp op =
                new SimOp(
                        kind,
                        shard,
                        block,
                        count,
                        values,
                        expected,
                        fua,
                        true,
                        number,
                        nextRequest++,
                        session,
                        sessionSince,
                        generation,
                        cluster.queue.now(),
                        barrier,
                        cluster.oracle(shard).epochAt(barrier));
        volume.history.add(op);
        return op;
    }

    private void change(SimOp op, ClientRequest request, long lowWater, Consumer<SimOp> then) {
        TreeMap<Long, SimOp> open = changes.computeIfAbsent(op.shard, s -> new TreeMap<>());
        open.put(op.request, op);
        ask(
                request,
                true,
                ended -> {
                    open.remove(op.request);
                    changeEnded(op, lowWater, ended);
                    then.accept(op);
                });
    }

    private void changeEnded(SimOp op, long lowWater, Ended ended) {
        long now = cluster.queue.now();
        if (ended.reply instanceof ClientReply.Done) {
            op.done(now);
            cluster.oracle(op.shard).acknowledged(op);
            settleBelow(op, lowWater);
        } else if (ended.reply instanceof ClientReply.Refused refused && ended.refused) {
            switch (refused.why()) {
                // An earlier try may have run, its answer lost; but from here on it never will.
                case FENCED, POWER_LOSS, HELD -> op.settled(now);
                default -> {
                    op.inDoubt();
                    doubtful.add(op);
                }
            }
            if (refused.why() == Refusal.FENCED
                    || refused.why() == Refusal.POWER_LOSS
                    || refused.why() == Refusal.HELD) {
                cluster.counters.add("attachments ended by " + refused.why(), 1);
                detachFrom(op.client);
            }
        } else {
            op.inDoubt();
            doubtful.add(op);
        }
    }

    private void detachFrom(int client) {
        if (client == number) {
            detach();
        }
    }

    /** The leader has seen this low water: what the session gave up before must never run. */
    private void settleBelow(SimOp op, long lowWater) {
        doubtful.removeIf(old -> {
            boolean below =
                    old.shard.equals(op.shard)
                            && old.session == op.session
                            && old.request < lowWater;
            if (below) {
                old.settled(cluster.queue.now());
            }
            return below;
        });
    }

    /** Reads blocks; {@code then} also gets the runs, empty when there was no answer. */
    SimOp read(ShardId shard, long block, int count, Consumer<List<Run>> then) {
        SimOp op = op(Kind.READ, shard, block, count, NONE, ClientRequest.UNCONDITIONAL, false);
        ask(
                new ClientRequest.Read(shard, number, op.request, LAYER, block, count, 0),
                true,
                ended -> {
                    if (ended.reply instanceof ClientReply.Data data) {
                        op.seen = volume.history.valuesOf(op, data.runs());
                        op.done(cluster.queue.now());
                        then.accept(data.runs());
                    } else {
                        op.failed();
                        then.accept(List.of());
                    }
                });
        return op;
    }

    /** Flushes. */
    SimOp flush(ShardId shard, Consumer<SimOp> then) {
        SimOp op = op(Kind.FLUSH, shard, 0, 0, NONE, ClientRequest.UNCONDITIONAL, false);
        ask(
                new ClientRequest.Flush(shard, number, op.request, session),
                true,
                ended -> {
                    if (ended.reply instanceof ClientReply.Done) {
                        op.done(cluster.queue.now());
                        cluster.oracle(shard).acknowledged(op);
                    } else {
                        op.failed();
                        if (ended.refused) {
                            detachFrom(op.client);
                        }
                    }
                    then.accept(op);
                });
        return op;
    }

    private void ask(ClientRequest request, boolean counts, Consumer<Ended> then) {
        Pending one = new Pending(request, counts, then);
        pending.put(request.request(), one);
        int asker = number;
        send(asker, one);
        cluster.queue.after(
                counts ? timeoutNanos : 2 * timeoutNanos,
                () -> end(asker, one, new Ended(false, noAnswer(request))));
    }

    private boolean isOpen(int asker, Pending one) {
        return asker == number && pending.get(one.request.request()) == one;
    }

    private void send(int asker, Pending one) {
        if (!isOpen(asker, one)) {
            return;
        }
        if (canRun()) {
            ShardId shard = one.request.shard();
            int to = leaders.getOrDefault(shard, 0);
            // Whoever is asked too often in vain does not lead any more.
            if (to == 0 || (one.tries > 0 && random.chance(0.5))) {
                to = random.pick(cluster.nodeNumbers());
                leaders.put(shard, to);
            }
            one.tries++;
            cluster.network.send(endpoint, to, current(one));
        }
        cluster.queue.after(RESEND_NANOS + random.between(0, RESEND_NANOS), () -> send(asker, one));
    }

    /** A client inside a node stands still with it. */
    private boolean canRun() {
        return endpoint >= PeerLinks.FIRST_AGENT
                || (cluster.node(endpoint).isRunning()
                        && cluster.node(endpoint).incarnation() == incarnation);
    }

    private void end(int asker, Pending one, Ended how) {
        if (isOpen(asker, one)) {
            pending.remove(one.request.request());
            one.then.accept(how);
        }
    }

    @Override
    public void reply(int from, ClientReply reply) {
        Pending one = reply.client() == number ? pending.get(reply.request()) : null;
        if (one == null) {
            return;
        }
        ShardId shard = reply.shard();
        if (reply instanceof ClientReply.Refused refused) {
            switch (refused.why()) {
                case NOT_LEADER -> {
                    if (refused.leader() == 0) {
                        leaders.remove(shard);
                    } else if (leaders.getOrDefault(shard, 0) != refused.leader()) {
                        leaders.put(shard, refused.leader());
                        int asker = number;
                        cluster.queue.after(SimOptions.MILLIS, () -> resend(asker, one));
                    }
                }
                case BUSY -> cluster.counters.add("busy", 1);
                case IO_ERROR, UNKNOWN_SHARD, COPY_UNAVAILABLE, INVALID ->
                        throw new SimFailure("refusal", "unexpected " + refused);
                case HELD, FENCED, CONFLICT, POWER_LOSS, NO_SPACE ->
                        end(number, one, new Ended(true, reply));
            }
        } else {
            volume.history.served(cluster.queue.now());
            end(number, one, new Ended(false, reply));
        }
    }

    /** Sends once more, beside the regular repetitions. */
    private void resend(int asker, Pending one) {
        if (isOpen(asker, one) && canRun() && leaders.containsKey(one.request.shard())) {
            cluster.network.send(
                    endpoint, leaders.getOrDefault(one.request.shard(), 1), current(one));
        }
    }

    private ClientRequest current(Pending one) {
        return one.request.withLowWater(lowWater(one.request.shard()));
    }

    /** Requests of users under way. */
    int underWay() {
        return (int) pending.values().stream().filter(one -> one.counts).count();
    }

    // ---- the user ----

    /** Begins to use the volume at random. */
    void start() {
        busy = true;
        cluster.queue.after(random.between(0, SimOptions.SECONDS), this::use);
    }

    /** Asks nothing new; what is under way goes on. */
    void stop() {
        busy = false;
    }

    private void use() {
        if (!busy) {
            return;
        }
        if (standing == Standing.DETACHED) {
            int through = random.chance(0.3) ? agent() : random.pick(cluster.nodeNumbers());
            if (through == agent() || cluster.node(through).isRunning()) {
                attach(through);
            }
        } else if (canRun()) {
            if (random.chance(0.003)) {
                cluster.counters.add("clients attached again elsewhere", 1);
                detach();
            } else if (random.chance(0.003)) {
                release();
            } else if (standing == Standing.READ_ONLY && random.chance(0.02)) {
                standing = Standing.OPENING;
                claim(first(), 0);
            } else if (standing != Standing.OPENING && underWay() < cluster.options.depth()) {
                something();
            }
        }
        cluster.queue.after(random.between(1, 40) * SimOptions.MILLIS, this::use);
    }

    private void something() {
        long block = random.between(0L, cluster.options.blocks() - 1);
        ShardId shard = volume.shardOf(block);
        int count = random.chance(0.7) ? 1 : random.between(1, volume.blocksFrom(block, 5));
        int kind = standing == Standing.READ_ONLY ? 0 : random.between(0, 99);
        if (kind < 30) {
            read(shard, block, count, runs -> {});
        } else if (kind < 80) {
            write(shard, block, count, ClientRequest.UNCONDITIONAL, isSynced(), op -> {});
        } else if (kind < 88) {
            zero(shard, block, count, random.chance(0.5), op -> {});
        } else if (kind < 94) {
            readThenWrite(shard, block);
        } else if (!cluster.options.seldomSynced() || isSynced()) {
            flush(shard, op -> {});
        }
    }

    private boolean isSynced() {
        return random.chance(cluster.options.syncChance());
    }

    /** What a write of a part of a block comes down to. */
    private void readThenWrite(ShardId shard, long block) {
        int asker = number;
        read(
                shard,
                block,
                1,
                runs -> {
                    if (!runs.isEmpty() && asker == number && standing == Standing.ATTACHED) {
                        write(
                                shard,
                                block,
                                1,
                                runs.getFirst().sequence(),
                                false,
                                op ->
                                        cluster.counters.add(
                                                op.state == SimOp.State.DONE
                                                        ? "conditions that held"
                                                        : "conditions that failed",
                                                1));
                    }
                });
    }
}
