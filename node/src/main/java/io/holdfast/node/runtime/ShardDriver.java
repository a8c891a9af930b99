package io.holdfast.node.runtime;

import io.holdfast.node.port.Store;
import io.holdfast.node.replica.BlockVersions;
import io.holdfast.node.replica.Effect;
import io.holdfast.node.replica.Effect.Outbound;
import io.holdfast.node.replica.Event;
import io.holdfast.node.replica.HardState;
import io.holdfast.node.replica.Replica;
import io.holdfast.node.replica.ReplicaStatus;
import io.holdfast.node.runtime.CatchUpProgress.By;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ClientRequest;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.ReplicaMessage;
import io.holdfast.proto.peer.ReplicaMessage.Append;
import io.holdfast.proto.peer.ShardId;
import java.io.UncheckedIOException;
import java.util.ArrayDeque;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Takes one replica through its events and carries out its effects, in order. Owned by the data
 * loop.
 *
 * <p>Durability comes back in the order of tickets:
 *
 * <pre>
 * effect --append--> unwritten --store.write--> unsynced --store.sync--> gone
 *                                 thenSend,                 thenSend (sync),
 *                                 Written                   Synced
 * </pre>
 *
 * An InstallBase stays at the head of {@code unwritten} until the store has finished it, and holds
 * back what follows: an acknowledgement of entries after a base must not leave before the base is
 * there.
 *
 * <p>Nothing here steps the replica from inside a step: completions of the store only leave a mark,
 * which the loop's turn picks up.
 */
final class ShardDriver {
    private static final Logger LOG = LoggerFactory.getLogger(ShardDriver.class);

    /** Payload of entries in one Append frame; one entry at least. */
    static final int APPEND_BYTES = 1 << 20;

    /**
     * Tickets kept apart while they wait for a sync that nobody asked for. Beyond, they are merged:
     * the replica learns a little later that they are durable.
     */
    static final int UNSYNCED_KEPT = 1024;

    private final ShardId shard;
    private final Replica replica;
    private final Store store;
    private final Store.Owner owner;
    private final DataLoop loop;
    private final CatchUps catchUps;
    private final ArrayDeque<Ticket> unwritten = new ArrayDeque<>();
    private final ArrayDeque<Ticket> unsynced = new ArrayDeque<>();
    private boolean touched;
    private boolean stepping;
    private boolean outOfService;
    private final LogPace damageLog = new LogPace();

    /** What a ticket's messages wait for. */
    private enum Kind {
        WRITE,
        SYNC,
        BASE
    }

    /** Something in the journal that the replica waits for. */
    private static final class Ticket {
        static final long NOT_WRITTEN = -1;

        long number;
        final Kind kind;
        final List<Outbound> thenSend;

        /** Journal position that covers it; of a finished base 0, as it has synced itself. */
        long position = NOT_WRITTEN;

        Ticket(long number, Kind kind, List<Outbound> thenSend) {
            this.number = number;
            this.kind = kind;
            this.thenSend = thenSend;
        }
    }

    private ShardDriver(
            ShardId shard, Replica replica, Store store, Store.Owner owner, DataLoop loop) {
        this.shard = shard;
        this.replica = replica;
        this.store = store;
        this.owner = owner;
        this.loop = loop;
        catchUps = new CatchUps(shard, store, loop);
    }

    /**
     * What the store calls while it holds the shard; stands in for a replica that is being made.
     */
    static final class Handle implements Store.Owner {
        private final DataLoop loop;
        private @Nullable ShardDriver driver;
        private @Nullable Exception failure;

        Handle(DataLoop loop) {
            this.loop = loop;
        }

        /** Makes the driver around the replica that the store has opened for this handle. */
        ShardDriver drive(ShardId shard, Replica replica, Store store) {
            ShardDriver made = new ShardDriver(shard, replica, store, this, loop);
            driver = made;
            if (failure != null) {
                made.outOfService = true;
            }
            return made;
        }

        private Replica replica() {
            if (driver == null) {
                throw new IllegalStateException("asked for the state of a replica being opened");
            }
            return driver.replica;
        }

