package io.holdfast.client;

import io.holdfast.client.BlockDevice.Outcome;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ClientReply.Refused;
import io.holdfast.proto.peer.ClientRequest;
import io.holdfast.proto.peer.Nonce;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Writes of less than a block: read the block, merge, seal, write on condition that the block's
 * sequence is still the one that was read. When the condition fails, somebody else's write came in
 * between and is read and merged: two clients that write the two halves of a block both win, and a
 * whole-block write is never undone by an older reading.
 *
 * <p>Within one client the partial writes of a block stand in one queue, so that they do not make
 * each other's conditions fail; those that wait when a merge begins go into it together, in order.
 * After a merge that succeeded, the next one needs no reading: the block is known as of the
 * sequence just written.
 *
 * <p>Each part fails when its own time is up. The request that it went into may go on for others,
 * and is in doubt for it like any other that timed out.
 */
final class PartialWrites {
    private final VolumeClient client;

    /** One per block that has partial writes under way; removed with the last. */
    private final Map<Long, BlockQueue> queues = new LinkedHashMap<>();

    PartialWrites(VolumeClient client) {
        this.client = client;
    }

    /**
     * Takes a part of a call. The number of parts is bounded by the number of calls: a call has two
     * at most.
     *
     * @param block number of the block
     * @param blockOffset where in the block, in bytes
     * @param length in bytes, less than a block
     * @param from offset of the first byte in the volume
     */
    void submit(Call call, long block, int blockOffset, int length, long from) {
        BlockQueue queue = queues.get(block);
        if (queue != null) {
            queue.waiting.add(new Part(call, blockOffset, length, from));
            return;
        }
        queue = new BlockQueue(block);
        queues.put(block, queue);
        queue.waiting.add(new Part(call, blockOffset, length, from));
        queue.next();
    }

    /** Ends the parts whose time is up. */
    void sweep(long nowNanos) {
        List<Part> late = new ArrayList<>();
        for (BlockQueue queue : queues.values()) {
            takeLate(queue.merging, nowNanos, late);
            takeLate(queue.waiting, nowNanos, late);
        }
        for (Part part : late) {
            client.events().requestTimedOut(client.volumeNumber());
            part.call.pieceDone(Outcome.IO_ERROR);
        }
    }

    private static void takeLate(Collection<Part> parts, long nowNanos, List<Part> late) {
        for (Iterator<Part> each = parts.iterator(); each.hasNext(); ) {
            Part part = each.next();
            if (part.call.deadlineNanos() - nowNanos <= 0) {
                each.remove();
                late.add(part);
            }
        }
    }

    private record Part(Call call, int blockOffset, int length, long from) {}

    private final class BlockQueue {
        private final long block;
        private final ShardChannel channel;
        private final ArrayDeque<Part> waiting = new ArrayDeque<>();

        /** Parts whose bytes are in {@link #plain}, or will be when it is read. */
        private List<Part> merging = new ArrayList<>();

        private final byte[] plain = new byte[Blocks.SIZE];

        /** Sequence that {@link #plain} is the content of; negative: not read. */
        private long sequence = -1;

        /** A request is under way, perhaps for parts that have all run out of time. */
        private boolean busy;

        private boolean running;

        BlockQueue(long block) {
            this.block = block;
            this.channel = client.channelOf(block);
        }

        /** Goes on with the parts that wait. */
        private void next() {
            if (running) {
                return; // a request ended within the loop below, which sees what is left
            }
            running = true;
            while (!busy && !waiting.isEmpty()) {
                merging.add(waiting.remove());
                busy = true;
                step();
            }
            running = false;
            if (!busy && waiting.isEmpty()) {
                queues.remove(block);
            }
        }

        private void step() {
            if (sequence < 0) {
                channel.submit(new BlockRead());
            } else {
                merge();
            }
        }

