package io.holdfast.simulation;

import static io.holdfast.simulation.SimFailure.check;

import io.holdfast.client.BlockDevice.Outcome;
import io.holdfast.client.ClientEvents;
import io.holdfast.client.ClientIdentity;
import io.holdfast.client.ShardLinks;
import io.holdfast.client.Timers;
import io.holdfast.client.VolumeClient;
import io.holdfast.node.port.PeerLinks;
import io.holdfast.node.replica.Effect;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ClientReply.Refusal;
import io.holdfast.proto.peer.ClientRequest;
import io.holdfast.proto.peer.ShardId;
import io.holdfast.simulation.SimOp.Kind;
import io.holdfast.simulation.SimOp.State;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The production volume client in a process, a node or an agent: it reads that process's clock,
 * runs on its loop, stands still with it and dies with it. Notes every call and every request in
 * the history, and when a call that failed in doubt can take effect no more.
 */
final class SimDevice implements Replies, ShardLinks, Timers, ClientEvents {
    /** A call may outlive the volume's time-out by this: sweeps, and queues in front of a block. */
    private static final long LATE_NANOS = 2 * SimOptions.SECONDS;

    private final SimCluster cluster;
    private final SimVolume volume;
    private final History history;
    private final SimRandom random;
    private final String identity;
    private final int number;
    private final int endpoint;
    private final int incarnation;
    private final int timeoutSeconds;
    private final VolumeClient client;
    private final BuggyClient falsifier;

    /** Requests sent and not answered for good. */
    private final TreeMap<Long, ClientRequest> sent = new TreeMap<>();

    /** What this process knows of the others: the incarnation that it is connected to, or none. */
    private final TreeMap<Integer, Integer> connections = new TreeMap<>();

    private final List<SimCall> calls = new ArrayList<>();
    private int pending;
    private int session;
    private int sessions;
    private long sessionSince;
    private long generation;

    /** When a leader last said that this session or claim is over. */
    private long fencedAt = -1;

    /** When it last gave a block up, of which no replica had a good copy. */
    private long unreadableAt = Long.MIN_VALUE;

    private boolean closing;
    private boolean gone;

    /**
     * A volume client that has asked for nothing yet.
     *
     * @param endpoint the process it lives in, which runs
     */
    SimDevice(
            SimCluster cluster,
            SimVolume volume,
            SimRandom random,
            String identity,
            int endpoint,
            int timeoutSeconds) {
        this.cluster = cluster;
        this.volume = volume;
        this.history = volume.history;
        this.random = random;
        this.identity = identity;
        this.endpoint = endpoint;
        this.timeoutSeconds = timeoutSeconds;
        this.incarnation = inNode() ? cluster.node(endpoint).incarnation() : 0;
        this.number = cluster.nextClientNumber(this);
        this.falsifier = new BuggyClient(cluster.options.bug(), cluster, identity);
        this.client =
                new VolumeClient(
                        number,
                        inNode() ? endpoint : 0,
                        volume.inCatalogue(timeoutSeconds),
                        new ClientIdentity(identity),
                        SealedBlocks.key(),
                        cluster.options.window(),
                        this,
                        this,
                        this);
        cluster.attached(this);
        if (cluster.options.connectionsNoticed()) {
            for (int node : cluster.nodeNumbers()) {
                if (reaches(node)) {
                    connections.put(node, cluster.node(node).incarnation());
                }
            }
            watch();
        }
    }

    private boolean inNode() {
        return endpoint < PeerLinks.FIRST_AGENT;
    }

    // ---- what its user sees ----

    SimVolume volume() {
        return volume;
    }

    int number() {
        return number;
    }

    String identity() {
        return identity;
    }

    long generation() {
        return generation;
    }

    /** Calls under way. */
    int pending() {
        return pending;
    }

    /** Killed, or closed and done. */
    boolean isGone() {
        return gone;
    }

    /** Whether calls can be made. */
    boolean isOpen() {
        return !gone && !closing && isRunning();
    }

    /** Whether every call fails. */
    boolean isUnusable() {
        return client.isUnusable();
    }

    private boolean isRunning() {
        return !inNode()
                || (cluster.node(endpoint).isRunning()
                        && cluster.node(endpoint).incarnation() == incarnation);
    }

