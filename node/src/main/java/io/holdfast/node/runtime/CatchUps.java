package io.holdfast.node.runtime;

import io.holdfast.node.port.Store;
import io.holdfast.node.replica.Effect.SendExtents;
import io.holdfast.node.replica.ReplicaStatus;
import io.holdfast.node.replica.ReplicaStatus.Follower;
import io.holdfast.node.runtime.CatchUpProgress.By;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.ReplicaMessage;
import io.holdfast.proto.peer.ShardId;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * The followers of one shard that this node, its leader, brings forward: how far each is, and how
 * fast it goes ({@link CatchUpPace}). Owned by the data loop.
 *
 * <p>The replica does not know of it. A part of extents that has to wait is sent later; meanwhile
 * the replica takes it for lost and asks again after a while, which is answered by the part that
 * waits. Entries that have to wait are not sent at all: the follower says at the next heartbeat
 * that it lacks them, and the replica sends them then, as after any loss. A frame goes out in any
 * case, so that the follower hears from its leader.
 *
 * <p>The last of the way, from where the replica calls a follower in sync, is not paced. And
 * nothing waits while a majority is not in sync without the follower: then clients wait for it.
 */
final class CatchUps {
    /** How often it is looked how far followers are. */
    static final long LOOK_NANOS = 100_000_000L;

    private static final long NO_GAP = Long.MAX_VALUE;

    private final ShardId shard;
    private final Store store;
    private final DataLoop loop;
    private final Map<Integer, Way> ways = new TreeMap<>();
    private long nextLookNanos = Long.MIN_VALUE;
    private boolean leads;

    /** Followers that are behind and answer, so that they take in what is written now. */
    private int present;

    /** One follower's. */
    private static final class Way {
        final CatchUp catchUp;

        /** Clients wait for this follower: a majority is not in sync without it. */
        boolean needed = true;

        /** The part of extents that is being read, or waits for its turn. */
        @Nullable SendExtents part;

        /** Entries after this one were held back, so what comes after them would be refused. */
        long gapAfter = NO_GAP;

        Way(CatchUp catchUp) {
            this.catchUp = catchUp;
        }
    }

    CatchUps(ShardId shard, Store store, DataLoop loop) {
        this.shard = shard;
        this.store = store;
        this.loop = loop;
    }

    /** Leadership began to serve, or ended here: then nobody is brought forward from here. */
    void leads(boolean now) {
        leads = now;
        nextLookNanos = Long.MIN_VALUE;
        if (!now) {
            ways.clear();
            present = 0;
        }
    }

    /** Whether it is time for {@link #look}. */
    boolean isDue(long nowNanos) {
        if (!leads || nowNanos < nextLookNanos) {
            return false;
        }
        nextLookNanos = nowNanos + LOOK_NANOS;
        return true;
    }

    /**
     * Takes note of who is behind and how far.
     *
     * @param silenceNanos who has not been heard for this long is not counted on
     */
    void look(ReplicaStatus status, long silenceNanos, long nowNanos) {
        int inSync = 1;
        for (Follower follower : status.followers()) {
            inSync +=
                    follower.state() == ReplicaStatus.State.IN_SYNC
                                    && follower.silentNanos() <= silenceNanos
                            ? 1
                            : 0;
        }
        boolean majority = inSync > (status.followers().size() + 1) / 2;
        present = 0;
        for (Follower follower : status.followers()) {
            long has = Math.max(follower.matched(), follower.applied());
            switch (follower.state()) {
                case IN_SYNC -> ways.remove(follower.node());
                case OFFLINE -> {}
                case CATCHING_UP -> {
                    Way way = way(follower.node(), has, status.last());
                    way.needed = !majority;
                    present += follower.silentNanos() <= silenceNanos ? 1 : 0;
                    if (has > way.gapAfter) {
                        way.gapAfter = NO_GAP;
                    }
                    way.catchUp.look(has, status.last(), nowNanos);
                }
            }
        }
    }

