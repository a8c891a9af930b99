package io.holdfast.node.replica;

import io.holdfast.proto.peer.ReplicaMessage.PromiseReply;
import io.holdfast.proto.peer.Voice;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
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

    private final Map<Integer, Voice> promises = new TreeMap<>();

    /** Replicas that said that they do not count, whether they promised or not. */
    private final Set<Integer> notCounting = new TreeSet<>();

    Candidacy(
            long epoch, boolean preliminary, boolean handOver, long ownTicket, long deadlineNanos) {
        this.epoch = epoch;
        this.preliminary = preliminary;
        this.handOver = handOver;
        this.ownTicket = ownTicket;
        this.deadlineNanos = deadlineNanos;
    }

    void grantedBy(int node, Voice voice) {
        // One that promised as a voter may lose power and promise again: the first promise stands.
        promises.merge(node, voice, (a, b) -> a.compareTo(b) <= 0 ? a : b);
        heard(node, voice);
    }

    /** It answered, whether it promised or not. */
    void heard(int node, Voice voice) {
        if (voice != Voice.VOTER) {
            notCounting.add(node);
        }
    }

    boolean accepts(PromiseReply reply) {
        return reply.epoch() == epoch && reply.preliminary() == preliminary;
    }

    /**
     * Whether a majority has promised that would not have, if the candidate lacked anything that is
     * committed and that it acknowledged. What a dependent acknowledged, the candidate had once,
     * and has still if it is a voter.
     */
    boolean isWonByVoters(int majority, boolean asVoter) {
        return count(Voice.VOTER) + (asVoter ? count(Voice.DEPENDENT) : 0) >= majority;
    }

    /** Whether voters alone do not suffice for that. */
    boolean needsDependents(int majority) {
        return count(Voice.VOTER) < majority;
    }

    private int count(Voice voice) {
        int count = 0;
        for (Voice each : promises.values()) {
            count += each == voice ? 1 : 0;
        }
        return count;
    }

    /**
     * Whether so many replicas lost power or their disks that no majority of voters can come
     * together, and a majority of those that still have what they synced has promised. Whatever was
     * flushed is on at least one of these, and the candidate's log is at least as advanced as each
     * of theirs (promise P5). So it is when every replica has promised, and those that have nothing
     * to rely on had everything from the candidate: nobody is left who might know more.
     */
    boolean isWonAfterPowerLoss(int majority, int replicas) {
        int withData = count(Voice.VOTER) + count(Voice.LEARNER);
        return notCounting.size() >= majority
                && (withData >= majority || promises.size() == replicas);
    }
}