    /** Asks for a session before there is a call. */
    void open() {
        client.open();
    }

    /** No further calls; those under way complete, then session and claim are given up. */
    void close() {
        closing = true;
        trace("closes");
        client.close(() -> {
            trace("is closed");
            gone = true;
            cluster.detached(this);
        });
    }

    /** The process that it lives in is gone. */
    void die() {
        if (!gone) {
            trace("dies");
            gone = true;
            cluster.detached(this);
            for (SimCall call : calls) {
                if (call.state == State.PENDING) {
                    call.end(call.isChange() ? State.IN_DOUBT : State.FAILED, cluster.queue.now());
                }
            }
            pending = 0;
        }
    }

    /** Its node's process is gone. */
    void hostDied(int node) {
        if (node == endpoint) {
            die();
        }
    }

    /** Reads cells. */
    SimCall read(long first, int count, Consumer<SimCall> then) {
        SimCall call = begin(Kind.READ, first, count, 0, false);
        int length = Cells.length(first, count);
        ByteBuf target = Unpooled.buffer(length, length);
        client.read(
                Cells.offset(first),
                target,
                outcome -> {
                    if (outcome == Outcome.OK) {
                        check(
                                target.readableBytes() == length,
                                "contents",
                                target.readableBytes(),
                                " bytes for ",
                                call);
                        call.seen = Cells.read(target.array(), 0, first, count);
                        history.checkWhole(call);
                    }
                    ended(call, outcome, then);
                });
        return call;
    }

    /** Writes new values. */
    SimCall write(long first, int count, boolean fua, Consumer<SimCall> then) {
        long value = history.newValue(count);
        SimCall call = begin(Kind.WRITE, first, count, value, fua);
        byte[] bytes = new byte[Cells.length(first, count)];
        Cells.fill(bytes, 0, first, count, value);
        client.write(
                Cells.offset(first),
                Unpooled.wrappedBuffer(bytes),
                fua,
                outcome -> ended(call, outcome, then));
        return call;
    }

    /** Zeroes cells. */
    SimCall zero(long first, int count, boolean punch, boolean fua, Consumer<SimCall> then) {
        SimCall call = begin(Kind.ZERO, first, count, 0, fua);
        client.zero(
                Cells.offset(first),
                Cells.length(first, count),
                punch,
                fua,
                outcome -> ended(call, outcome, then));
        return call;
    }

    /** Flushes. */
    SimCall flush(Consumer<SimCall> then) {
        SimCall call = begin(Kind.FLUSH, 0, 0, 0, false);
        client.flush(outcome -> ended(call, outcome, then));
        return call;
    }

    private SimCall begin(Kind kind, long first, int count, long value, boolean fua) {
        long[] barriers = new long[volume.shards().size()];
        if (kind == Kind.FLUSH) {
            for (ShardId shard : volume.shards()) {
                barriers[shard.index()] = cluster.oracle(shard).acknowledged();
            }
        }
        SimCall call =
                new SimCall(
                        kind,
                        number,
                        first,
                        count,
                        value,
                        fua,
                        cluster.queue.now(),
                        nanoTime(),
                        barriers);
        history.add(call);
        calls.add(call);
        pending++;
        trace("begins " + call);
        limit(call);
        return call;
    }

    /** A call ends in time, whatever happens, unless its process stands still. */
    private void limit(SimCall call) {
        int pauses = pauses();
        double slowest = 1 - SimOptions.MOST_DRIFT / 1000.0;
        long limit = (long) (timeoutSeconds * SimOptions.SECONDS / slowest) + LATE_NANOS;
        cluster.queue.after(
                limit,
                () ->
                        check(
                                call.state != State.PENDING || pauses != pauses(),
                                "time limit",
                                "still under way: ",
                                call));
    }

    private int pauses() {
        return inNode() ? cluster.node(endpoint).pauses() : 0;
    }

