package io.holdfast.node.replica;

import io.holdfast.proto.peer.ReplicaMessage.PromiseReply;
import java.util.TreeSet;

/**
 * A candidate's count of promises in one round. A preliminary round changes nothing anywhere; only
 * when it succeeds does a real one follow, so that a replica that cannot win does not disturb a
 * leader with a higher epoch (Ongaro's thesis, section 9.6).
 */
final class Candidacy {
    final long epoch;
    final boolean preliminary;
    final boolean handOver;
    final long deadlineNanos;

    /** Ticket of the candidate's own promise in a real round. */
    final long ownTicket;

    private final TreeSet<Integer> voters = new TreeSet<>();
    private final TreeSet<Integer> learners = new TreeSet<>();

    Candidacy(
            long epoch, boolean preliminary, boolean handOver, long ownTicket, long deadlineNanos) {
        this.epoch = epoch;
        this.preliminary = preliminary;
        this.handOver = handOver;
        this.ownTicket = ownTicket;
        this.deadlineNanos = deadlineNanos;
    }

    void grantedBy(int node, boolean learner) {
        (learner ? learners : voters).add(node);
    }

    boolean accepts(PromiseReply reply) {
        return reply.epoch() == epoch && reply.preliminary() == preliminary;
    }

    boolean isWonByVoters(int majority) {
        return voters.size() >= majority;
    }

    /**
     * Whether a majority of the replicas lost power, so that no majority of voters can come
     * together, and a majority has promised. Whatever was flushed is on at least one of them, and
     * the candidate holds the most advanced log among them (promise P5).
     */
    boolean isWonAfterPowerLoss(int majority) {
        return learners.size() >= majority;
    }
}
