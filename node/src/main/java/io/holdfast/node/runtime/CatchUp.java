package io.holdfast.node.runtime;

import io.holdfast.node.replica.Effect.SendExtents;
import io.holdfast.node.runtime.CatchUpProgress.By;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.ReplicaMessage.Cursor;
import java.util.ArrayDeque;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * One follower's way back, as its leader counts it: from when it was first seen behind until it is
 * in sync. It may take extents, then the entries that were written meanwhile; may be interrupted,
 * and begin anew with the extents.
 *
 * <p>Extents are counted in the bytes that were sent and are confirmed by the follower's asking for
 * the next part; how many are to come was measured in the map. Entries are counted by sequence, in
 * bytes by their mean size. Both change under writes, so the share done is only ever raised.
 */
final class CatchUp {
    /** What rate and time left are averaged over. */
    static final long WINDOW_NANOS = 5_000_000_000L;

    private static final long NOT_KNOWN = -1;
    private static final double MOST_TENTHS = 999;
    private static final double NANOS_PER_SECOND = 1e9;

    /** Until some were sent: one block. */
    private static final double USUAL_ENTRY_BYTES = Entry.HEADER_SIZE + Blocks.SEALED_SIZE;

    private final int node;
    private By by = By.ENTRIES;

    /** The follower's log, or what stands in for it, reaches to here. */
    private long position;

    private long last;
    private long doneBytes;
    private long sentEntries;
    private long sentEntryBytes;
    private double tenths;

    /** Of the extents: what they build on, where they lead to, the part that is under way. */
    private long since = NOT_KNOWN;

    private long base = NOT_KNOWN;
    private @Nullable Cursor asked;
    private long askedBytes;

    /** Extents that the follower has, of those measured. */
    private long confirmedBytes;

    private long measuredBytes = NOT_KNOWN;

    private final ArrayDeque<Sample> samples = new ArrayDeque<>();

    private record Sample(long nanos, long doneBytes, long leftBytes) {}

    /** A follower that has the log through {@code position}. */
    CatchUp(int node, long position, long last) {
        this.node = node;
        this.position = position;
        this.last = last;
    }

    // ---- extents

    /**
     * The follower wants a part, and has all before it.
     *
     * @return whether it is not known how much there is: extents newer than another sequence
     */
    boolean asks(SendExtents part) {
        boolean another = by != By.EXTENTS || base != part.baseSequence() || since != part.since();
        boolean unmeasured = since != part.since();
        if (another || (part.from().equals(Cursor.START) && !part.from().equals(asked))) {
            // Another catch-up, or the same once more: the follower was restarted and knows
            // nothing of the parts that it has.
            by = By.EXTENTS;
            base = part.baseSequence();
            since = part.since();
            confirmedBytes = 0;
            askedBytes = 0;
        } else if (!part.from().equals(asked)) {
            confirm();
        }
        asked = part.from();
        if (unmeasured) {
            measuredBytes = NOT_KNOWN;
        }
        return unmeasured;
    }

    private void confirm() {
        confirmedBytes += askedBytes;
        doneBytes += askedBytes;
        askedBytes = 0;
    }

    /** A part has left. */
    void sent(SendExtents part, long bytes) {
        if (part.from().equals(asked) && part.baseSequence() == base) {
            askedBytes = bytes;
        }
    }

    /** What extents newer than {@code newerThan} take. */
    void measured(long newerThan, long bytes) {
        if (newerThan == since) {
            measuredBytes = bytes;
        }
    }

    // ---- entries

    /** Entries have left that were committed before. */
    void sent(long entries, long bytes) {
        sentEntries += entries;
        sentEntryBytes += bytes;
    }

    private double entryBytes() {
        return sentEntries == 0 ? USUAL_ENTRY_BYTES : (double) sentEntryBytes / sentEntries;
    }

    // ---- progress

    /**
     * A look from time to time.
     *
     * @param has what the follower has through here
     * @param logEnd of the leader's log
     */
    void look(long has, long logEnd, long nowNanos) {
        last = logEnd;
        if (by == By.EXTENTS && has >= base) {
            confirm();
            by = By.ENTRIES;
            position = base;
            asked = null;
        }
        if (by == By.ENTRIES) {
            // It may have forgotten some in a power loss: then they count once more.
            doneBytes += (long) (Math.max(0, has - position) * entryBytes());
            position = has;
        }
        long left = leftBytes();
        if (left != NOT_KNOWN && doneBytes + left > 0) {
            double share = (double) doneBytes / (doneBytes + left);
            tenths = Math.max(tenths, Math.min(Math.floor(share * 1000), MOST_TENTHS));
        }
        samples.add(new Sample(nowNanos, doneBytes, left));
        while (nowNanos - samples.getFirst().nanos > WINDOW_NANOS) {
            samples.removeFirst();
        }
    }

    private long leftBytes() {
        if (by == By.ENTRIES) {
            return (long) (Math.max(0, last - position) * entryBytes());
        }
        if (measuredBytes == NOT_KNOWN) {
            return NOT_KNOWN;
        }
        return Math.max(0, measuredBytes - confirmedBytes)
                + (long) (Math.max(0, last - base) * entryBytes());
    }

    /** As at the last look. */
    CatchUpProgress progress() {
        long left = leftBytes();
        return new CatchUpProgress(
                node,
                by,
                tenths / 10,
                doneBytes,
                left == NOT_KNOWN ? OptionalLong.empty() : OptionalLong.of(doneBytes + left),
                bytesPerSecond(),
                secondsLeft());
    }

    private double seconds() {
        return samples.isEmpty()
                ? 0
                : (samples.getLast().nanos - samples.getFirst().nanos) / NANOS_PER_SECOND;
    }

    private long bytesPerSecond() {
        double seconds = seconds();
        return seconds <= 0
                ? 0
                : (long) ((samples.getLast().doneBytes - samples.getFirst().doneBytes) / seconds);
    }

    /** By what is left, not by what is moved: clients may add as fast as it is moved. */
    private OptionalLong secondsLeft() {
        double seconds = seconds();
        if (seconds <= 0
                || samples.getFirst().leftBytes == NOT_KNOWN
                || samples.getLast().leftBytes == NOT_KNOWN) {
            return OptionalLong.empty();
        }
        long left = samples.getLast().leftBytes;
        double falls = (samples.getFirst().leftBytes - left) / seconds;
        return falls <= 0
                ? OptionalLong.empty()
                : OptionalLong.of((long) Math.min(Math.ceil(left / falls), Integer.MAX_VALUE));
    }
}