        private void merge() {
            Part more = waiting.poll();
            while (more != null) {
                merging.add(more);
                more = waiting.poll();
            }
            if (merging.isEmpty()) {
                end(Outcome.OK);
                return;
            }
            boolean fua = false;
            for (Part part : merging) {
                part.call.copyInto(plain, part.blockOffset, part.length, part.from);
                fua |= part.call.fua();
            }
            channel.submit(new MergedWrite(sequence, fua));
        }

        /** The last of the parts'; {@link #sweep} ends those before. */
        private long deadlineNanos() {
            long last = merging.getFirst().call.deadlineNanos();
            for (Part part : merging) {
                long own = part.call.deadlineNanos();
                last = own - last > 0 ? own : last;
            }
            return last;
        }

        private void end(Outcome outcome) {
            if (outcome != Outcome.OK) {
                sequence = -1;
            }
            busy = false;
            List<Part> ended = merging;
            merging = new ArrayList<>();
            for (Part part : ended) {
                part.call.pieceDone(outcome);
            }
            next();
        }

        private final class BlockRead extends ReadRequest {
            BlockRead() {
                super(
                        client,
                        BlockQueue.this.channel,
                        BlockQueue.this.deadlineNanos(),
                        block,
                        1,
                        ClientRequest.OWN_COPY);
            }

            @Override
            void succeeded(ClientReply reply) {
                ClientReply.Data data = (ClientReply.Data) reply;
                if (!client.openAll(data, (number, bytes) -> copy(bytes)).isEmpty()) {
                    recover();
                    return;
                }
                sequence = data.runs().getFirst().sequence();
                merge();
            }

            @Override
            void refused(Refused refused) {
                if (refused.why() == ClientReply.Refusal.IO_ERROR) {
                    recover();
                } else {
                    super.refused(refused);
                }
            }

            private void recover() {
                new BlockRecovery(
                                client,
                                channel,
                                block,
                                deadlineNanos,
                                false,
                                (number, bytes) -> copy(bytes),
                                (outcome, found) -> {
                                    if (outcome == Outcome.OK) {
                                        sequence = found;
                                        merge();
                                    } else {
                                        end(outcome);
                                    }
                                })
                        .begin();
            }

            private void copy(byte @Nullable [] bytes) {
                if (bytes == null) {
                    Arrays.fill(plain, (byte) 0);
                } else {
                    System.arraycopy(bytes, 0, plain, 0, Blocks.SIZE);
                }
            }

            @Override
            void failed(Outcome outcome) {
                end(outcome);
            }
        }

        private final class MergedWrite extends Request {
            private final long expected;
            private final boolean fua;

            MergedWrite(long expected, boolean fua) {
                super(BlockQueue.this.channel, BlockQueue.this.deadlineNanos());
                this.expected = expected;
                this.fua = fua;
            }

            @Override
            boolean sequenced() {
                return true;
            }

            @Override
            boolean needsClaim() {
                return true;
            }

            @Override
            int sizeBytes() {
                return Blocks.SEALED_SIZE;
            }

            @Override
            ClientRequest make(long newNumber, long lowWater) {
                Nonce nonce = client.attachment().nonces().take(1);
                return new ClientRequest.Write(
                        channel.id,
                        client.number(),
                        newNumber,
                        session,
                        lowWater,
                        generation,
                        client.layer(),
                        block,
                        1,
                        nonce,
                        expected,
                        fua,
                        client.seal(plain, block, nonce.session(), nonce.counter()));
            }

            @Override
            boolean accepts(ClientReply reply) {
                return reply instanceof ClientReply.Done;
            }

            @Override
            void succeeded(ClientReply reply) {
                long written = ((ClientReply.Done) reply).value();
                sequence = written > 0 ? written : -1;
                end(Outcome.OK);
            }

            @Override
            void refused(Refused refused) {
                if (refused.why() == ClientReply.Refusal.CONFLICT) {
                    client.events().writeConflicted(client.volumeNumber());
                    sequence = -1;
                    if (merging.isEmpty()) {
                        end(Outcome.OK);
                    } else {
                        step();
                    }
                } else {
                    end(outcomeOf(refused));
                }
            }

            @Override
            void failed(Outcome outcome) {
                end(outcome);
            }
        }
    }
}
