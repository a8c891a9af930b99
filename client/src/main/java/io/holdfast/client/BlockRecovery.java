package io.holdfast.client;

import io.holdfast.client.BlockDevice.Outcome;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ClientReply.Refusal;
import io.holdfast.proto.peer.ClientReply.Refused;
import io.holdfast.proto.peer.ClientRequest;
import java.util.ArrayDeque;
import java.util.Set;
import java.util.TreeSet;

/**
 * Reads one block whose copy at the leader is corrupt, or cannot be read there, from the other
 * replicas (promise P8). All of it goes through the leader, which alone knows which version is the
 * block's newest, and which repairs its own copy on the way.
 *
 * <p>The copies are asked for one after the other, by node, so that it does not matter when another
 * node takes the lead meanwhile. A copy that is corrupt or unreadable is not asked for again,
 * unless the block turns out to have been overwritten meanwhile. One that cannot be had now (its
 * node does not answer, or lags behind) is, in further rounds, until the call's time is up: the
 * block is given up only when every replica's copy is known to be bad.
 */
final class BlockRecovery {
    private static final long MS = 1_000_000;

    /** Before a further round. */
    static final long ROUND_PAUSE_NANOS = 100 * MS;

    /** Called once. */
    @FunctionalInterface
    interface Ended {
        /**
         * The block was given to the sink, or it was not.
         *
         * @param sequence of the write that it was read of, when {@code outcome} is OK
         */
        void ended(Outcome outcome, long sequence);
    }

    private final VolumeClient client;
    private final ShardChannel channel;
    private final long block;
    private final long deadlineNanos;
    private final boolean leaderFirst;
    private final VolumeClient.BlockSink sink;
    private final Ended ended;

    /** Nodes whose copy of the newest write that was seen is bad. */
    private final Set<Integer> bad = new TreeSet<>();

    private long newest;

    /** Nodes still to be asked in this round. */
    private final ArrayDeque<Integer> round = new ArrayDeque<>();

    private int rounds;

    /**
     * A recovery that has not begun.
     *
     * @param deadlineNanos of the call
     * @param leaderFirst the leader's own copy of this block may be good: what failed was a read of
     *     several blocks
     * @param sink gets the block, before {@code ended}
     */
    BlockRecovery(
            VolumeClient client,
            ShardChannel channel,
            long block,
            long deadlineNanos,
            boolean leaderFirst,
            VolumeClient.BlockSink sink,
            Ended ended) {
        this.client = client;
        this.channel = channel;
        this.block = block;
        this.deadlineNanos = deadlineNanos;
        this.leaderFirst = leaderFirst;
        this.sink = sink;
        this.ended = ended;
    }

    void begin() {
        if (leaderFirst) {
            channel.submit(new CopyRead(ClientRequest.OWN_COPY));
        } else {
            next();
        }
    }

    private void next() {
        long pause = 0;
        if (round.isEmpty()) {
            beginRound();
            pause = rounds > 1 ? ROUND_PAUSE_NANOS : 0;
        }
        Integer node = round.poll();
        if (node == null) {
            client.onUnreadable(block);
            ended.ended(Outcome.IO_ERROR, 0);
            return;
        }
        CopyRead read = new CopyRead(node);
        read.pauseNanos = pause;
        channel.submit(read);
    }

    /** The leader's own copy comes last: it is the one that was read already, most likely. */
    private void beginRound() {
        rounds++;
        for (int node : channel.replicas()) {
            if (!bad.contains(node) && node != channel.leader()) {
                round.add(node);
            }
        }
        int leader = channel.leader();
        if (channel.replicas().contains(leader) && !bad.contains(leader)) {
            round.add(leader);
        }
    }

    private final class CopyRead extends ReadRequest {
        private final int copy;

        CopyRead(int copy) {
            super(
                    client,
                    BlockRecovery.this.channel,
                    BlockRecovery.this.deadlineNanos,
                    block,
                    1,
                    copy);
            this.copy = copy;
        }

        @Override
        void succeeded(ClientReply reply) {
            ClientReply.Data data = (ClientReply.Data) reply;
            long sequence = data.runs().getFirst().sequence();
            if (!client.openAll(data, sink).isEmpty()) {
                if (sequence > newest) {
                    // Overwritten meanwhile: what was bad may be good again.
                    newest = sequence;
                    bad.clear();
                }
                isBad();
                return;
            }
            if (copy != ClientRequest.OWN_COPY) {
                client.events().blockRecovered(client.volumeNumber(), block);
            }
            ended.ended(Outcome.OK, sequence);
        }

        private void isBad() {
            if (copy != ClientRequest.OWN_COPY) {
                bad.add(copy);
            }
            next();
        }

        @Override
        void refused(Refused refused) {
            if (refused.why() == Refusal.IO_ERROR) {
                isBad();
            } else if (refused.why() == Refusal.COPY_UNAVAILABLE) {
                next();
            } else {
                super.refused(refused);
            }
        }

        @Override
        void failed(Outcome outcome) {
            ended.ended(outcome, 0);
        }
    }
}
