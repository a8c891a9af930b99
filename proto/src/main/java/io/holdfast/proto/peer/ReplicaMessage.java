package io.holdfast.proto.peer;

import java.util.List;

/** What the replicas of one shard say to each other. Each carries the sender's epoch. */
public sealed interface ReplicaMessage extends PeerMessage {
    /** Epoch in which the sender speaks; an older one than the receiver's is refused. */
    long epoch();

    /**
     * A candidate asks for a promise to follow it in {@code epoch} and nobody older. (Raft's
     * RequestVote, with the pre-vote of section 9.6 of Ongaro's thesis.)
     *
     * @param preliminary only asks whether a promise would be given; changes nothing
     * @param handOver the leader of {@code epoch - 1} or older stepped down for this candidate, so
     *     that its lease need not be waited out
     * @param lastEpoch epoch of the candidate's last entry, 0: empty log
     * @param lastSequence sequence of the candidate's last entry, 0: empty log
     * @param learner the candidate lost power and may have forgotten entries that it acknowledged
     */
    record PromiseRequest(
            ShardId shard,
            long epoch,
            boolean preliminary,
            boolean handOver,
            long lastEpoch,
            long lastSequence,
            boolean learner)
            implements ReplicaMessage {}

    /**
     * Answer to a {@link PromiseRequest}. A granted, non-preliminary one was synced before it left.
     *
     * @param epoch the epoch asked for
     * @param promised the newest epoch the sender has promised or followed
     * @param lastEpoch as in the request, of the sender's log
     * @param lastSequence as in the request, of the sender's log
     */
    record PromiseReply(
            ShardId shard,
            long epoch,
            boolean preliminary,
            boolean granted,
            long promised,
            Voice voice,
            long lastEpoch,
            long lastSequence)
            implements ReplicaMessage {}

    /**
     * Entries from the leader; without entries it is the heartbeat. (Raft's AppendEntries.)
     *
     * @param previousEpoch epoch of the entry before the first one here
     * @param previousSequence its sequence; the receiver must hold that entry
     * @param commit the leader's commit point
     * @param syncThrough the receiver is to sync its journal at least this far, 0: nothing asked
     * @param promote the receiver, a learner, holds all that was committed: it votes from now on
     * @param sentNanos the leader's clock, sent back in the answer; no meaning to anyone else
     * @param entries in order, without gaps, from {@code previousSequence + 1}
     */
    record Append(
            ShardId shard,
            long epoch,
            long previousEpoch,
            long previousSequence,
            long commit,
            long syncThrough,
            boolean promote,
            long sentNanos,
            List<Entry> entries)
            implements ReplicaMessage {}

    /**
     * Answer to an {@link Append}, sent when its entries are in the journal.
     *
     * @param accepted false: the entry before the first one is missing, see {@code last}
     * @param matched the sender's log equals the leader's up to here
     * @param durable the part of {@code matched} that is synced, at most {@code matched}
     * @param last end of the sender's log; with {@code accepted == false} a hint where to try next
     * @param applied the sender's applied point: what a catch-up by extents can build on
     * @param learner the sender does not vote
     * @param room on the sender's disk
     * @param sentNanos from the {@link Append}
     */
    record AppendReply(
            ShardId shard,
            long epoch,
            boolean accepted,
            long matched,
            long durable,
            long last,
            long applied,
            boolean learner,
            Room room,
            long sentNanos)
            implements ReplicaMessage {}

    /**
     * Catch-up by extents begins: the leader no longer has the entries that the receiver lacks. The
     * receiver keeps its map, takes every extent newer than {@code since}, then continues with
     * entries after {@code baseSequence}.
     *
     * @param since the receiver's applied point
     * @param baseEpoch epoch of the entry at {@code baseSequence}
     * @param baseSequence the leader's applied point now
     * @param state the shard's sessions and claims at {@code baseSequence}, see the core's codec
     */
    record InstallBegin(
            ShardId shard, long epoch, long since, long baseEpoch, long baseSequence, byte[] state)
            implements ReplicaMessage {}

    /**
     * Some extents, as moved entries in order of (layer, block).
     *
     * @param baseSequence of the {@link InstallBegin} that this belongs to
     * @param from cursor of this part
     * @param next cursor of the part after it; meaningless when {@code done}
     * @param done this is the last part
     */
    record InstallExtents(
            ShardId shard,
            long epoch,
            long baseSequence,
            Cursor from,
            Cursor next,
            boolean done,
            List<Entry> extents)
            implements ReplicaMessage {}

    /**
     * The receiver holds everything before {@code next} in its journal.
     *
     * @param baseSequence of the {@link InstallBegin} that this belongs to
     * @param done it also holds the last part and has taken over the base
     */
    record InstallReply(ShardId shard, long epoch, long baseSequence, Cursor next, boolean done)
            implements ReplicaMessage {}

    /** The leader has stepped down in favour of the receiver, which campaigns at once. */
    record HandOver(ShardId shard, long epoch) implements ReplicaMessage {}

    /**
     * The leader asks for the receiver's copy of a block whose other copies are corrupt. It reads
     * the receiver's map as it is and changes nothing, so any replica answers it in any state.
     *
     * @param fetch names it in the answer, from 1
     */
    record FetchBlock(ShardId shard, long epoch, long fetch, int layer, long block)
            implements ReplicaMessage {}

    /**
     * Answer to a {@link FetchBlock}. The leader takes the copy only if sequence and nonce are
     * those of its own map: then it is of the very same write.
     *
     * @param epoch of the {@link FetchBlock}
     * @param sequence of the write, 0: never written
     * @param nonce {@link Nonce#NONE}: zeroes
     * @param intact the checksum of the record that the copy is in is right; never without payload
     * @param payload one sealed block; empty: zeroes, or the copy cannot be read
     */
    record FetchedBlock(
            ShardId shard,
            long epoch,
            long fetch,
            int layer,
            long block,
            long sequence,
            Nonce nonce,
            boolean intact,
            byte[] payload)
            implements ReplicaMessage {
        /** What a reader is told. */
        public ClientReply.Run run() {
            return new ClientReply.Run(block, 1, sequence, nonce, payload);
        }
    }

    /** A place in the map, in order of layer, then block. */
    record Cursor(int layer, long block) {
        /** Before everything. */
        public static final Cursor START = new Cursor(0, 0);
    }
}
