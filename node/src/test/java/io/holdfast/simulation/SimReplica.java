package io.holdfast.simulation;

import static io.holdfast.simulation.SimFailure.check;

import io.holdfast.node.port.Store;
import io.holdfast.node.port.Store.Extents;
import io.holdfast.node.replica.Effect;
import io.holdfast.node.replica.Effect.Outbound;
import io.holdfast.node.replica.Event;
import io.holdfast.node.replica.Recovered;
import io.holdfast.node.replica.ReplicaOptions;
import io.holdfast.node.replica.ReplicaStatus;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ClientRequest;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.ReplicaMessage;
import io.holdfast.proto.peer.ReplicaMessage.Append;
import io.holdfast.proto.peer.ReplicaMessage.FetchedBlock;
import io.holdfast.proto.peer.ReplicaMessage.InstallExtents;
import io.holdfast.proto.peer.ShardId;
import java.util.ArrayDeque;
import java.util.List;

/**
 * Drives one replica: feeds its core events, carries out effects in their order, and lets messages
 * leave only when the disk has what they promise. Lives as long as the process.
 */
final class SimReplica {
    /** Something on its way to disk, and what waits for it. */
    private record Persisting(long ticket, int end, boolean sync, List<Outbound> thenSend) {}

    private final SimCluster cluster;
    private final SimNode node;
    private final int incarnation;
    private final ShardId shard;
    private final SimStorage store;
    private final SimRandom random;
    private final Core core;
    private final ShardOracle oracle;
    private final ArrayDeque<Persisting> unwritten = new ArrayDeque<>();
    private final ArrayDeque<Persisting> unsynced = new ArrayDeque<>();
    private long lastTicket;
    private long writeAt;
    private long syncAt;
    private boolean turnEnds;

    SimReplica(
            SimCluster cluster, SimNode node, SimStorage store, SimRandom random, boolean unclean) {
        this.cluster = cluster;
        this.node = node;
        this.incarnation = node.incarnation();
        this.store = store;
        this.random = random;
        this.shard = store.shard();
        this.oracle = cluster.oracle(shard);
        SimOptions options = cluster.options;
        Recovered recovered = store.recover(unclean);
        core =
                Core.create(
                        new ReplicaOptions(
                                shard,
                                node.number,
                                cluster.nodeNumbers(),
                                SealedBlocks.LAYER,
                                options.blocks(),
                                options.syncWrites(),
                                options.quorumReads(),
                                cluster.volume(shard).exclusive,
                                options.timing(),
                                options.limits(),
                                branch -> cluster.counters.add(Counters.core(branch), 1)),
                        recovered,
                        store,
                        node.nanos(),
                        options.bug());
        oracle.started(node.number, status(), store);
        if (store instanceof JournalShard real) {
            real.attach(this);
        }
    }

    /** See {@link Core#shardState}. */
    byte[] shardState() {
        return core.shardState();
    }

    /** See {@link Core#applied}. */
    long applied() {
        return core.applied();
    }

    /** See {@link Core#appliedEpoch}. */
    long appliedEpoch() {
        return core.appliedEpoch();
    }

    /** Whether this replica can do anything any more. */
    private boolean isGone() {
        return !node.isUp() || node.incarnation() != incarnation || node.isOutOfService();
    }

    ReplicaStatus status() {
        return core.status(node.nanos());
    }

    /** Gives the core an event and carries out what it wants done. */
    void step(Event event) {
        if (isGone()) {
            return;
        }
        if (node.isPaused()) {
            node.enqueueFirst(incarnation, () -> step(event));
            return;
        }
        cluster.trace.add(node.name() + " " + shard, Describe.event(event));
        long now = node.nanos();
        List<Effect> effects = core.step(event, now);
        oracle.decided(node.number, status(), store);
        carryOut(effects, 0);
        if (!(event instanceof Event.TurnEnd)) {
            endTurn();
        }
    }

