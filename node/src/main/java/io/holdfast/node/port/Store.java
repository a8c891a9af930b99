package io.holdfast.node.port;

import io.holdfast.node.replica.HardState;
import io.holdfast.node.replica.Recovered;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.ReplicaMessage;
import io.holdfast.proto.peer.ReplicaMessage.Cursor;
import io.holdfast.proto.peer.ScrubMessage.Stretch;
import io.holdfast.proto.peer.ShardId;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/**
 * A node's disk: one journal for all shards, and the map from blocks to places in it.
 *
 * <p>All methods are called on the data loop and all call-backs come there, unless said otherwise.
 * Only what may wait for the disk is done on other threads, inside. A failed write or sync is
 * final: the store reports it once to {@link Owner#failed} and does nothing afterwards.
 */
public interface Store extends AutoCloseable {
    /** Shards with a past here, sorted. */
    Set<ShardId> shards();

    /**
     * Opens a shard found at start.
     *
     * @return its past; the map contains exactly {@code Recovered.applied}
     */
    Recovered open(ShardId shard, Owner owner);

    /**
     * Makes a shard that has no past here; synced before it returns.
     *
     * @throws java.io.UncheckedIOException when the disk has failed
     */
    Recovered create(ShardId shard, HardState state, Owner owner);

    /** Forgets a shard and frees its space. Late calls for it are ignored. */
    void drop(ShardId shard);

    /**
     * Queues entries (and state, after them) for the next {@link #write}. Their places are fixed
     * now, so {@link #apply} and {@link #log} may follow at once; nothing is on disk yet.
     */
    void append(ShardId shard, List<Entry> entries, @Nullable HardState state);

    /** Entries after {@code sequence} are no longer part of the shard's log. */
    void truncate(ShardId shard, long sequence);

    /**
     * Writes everything queued to the operating system, in one gathered call where it can.
     *
     * @return the journal's end; a {@link #sync} up to it covers everything queued before
     */
    long write();

    /**
     * Syncs the journal as far as it is written. Calls that wait for a running sync share the next.
     *
     * @param done gets the position synced through, at least the end at the time of the call
     */
    void sync(LongConsumer done);

    /**
     * Entries of the log from {@code from} to {@code through}, fewer when they would exceed {@code
     * maxBytes} (but at least one). Empty: {@code from} is no longer held as log.
     */
    List<Entry> log(ShardId shard, long from, long through, int maxBytes);

    /** Puts appended WRITE and ZERO entries into the map. Per block the newest sequence wins. */
    void apply(ShardId shard, List<Entry> entries);

    /** Like {@link #append} and then {@link #apply}, for moved copies, which are not in the log. */
    void appendMoved(ShardId shard, List<Entry> moved);

    /** See {@link io.holdfast.node.replica.BlockVersions}. */
    long newestSequence(ShardId shard, int layer, long block, int count);

    /**
     * Reads blocks as the map stands now, even if they are overwritten before the disk answers.
     *
     * @param done the runs, covering the range; null: they could not be read. Called at once when
     *     the bytes are in the page cache.
     */
    void read(
            ShardId shard,
            int layer,
            long block,
            int count,
            Consumer<@Nullable List<ClientReply.Run>> done);

    /**
     * Reads one block for another replica, or to compare it with another's, and checks the record
     * that it is in. Slower than {@link #read}.
     */
    void copy(ShardId shard, int layer, long block, Consumer<Copy> done);

    /**
     * Puts another replica's copy of a block in the place of the one here: a moved copy, in the
     * journal and the map, under the same sequence.
     *
     * @param copy one block, with payload
     * @return false: the block here is of another write by now, or there is no room, or the store
     *     has failed; nothing has changed
     */
    boolean repair(ShardId shard, int layer, ClientReply.Run copy);

    /**
     * Extents newer than {@code since} from a place in the map on, about {@code maxBytes} of them.
     * Blocks of damaged records come as {@link Entry#FLAG_DOUBTFUL}, with zeroes where they cannot
     * be read.
     */
    void extents(ShardId shard, long since, Cursor from, int maxBytes, Consumer<Extents> done);

    /**
     * How many bytes of entries {@link #extents} would give from the map's start to its end, about:
     * for people. No block is read.
     *
     * @param done not called when the shard is gone, or the store has failed
     */
    void extentBytes(ShardId shard, long since, LongConsumer done);

    /**
     * Reads what the map holds from a place on, about {@code maxBytes} of it, and verifies the
     * records. For scrubs: no reader waits for it, and one such call at a time is worked on.
     *
     * @param to where to end at the latest, behind {@code from}
     * @param done null: there is no such shard (any more), or the store has failed. Not within this
     *     call, unless there is nothing to read from
     */
    void verify(
            ShardId shard, Cursor from, Cursor to, int maxBytes, Consumer<@Nullable Verified> done);

    /** Bytes of sealed blocks that the shard's map points to. */
    long liveBytes(ShardId shard);

    /**
     * The log restarts after {@code baseSequence}; what the map holds is right for it. Takes a
     * checkpoint with {@code shardState}; synced when {@code done} runs.
     */
    void installBase(
            ShardId shard,
            long baseEpoch,
            long baseSequence,
            byte[] shardState,
            HardState state,
            Runnable done);