    private void ended(SimCall call, Outcome outcome, Consumer<SimCall> then) {
        if (gone) {
            return;
        }
        pending--;
        check(call.state == State.PENDING, "calls", "ends twice: ", call);
        check(
                outcome == Outcome.OK
                        || (outcome == Outcome.IO_ERROR && mayFail(call))
                        || (outcome == Outcome.NO_SPACE
                                && cluster.options.mayRunFull()
                                && call.isChange())
                        || (outcome == Outcome.NOT_PERMITTED
                                && volume.exclusive
                                && call.isChange()),
                "outcome",
                outcome,
                " of ",
                call);
        long now = cluster.queue.now();
        if (outcome == Outcome.OK) {
            call.end(State.DONE, now);
            history.served(now);
        } else {
            call.end(call.isChange() ? State.IN_DOUBT : State.FAILED, now);
            cluster.counters.add(Rare.ended(outcome), 1);
        }
        trace("ends with " + outcome + " " + call);
        if (outcome == Outcome.OK && call.isChange()) {
            settleOlder(call);
        } else if (outcome == Outcome.OK && call.kind == Kind.FLUSH) {
            for (ShardId shard : volume.shards()) {
                cluster.oracle(shard).flushed(call, call.barriers[shard.index()]);
            }
        }
        then.accept(call);
    }

    /**
     * Its time is up, or its attachment was fenced or ended by a power loss, or blocks are bad, of
     * which, if reads fail, {@link #blockUnreadable} has seen that no other copy is good.
     */
    private boolean mayFail(SimCall call) {
        return nanoTime() - call.begunNanos >= timeoutSeconds * SimOptions.SECONDS
                || client.isUnusable()
                || fencedAt >= call.invoked
                || unreadableAt >= call.invoked
                || cluster.options.faults().rot();
    }

    // ---- when calls that failed can take effect no more ----

    /**
     * A change that began after others of this client had failed is done: the leader has seen that
     * those are given up.
     */
    private void settleOlder(SimCall done) {
        for (ShardId shard : volume.shards()) {
            if (volume.touches(done, shard)) {
                for (SimCall old : calls) {
                    if (old.state == State.IN_DOUBT && old.ended < done.invoked) {
                        old.settle(shard.index(), done.ended);
                    }
                }
            }
        }
    }

    /**
     * A claim was granted to another volume client: what was asked under an older one never runs
     * from now on, and that of an attachment which its own user left for another does not either.
     */
    void otherClaims(ShardId shard, SimDevice other, long itsGeneration) {
        boolean superseded =
                (identity.equals(other.identity) && number < other.number)
                        ? generation <= itsGeneration
                        : (generation != 0 && generation < itsGeneration);
        if (!superseded) {
            return;
        }
        for (SimCall call : calls) {
            // A call that still waits for a first claim belongs to no attachment yet.
            if (call.state == State.IN_DOUBT
                    || (call.state == State.PENDING && call.isChange() && generation != 0)) {
                call.settle(shard.index(), cluster.queue.now());
            }
        }
    }

    /** The only session is closed in a shard: nothing of it runs there any more. */
    private void sessionClosed(ShardId shard) {
        if (sessions == 1) {
            for (SimCall call : calls) {
                if (call.state == State.IN_DOUBT) {
                    call.settle(shard.index(), cluster.queue.now());
                }
            }
        }
    }

    // ---- what the volume client sends, and what it is answered ----

    @Override
    public void send(int node, ClientRequest request) {
        ClientRequest real = falsifier.sending(request);
        if (sent.put(real.request(), real) == null) {
            note(real);
        }
        ClientReply forged = falsifier.forged(real);
        if (forged != null) {
            cluster.queue.after(SimOptions.MILLIS, () -> onLoop(() -> reply(endpoint, forged)));
            return;
        }
        cluster.network.send(endpoint, node, real);
    }

    private void note(ClientRequest request) {
        switch (request) {
            case ClientRequest.Write write -> {
                long[] values =
                        history.sealed.sent(
                                write.block(), write.count(), write.nonce(), write.payload());
                note(
                        write,
                        Kind.WRITE,
                        write.block(),
                        write.count(),
                        values,
                        write.expectedSequence(),
                        write.fua(),
                        write.session(),
                        write.generation());
                if (write.expectedSequence() != ClientRequest.UNCONDITIONAL) {
                    cluster.counters.add(Rare.MERGED_WRITE);
                }
            }
            case ClientRequest.Zero zero ->
                    note(
                            zero,
                            Kind.ZERO,
                            zero.block(),
                            zero.count(),
                            new long[0],
                            ClientRequest.UNCONDITIONAL,
                            zero.fua(),
                            zero.session(),
                            zero.generation());
            case ClientRequest.Read read ->
                    note(
                            read,
                            Kind.READ,
                            read.block(),
                            read.count(),
                            new long[0],
                            ClientRequest.UNCONDITIONAL,
                            false,
                            session,
                            generation);
            case ClientRequest.Flush flush ->
                    note(
                            flush,
                            Kind.FLUSH,
                            0,
                            0,
                            new long[0],
                            ClientRequest.UNCONDITIONAL,
                            false,
                            flush.session(),
                            generation);
            case ClientRequest.OpenSession _,
                    ClientRequest.CloseSession _,
                    ClientRequest.Claim _,
                    ClientRequest.Release _,
                    ClientRequest.AskHolder _ -> {}
        }
    }