    private void endTurn() {
        if (turnEnds) {
            return;
        }
        turnEnds = true;
        if (random.chance(cluster.options.turnEndsAtOnce())) {
            node.enqueue(incarnation, this::onTurnEnd);
        } else {
            cluster.queue.after(
                    random.between(0, 200 * SimOptions.MICROS),
                    () -> node.enqueue(incarnation, this::onTurnEnd));
        }
    }

    private void onTurnEnd() {
        turnEnds = false;
        step(new Event.TurnEnd());
    }

    /** Carries out effects from one on; a fault may come between any two of them. */
    private void carryOut(List<Effect> effects, int from) {
        for (int i = from; i < effects.size(); i++) {
            cluster.faults().beforeEffect(node);
            if (isGone()) {
                return;
            }
            if (node.isPaused()) {
                int rest = i;
                node.enqueueFirst(incarnation, () -> carryOut(effects, rest));
                return;
            }
            carryOut(effects.get(i));
        }
        if (isGone()) {
            return;
        }
        store.applied(core.applied());
        oracle.carriedOut(node.number, status(), store);
        maybeCheckpoint();
    }

    private void carryOut(Effect effect) {
        switch (effect) {
            case Effect.Persist persist ->
                    persisting(
                            persist.ticket(),
                            store.append(persist.entries(), persist.state()),
                            persist.sync(),
                            persist.thenSend());
            case Effect.Truncate cut -> {
                oracle.cutting(node.number, cut.after(), store);
                store.truncate(cut.after());
            }
            case Effect.Send send -> send(send.to(), send.message());
            case Effect.SendEntries entries -> sendEntries(entries);
            case Effect.Apply apply -> store.apply(apply.entries());
            case Effect.Reply reply -> reply(reply.origin(), reply.reply());
            case Effect.ReadBlocks read -> {
                ClientRequest.Read request = read.request();
                store.read(
                        request.layer(),
                        request.block(),
                        request.count(),
                        runs -> {
                            ClientReply answer =
                                    runs == null
                                            ? refused(request, ClientReply.Refusal.IO_ERROR)
                                            : data(request, runs);
                            afterRead(() -> reply(read.origin(), answer));
                        });
            }
            case Effect.SendCopy send ->
                    store.copy(
                            send.fetch().layer(),
                            send.fetch().block(),
                            copy -> afterRead(() -> sendCopy(send, copy)));
            case Effect.TakeCopy take ->
                    store.copy(
                            take.request().layer(),
                            take.request().block(),
                            here -> afterRead(() -> takeCopy(take, here)));
            case Effect.SendExtents send ->
                    store.extents(
                            send.since(),
                            send.from(),
                            cluster.options.installBlocks(),
                            extents -> sendExtents(send, extents));
            case Effect.StoreExtents extents ->
                    persisting(
                            extents.ticket(),
                            store.appendMoved(taken(extents.extents())),
                            false,
                            extents.thenSend());
            case Effect.InstallBase base -> {
                cluster.counters.add(Rare.BASE_INSTALLED);
                oracle.cutting(node.number, base.baseSequence(), store);
                persisting(
                        base.ticket(),
                        store.installBase(
                                base.baseEpoch(),
                                base.baseSequence(),
                                base.shardState(),
                                base.state()),
                        true,
                        base.thenSend());
            }
            case Effect.StartOver over -> {
                cluster.counters.add(Rare.STARTED_OVER);
                oracle.cutting(node.number, 0, store);
                store.startOver(over.state());
                oracle.startedOver(node.number);
            }
            case Effect.Announce announce -> {
                cluster.trace.add(node.name(), announce.toString());
                oracle.announced(node.number, announce, store);
                cluster.announced(shard, node.number, announce);
            }
        }
    }

    private ClientReply data(ClientRequest.Read request, List<ClientReply.Run> runs) {
        return new ClientReply.Data(shard, request.client(), request.request(), runs);
    }

    private ClientReply refused(ClientRequest.Read request, ClientReply.Refusal why) {
        return new ClientReply.Refused(shard, request.client(), request.request(), why, 0, 0, "");
    }

