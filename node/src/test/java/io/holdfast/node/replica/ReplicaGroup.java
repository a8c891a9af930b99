package io.holdfast.node.replica;

import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ClientRequest;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.Nonce;
import io.holdfast.proto.peer.ReplicaMessage;
import io.holdfast.proto.peer.Room;
import io.holdfast.proto.peer.ShardId;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * Replicas of one shard on a perfect network and perfect disks, advanced by hand: for tests of
 * single rules. What goes wrong is said by the test: {@link #cut} and {@link #heal}.
 */
final class ReplicaGroup {
    static final ShardId SHARD = new ShardId(1, 0);
    static final long MS = 1_000_000;

    /** Of the volume. */
    static final int LAYER = 1;

    static final int BLOCKS = 100;

    /** Who asks in these tests; also the connection that replies go to. */
    static final int CLIENT = 9;

    private record Delivery(int from, int to, ReplicaMessage message) {}

    private final Map<Integer, Replica> replicas = new TreeMap<>();
    private final Map<Integer, TreeMap<Long, Long>> maps = new TreeMap<>();
    private final ArrayDeque<Delivery> network = new ArrayDeque<>();
    private final Map<Integer, List<Entry>> journals = new TreeMap<>();
    private final Set<Integer> cut = new TreeSet<>();
    final List<ClientReply> replies = new ArrayList<>();
    final List<ClientRequest.Read> reads = new ArrayList<>();
    final List<Effect.TakeCopy> copies = new ArrayList<>();

    /** Nodes whose disk can read no block. */
    final Set<Integer> unreadable = new TreeSet<>();

    /** Nodes that follow, and get no further: a catch-up that takes its time. */
    final Set<Integer> catchingUp = new TreeSet<>();

    private long nowNanos = 1000 * MS;
    private long lastRequest;

    ReplicaGroup(int size, boolean exclusive) {
        this(size, exclusive, HardState.FRESH);
    }

    ReplicaGroup(int size, boolean exclusive, HardState state) {
        List<Integer> nodes = new ArrayList<>();
        for (int node = 1; node <= size; node++) {
            nodes.add(node);
        }
        for (int node : nodes) {
            TreeMap<Long, Long> map = new TreeMap<>();
            maps.put(node, map);
            journals.put(node, new ArrayList<>());
            replicas.put(
                    node,
                    new Replica(
                            new ReplicaOptions(
                                    SHARD,
                                    node,
                                    nodes,
                                    LAYER,
                                    BLOCKS,
                                    false,
                                    false,
                                    exclusive,
                                    Timing.DEFAULT,
                                    Limits.DEFAULT,
                                    Branch.Listener.NONE),
                            Recovered.nothing(state),
                            (layer, block, count) -> map.getOrDefault(block, 0L),
                            nowNanos));
        }
    }

    Replica replica(int node) {
        return replicas.get(node);
    }

    ReplicaStatus status(int node) {
        return replica(node).status(nowNanos);
    }

    /** Sequence per block as this replica has applied it. */
    Map<Long, Long> map(int node) {
        return maps.get(node);
    }

    /** The node hears and says nothing until it is healed. */
    void cut(int node) {
        cut.add(node);
    }

    void heal(int node) {
        cut.remove(node);
    }

    /** Makes time pass in ticks, delivering everything on the way. */
    void run(long millis) {
        for (long end = nowNanos + millis * MS; nowNanos < end; nowNanos += 20 * MS) {
            for (int node : replicas.keySet()) {
                if (!catchingUp.contains(node)) {
                    step(node, new Event.Tick());
                    step(node, new Event.TurnEnd());
                }
            }
            settle();
        }
    }

    long nextRequest() {
        return ++lastRequest;
    }

    /** Asks a node and returns what was answered at once, if anything. */
    List<ClientReply> ask(int node, ClientRequest request) {
        int before = replies.size();
        step(node, new Event.FromClient(CLIENT, request));
        step(node, new Event.TurnEnd());
        settle();
        return List.copyOf(replies.subList(before, replies.size()));
    }

    void step(int node, Event event) {
        effects(node, event).forEach(effect -> carryOut(node, effect));
    }

    /** What a replica wants done about an event; nobody does it. */
    List<Effect> effects(int node, Event event) {
        return replica(node).step(event, nowNanos);
    }

    private void settle() {
        while (!network.isEmpty()) {
            Delivery next = network.removeFirst();
            if (cut.contains(next.from()) || cut.contains(next.to())) {
                continue;
            }
            if (catchingUp.contains(next.to())
                    && next.message() instanceof ReplicaMessage.Append append) {
                send(next.to(), next.from(), stillLearning(append));
            } else {
                step(next.to(), new Event.FromPeer(next.from(), next.message()));
                step(next.to(), new Event.TurnEnd());
            }
        }
    }

    private void carryOut(int node, Effect effect) {
        List<Entry> journal = journals.get(node);
        switch (effect) {
            case Effect.Persist persist -> {
                journal.addAll(persist.entries());
                persist.thenSend().forEach(out -> send(node, out.to(), out.message()));
                step(node, new Event.Written(persist.ticket()));
                if (persist.sync()) {
                    step(node, new Event.Synced(persist.ticket()));
                }
            }
            case Effect.Truncate truncate -> {
                for (Iterator<Entry> all = journal.iterator(); all.hasNext(); ) {
                    if (all.next().sequence() > truncate.after()) {
                        all.remove();
                    }
                }
            }
            case Effect.Send send -> send(node, send.to(), send.message());
            case Effect.SendEntries send -> {
                ReplicaMessage.Append frame = send.frame();
                List<Entry> entries =
                        journal.stream()
                                .filter(e ->
                                        e.sequence() > frame.previousSequence()
                                                && e.sequence() <= send.through())
                                .toList();
                send(
                        node,
                        send.to(),
                        new ReplicaMessage.Append(
                                frame.shard(),
                                frame.epoch(),
                                frame.previousEpoch(),
                                frame.previousSequence(),
                                frame.commit(),
                                frame.syncThrough(),
                                frame.promote(),
                                frame.sentNanos(),
                                entries));
            }
            case Effect.Apply apply -> {
                for (Entry entry : apply.entries()) {
                    for (long i = 0; i < entry.count(); i++) {
                        maps.get(node).merge(entry.block() + i, entry.sequence(), Math::max);
                    }
                }
            }
            case Effect.Reply reply -> replies.add(reply.reply());
            case Effect.ReadBlocks read -> reads.add(read.request());
            case Effect.Announce announce -> {}
            case Effect.SendCopy copy -> send(node, copy.to(), fetched(node, copy.fetch()));
            case Effect.TakeCopy copy -> copies.add(copy);
            case Effect.SendExtents extents -> throw new AssertionError(extents);
            case Effect.StoreExtents extents -> throw new AssertionError(extents);
            case Effect.InstallBase base -> throw new AssertionError(base);
            case Effect.StartOver startOver -> throw new AssertionError(startOver);
        }
    }

    private static ReplicaMessage.AppendReply stillLearning(ReplicaMessage.Append append) {
        return new ReplicaMessage.AppendReply(
                SHARD, append.epoch(), true, 0, 0, 0, 0, true, Room.ENOUGH, append.sentNanos());
    }

    private ReplicaMessage.FetchedBlock fetched(int node, ReplicaMessage.FetchBlock fetch) {
        long sequence = maps.get(node).getOrDefault(fetch.block(), 0L);
        return new ReplicaMessage.FetchedBlock(
                SHARD,
                fetch.epoch(),
                fetch.fetch(),
                fetch.layer(),
                fetch.block(),
                sequence,
                new Nonce(1, 1, sequence),
                !unreadable.contains(node),
                new byte[unreadable.contains(node) ? 0 : Blocks.SEALED_SIZE]);
    }

    private void send(int from, int to, ReplicaMessage message) {
        network.addLast(new Delivery(from, to, message));
    }

    /** The node that serves as leader, 0: none does. */
    int leader() {
        for (int node : replicas.keySet()) {
            if (!cut.contains(node) && status(node).role() == Effect.Role.LEADER) {
                return node;
            }
        }
        return 0;
    }
}
