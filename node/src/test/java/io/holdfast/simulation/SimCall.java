package io.holdfast.simulation;

import java.util.Arrays;

/** One call of a volume client's user, from its start to its end: a line of the history. */
final class SimCall {
    final SimOp.Kind kind;

    /** Number of the volume client. */
    final int client;

    /** Cells, counted through all blocks of the volume; none of a FLUSH. */
    final long first;

    final int count;

    /** Of a WRITE: cell i holds {@code value + i}; unique. Else 0. */
    final long value;

    final boolean fua;
    final long invoked;

    /** Of a FLUSH, by shard: everything acknowledged before it lies at or below this sequence. */
    final long[] barriers;

    /** When it began, by the clock of its process. */
    final long begunNanos;

    SimOp.State state = SimOp.State.PENDING;

    /** When it ended, whatever the outcome. */
    long ended = SimOp.NEVER;

    /** By shard: if it has not taken effect there by then, it never will. */
    private final long[] settled;

    /** Of a READ: what the cells held. */
    long[] seen = new long[0];

    SimCall(
            SimOp.Kind kind,
            int client,
            long first,
            int count,
            long value,
            boolean fua,
            long invoked,
            long begunNanos,
            long[] barriers) {
        this.kind = kind;
        this.client = client;
        this.first = first;
        this.count = count;
        this.value = value;
        this.fua = fua;
        this.invoked = invoked;
        this.begunNanos = begunNanos;
        this.barriers = barriers;
        this.settled = new long[barriers.length];
        Arrays.fill(settled, SimOp.NEVER);
    }

    boolean isChange() {
        return kind == SimOp.Kind.WRITE || kind == SimOp.Kind.ZERO;
    }

    boolean covers(long cell) {
        return cell >= first && cell < first + count;
    }

    /** Whether it covers a cell of a block. */
    boolean touches(long block) {
        return first < (block + 1) * Cells.PER_BLOCK && first + count > block * Cells.PER_BLOCK;
    }

    /** It can take effect in a shard no more. */
    void settle(int shard, long now) {
        settled[shard] = Math.min(settled[shard], now);
    }

    /** When it has taken effect in a shard at the latest, if it did or does at all. */
    long effectiveBy(int shard) {
        long known = state == SimOp.State.DONE ? ended : SimOp.NEVER;
        return Math.min(known, settled[shard]);
    }

    void end(SimOp.State how, long now) {
        state = how;
        ended = now;
    }

    @Override
    public String toString() {
        StringBuilder text = new StringBuilder();
        text.append(kind).append(" call of client ").append(client);
        if (count > 0) {
            text.append(" cells ").append(first).append('+').append(count);
        }
        text.append(fua ? " fua " : " ").append(state);
        text.append(" at ").append(invoked / 1000).append("..");
        text.append(ended == SimOp.NEVER ? "" : Long.toString(ended / 1000)).append(" us");
        for (int shard = 0; shard < settled.length; shard++) {
            if (settled[shard] != SimOp.NEVER) {
                text.append(" settled in shard ").append(shard);
                text.append(" by ").append(settled[shard] / 1000);
            }
        }
        if (value != 0) {
            text.append(" value ").append(value);
        }
        return seen.length == 0 ? text.toString() : text + " saw " + Arrays.toString(seen);
    }
}
