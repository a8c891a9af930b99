package io.holdfast.node.replica;

import io.holdfast.node.replica.Effect.Outbound;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.ReplicaMessage;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Collects the effects of a step, and what the whole turn wants in the journal, so that a turn
 * costs one write. Also knows how far the journal is written and synced, from the tickets that come
 * back.
 */
final class Outbox {
    /** A ticket under way, and the end of the log when it was given out. */
    private record Outstanding(long ticket, long last) {}

    private final List<Effect> effects = new ArrayList<>();

    private List<Entry> entries = new ArrayList<>();
    private @Nullable HardState state;
    private List<Outbound> afterWrite = new ArrayList<>();
    private List<Outbound> afterSync = new ArrayList<>();
    private boolean syncAsked;

    /** A state of this turn was handed over already, and is not synced yet. */
    private boolean stateHandedOver;

    private final ArrayDeque<Outstanding> unwritten = new ArrayDeque<>();
    private final ArrayDeque<Outstanding> unsynced = new ArrayDeque<>();
    private long ticket;
    private long syncedTicket;
    private long emitted;
    private long written;
    private long durable;

    Outbox(long written, long durable) {
        this.emitted = written;
        this.written = written;
        this.durable = durable;
    }

    /** Entries through this sequence have been handed to the store, so they can be applied. */
    long emitted() {
        return emitted;
    }

    /** The log starts anew after {@code base}, which the store is about to take over. */
    void restart(long base) {
        truncate(0);
        emitted = base;
    }

    /** The log is in the journal (page cache) through this sequence. */
    long written() {
        return written;
    }

    /** The log is synced here through this sequence. */
    long durable() {
        return durable;
    }

    void add(Effect effect) {
        effects.add(effect);
    }

    void send(int to, ReplicaMessage message) {
        effects.add(new Effect.Send(to, message));
    }

    void append(Entry entry) {
        entries.add(entry);
    }

    boolean hasEntries() {
        return !entries.isEmpty();
    }

    /** State to be synced this turn; the newest of a turn is what is written. */
    void persist(HardState newState) {
        state = newState;
    }

    /** A message that may leave when this turn's entries are written. */
    void sendWhenWritten(int to, ReplicaMessage message) {
        afterWrite.add(new Outbound(to, message));
    }

    /** A message that may leave when everything up to now is synced. */
    void sendWhenSynced(int to, ReplicaMessage message) {
        afterSync.add(new Outbound(to, message));
        syncAsked = true;
    }

    void askSync() {
        syncAsked = true;
    }

    /** The ticket for an effect that takes one of its own. */
    long nextTicket(long last) {
        ticket++;
        unwritten.addLast(new Outstanding(ticket, last));
        unsynced.addLast(new Outstanding(ticket, last));
        return ticket;
    }

    /** Everything up to this ticket is synced. */
    long syncedTicket() {
        return syncedTicket;
    }

    /** The ticket given out last. */
    long lastTicket() {
        return ticket;
    }

    /** Emits what is left of the turn. */
    void endTurn(long last, boolean syncWrites) {
        persistTurn(last, syncWrites);
        stateHandedOver = false;
    }

    /**
     * Emits what the turn has collected so far.
     *
     * @param last end of the log
     * @param syncWrites entries are to be synced, not just written
     */
    void persistTurn(long last, boolean syncWrites) {
        // State carries promises: nothing of its turn may leave before it is synced.
        stateHandedOver |= state != null;
        if (stateHandedOver && !afterWrite.isEmpty()) {
            afterSync.addAll(0, afterWrite);
            afterWrite = new ArrayList<>();
            syncAsked = true;
        }
        if (!entries.isEmpty() || state != null) {
            boolean sync = stateHandedOver || syncWrites;
            List<Outbound> release = afterWrite;
            if (sync) {
                release = new ArrayList<>(afterWrite);
                release.addAll(afterSync);
            }
            effects.add(new Effect.Persist(nextTicket(last), entries, state, sync, release));
            emitted = last;
            entries = new ArrayList<>();
            state = null;
            afterWrite = new ArrayList<>();
            if (sync) {
                afterSync = new ArrayList<>();
                syncAsked = false;
            }
        }
        for (Outbound outbound : afterWrite) {
            effects.add(new Effect.Send(outbound.to(), outbound.message()));
        }
        afterWrite.clear();
        if (syncAsked) {
            effects.add(new Effect.Persist(nextTicket(last), List.of(), null, true, afterSync));
            afterSync = new ArrayList<>();
            syncAsked = false;
        }
    }

    void onWritten(long through) {
        written = Math.max(written, take(unwritten, through));
    }

    void onSynced(long through) {
        onWritten(through);
        syncedTicket = Math.max(syncedTicket, through);
        durable = Math.max(durable, take(unsynced, through));
    }

    private static long take(ArrayDeque<Outstanding> queue, long through) {
        long last = 0;
        while (!queue.isEmpty() && queue.getFirst().ticket() <= through) {
            last = Math.max(last, queue.removeFirst().last());
        }
        return last;
    }

    /** The log was cut: what is under way beyond the cut no longer speaks for the log. */
    void truncate(long last) {
        emitted = Math.min(emitted, last);
        written = Math.min(written, last);
        durable = Math.min(durable, last);
        clamp(unwritten, last);
        clamp(unsynced, last);
    }

    private static void clamp(ArrayDeque<Outstanding> queue, long last) {
        for (int i = queue.size(); i > 0; i--) {
            Outstanding one = queue.removeFirst();
            queue.addLast(new Outstanding(one.ticket(), Math.min(one.last(), last)));
        }
    }

    /** Everything collected since the last call. */
    List<Effect> drain() {
        List<Effect> drained = List.copyOf(effects);
        effects.clear();
        return drained;
    }
}
