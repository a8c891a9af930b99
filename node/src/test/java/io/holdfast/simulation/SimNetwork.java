package io.holdfast.simulation;

import io.holdfast.proto.peer.PeerMessage;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;

/**
 * Carries messages between nodes, and between nodes and agents: late, twice, out of order, or not
 * at all. Never alters one; what a receiver gets went through {@code wire}, the codec.
 *
 * <p>Endpoints are numbers as in {@code PeerLinks}. What a node sends to itself stays in its
 * process: nearly at once, never lost.
 */
final class SimNetwork {
    /**
     * How messages fare between two endpoints. Probabilities are per message.
     *
     * @param inOrder messages of one direction keep their order, as on one TCP connection; those
     *     that are stalled or repeated do not
     * @param stall probability to be held up for as long as {@code stallMaxNanos}
     */
    record Conditions(
            long delayMinNanos,
            long delayMaxNanos,
            double loss,
            double duplicate,
            double stall,
            long stallMaxNanos,
            boolean inOrder) {
        /** A quiet local network. */
        static final Conditions GOOD = new Conditions(50_000, 300_000, 0, 0, 0, 0, true);
    }

    /** Where messages arrive. */
    interface Receiver {
        void received(int from, int to, PeerMessage message);
    }

    private record Direction(int from, int to) implements Comparable<Direction> {
        @Override
        public int compareTo(Direction other) {
            int byFrom = Integer.compare(from, other.from);
            return byFrom != 0 ? byFrom : Integer.compare(to, other.to);
        }
    }

    private static final long IN_PROCESS_NANOS = 5_000;

    private final SimQueue queue;
    private final SimRandom random;
    private final UnaryOperator<PeerMessage> wire;
    private final Receiver receiver;
    private final TreeSet<Direction> cut = new TreeSet<>();
    private final TreeMap<Direction, Long> lastArrival = new TreeMap<>();
    private final TreeMap<Integer, Long> far = new TreeMap<>();
    private Conditions conditions;
    private Predicate<PeerMessage> held = message -> false;
    private final TreeMap<Long, Runnable> holding = new TreeMap<>();
    private long heldCount;

    SimNetwork(
            SimQueue queue,
            SimRandom random,
            Conditions conditions,
            UnaryOperator<PeerMessage> wire,
            Receiver receiver) {
        this.queue = queue;
        this.random = random;
        this.conditions = conditions;
        this.wire = wire;
        this.receiver = receiver;
    }

    /** From now on messages fare like this. */
    void conditions(Conditions newConditions) {
        conditions = newConditions;
    }

    /** From now on each message from or to this endpoint takes longer by so much. For scenarios. */
    void far(int endpoint, long nanos) {
        far.put(endpoint, nanos);
    }

    /** Messages from one endpoint to another are lost from now on; the way back is not touched. */
    void cut(int from, int to) {
        cut.add(new Direction(from, to));
    }

    /** Undoes {@link #cut}. */
    void mend(int from, int to) {
        cut.remove(new Direction(from, to));
    }

    /** Undoes every {@link #cut}. */
    void mendAll() {
        cut.clear();
    }

    /** Whether messages pass in this direction. */
    boolean connected(int from, int to) {
        return !cut.contains(new Direction(from, to));
    }

    /** Keeps back all messages of a kind until {@link #release}. For scenarios. */
    void hold(Predicate<PeerMessage> kind) {
        held = kind;
    }

    /** Lets pass what {@link #hold} kept back, in order, and holds nothing any more. */
    void release() {
        held = message -> false;
        holding.values().forEach(Runnable::run);
        holding.clear();
    }

    /** Sends. */
    void send(int from, int to, PeerMessage message) {
        SimFailure.check(to > 0, "network", from, " sends to nobody: ", message);
        PeerMessage arriving = wire.apply(message);
        if (held.test(message)) {
            holding.put(heldCount++, () -> receiver.received(from, to, arriving));
            return;
        }
        if (from == to) {
            queue.after(IN_PROCESS_NANOS, () -> receiver.received(from, to, arriving));
            return;
        }
        Direction direction = new Direction(from, to);
        if (cut.contains(direction) || random.chance(conditions.loss)) {
            return;
        }
        carry(direction, arriving);
        if (random.chance(conditions.duplicate)) {
            late(direction, arriving);
        }
    }

    private void carry(Direction direction, PeerMessage message) {
        if (random.chance(conditions.stall)) {
            late(direction, message);
            return;
        }
        long arrival =
                queue.now()
                        + random.between(conditions.delayMinNanos, conditions.delayMaxNanos)
                        + far.getOrDefault(direction.from, 0L)
                        + far.getOrDefault(direction.to, 0L);
        if (conditions.inOrder) {
            arrival = Math.max(arrival, lastArrival.getOrDefault(direction, 0L));
            lastArrival.put(direction, arrival);
        }
        arrive(direction, message, arrival);
    }

    private void late(Direction direction, PeerMessage message) {
        long delay = random.between(conditions.delayMaxNanos, conditions.stallMaxNanos);
        arrive(direction, message, queue.now() + delay);
    }

    private void arrive(Direction direction, PeerMessage message, long time) {
        queue.at(time, () -> receiver.received(direction.from, direction.to, message));
    }
}
