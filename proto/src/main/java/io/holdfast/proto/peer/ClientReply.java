package io.holdfast.proto.peer;

import java.util.List;

/** Answers to {@link ClientRequest}s, matched by (client, request). */
public sealed interface ClientReply extends PeerMessage {
    int client();

    long request();

    /** Done. {@code value}: the granted session number or generation, else the entry's sequence. */
    record Done(ShardId shard, int client, long request, long value) implements ClientReply {}

    /** Not done, and it will not be by this request: see {@link Refusal}. */
    record Refused(
            ShardId shard,
            int client,
            long request,
            Refusal why,
            int leader,
            long epoch,
            String text)
            implements ClientReply {}

    /**
     * The blocks read, as runs in order that cover exactly the range asked for.
     *
     * @param runs at most one per block
     */
    record Data(ShardId shard, int client, long request, List<Run> runs) implements ClientReply {}

    /**
     * Who holds the volume.
     *
     * @param generation of the newest claim, 0: never claimed
     * @param connected whether the leader has a link to the holder's node just now
     * @param identity of the holder, empty: nobody holds it now
     */
    record Holder(
            ShardId shard,
            int client,
            long request,
            long generation,
            boolean connected,
            String identity)
            implements ClientReply {}

    /**
     * Blocks that were written together, or that read as zeroes.
     *
     * @param count of blocks, from 1
     * @param sequence of the write, 0: never written
     * @param nonce {@link Nonce#NONE}: zeroes, without payload
     * @param payload {@code count} sealed blocks, or empty
     */
    record Run(long block, int count, long sequence, Nonce nonce, byte[] payload) {
        public boolean isZero() {
            return nonce.keyId() == 0;
        }
    }

    /** Why a request was refused, and what the client is to do. The code is the wire format. */
    enum Refusal {
        /** Ask {@code leader} (0: unknown, try again soon). The request was not run here. */
        NOT_LEADER(1),
        /** The leader's queue is full: the same request again, later. */
        BUSY(2),
        /** Another client holds the volume; {@code text} is its identity. */
        HELD(3),
        /** A newer claim or a closed session: the request did not and will not run. */
        FENCED(4),
        /**
         * The condition of a conditional write did not hold: read again. It may have failed by a
         * write that was lost with its leader, and a late copy of the request may find that it
         * holds after all, until the leader has seen a low water above it.
         */
        CONFLICT(5),
        /** The disk of some replica has no room for new data. */
        NO_SPACE(6),
        /** A disk failed; the data could not be read or written. */
        IO_ERROR(7),
        /** A majority lost power: acknowledged, unflushed writes may be missing (promise P5). */
        POWER_LOSS(8),
        /** No such shard here (volume deleted or not known yet). */
        UNKNOWN_SHARD(9),
        /**
         * The copy of a block that was asked for cannot be had now: its node does not answer, or
         * has another version. Ask for another copy, or for this one later.
         */
        COPY_UNAVAILABLE(10),
        /**
         * Asks for what cannot be: blocks behind the volume's end, another layer, a number that was
         * never granted. No honest client of this volume does.
         */
        INVALID(11);

        public final int code;

        Refusal(int code) {
            this.code = code;
        }

        /**
         * The refusal with a code read from outside.
         *
         * @throws MalformedException when there is none
         */
        public static Refusal of(int code) {
            for (Refusal refusal : values()) {
                if (refusal.code == code) {
                    return refusal;
                }
            }
            throw new MalformedException("unknown refusal " + code);
        }
    }
}