    /**
     * A turn of the loop is over, and map and {@link Owner#shardState} agree: the moment to start a
     * checkpoint when one is due.
     */
    void turnEnded();

    /** Bytes on disk and what limits them, for status and metrics. Any thread. */
    Usage usage();

    /** Takes a last checkpoint, syncs and closes. Waits. */
    @Override
    void close();

    /** The replica that a shard belongs to. */
    interface Owner {
        /** The core's state at the applied point, for a checkpoint. */
        byte[] shardState();

        /** Sequence up to which the map is applied, belonging to {@link #shardState}. */
        long applied();

        /** Epoch of the entry at {@link #applied}. */
        long appliedEpoch();

        /** The disk failed; the replica must go out of service. */
        void failed(Exception cause);
    }

    /**
     * One block as it is on this disk.
     *
     * @param run what the map says of the block; without payload if it is zeroes, or unreadable
     * @param intact the checksum of its record is right; of zeroes always
     * @param place of its bytes in the journal, for people
     */
    record Copy(ClientReply.Run run, boolean intact, String place) {
        /**
         * Whether another replica's copy is of the same write as this one, and so has to have the
         * same bytes. A sequence alone does not name a write: it may have been given out twice, if
         * a power loss of a majority came between. A nonce never is.
         */
        public boolean isOfSameWrite(ReplicaMessage.FetchedBlock other) {
            return run.sequence() == other.sequence() && run.nonce().equals(other.nonce());
        }

        /**
         * Whether the other one, of the same write, has to take this one's place. What is compared
         * are the bytes: that one of the two is corrupt was found by a tag, which nobody here can
         * check; where they are the same there is nothing to repair, whoever is right.
         */
        public boolean isMendedBy(ReplicaMessage.FetchedBlock other) {
            return other.intact() && !Arrays.equals(run().payload(), other.payload());
        }

        /** The answer to a replica that asks for it. */
        public ReplicaMessage.FetchedBlock answer(ReplicaMessage.FetchBlock fetch) {
            return new ReplicaMessage.FetchedBlock(
                    fetch.shard(),
                    fetch.epoch(),
                    fetch.fetch(),
                    fetch.layer(),
                    fetch.block(),
                    run.sequence(),
                    run.nonce(),
                    intact,
                    run.payload());
        }

        /** Whether the disk has no bytes where there should be some. */
        public boolean isUnreadable() {
            return !run.isZero() && run.payload().length == 0;
        }
    }

    /**
     * Part of a walk over the map.
     *
     * @param moved WRITE (with payload) and ZERO entries with the moved flag, in order of (layer,
     *     block), clipped to what is current
     * @param next where the walk goes on
     * @param done nothing is left
     */
    record Extents(List<Entry> moved, Cursor next, boolean done) {}

    /**
     * What a scrub has read.
     *
     * @param applied what was committed up to this sequence was in the map
     * @param pieces in order of (layer, block), as the map was at one moment
     * @param next where it goes on; the end that was asked for: nothing is left before it
     */
    record Verified(long applied, List<Piece> pieces, Cursor next) {
        public Verified {
            pieces = List.copyOf(pieces);
        }

        /** What was read, without the verdicts' details. */
        public List<Stretch> stretches() {
            return pieces.stream().map(Piece::stretch).toList();
        }

        /**
         * Some blocks in a row.
         *
         * @param readable false: zeroes stand in for some of the bytes
         * @param place of their bytes in the journal, for people
         */
        public record Piece(Stretch stretch, boolean readable, String place) {}
    }

    /** How much room there is. */
    enum Space {
        /** Enough. */
        OK(0),

        /** Nearly all that fits is live: somebody should delete something, or add room. */
        WARN(1),

        /**
         * What is left is for the cleaner and for what is under way: nobody should append more. It
         * may pass as soon as the cleaner has emptied a segment ({@link Usage#cleanable}). A store
         * that is written to all the same goes on until its disk is full, and then fails.
         */
        FULL(2);

        /** For metrics: the higher, the worse. */
        public final int level;

        Space(int level) {
            this.level = level;
        }
    }

    /**
     * How full the store is, as it was at the end of the last turn.
     *
     * @param journalBytes in segment files
     * @param freeBytes for which segments can be made
     * @param extents in the map, an estimate
     * @param liveBytes of the journal that the map points to; the rest of it is dead, or headers,
     *     or not written yet
     * @param appendedBytes to the journal since the store was opened
     * @param clientBytes of blocks written by clients among them, as the clients count them; {@code
     *     appendedBytes / clientBytes} is the write amplification
     * @param movedBytes appended by the cleaner among them
     * @param removedSegments since the store was opened
     * @param repairedBlocks replaced by another replica's copy since the store was opened
     * @param cleanable whether the cleaner can make room, or segments without live bytes will go;
     *     only known when {@code space} is FULL
     */
    record Usage(
            long journalBytes,
            long freeBytes,
            long extents,
            long liveBytes,
            long appendedBytes,
            long clientBytes,
            long movedBytes,
            long removedSegments,
            long repairedBlocks,
            Space space,
            boolean cleanable) {
        /** Bytes of the journal that the map does not point to. */
        public long deadBytes() {
            return journalBytes - liveBytes;
        }
    }
}
