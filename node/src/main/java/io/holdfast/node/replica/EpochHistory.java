package io.holdfast.node.replica;

import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * Which epoch wrote which part of the log: for each epoch its first sequence. Epochs change only
 * with leaders, so this stays tiny, and it spares the core from looking at old entries.
 *
 * <p>Only the newest {@link #MAX} epochs are kept; asked about anything older, it does not know.
 */
final class EpochHistory {
    /** Epochs kept; a follower that is further behind catches up by extents. */
    static final int MAX = 1024;

    /** Answer for a sequence older than what is kept. */
    static final long UNKNOWN = -1;

    private long[] firsts = new long[8];
    private long[] epochs = new long[8];
    private int count;

    /** An empty log: position 0 has epoch 0. */
    EpochHistory() {
        add(0, 0);
    }

    /** Notes that the entry at {@code sequence} is of {@code epoch}; sequences rise. */
    void extend(long sequence, long epoch) {
        long newest = epochs[count - 1];
        Invariant.check(
                epoch >= newest && sequence > firsts[count - 1] - 1,
                "epochs rise along the log",
                sequence,
                epoch,
                newest);
        if (epoch > newest) {
            add(sequence, epoch);
        }
    }

    private void add(long first, long epoch) {
        if (count == MAX) {
            System.arraycopy(firsts, 1, firsts, 0, --count);
            System.arraycopy(epochs, 1, epochs, 0, count);
        }
        if (count == firsts.length) {
            firsts = Arrays.copyOf(firsts, count * 2);
            epochs = Arrays.copyOf(epochs, count * 2);
        }
        firsts[count] = first;
        epochs[count++] = epoch;
    }

    /** Forgets entries after {@code sequence}. */
    void truncate(long sequence) {
        while (count > 1 && firsts[count - 1] > sequence) {
            count--;
        }
    }

    /** Epoch of the entry at {@code sequence}, or {@link #UNKNOWN}. Not beyond the log's end. */
    long epochAt(long sequence) {
        for (int i = count - 1; i >= 0; i--) {
            if (firsts[i] <= sequence) {
                return epochs[i];
            }
        }
        return UNKNOWN;
    }

    /** First sequence of the epoch that wrote {@code sequence}. */
    long firstOfEpochAt(long sequence) {
        for (int i = count - 1; i >= 0; i--) {
            if (firsts[i] <= sequence) {
                return firsts[i];
            }
        }
        return firsts[0];
    }

    /**
     * Bytes of the part up to {@code sequence}: count (4), then per epoch its first sequence (8)
     * and number (8), oldest first.
     */
    int encodedSize(long sequence) {
        return 4 + 16 * countThrough(sequence);
    }

    void encode(ByteBuffer out, long sequence) {
        int through = countThrough(sequence);
        out.putInt(through);
        for (int i = 0; i < through; i++) {
            out.putLong(firsts[i]).putLong(epochs[i]);
        }
    }

    private int countThrough(long sequence) {
        int through = count;
        while (through > 1 && firsts[through - 1] > sequence) {
            through--;
        }
        return through;
    }

    static EpochHistory decode(ByteBuffer in) {
        int count = in.getInt();
        Invariant.check(count >= 1 && count <= MAX, "an epoch history has 1 to MAX epochs", count);
        EpochHistory history = new EpochHistory();
        history.count = 0;
        for (int i = 0; i < count; i++) {
            history.add(in.getLong(), in.getLong());
        }
        return history;
    }
}