    private void note(
            ClientRequest request,
            Kind kind,
            long block,
            int count,
            long[] values,
            long expected,
            boolean fua,
            int itsSession,
            long itsGeneration) {
        ShardOracle oracle = cluster.oracle(request.shard());
        long barrier = kind == Kind.FLUSH ? oracle.acknowledged() : 0;
        history.add(
                new SimOp(
                        kind,
                        request.shard(),
                        block,
                        count,
                        values,
                        expected,
                        fua,
                        false,
                        number,
                        request.request(),
                        itsSession,
                        sessionSince,
                        itsGeneration,
                        cluster.queue.now(),
                        barrier,
                        oracle.epochAt(barrier)));
    }

    @Override
    public int endpoint() {
        return endpoint;
    }

    @Override
    public void reply(int from, ClientReply reply) {
        if (gone) {
            return;
        }
        ClientRequest request = sent.get(reply.request());
        if (request != null && isFinal(reply)) {
            sent.remove(reply.request());
            answered(request, reply);
        }
        client.onReply(from, falsifier.answered(reply));
    }

    private boolean isFinal(ClientReply reply) {
        if (!(reply instanceof ClientReply.Refused refused)) {
            return true;
        }
        return switch (refused.why()) {
            case NOT_LEADER, BUSY -> false;
            case HELD, FENCED, CONFLICT, POWER_LOSS, NO_SPACE, COPY_UNAVAILABLE -> true;
            case IO_ERROR -> {
                check(
                        cluster.options.faults().rot() || cluster.wasEverUnreadable(),
                        "refusal",
                        "unexpected ",
                        refused);
                yield true;
            }
            case UNKNOWN_SHARD, INVALID -> throw new SimFailure("refusal", "unexpected " + refused);
        };
    }

    private void answered(ClientRequest request, ClientReply reply) {
        long now = cluster.queue.now();
        SimOp op = history.asked(number, reply.request());
        switch (reply) {
            case ClientReply.Done done when op != null -> {
                op.done(now);
                cluster.oracle(op.shard).acknowledged(op);
            }
            case ClientReply.Done done -> granted(request, done.value());
            case ClientReply.Data data
                    when op != null
                            && data.runs().stream()
                                    .anyMatch(
                                            run -> !history.isIntact(run) && mayBeCorrupt(run)) -> {
                cluster.counters.add(Rare.CORRUPT_BLOCK_SENT);
                op.failed();
            }
            case ClientReply.Data data when op != null -> {
                op.seen = history.valuesOf(op, data.runs());
                op.done(now);
            }
            case ClientReply.Refused refused -> {
                cluster.counters.add(Rare.told(refused.why()), 1);
                if (refused.why() == Refusal.FENCED || refused.why() == Refusal.POWER_LOSS) {
                    fencedAt = now;
                }
                if (op != null
                        && (refused.why() == Refusal.CONFLICT
                                || refused.why() == Refusal.NO_SPACE)) {
                    op.inDoubt();
                } else if (op != null) {
                    op.settled(now);
                }
            }
            default -> {}
        }
    }

    private boolean mayBeCorrupt(ClientReply.Run run) {
        for (long block = run.block(); block < run.block() + run.count(); block++) {
            if (cluster.mayBeCorrupt(volume, block)) {
                return true;
            }
        }
        return false;
    }

    private void granted(ClientRequest request, long value) {
        switch (request) {
            case ClientRequest.OpenSession open when open.session() == 0 -> {
                volume.granted((int) value, number);
                session = (int) value;
                sessions++;
                sessionSince = cluster.queue.now();
            }
            case ClientRequest.Claim claim -> {
                generation = Math.max(generation, value);
                cluster.claimed(request.shard(), this, value);
            }
            case ClientRequest.CloseSession close -> sessionClosed(close.shard());
            default -> {}
        }
    }