        @Override
        public byte[] shardState() {
            return replica().shardState();
        }

        @Override
        public long applied() {
            return replica().applied();
        }

        @Override
        public long appliedEpoch() {
            return replica().appliedEpoch();
        }

        @Override
        public void failed(Exception cause) {
            failure = cause;
            if (driver != null) {
                driver.outOfService = true;
            }
            loop.storeFailed(cause);
        }
    }

    /** The map of a shard as the core sees it. */
    static BlockVersions versions(ShardId shard, Store store) {
        return (layer, block, count) -> store.newestSequence(shard, layer, block, count);
    }

    ShardId shard() {
        return shard;
    }

    /** Whether the disk under this replica has failed: it neither hears nor says anything. */
    boolean isOutOfService() {
        return outOfService;
    }

    /** Takes the replica out for good; late completions find nobody. */
    void close() {
        outOfService = true;
        unwritten.clear();
        unsynced.clear();
        catchUps.leads(false);
    }

    ReplicaStatus status(long nowNanos) {
        return replica.status(nowNanos);
    }

    /** How far the followers are that this replica, the leader, brings forward. */
    List<CatchUpProgress> catchUps() {
        return catchUps.progress();
    }

    /** Steps the replica and carries out what it wants. */
    void step(Event event) {
        if (outOfService) {
            return;
        }
        if (event instanceof Event.FromPeer(int _, ReplicaMessage message)) {
            countCatchUp(message);
        }
        if (stepping) {
            throw new IllegalStateException("stepped from inside a step: " + shard + " " + event);
        }
        stepping = true;
        try {
            for (Effect effect : replica.step(event, loop.nanoTime())) {
                if (outOfService) {
                    return;
                }
                carryOut(effect);
            }
        } finally {
            stepping = false;
        }
        if (event instanceof Event.Tick && catchUps.isDue(loop.nanoTime())) {
            long now = loop.nanoTime();
            catchUps.look(replica.status(now), loop.silenceNanos(), now);
        }
        if (!(event instanceof Event.TurnEnd) && !touched) {
            touched = true;
            loop.touched(this);
        }
    }

    private void countCatchUp(ReplicaMessage message) {
        if (message instanceof ReplicaMessage.InstallExtents part) {
            loop.observer().catchUpReceived(By.EXTENTS, CatchUps.bytes(part.extents()));
        } else if (message instanceof Append append) {
            long bytes = 0;
            for (Entry entry : append.entries()) {
                bytes += entry.sequence() <= append.commit() ? entry.sizeBytes() : 0;
            }
            if (bytes > 0) {
                loop.observer().catchUpReceived(By.ENTRIES, bytes);
            }
        }
    }

    /** The turn in which this shard was touched is over. */
    void endTurn() {
        touched = false;
        step(new Event.TurnEnd());
    }

    private void carryOut(Effect effect) {
        switch (effect) {
            case Effect.Persist persist -> {
                store.append(shard, persist.entries(), persist.state());
                catchUps.appended(persist.entries());
                Kind kind = persist.sync() ? Kind.SYNC : Kind.WRITE;
                await(new Ticket(persist.ticket(), kind, persist.thenSend()));
            }
            case Effect.Truncate truncate -> store.truncate(shard, truncate.after());
            case Effect.Send send -> loop.sendToPeer(send.to(), send.message());
            case Effect.SendEntries send -> sendEntries(send);
            case Effect.Apply apply -> store.apply(shard, apply.entries());
            case Effect.Reply reply -> loop.reply(reply.origin(), reply.reply());
            case Effect.ReadBlocks read -> readBlocks(read.origin(), read.request());
            case Effect.SendCopy send -> sendCopy(send.to(), send.fetch());
            case Effect.TakeCopy take -> takeCopy(take);
            case Effect.SendExtents send -> catchUps.sendExtents(send);
            case Effect.StoreExtents extents -> {
                store.appendMoved(shard, extents.extents());
                await(new Ticket(extents.ticket(), Kind.WRITE, extents.thenSend()));
            }
            case Effect.InstallBase base -> installBase(base);
            case Effect.StartOver over -> startOver(over.state());
            case Effect.Announce announce -> {
                catchUps.leads(announce.role() == Effect.Role.LEADER);
                loop.announced(this, announce);
            }
        }
    }

