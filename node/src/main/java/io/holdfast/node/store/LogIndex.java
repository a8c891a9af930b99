package io.holdfast.node.store;

import io.holdfast.proto.peer.Entry;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Where the newest entries of one shard's log stand, and the newest of those in memory: two rings
 * over sequences. Grows from small to {@link #MAX_PLACES}; beyond, the oldest are forgotten. Owned
 * by the data loop.
 *
 * <p>Invariant: {@code first <= cachedFrom <= next}; places are held for [first, next), entries in
 * memory for [cachedFrom, next).
 */
final class LogIndex {
    /** Most entries whose places are held (8 MiB of places per shard). */
    static final int MAX_PLACES = 1 << 20;

    private static final int SMALLEST = 64;

    private final int maxPlaces;
    private long[] places = new long[SMALLEST];
    private @Nullable Entry[] cached = new @Nullable Entry[SMALLEST];
    private long first;
    private long cachedFrom;
    private long next;

    LogIndex(long base) {
        this(base, MAX_PLACES);
    }

    /** An index that holds at most {@code maxPlaces} (a power of two). */
    LogIndex(long base, int maxPlaces) {
        this.maxPlaces = maxPlaces;
        restart(base);
    }

    /** Forgets all; the log goes on after {@code base}. */
    void restart(long base) {
        first = base + 1;
        next = base + 1;
        cachedFrom = base + 1;
        Arrays.fill(cached, null);
    }

    /** Sequence of the last entry, or the base. */
    long last() {
        return next - 1;
    }

    /** Sequence of the first entry whose place is held; {@code last() + 1}: none. */
    long first() {
        return first;
    }

    void add(Entry entry, long place) {
        Check.that(entry.sequence() == next, "log has no gaps", entry.sequence(), next);
        if (next - first == places.length) {
            makeRoom();
        }
        if (next - cachedFrom == cached.length) {
            growCache();
        }
        places[slot(places.length, next)] = place;
        cached[slot(cached.length, next)] = entry;
        next++;
    }

    private void makeRoom() {
        if (places.length >= maxPlaces) {
            first++;
            if (cachedFrom < first) {
                cached[slot(cached.length, cachedFrom)] = null;
                cachedFrom = first;
            }
            return;
        }
        long[] larger = new long[places.length * 2];
        for (long at = first; at < next; at++) {
            larger[slot(larger.length, at)] = places[slot(places.length, at)];
        }
        places = larger;
    }

    private void growCache() {
        @Nullable Entry[] larger = new @Nullable Entry[cached.length * 2];
        for (long at = cachedFrom; at < next; at++) {
            larger[slot(larger.length, at)] = cached[slot(cached.length, at)];
        }
        cached = larger;
    }

    /**
     * Entries after {@code sequence} leave the log.
     *
     * @return bytes that were held in memory for them
     */
    long truncate(long sequence) {
        long bytes = 0;
        while (next > sequence + 1 && next > first) {
            next--;
            if (next >= cachedFrom) {
                int slot = slot(cached.length, next);
                Entry entry = cached[slot];
                bytes += entry == null ? 0 : entry.sizeBytes();
                cached[slot] = null;
            }
        }
        Check.that(next <= sequence + 1, "log is held from where it is cut", sequence, first);
        cachedFrom = Math.min(cachedFrom, next);
        return bytes;
    }

    /**
     * Entries that stand before a place of the journal are no longer held.
     *
     * @return bytes that were held in memory for them
     */
    long forgetBefore(long place) {
        long bytes = 0;
        while (first < next && places[slot(places.length, first)] < place) {
            first++;
            if (cachedFrom < first) {
                bytes += evictOldest();
            }
        }
        return bytes;
    }

    /** Place of the entry, {@link Place#NONE}: not held. */
    long place(long sequence) {
        return sequence < first || sequence >= next
                ? Place.NONE
                : places[slot(places.length, sequence)];
    }

    /** The entry, if it is in memory. */
    @Nullable Entry cached(long sequence) {
        return sequence < cachedFrom || sequence >= next
                ? null
                : cached[slot(cached.length, sequence)];
    }

    /**
     * Lets go of the oldest entry in memory; its place stays.
     *
     * @return bytes let go, 0: none was in memory
     */
    int evictOldest() {
        if (cachedFrom == next) {
            return 0;
        }
        int slot = slot(cached.length, cachedFrom++);
        Entry entry = cached[slot];
        cached[slot] = null;
        return entry == null ? 0 : entry.sizeBytes();
    }

    /** Bytes of the entries in memory. */
    long cachedBytes() {
        long bytes = 0;
        for (long at = cachedFrom; at < next; at++) {
            Entry entry = cached[slot(cached.length, at)];
            bytes += entry == null ? 0 : entry.sizeBytes();
        }
        return bytes;
    }

    private static int slot(int length, long sequence) {
        return (int) sequence & (length - 1);
    }
}