    // ---- its process ----

    /** Runs something on the process's loop, as long as this client lives. */
    private void onLoop(Runnable action) {
        Runnable guarded =
                () -> {
                    if (!gone) {
                        action.run();
                    }
                };
        if (inNode()) {
            cluster.node(endpoint).enqueue(incarnation, guarded);
        } else {
            guarded.run();
        }
    }

    @Override
    public long nanoTime() {
        return inNode() ? cluster.node(endpoint).nanos() : cluster.queue.now();
    }

    @Override
    public Handle schedule(long delayNanos, Runnable task) {
        boolean[] cancelled = {false};
        long delay = inNode() ? cluster.node(endpoint).clock.trueNanos(delayNanos) : delayNanos;
        cluster.queue.after(
                Math.max(1, delay),
                () ->
                        onLoop(() -> {
                            if (!cancelled[0]) {
                                task.run();
                            }
                        }));
        return () -> cancelled[0] = true;
    }

    /** A replica of this node has learned who leads. */
    void announced(ShardId shard, int node, Effect.Announce announce) {
        if (node == endpoint && !gone) {
            client.onLeader(shard.index(), announce.leader(), announce.epoch());
        }
    }

    @Override
    public boolean connected(int node) {
        return !cluster.options.connectionsNoticed()
                || node == endpoint
                || connections.containsKey(node);
    }

    private boolean reaches(int node) {
        return node == endpoint
                || (cluster.node(node).isUp()
                        && cluster.network.connected(endpoint, node)
                        && cluster.network.connected(node, endpoint));
    }

    /** Connections break and come back a while after the network does. */
    private void watch() {
        cluster.queue.after(
                random.between(20, 300) * SimOptions.MILLIS,
                () -> {
                    if (!gone) {
                        onLoop(() -> cluster.nodeNumbers().forEach(this::watch));
                        watch();
                    }
                });
    }

    private void watch(int node) {
        Integer before = connections.get(node);
        @Nullable Integer now =
                reaches(node) ? Integer.valueOf(cluster.node(node).incarnation()) : null;
        if (before != null && !before.equals(now)) {
            connections.remove(node);
            client.onDisconnected(node);
        }
        if (now != null && !now.equals(before)) {
            connections.put(node, now);
            client.onConnected(node);
        }
    }

    private void trace(String what) {
        cluster.trace.add("device " + number, what);
    }

    // ---- what operators would count ----

    @Override
    public void requestRepeated(int ofVolume) {
        cluster.counters.add(Rare.REQUEST_REPEATED);
    }

    @Override
    public void requestTimedOut(int ofVolume) {
        cluster.counters.add(Rare.REQUEST_TIMED_OUT);
    }

    @Override
    public void writeConflicted(int ofVolume) {
        cluster.counters.add(Rare.MERGED_WRITE_MET_ANOTHER);
    }

    @Override
    public void blockCorrupt(int ofVolume, long block) {
        check(cluster.mayBeCorrupt(volume, block), "contents", "block ", block, " does not open");
    }

    @Override
    public void blockRecovered(int ofVolume, long block) {
        cluster.counters.add(Rare.BLOCK_RECOVERED);
    }

    @Override
    public void blockUnreadable(int ofVolume, long block) {
        check(
                !cluster.hasGoodCopy(volume, block),
                "corruption",
                "block ",
                block,
                " is given up though a replica has a good copy");
        cluster.counters.add(Rare.BLOCK_UNREADABLE);
        unreadableAt = cluster.queue.now();
    }

    @Override
    public void replyMalformed(int ofVolume, int node) {
        throw new SimFailure("contents", "malformed reply from node " + node);
    }

    @Override
    public void sessionOpened(int ofVolume) {
        cluster.counters.add(Rare.SESSION_OPENED);
    }

    @Override
    public void claimGranted(int ofVolume, long granted) {
        cluster.counters.add(Rare.CLAIM_GRANTED);
    }

    @Override
    public void writeRefused(int ofVolume) {
        cluster.counters.add(Rare.WRITE_REFUSED);
    }
}