    private void sendCopy(Effect.SendCopy send, Store.Copy copy) {
        send(send.to(), copy.answer(send.fetch()));
    }

    private void takeCopy(Effect.TakeCopy take, Store.Copy here) {
        FetchedBlock there = take.copy();
        ClientRequest.Read request = take.request();
        if (!here.isOfSameWrite(there)
                && cluster.options.bug() != PlantedBug.COPY_OF_ANOTHER_VERSION) {
            cluster.counters.add(Rare.COPY_OF_ANOTHER_WRITE);
            reply(take.origin(), refused(request, ClientReply.Refusal.COPY_UNAVAILABLE));
            return;
        }
        ClientReply.Run run = there.run();
        if (here.isMendedBy(there)) {
            if (store.repair(request.layer(), run)) {
                cluster.counters.add(Rare.BLOCK_REPAIRED);
            } else {
                cluster.counters.add(Rare.REPAIR_REFUSED);
                node.repairRefused();
            }
        }
        reply(take.origin(), data(request, List.of(run)));
    }

    private void sendExtents(Effect.SendExtents send, Extents extents) {
        cluster.counters.add(Rare.EXTENTS_SENT, extents.moved().size());
        InstallExtents part =
                new InstallExtents(
                        shard,
                        send.epoch(),
                        send.baseSequence(),
                        send.from(),
                        extents.next(),
                        extents.done(),
                        extents.moved());
        afterRead(() -> send(send.to(), part));
    }

    /** What the disk could not read comes as doubtful. */
    private List<Entry> taken(List<Entry> extents) {
        if (cluster.options.bug() == PlantedBug.DOUBTS_DROPPED) {
            return extents.stream().map(SimReplica::withoutDoubt).toList();
        }
        long doubtful = extents.stream().filter(Entry::isDoubtful).count();
        cluster.counters.add(Rare.EXTENTS_UNREADABLE, doubtful);
        return extents;
    }

    private static Entry withoutDoubt(Entry moved) {
        return Entry.builder(moved.shard(), moved.kind())
                .at(moved.epoch(), moved.sequence(), moved.commit())
                .blocks(moved.layer(), moved.block(), moved.count())
                .sealed(moved.nonce(), moved.payload())
                .flags(Entry.FLAG_MOVED | (moved.isTrim() ? Entry.FLAG_TRIM : 0))
                .build();
    }

    private void reply(int origin, ClientReply reply) {
        oracle.replying(node.number, reply, status());
        cluster.network.send(node.number, origin, reply);
    }

    private void send(int to, ReplicaMessage message) {
        oracle.sending(node.number, to, message, store);
        cluster.network.send(node.number, to, message);
    }

    private void sendEntries(Effect.SendEntries effect) {
        Append frame = effect.frame();
        long previousEpoch = frame.previousEpoch();
        long previous = frame.previousSequence();
        do {
            List<Entry> entries =
                    previous >= effect.through()
                            ? List.of()
                            : store.log(
                                    previous + 1, effect.through(), cluster.options.frameEntries());
            if (entries.isEmpty() && previous < effect.through()) {
                cluster.counters.add(Rare.ENTRIES_GONE);
                node.enqueue(incarnation, () -> step(new Event.EntriesGone(effect.to())));
                return;
            }
            send(
                    effect.to(),
                    new Append(
                            shard,
                            frame.epoch(),
                            previousEpoch,
                            previous,
                            frame.commit(),
                            frame.syncThrough(),
                            frame.promote(),
                            frame.sentNanos(),
                            entries));
            if (!entries.isEmpty()) {
                previousEpoch = entries.getLast().epoch();
                previous = entries.getLast().sequence();
            }
        } while (previous < effect.through());
    }

    /** The model answers at once; the store has taken its time. */
    private void afterRead(Runnable action) {
        if (store instanceof JournalShard) {
            if (!isGone()) {
                action.run();
            }
            return;
        }
        cluster.queue.after(
                random.between(0, node.disk().readMaxNanos()),
                () -> node.enqueue(incarnation, action));
    }

