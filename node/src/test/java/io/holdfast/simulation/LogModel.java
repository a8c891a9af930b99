package io.holdfast.simulation;

import static io.holdfast.simulation.SimFailure.check;

import io.holdfast.proto.peer.ClientRequest;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.EntryKind;
import io.holdfast.proto.peer.ShardId;
import io.holdfast.simulation.SimStorage.Place;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;

/**
 * What a shard's committed log means, told in the plainest way: blocks, sessions, claims. Fails at
 * an entry that should never have got into the log.
 */
final class LogModel {
    private record Key(int session, long request) {}

    private final ShardId shard;
    private final boolean exclusive;
    private final History history;
    private final TreeMap<Place, Entry> blocks = new TreeMap<>();
    private final TreeMap<Integer, Long> lowWaters = new TreeMap<>();
    private final Map<Key, Long> ran = new HashMap<>();
    private long generation;
    private boolean claimed;
    private int newestSession;

    LogModel(ShardId shard, boolean exclusive, History history) {
        this.shard = shard;
        this.exclusive = exclusive;
        this.history = history;
    }

    /** The next committed entry. */
    void apply(Entry entry) {
        check(entry.shard().equals(shard), "log", entry, " in the log of ", shard);
        switch (entry.kind()) {
            case NOOP -> {}
            case WRITE, ZERO -> change(entry);
            case OPEN_SESSION -> {
                check(
                        entry.session() > newestSession,
                        "session numbers",
                        entry,
                        " after session ",
                        newestSession);
                newestSession = entry.session();
                lowWaters.put(entry.session(), 1L);
            }
            case CLOSE_SESSION -> lowWaters.remove(entry.session());
            case CLAIM -> {
                check(
                        entry.generation() > generation,
                        "generations",
                        entry,
                        " after generation ",
                        generation);
                generation = entry.generation();
                claimed = true;
            }
            case RELEASE -> claimed = claimed && entry.generation() != generation;
            case POWER_LOSS -> {
                lowWaters.clear();
                claimed = false;
            }
        }
    }

    private void change(Entry entry) {
        SimOp op = history.behind(entry);
        check(op != null, "log", entry, " is nobody's request");
        if (op == null) {
            return;
        }
        check(
                op.block == entry.block() && op.count == entry.count(),
                "log",
                entry,
                " is not what was asked: ",
                op);
        Long lowWater = lowWaters.get(entry.session());
        check(lowWater != null, "fencing", entry, " of a session that is not open");
        Long before = ran.put(new Key(entry.session(), entry.request()), entry.sequence());
        check(before == null, "exactly once", entry, " ran before as sequence ", before);
        check(
                lowWater == null || entry.request() >= lowWater,
                "fencing",
                entry,
                " was given up by its client, who has settled everything below ",
                lowWater);
        lowWaters.merge(entry.session(), entry.lowWater(), Math::max);
        check(
                !exclusive || (claimed && op.generation == generation),
                "fencing",
                op,
                " of generation ",
                op.generation,
                " got into the log as ",
                entry,
                " under ",
                generation,
                claimed ? "" : ", which is released");
        if (op.expected != ClientRequest.UNCONDITIONAL) {
            Entry old = blocks.get(new Place(entry.layer(), entry.block()));
            long found = old == null ? 0 : old.sequence();
            check(
                    op.expected == found,
                    "condition",
                    op,
                    " expected sequence ",
                    op.expected,
                    ", its block had ",
                    found);
        }
        op.sequence = entry.sequence();
        for (int i = 0; i < entry.count(); i++) {
            blocks.put(new Place(entry.layer(), entry.block() + i), entry);
        }
        check(
                entry.kind() == EntryKind.ZERO
                        || history.valueOf(entry, entry.block()) == op.values[0],
                "contents",
                entry,
                " does not hold what was written: ",
                op);
    }

    /** Where a request stands in the log, 0: nowhere. */
    long sequenceOf(int session, long request) {
        return ran.getOrDefault(new Key(session, request), 0L);
    }

    /** What each block ever written holds. */
    Map<Place, Long> contents() {
        TreeMap<Place, Long> contents = new TreeMap<>();
        blocks.forEach(
                (place, entry) -> contents.put(place, history.valueOf(entry, place.block())));
        return contents;
    }
}
