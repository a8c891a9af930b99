package io.holdfast.node.replica;

import io.holdfast.proto.peer.ClientRequest;
import io.holdfast.proto.peer.ReplicaMessage;
import io.holdfast.proto.peer.Room;

/** Everything that can happen to a {@link Replica}. */
public sealed interface Event {
    /** Time has passed; at least every {@link Timing#tickNanos}. */
    record Tick() implements Event {}

    /** A message of another replica of this shard. */
    record FromPeer(int from, ReplicaMessage message) implements Event {}

    /** A client's request, come over connection {@code origin}, to which the reply goes. */
    record FromClient(int origin, ClientRequest request) implements Event {}

    /** Everything persisted with this ticket or an earlier one is in the journal (page cache). */
    record Written(long ticket) implements Event {}

    /** Everything persisted with this ticket or an earlier one is synced. Implies Written. */
    record Synced(long ticket) implements Event {}

    /**
     * No more events wait: send and persist now what has been collected. This is what batches
     * writes "by what is waiting"; a driver that calls it after every event is correct and slow.
     */
    record TurnEnd() implements Event {}

    /** The coordinator names this replica: campaign now. */
    record Campaign() implements Event {}

    /** Give leadership to {@code target}, if it is up to date and this replica leads. */
    record StepAside(int target) implements Event {}

    /**
     * What room this replica's disk has for new data. Having none is no failure: what is appended
     * all the same still has room in a reserve.
     */
    record RoomChanged(Room room) implements Event {}

    /** The link to the node broke; its clients may come back with it. */
    record NodeLost(int node) implements Event {}

    /**
     * The node's clients are gone for good (this incarnation of it): their claims may be broken.
     */
    record NodeDead(int node) implements Event {}

    /**
     * The node is there (again); also said of this node itself, at its start.
     *
     * @param incarnation of the process, not 0: clients of an earlier one are gone
     */
    record NodeAlive(int node, long incarnation) implements Event {}

    /** The entries of a {@link Effect.SendEntries} are no longer in the journal. */
    record EntriesGone(int to) implements Event {}
}
