package io.holdfast.nemesis;

import io.holdfast.nemesis.Operation.Kind;
import io.holdfast.nemesis.Operation.State;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/** Reads every register of a volume while clients rest and no fault is on. */
final class ReadBack {
    private static final Duration STEP_LIMIT = Duration.ofSeconds(5);
    private static final long LIMIT_NANOS = 60_000_000_000L;
    private static final long RETRY_NANOS = 200_000_000;

    private ReadBack() {}

    /** What the registers hold; the reads go into the history, the whole through one node. */
    static long[] all(VolumeHistory history, Cluster cluster, int turn, Verdict verdict) {
        long deadline = System.nanoTime() + LIMIT_NANOS;
        for (; ; turn++) {
            NodeProcess node = cluster.node(1 + turn % Cluster.NODES);
            try (NbdSession session =
                    NbdSession.open(node.endpoint.nbdAddress(), history.volume, STEP_LIMIT)) {
                return read(history, node.number, session, verdict);
            } catch (BlockContents.TornBlock torn) {
                verdict.violation(
                        "P3: a block is read as it was written", torn.getMessage(), List.of());
                return new long[0];
            } catch (IOException e) {
                if (System.nanoTime() > deadline) {
                    verdict.violation(
                            "what is well serves",
                            "volume %s cannot be read through node%d: %s"
                                    .formatted(history.volume, node.number, e),
                            List.of());
                    return new long[0];
                }
                LockSupport.parkNanos(RETRY_NANOS);
            }
        }
    }

    private static long[] read(VolumeHistory history, int node, NbdSession session, Verdict verdict)
            throws IOException, BlockContents.TornBlock {
        long[] values = new long[VolumeHistory.REGISTERS];
        for (int group = 0; group < VolumeHistory.GROUPS; group++) {
            int first = group * VolumeHistory.GROUP;
            int count = VolumeHistory.GROUP;
            Operation operation =
                    new Operation(Kind.READ, "reader", 0, node, first, count, 0, System.nanoTime());
            history.add(operation);
            int length = count * VolumeHistory.BLOCK_BYTES;
            session.read(group, VolumeHistory.offset(first), length);
            NbdSession.Reply reply = session.reply(System.nanoTime() + STEP_LIMIT.toNanos());
            if (reply.error() != 0) {
                throw new IOException(NbdSession.errorName(reply.error()));
            }
            operation.seen = BlockContents.valuesOf(first, session.data(length));
            operation.endedNanos = System.nanoTime();
            operation.state = State.DONE;
            verdict.operation(operation);
            System.arraycopy(operation.seen, 0, values, first, count);
        }
        return values;
    }
}
