package io.holdfast.node.replica;

import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ClientRequest;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.ReplicaMessage;
import io.holdfast.proto.peer.ReplicaMessage.Cursor;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Everything a {@link Replica} wants done. The driver carries effects out in the order given. An
 * effect that promises something to others names the messages that may leave only afterwards
 * ({@code thenSend}), so that an acknowledgement cannot leave early by mistake.
 */
public sealed interface Effect {
    /** A message and where it goes. */
    record Outbound(int to, ReplicaMessage message) {}

    /**
     * Puts entries and/or state into the journal, in order. Then reports {@link Event.Written} and,
     * when {@code sync}, {@link Event.Synced} with the ticket. A driver may report Synced for
     * tickets that did not ask for it; it reports in ticket order.
     *
     * @param ticket rising by one with every Persist, StoreExtents and InstallBase of this replica
     * @param sync {@code thenSend} waits for the sync, else for the write
     */
    record Persist(
            long ticket,
            List<Entry> entries,
            @Nullable HardState state,
            boolean sync,
            List<Outbound> thenSend)
            implements Effect {}

    /**
     * Entries after this sequence are no longer part of the log. Comes before their replacement.
     */
    record Truncate(long after) implements Effect {}

    /** Sends now. */
    record Send(int to, ReplicaMessage message) implements Effect {}

    /**
     * Sends {@code frame} with the entries from {@code frame.previousSequence() + 1} to {@code
     * through} put in, as several frames when they are large. They were persisted before. If they
     * are gone from the journal: {@link Event.EntriesGone}.
     */
    record SendEntries(int to, ReplicaMessage.Append frame, long through) implements Effect {}

    /** Puts committed WRITE and ZERO entries into the map, in order; newer sequences win. */
    record Apply(List<Entry> entries) implements Effect {}

    /** Answers a client. */
    record Reply(int origin, ClientReply reply) implements Effect {}

    /** Reads the map as it is at this point and answers the client. */
    record ReadBlocks(int origin, ClientRequest.Read request) implements Effect {}

    /**
     * Reads this replica's copy of a block, as the map is now, and sends it as a {@link
     * ReplicaMessage.FetchedBlock}.
     */
    record SendCopy(int to, ReplicaMessage.FetchBlock fetch) implements Effect {}

    /**
     * Answers the read with another replica's copy if that is of the very write that the map here
     * names, else refuses with {@code COPY_UNAVAILABLE}. Where the copy here is another, and the
     * other one is intact, it takes its place: a moved copy.
     *
     * @param from the copy's node
     */
    record TakeCopy(
            int origin, ClientRequest.Read request, int from, ReplicaMessage.FetchedBlock copy)
            implements Effect {}

    /**
     * Reads extents newer than {@code since} from the map at {@code from} and sends them as {@link
     * ReplicaMessage.InstallExtents}.
     */
    record SendExtents(int to, long epoch, long baseSequence, long since, Cursor from)
            implements Effect {}

    /** Journals moved extents and puts them into the map; newer sequences win. */
    record StoreExtents(long ticket, List<Entry> extents, List<Outbound> thenSend)
            implements Effect {}

    /**
     * The map now stands at this base: the log restarts after it, with {@code state} as the shard's
     * state. All synced before {@code thenSend}.
     */
    record InstallBase(
            long ticket,
            long baseEpoch,
            long baseSequence,
            byte[] shardState,
            HardState state,
            List<Outbound> thenSend)
            implements Effect {}

    /**
     * Forgets map and log and starts with nothing but {@code state}: this replica holds entries
     * that a power loss of the others took out of history. Synced; no {@code Synced} event follows.
     */
    record StartOver(HardState state) implements Effect {}

    /**
     * Leadership as this replica sees it has changed: for the coordinator, clients, logs. The role
     * is FOLLOWER or LEADER.
     */
    record Announce(Role role, long epoch, int leader) implements Effect {}

    /** What a replica is at the moment. */
    enum Role {
        FOLLOWER,
        CANDIDATE,
        /** Leads, and serves (its epoch's first entry is committed). */
        LEADER
    }
}
