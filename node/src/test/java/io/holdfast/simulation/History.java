package io.holdfast.simulation;

import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.ClientReply.Run;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.EntryKind;
import io.holdfast.proto.peer.ShardId;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Everything clients asked and were answered, and what the blocks' contents stand for.
 *
 * <p>A block's contents are named by a number: of written ones it is in the payload and unique in a
 * run; zeroes are {@code -sequence} of the entry that made them, 0 if never written.
 */
final class History {
    private record Key(int session, long request) {}

    private record Asked(int client, long request) {}

    private final List<SimOp> operations = new ArrayList<>();
    private final Map<ShardId, Map<Key, SimOp>> bySession = new HashMap<>();
    private final Map<Asked, SimOp> byClient = new HashMap<>();
    private long nextValue = 1000;

    /** A number for a write's first block; the others follow it. */
    long newValue() {
        long value = nextValue;
        nextValue += Blocks.MAX_PER_ENTRY;
        return value;
    }

    void add(SimOp operation) {
        operations.add(operation);
        byClient.put(new Asked(operation.client, operation.request), operation);
        if (operation.isChange()) {
            bySession
                    .computeIfAbsent(operation.shard, shard -> new HashMap<>())
                    .put(new Key(operation.session, operation.request), operation);
        }
    }

    List<SimOp> operations() {
        return operations;
    }

    /** The request behind an entry. */
    @Nullable SimOp behind(Entry entry) {
        Map<Key, SimOp> ofShard = bySession.get(entry.shard());
        return ofShard == null ? null : ofShard.get(new Key(entry.session(), entry.request()));
    }

    /** The request with a number of a client. */
    @Nullable SimOp asked(int client, long request) {
        return byClient.get(new Asked(client, request));
    }

    /** Sealed blocks that stand for {@code value} and the numbers after it. */
    static byte[] payload(long value, int count) {
        ByteBuffer payload = ByteBuffer.allocate(count * Blocks.SEALED_SIZE);
        for (int i = 0; i < count; i++) {
            payload.putLong(i * Blocks.SEALED_SIZE, value + i);
            payload.putLong((i + 1) * Blocks.SEALED_SIZE - 8, ~(value + i));
        }
        return payload.array();
    }

    /** What the sealed block at {@code offset} stands for. */
    private static long valueAt(byte[] payload, int offset) {
        ByteBuffer block = ByteBuffer.wrap(payload);
        long value = block.getLong(offset);
        SimFailure.check(
                block.getLong(offset + Blocks.SEALED_SIZE - 8) == ~value,
                "contents",
                "a block is mixed from two: begins with ",
                value);
        return value;
    }

    /** What block {@code i} of a run stands for. */
    static long valueOf(Run run, int i) {
        return run.isZero() ? -run.sequence() : valueAt(run.payload(), i * Blocks.SEALED_SIZE);
    }

    /** What a block holds by an entry. */
    static long valueOf(Entry entry, long block) {
        return entry.kind() == EntryKind.ZERO
                ? -entry.sequence()
                : valueAt(entry.payload(), (int) (block - entry.block()) * Blocks.SEALED_SIZE);
    }

    /**
     * Checks that one block was a register from {@code from} to {@code until}.
     *
     * @param initial what it held at {@code from}
     */
    void checkLinearizable(ShardId shard, long block, long initial, long from, long until) {
        List<RegisterChecker.Operation> register = new ArrayList<>();
        for (SimOp op : operations) {
            if (!op.shard.equals(shard)
                    || !op.covers(block)
                    || op.state == SimOp.State.FAILED
                    || op.invoked < from
                    || op.invoked >= until) {
                continue;
            }
            boolean inTime = op.ended <= until;
            boolean done = op.state == SimOp.State.DONE;
            switch (op.kind) {
                case READ -> {
                    // One that was under way when history was cut may have seen either part.
                    if (done && inTime) {
                        long saw = op.seen[(int) (block - op.block)];
                        register.add(read(saw, op));
                    }
                }
                case WRITE -> register.add(write(op.value + block - op.block, op, done, inTime));
                case ZERO -> {
                    if (op.sequence > 0) {
                        register.add(write(-op.sequence, op, done, inTime));
                    }
                }
                case FLUSH -> {}
            }
        }
        Optional<String> wrong = RegisterChecker.check(initial, register);
        if (wrong.isPresent()) {
            throw new SimFailure(
                    "linearizable",
                    "block " + block + " of " + shard + ": " + wrong.get() + about(shard, block));
        }
    }

    private static RegisterChecker.Operation read(long saw, SimOp op) {
        return new RegisterChecker.Operation(false, saw, op.invoked, op.ended, true);
    }

    private static RegisterChecker.Operation write(
            long value, SimOp op, boolean done, boolean inTime) {
        return new RegisterChecker.Operation(
                true, value, op.invoked, inTime ? op.ended : SimOp.NEVER, done && inTime);
    }

    private String about(ShardId shard, long block) {
        StringBuilder text = new StringBuilder("\nhistory of the block:");
        for (SimOp op : operations) {
            if (op.shard.equals(shard) && op.kind != SimOp.Kind.FLUSH && op.covers(block)) {
                text.append("\n  ").append(op);
            }
        }
        return text.toString();
    }
}