    /** A disk that fails here takes the replica out of service, as it does everywhere. */
    private void startOver(HardState state) {
        store.drop(shard);
        try {
            store.create(shard, state, owner);
        } catch (UncheckedIOException e) {
            owner.failed(e);
        }
    }

    private void await(Ticket ticket) {
        unwritten.add(ticket);
        loop.appended(this);
    }

    /** Splits what one frame cannot hold; what only the last may say, only the last says. */
    private void sendEntries(Effect.SendEntries send) {
        Append frame = send.frame();
        long previousEpoch = frame.previousEpoch();
        long previousSequence = frame.previousSequence();
        // A node that is gone is probed with each heartbeat: nothing is read or counted for that.
        if (previousSequence >= send.through() || !loop.links().connected(send.to())) {
            loop.sendToPeer(send.to(), frame);
            return;
        }
        while (previousSequence < send.through()) {
            int most = catchUps.entriesBytes(send.to(), previousSequence, frame.commit());
            if (most == 0) {
                holdBack(send, previousEpoch, previousSequence);
                return;
            }
            List<Entry> entries =
                    store.log(
                            shard,
                            previousSequence + 1,
                            send.through(),
                            Math.min(most, APPEND_BYTES));
            if (entries.isEmpty()) {
                loop.later(this, new Event.EntriesGone(send.to()));
                return;
            }
            Entry last = entries.getLast();
            boolean isLast = last.sequence() >= send.through();
            loop.sendToPeer(
                    send.to(), part(frame, previousEpoch, previousSequence, entries, isLast));
            catchUps.sent(send.to(), entries, frame.commit());
            previousEpoch = last.epoch();
            previousSequence = last.sequence();
        }
    }

    /**
     * The rest has to wait for its pace; the follower still hears from its leader. Its answer says
     * what it lacks.
     */
    private void holdBack(Effect.SendEntries send, long previousEpoch, long previousSequence) {
        Append frame = send.frame();
        if (previousSequence == frame.previousSequence()) {
            loop.sendToPeer(
                    send.to(), part(frame, previousEpoch, previousSequence, List.of(), false));
        }
    }

    /** A frame with some of the entries; what it wants once all are there goes with the last. */
    private Append part(
            Append frame,
            long previousEpoch,
            long previousSequence,
            List<Entry> entries,
            boolean isLast) {
        return new Append(
                shard,
                frame.epoch(),
                previousEpoch,
                previousSequence,
                frame.commit(),
                isLast ? frame.syncThrough() : 0,
                isLast && frame.promote(),
                frame.sentNanos(),
                entries);
    }

    private void readBlocks(int origin, ClientRequest.Read read) {
        store.read(
                shard,
                read.layer(),
                read.block(),
                read.count(),
                runs -> {
                    if (outOfService) {
                        return;
                    }
                    loop.reply(
                            origin,
                            runs == null
                                    ? unreadable(read)
                                    : new ClientReply.Data(
                                            shard, read.client(), read.request(), runs));
                });
    }

    private ClientReply unreadable(ClientRequest.Read read) {
        return refused(
                read,
                ClientReply.Refusal.IO_ERROR,
                "blocks " + read.block() + "+" + read.count() + " cannot be read here");
    }

    private ClientReply refused(ClientRequest.Read read, ClientReply.Refusal why, String text) {
        return new ClientReply.Refused(shard, read.client(), read.request(), why, 0, 0, text);
    }

    private void sendCopy(int to, ReplicaMessage.FetchBlock fetch) {
        store.copy(
                shard,
                fetch.layer(),
                fetch.block(),
                copy -> {
                    if (outOfService) {
                        return;
                    }
                    if (!copy.intact()) {
                        damage(fetch.block(), copy.place());
                    }
                    loop.sendToPeer(to, copy.answer(fetch));
                });
    }

