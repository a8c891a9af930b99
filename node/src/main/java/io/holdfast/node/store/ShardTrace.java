package io.holdfast.node.store;

import io.holdfast.node.replica.HardState;

/** A shard from a checkpoint's row through the journal's end, as a start would find it. */
final class ShardTrace {
    HardState state;
    long applied;
    long last;

    /** Records of the shard before this place are in the row. */
    final long from;

    ShardTrace(HardState state, long applied, long from) {
        this.state = state;
        this.applied = applied;
        this.from = from;
        last = applied;
    }

    void mark(Mark mark) {
        state = mark.after(state);
        if (mark.type() == Mark.Type.TRUNCATE) {
            last = Math.min(last, mark.position());
        } else if (mark.type() == Mark.Type.BASE) {
            applied = mark.position();
            last = applied;
        }
    }

    /** Takes the log's next entry; says whether it is the next one. */
    boolean entry(long sequence) {
        boolean next = sequence == last + 1;
        last = sequence;
        return next;
    }
}