    // ---- the way to disk ----

    private void persisting(long ticket, int end, boolean sync, List<Outbound> thenSend) {
        check(
                ticket == lastTicket + 1,
                "tickets",
                "node ",
                node.number,
                " got ticket ",
                ticket,
                " after ",
                lastTicket);
        lastTicket = ticket;
        boolean early = cluster.options.bug() == PlantedBug.ACK_BEFORE_WRITE;
        if (early) {
            thenSend.forEach(o -> send(o.to(), o.message()));
        }
        unwritten.addLast(new Persisting(ticket, end, sync, early ? List.of() : thenSend));
        writeAt =
                Math.max(
                        writeAt,
                        cluster.queue.now() + random.between(0, node.disk().writeMaxNanos()));
        cluster.queue.at(writeAt, () -> diskHasWritten(end, sync));
    }

    /** The write call is done, even if the process is paused by now; it is told when it goes on. */
    private void diskHasWritten(int end, boolean sync) {
        if (isGone()) {
            return;
        }
        boolean syncs = sync || random.chance(node.disk().strayedSync());
        if (store instanceof JournalShard real) {
            node.enqueue(incarnation, () -> write(real, syncs));
            return;
        }
        store.written(end);
        node.enqueue(incarnation, () -> onWritten(end));
        if (syncs) {
            syncAt =
                    Math.max(
                            syncAt,
                            cluster.queue.now() + random.between(0, node.disk().syncMaxNanos()));
            // A sync covers what was written when it began.
            int covered = store.writtenEnd();
            cluster.queue.at(syncAt, () -> diskHasSynced(covered));
        }
    }

    /** On the data loop, as in production. */
    private void write(JournalShard real, boolean syncs) {
        if (isGone() || !real.write()) {
            return;
        }
        if (syncs) {
            real.sync(covered -> {
                if (!isGone()) {
                    onSynced(covered);
                }
            });
        }
        onWritten(real.writtenEnd());
    }

    private void diskHasSynced(int end) {
        if (isGone()) {
            return;
        }
        if (cluster.options.bug() != PlantedBug.SYNC_IS_A_LIE) {
            store.synced(end);
        }
        node.enqueue(incarnation, () -> onSynced(end));
    }

    private void onWritten(int end) {
        long ticket = 0;
        while (!unwritten.isEmpty() && unwritten.getFirst().end() <= end) {
            Persisting done = unwritten.removeFirst();
            ticket = done.ticket();
            if (!done.sync()) {
                done.thenSend().forEach(o -> send(o.to(), o.message()));
            }
            unsynced.addLast(done);
        }
        if (ticket > 0) {
            step(new Event.Written(ticket));
        }
    }

    private void onSynced(int end) {
        long ticket = 0;
        while (!unsynced.isEmpty() && unsynced.getFirst().end() <= end) {
            Persisting done = unsynced.removeFirst();
            ticket = done.ticket();
            if (done.sync()) {
                done.thenSend().forEach(o -> send(o.to(), o.message()));
            }
        }
        if (ticket > 0) {
            step(new Event.Synced(ticket));
        }
    }

    /** The turn is over: map and shard state agree. */
    private void maybeCheckpoint() {
        if (store instanceof JournalShard real) {
            real.turnEnded();
        } else if (random.chance(cluster.options.checkpointChance())) {
            checkpoint();
            if (random.chance(cluster.options.logStartChance())) {
                store.moveLogStart(random.between(0, checkpointed()));
            }
        }
    }

    /** Starts a checkpoint now. */
    void checkpoint() {
        switch (store) {
            case JournalShard real -> real.checkpoint();
            case SimStore model -> {
                model.startCheckpoint(core.applied(), core.appliedEpoch(), core.shardState());
                cluster.queue.after(
                        random.between(0, node.disk().syncMaxNanos()),
                        () -> diskHasSynced(store.writtenEnd()));
            }
        }
    }

    private long checkpointed() {
        return store instanceof SimStore model ? model.checkpointed() : 0;
    }
}
