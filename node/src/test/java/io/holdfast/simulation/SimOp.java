package io.holdfast.simulation;

import io.holdfast.proto.peer.ShardId;
import java.util.Arrays;

/** One request of a client to a shard, from its start to its end: a line of the history. */
final class SimOp {
    /** What was asked. */
    enum Kind {
        WRITE,
        ZERO,
        READ,
        FLUSH
    }

    /** How it stands. */
    enum State {
        /** Not answered yet. */
        PENDING,
        /** Acknowledged. */
        DONE,
        /** The client does not know whether it took effect; if it did, then by {@link #ended}. */
        IN_DOUBT,
        /** It did not and will not take effect. */
        FAILED
    }

    /** When nothing is known about the end. */
    static final long NEVER = Long.MAX_VALUE;

    final Kind kind;
    final ShardId shard;
    final long block;
    final int count;

    /** Of a WRITE: what stands for each block, see {@link SealedBlocks}. */
    final long[] values;

    /** Of a conditional WRITE, else {@code ClientRequest.UNCONDITIONAL}. */
    final long expected;

    final boolean fua;

    /** Asked for by a user of the protocol itself, not by a volume client that serves a call. */
    final boolean raw;

    final int client;
    final long request;
    final int session;
    final long sessionSince;
    final long generation;
    final long invoked;

    /** Of a FLUSH: everything acknowledged before it began lies at or below this sequence. */
    final long barrier;

    /** Epoch of the entry at the barrier. */
    final long barrierEpoch;

    State state = State.PENDING;

    /** When it was answered; of one in doubt, when it could no longer take effect. */
    long ended = NEVER;

    /** Of a READ: what the blocks held, see {@link History#valueOf}. */
    long[] seen = new long[0];

    /** Position in the log, as the oracle saw it committed; 0: not there (yet). */
    long sequence;

    SimOp(
            Kind kind,
            ShardId shard,
            long block,
            int count,
            long[] values,
            long expected,
            boolean fua,
            boolean raw,
            int client,
            long request,
            int session,
            long sessionSince,
            long generation,
            long invoked,
            long barrier,
            long barrierEpoch) {
        this.kind = kind;
        this.shard = shard;
        this.block = block;
        this.count = count;
        this.values = values;
        this.expected = expected;
        this.fua = fua;
        this.raw = raw;
        this.client = client;
        this.request = request;
        this.session = session;
        this.sessionSince = sessionSince;
        this.generation = generation;
        this.invoked = invoked;
        this.barrier = barrier;
        this.barrierEpoch = barrierEpoch;
    }

    boolean isChange() {
        return kind == Kind.WRITE || kind == Kind.ZERO;
    }

    boolean covers(long one) {
        return one >= block && one < block + count;
    }

    void done(long now) {
        state = State.DONE;
        ended = now;
    }

    /** Given up; it may yet take effect. */
    void inDoubt() {
        if (state == State.PENDING) {
            state = State.IN_DOUBT;
        }
    }

    /** If it did not take effect by now, it never will. */
    void settled(long now) {
        inDoubt();
        if (state == State.IN_DOUBT) {
            ended = Math.min(ended, now);
        }
    }

    void failed() {
        state = State.FAILED;
    }

    @Override
    public String toString() {
        StringBuilder text = new StringBuilder();
        text.append(kind).append(' ').append(block).append('+').append(count);
        text.append(" of ").append(client).append('#').append(request);
        text.append(" session ").append(session).append(' ').append(state);
        text.append(" at ").append(invoked / 1000).append("..");
        text.append(ended == NEVER ? "" : Long.toString(ended / 1000)).append(" us");
        if (sequence > 0) {
            text.append(" sequence ").append(sequence);
        }
        if (values.length > 0) {
            text.append(" values ").append(Arrays.toString(values));
        }
        for (long one : seen) {
            text.append(" saw ").append(one);
        }
        return text.toString();
    }
}