    private Way way(int node, long has, long last) {
        return ways.computeIfAbsent(node, n -> new Way(new CatchUp(n, has, last)));
    }

    /** Of the followers that are behind. */
    List<CatchUpProgress> progress() {
        return ways.values().stream().map(way -> way.catchUp.progress()).toList();
    }

    // ---- extents

    void sendExtents(SendExtents part) {
        Way way = way(part.to(), part.since(), part.baseSequence());
        if (part.equals(way.part)) {
            return;
        }
        way.part = part;
        way.gapAfter = NO_GAP;
        if (way.catchUp.asks(part)) {
            store.extentBytes(
                    shard, part.since(), bytes -> way.catchUp.measured(part.since(), bytes));
        }
        sendWhenItMay(way, part);
    }

    private boolean isCurrent(Way way, SendExtents part) {
        return ways.get(part.to()) == way && part.equals(way.part);
    }

    private void sendWhenItMay(Way way, SendExtents part) {
        if (!isCurrent(way, part)) {
            return;
        }
        CatchUpPace pace = loop.catchUpPace();
        long wait = way.needed ? 0 : pace.waitNanos(loop.nanoTime());
        if (wait > 0) {
            loop.thread().schedule(wait, () -> sendWhenItMay(way, part));
            return;
        }
        int most = pace.partBytes();
        pace.take(most);
        store.extents(
                shard,
                part.since(),
                part.from(),
                most,
                extents -> {
                    long bytes = bytes(extents.moved());
                    pace.giveBack(most - bytes);
                    if (!isCurrent(way, part)) {
                        return;
                    }
                    way.part = null;
                    way.catchUp.sent(part, bytes);
                    loop.observer().catchUpSent(By.EXTENTS, bytes);
                    loop.sendToPeer(
                            part.to(),
                            new ReplicaMessage.InstallExtents(
                                    shard,
                                    part.epoch(),
                                    part.baseSequence(),
                                    part.from(),
                                    extents.next(),
                                    extents.done(),
                                    extents.moved()));
                });
    }

    static long bytes(List<Entry> entries) {
        long bytes = 0;
        for (Entry entry : entries) {
            bytes += entry.sizeBytes();
        }
        return bytes;
    }

    // ---- entries

    /**
     * How many bytes of entries may be sent to a follower now.
     *
     * @param previous they would follow this one
     * @param commit through which a majority holds the log
     * @return 0: none; they are asked for again
     */
    int entriesBytes(int to, long previous, long commit) {
        Way way = ways.get(to);
        if (way == null || way.needed) {
            return Integer.MAX_VALUE;
        }
        if (previous > way.gapAfter) {
            return 0;
        }
        if (previous >= commit) {
            way.gapAfter = NO_GAP;
            return Integer.MAX_VALUE;
        }
        int bytes = loop.catchUpPace().entriesBytes(loop.nanoTime());
        way.gapAfter = bytes == 0 ? previous : NO_GAP;
        return bytes;
    }

    /** Entries have been sent; those that were committed before are a catch-up's. */
    void sent(int to, List<Entry> entries, long commit) {
        long count = 0;
        long bytes = 0;
        for (Entry entry : entries) {
            if (entry.sequence() <= commit) {
                count++;
                bytes += entry.sizeBytes();
            }
        }
        if (count == 0) {
            return;
        }
        loop.observer().catchUpSent(By.ENTRIES, bytes);
        Way way = ways.get(to);
        if (way != null) {
            way.catchUp.sent(count, bytes);
            if (!way.needed) {
                loop.catchUpPace().takeEntries(bytes);
            }
        }
    }

    /** New entries are in the log; those who are behind have to take them in, too. */
    void appended(List<Entry> entries) {
        if (present > 0) {
            loop.catchUpPace().earn(bytes(entries) * present);
        }
    }
}
