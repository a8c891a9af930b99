package io.holdfast.node.peer;

import io.holdfast.config.NodeConfig.Member;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.EntryKind;
import io.holdfast.proto.peer.Nonce;
import io.holdfast.proto.peer.ReplicaMessage.Append;
import io.holdfast.proto.peer.ReplicaMessage.AppendReply;
import io.holdfast.proto.peer.Room;
import io.holdfast.proto.peer.ShardId;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * Measures round trips of a 4 KiB Append and its reply between two loops in two threads over
 * loopback; a program, not a test. Argument: seconds per depth, 2 if absent.
 */
final class PeerRoundTrips {
    private static final ShardId SHARD = new ShardId(1, 0);

    private PeerRoundTrips() {}

    public static void main(String[] arguments) throws Exception {
        int seconds = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 2;
        List<Member> members = TestPeer.members(2);
        try (TestPeer leader = new TestPeer(TestPeer.config("rt", members, 1), PeerLimits.DEFAULT);
                TestPeer follower =
                        new TestPeer(TestPeer.config("rt", members, 2), PeerLimits.DEFAULT)) {
            leader.await("connected 2");
            follower.await("connected 1");
            follower.reaction =
                    (peer, message) -> {
                        if (message instanceof Append append) {
                            long last = append.entries().getLast().sequence();
                            peer.links.send(
                                    1,
                                    new AppendReply(
                                            SHARD,
                                            1,
                                            true,
                                            last,
                                            0,
                                            last,
                                            0,
                                            false,
                                            Room.ENOUGH,
                                            append.sentNanos()));
                        }
                    };
            for (int depth : new int[] {1, 32, 1, 32}) {
                measure(leader, depth, seconds);
            }
        }
    }

    /** Keeps {@code depth} appends under way for so long, and prints what came of it. */
    private static void measure(TestPeer leader, int depth, int seconds) throws Exception {
        byte[] payload = new byte[Blocks.SEALED_SIZE];
        List<Long> nanos = new ArrayList<>();
        CountDownLatch settled = new CountDownLatch(depth);
        long from = System.nanoTime();
        long end = from + TimeUnit.SECONDS.toNanos(seconds);
        leader.reaction =
                (peer, message) -> {
                    if (message instanceof AppendReply reply) {
                        long now = System.nanoTime();
                        nanos.add(now - reply.sentNanos());
                        if (now < end) {
                            peer.links.send(2, append(payload, reply.matched() + 1));
                        } else {
                            settled.countDown();
                        }
                    }
                };
        leader.onLoop(() -> {
            for (int i = 1; i <= depth; i++) {
                leader.links.send(2, append(payload, i));
            }
            leader.links.flush();
        });
        settled.await();
        double elapsed = (System.nanoTime() - from) / 1e9;
        long[] sorted = nanos.stream().mapToLong(Long::longValue).sorted().toArray();
        System.out.printf(
                "depth %d: %.0f per second, median %.1f us, 99%% %.1f us, of %d%n",
                depth,
                sorted.length / elapsed,
                sorted[sorted.length / 2] / 1e3,
                sorted[(int) (sorted.length * 0.99)] / 1e3,
                sorted.length);
    }

    private static Append append(byte[] payload, long sequence) {
        Entry entry =
                Entry.builder(SHARD, EntryKind.WRITE)
                        .at(1, sequence, 0)
                        .blocks(0, 0, 1)
                        .sealed(new Nonce(1, 1, 0), payload)
                        .build();
        return new Append(
                SHARD, 1, 1, sequence - 1, 0, 0, false, System.nanoTime(), List.of(entry));
    }
}
