package io.holdfast.node.replica;

import io.holdfast.proto.peer.Entry;
import java.util.ArrayDeque;
import java.util.Iterator;

/**
 * The log as the core needs it: where it ends, which epoch wrote what, and the entries that are not
 * applied yet. Older entries are the store's.
 */
final class ReplicaLog {
    private EpochHistory epochs;
    private final ArrayDeque<Entry> unapplied = new ArrayDeque<>();
    private long last;
    private long unappliedBytes;

    ReplicaLog(EpochHistory epochs, long applied) {
        this.epochs = epochs;
        this.last = applied;
    }

    long last() {
        return last;
    }

    long lastEpoch() {
        return epochs.epochAt(last);
    }

    long unappliedBytes() {
        return unappliedBytes;
    }

    EpochHistory epochs() {
        return epochs;
    }

    void append(Entry entry) {
        Invariant.check(
                entry.sequence() == last + 1, "the log has no gaps", entry.sequence(), last);
        epochs.extend(entry.sequence(), entry.epoch());
        unapplied.addLast(entry);
        unappliedBytes += entry.sizeBytes();
        last = entry.sequence();
    }

    /** Cuts the log after {@code sequence}; only what is not applied can go. */
    void truncate(long sequence) {
        while (last > sequence) {
            Entry cut = unapplied.removeLast();
            Invariant.check(cut.sequence() == last, "the tail is in order", cut.sequence(), last);
            unappliedBytes -= cut.sizeBytes();
            last--;
        }
        epochs.truncate(sequence);
    }

    /** The log now begins after an installed base. */
    void restart(EpochHistory base, long sequence) {
        epochs = base;
        unapplied.clear();
        unappliedBytes = 0;
        last = sequence;
    }

    /** Takes out the next entry to apply. */
    Entry pollUnapplied() {
        Entry entry = unapplied.removeFirst();
        unappliedBytes -= entry.sizeBytes();
        return entry;
    }

    /** Newest sequence of a block among unapplied entries, 0: none touches it. */
    long newestUnapplied(int layer, long block) {
        for (Iterator<Entry> newest = unapplied.descendingIterator(); newest.hasNext(); ) {
            Entry entry = newest.next();
            if (entry.count() > 0
                    && entry.layer() == layer
                    && block >= entry.block()
                    && block < entry.block() + entry.count()) {
                return entry.sequence();
            }
        }
        return 0;
    }
}