    private void takeCopy(Effect.TakeCopy take) {
        ReplicaMessage.FetchedBlock there = take.copy();
        ClientRequest.Read read = take.request();
        store.copy(
                shard,
                read.layer(),
                read.block(),
                here -> {
                    if (outOfService) {
                        return;
                    }
                    if (!here.isOfSameWrite(there)) {
                        loop.reply(
                                take.origin(),
                                refused(
                                        read,
                                        ClientReply.Refusal.COPY_UNAVAILABLE,
                                        "node " + take.from() + " has another version"));
                        return;
                    }
                    ClientReply.Run run = there.run();
                    if (here.isMendedBy(there)) {
                        repair(take, here, run);
                    }
                    loop.reply(
                            take.origin(),
                            new ClientReply.Data(
                                    shard, read.client(), read.request(), List.of(run)));
                });
    }

    private void repair(Effect.TakeCopy take, Store.Copy here, ClientReply.Run run) {
        boolean repaired = store.repair(shard, take.request().layer(), run);
        if (damageLog.mayLog(loop.nanoTime())) {
            LOG.warn(
                    "Volume {} shard {} block {}: the copy here ({}, {}) {} by that of node {}",
                    shard.volume(),
                    shard.index(),
                    run.block(),
                    here.place(),
                    here.isUnreadable() ? "unreadable" : "corrupt",
                    repaired ? "was replaced" : "could not be replaced",
                    take.from());
        }
    }

    private void damage(long block, String place) {
        if (damageLog.mayLog(loop.nanoTime())) {
            LOG.warn(
                    "Volume {} shard {} block {}: the record here ({}) is damaged",
                    shard.volume(),
                    shard.index(),
                    block,
                    place);
        }
    }

    private void installBase(Effect.InstallBase base) {
        Ticket ticket = new Ticket(base.ticket(), Kind.BASE, base.thenSend());
        unwritten.add(ticket);
        store.installBase(
                shard,
                base.baseEpoch(),
                base.baseSequence(),
                base.shardState(),
                base.state(),
                () -> {
                    ticket.position = 0;
                    loop.appended(this);
                });
    }

    /**
     * The journal is written to {@code end}: lets go what waited for that.
     *
     * @return whether something now waits for a sync
     */
    boolean written(long end) {
        if (outOfService) {
            return false;
        }
        for (Ticket ticket : unwritten) {
            if (ticket.position == Ticket.NOT_WRITTEN && ticket.kind != Kind.BASE) {
                ticket.position = end;
            }
        }
        long through = 0;
        boolean wantsSync = false;
        while (!unwritten.isEmpty() && unwritten.peek().position != Ticket.NOT_WRITTEN) {
            Ticket ticket = unwritten.poll();
            through = ticket.number;
            if (ticket.kind != Kind.SYNC) {
                send(ticket.thenSend);
            }
            // A base has synced itself; what was written before it and stands before it in the
            // queue may not be, and would keep the replica from learning of the base.
            wantsSync |= ticket.kind != Kind.WRITE;
            awaitSync(ticket);
        }
        if (through != 0) {
            step(new Event.Written(through));
        }
        return wantsSync;
    }

    private void awaitSync(Ticket ticket) {
        Ticket last = unsynced.peekLast();
        if (last != null
                && last.kind == Kind.WRITE
                && ticket.kind == Kind.WRITE
                && unsynced.size() >= UNSYNCED_KEPT) {
            last.number = ticket.number;
            last.position = Math.max(last.position, ticket.position);
        } else {
            unsynced.add(ticket);
        }
    }

    /** The journal is synced to {@code position}: lets go what waited for that. */
    void synced(long position) {
        long through = 0;
        while (!unsynced.isEmpty() && unsynced.peek().position <= position) {
            Ticket ticket = unsynced.poll();
            through = ticket.number;
            if (ticket.kind == Kind.SYNC) {
                send(ticket.thenSend);
            }
        }
        if (through != 0) {
            step(new Event.Synced(through));
        }
    }

    private void send(List<Outbound> messages) {
        for (Outbound message : messages) {
            loop.sendToPeer(message.to(), message.message());
        }
    }
}
