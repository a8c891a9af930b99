package io.holdfast.simulation;

import static io.holdfast.simulation.SimFailure.check;

import io.holdfast.proto.peer.ClientReply.Run;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.EntryKind;
import io.holdfast.proto.peer.ShardId;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Everything clients of a volume asked and were answered, on two levels.
 *
 * <p><b>Requests</b> are what a shard is asked for. There a block is the register; its contents are
 * named by a number (see {@link SealedBlocks}), zeroes by {@code -sequence} of the entry that made
 * them, 0 if never written. This level sees which zeroes were read, and what became of a request
 * whose call failed.
 *
 * <p><b>Calls</b> are what the users of volume clients are promised. There a cell (see {@link
 * Cells}) is the register, since calls cover parts of blocks, and several blocks that need not
 * change at the same moment. What is read of one block, though, must be from one moment. A request
 * of a raw client counts as a call, too: its blocks are read by volume clients.
 */
final class History {
    private record Key(int session, long request) {}

    private record Asked(int client, long request) {}

    /** A write, or a reading, of one cell. */
    private record Access(
            boolean write,
            long value,
            long began,
            long ended,
            long effectiveBy,
            boolean done,
            boolean fua,
            Object what) {}

    final SealedBlocks sealed;

    private final List<SimOp> operations = new ArrayList<>();
    private final List<SimCall> calls = new ArrayList<>();
    private final Map<ShardId, Map<Key, SimOp>> bySession = new HashMap<>();
    private final Map<Asked, SimOp> byClient = new HashMap<>();
    private long nextValue = 1000;
    private long servedAt = -1;

    History(int volume) {
        sealed = new SealedBlocks(volume);
    }

    /** A number for a write's first cell; the others follow it. */
    long newValue(long cells) {
        long value = nextValue;
        nextValue += cells;
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

    void add(SimCall call) {
        calls.add(call);
    }

    /** Somebody's request or call is done. */
    void served(long now) {
        servedAt = now;
    }

    /** When something was done the last time, -1: never. */
    long servedAt() {
        return servedAt;
    }

    List<SimOp> operations() {
        return operations;
    }

    List<SimCall> calls() {
        return calls;
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

    /** What block {@code i} of a run stands for. */
    long valueOf(Run run, int i) {
        return run.isZero() ? -run.sequence() : sealed.idOf(run.nonce(), run.payload(), i);
    }

    /** What the runs that answer a request stand for, block by block. */
    long[] valuesOf(SimOp op, List<Run> runs) {
        long[] values = new long[op.count];
        int at = 0;
        for (Run run : runs) {
            check(
                    run.block() == op.block + at && at + run.count() <= op.count,
                    "contents",
                    "run at ",
                    run.block(),
                    " in the answer to ",
                    op);
            for (int i = 0; i < run.count(); i++) {
                values[at++] = valueOf(run, i);
            }
        }
        check(at == op.count, "contents", "answer of ", at, " blocks to ", op);
        return values;
    }

    /** Whether a block of an entry is as it was sent. */
    boolean isIntact(Entry entry, long block) {
        return entry.kind() == EntryKind.ZERO
                || sealed.isIntact(entry.nonce(), entry.payload(), (int) (block - entry.block()));
    }

    /** Whether all blocks of a run are as they were sent. */
    boolean isIntact(Run run) {
        for (int i = 0; i < run.count() && !run.isZero(); i++) {
            if (!sealed.isIntact(run.nonce(), run.payload(), i)) {
                return false;
            }
        }
        return true;
    }

    /** What a block holds by an entry. */
    long valueOf(Entry entry, long block) {
        return entry.kind() == EntryKind.ZERO
                ? -entry.sequence()
                : sealed.idOf(entry.nonce(), entry.payload(), (int) (block - entry.block()));
    }

    /**
     * Checks that one block was a register from {@code from} to {@code until}, and so were its
     * cells.
     *
     * @param initial what it held at {@code from}
     */
    void checkLinearizable(ShardId shard, long block, long initial, long from, long until) {
        checkRequests(shard, block, initial, from, until);
        long[] cells = sealed.cells(initial);
        for (int i = 0; i < Cells.PER_BLOCK; i++) {
            checkCell(shard, block, i, accesses(shard, block, i), cells[i], from, until);
        }
    }

    /**
     * Checks that what users were told is durable has outlived a power loss of a majority: every
     * cell of a block that such a change covered holds what it wrote, or what may be newer.
     *
     * @param left what the block holds after the loss
     * @param from when a majority had lost power before
     * @param until when it did this time
     * @param allSynced every change is durable when it is done
     */
    void checkDurable(
            ShardId shard, long block, long left, long from, long until, boolean allSynced) {
        long[] cells = sealed.cells(left);
        long flushed = flushedBefore(shard, from, until);
        for (int i = 0; i < Cells.PER_BLOCK; i++) {
            long value = cells[i];
            List<Access> writes =
                    accesses(shard, block, i).stream()
                            .filter(access -> access.write && access.began < until)
                            .toList();
            for (Access access : writes) {
                boolean durable =
                        access.fua || allSynced || (access.began > from && access.ended < flushed);
                if (!access.done || access.ended > until || !durable) {
                    continue;
                }
                check(
                        writes.stream()
                                .anyMatch(other ->
                                        other.value == value && other.effectiveBy >= access.began),
                        "durable calls",
                        "a power loss left ",
                        value,
                        " in cell ",
                        i,
                        " of block ",
                        block,
                        " of ",
                        shard,
                        ", but this was durable: ",
                        access.what);
            }
        }
    }

    /** When the last flush began that was over in time; it covers what was done before. */
    private long flushedBefore(ShardId shard, long from, long until) {
        long began = from;
        for (SimCall call : calls) {
            if (call.kind == SimOp.Kind.FLUSH
                    && call.state == SimOp.State.DONE
                    && call.ended <= until) {
                began = Math.max(began, call.invoked);
            }
        }
        for (SimOp op : operations) {
            if (op.kind == SimOp.Kind.FLUSH
                    && op.raw
                    && op.shard.equals(shard)
                    && op.state == SimOp.State.DONE
                    && op.ended <= until) {
                began = Math.max(began, op.invoked);
            }
        }
        return began;
    }

    /** What users asked of one cell. */
    private List<Access> accesses(ShardId shard, long block, int index) {
        long cell = block * Cells.PER_BLOCK + index;
        List<Access> accesses = new ArrayList<>();
        for (SimCall call : calls) {
            if (call.covers(cell)) {
                accesses.add(access(call, shard, cell));
            }
        }
        for (SimOp op : operations) {
            if (op.raw
                    && op.shard.equals(shard)
                    && op.covers(block)
                    && op.state != SimOp.State.FAILED) {
                accesses.add(access(op, block, index));
            }
        }
        return accesses;
    }

    // ---- requests ----

    private void checkRequests(ShardId shard, long block, long initial, long from, long until) {
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
            int index = (int) (block - op.block);
            switch (op.kind) {
                case READ -> {
                    // One that was under way when history was cut may have seen either part.
                    if (done && inTime) {
                        register.add(read(op.seen[index], op.invoked, op.ended));
                    }
                }
                case WRITE -> register.add(write(op.values[index], op, done, inTime));
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

    private static RegisterChecker.Operation read(long saw, long began, long ended) {
        return new RegisterChecker.Operation(false, saw, began, ended, true);
    }

    private static RegisterChecker.Operation write(
            long value, SimOp op, boolean done, boolean inTime) {
        return new RegisterChecker.Operation(
                true, value, op.invoked, inTime ? op.ended : SimOp.NEVER, done && inTime);
    }

    private String about(ShardId shard, long block) {
        StringBuilder text = new StringBuilder("\nrequests for the block:");
        for (SimOp op : operations) {
            if (op.shard.equals(shard) && op.kind != SimOp.Kind.FLUSH && op.covers(block)) {
                text.append("\n  ").append(op);
                for (long value : op.values) {
                    text.append(' ').append(Arrays.toString(sealed.cells(value)));
                }
            }
        }
        return text.toString();
    }

    // ---- calls ----

    private void checkCell(
            ShardId shard,
            long block,
            int index,
            List<Access> accesses,
            long initial,
            long from,
            long until) {
        Optional<String> wrong = checkCell(accesses, initial, from, until);
        if (wrong.isPresent()) {
            StringBuilder text = new StringBuilder();
            text.append("cell ").append(index).append(" of block ").append(block);
            text.append(" of ").append(shard).append(": ").append(wrong.get());
            text.append("\ncalls for the cell:");
            accesses.forEach(access -> text.append("\n  ").append(access.what));
            throw new SimFailure("linearizable calls", text + about(shard, block));
        }
    }

    private static Access access(SimCall call, ShardId shard, long cell) {
        int at = (int) (cell - call.first);
        boolean done = call.state == SimOp.State.DONE;
        return switch (call.kind) {
            case WRITE ->
                    new Access(
                            true,
                            call.value + at,
                            call.invoked,
                            call.ended,
                            call.effectiveBy(shard.index()),
                            done,
                            call.fua,
                            call);
            case ZERO ->
                    new Access(
                            true,
                            0,
                            call.invoked,
                            call.ended,
                            call.effectiveBy(shard.index()),
                            done,
                            call.fua,
                            call);
            default ->
                    new Access(
                            false,
                            done ? call.seen[at] : 0,
                            call.invoked,
                            call.ended,
                            call.ended,
                            done,
                            call.fua,
                            call);
        };
    }

    private Access access(SimOp op, long block, int index) {
        int at = (int) (block - op.block);
        boolean done = op.state == SimOp.State.DONE;
        return switch (op.kind) {
            case WRITE ->
                    new Access(
                            true,
                            sealed.cells(op.values[at])[index],
                            op.invoked,
                            op.ended,
                            op.ended,
                            done,
                            op.fua,
                            op);
            case ZERO -> new Access(true, 0, op.invoked, op.ended, op.ended, done, op.fua, op);
            default ->
                    new Access(
                            false,
                            done ? sealed.cells(op.seen[at])[index] : 0,
                            op.invoked,
                            op.ended,
                            op.ended,
                            done,
                            op.fua,
                            op);
        };
    }

    /**
     * Zeroes do not say who made them. A reading of zeroes is given to the only call that can have
     * made them; where there are several it must do that there is one.
     */
    private static Optional<String> checkCell(
            List<Access> accesses, long initial, long from, long until) {
        List<RegisterChecker.Operation> register = new ArrayList<>();
        List<RegisterChecker.Operation> zeroes = new ArrayList<>();
        List<RegisterChecker.Operation> certain = new ArrayList<>();
        for (Access access : accesses) {
            if (!access.write || access.began >= until || access.effectiveBy <= from) {
                continue;
            }
            if (access.value != 0 && access.value == initial) {
                continue; // it took effect before history was cut, and was told so later
            }
            // Of one that was under way when history was cut nobody knows on which side it belongs.
            boolean inTime = access.effectiveBy <= until;
            RegisterChecker.Operation write =
                    new RegisterChecker.Operation(
                            true,
                            access.value != 0 ? access.value : -1L - zeroes.size(),
                            access.began,
                            inTime ? access.effectiveBy : SimOp.NEVER,
                            access.done && inTime && access.began >= from);
            register.add(write);
            if (access.value == 0) {
                zeroes.add(write);
            }
            if (write.certain()) {
                certain.add(write);
            }
        }
        for (Access access : accesses) {
            if (access.write || !access.done || access.began < from || access.ended > until) {
                continue;
            }
            if (access.value != 0) {
                register.add(read(access.value, access.began, access.ended));
                continue;
            }
            long overwrittenBefore = Long.MIN_VALUE;
            for (RegisterChecker.Operation write : certain) {
                if (write.ended() < access.began) {
                    overwrittenBefore = Math.max(overwrittenBefore, write.began());
                }
            }
            List<Long> makers = new ArrayList<>();
            if (initial == 0 && overwrittenBefore == Long.MIN_VALUE) {
                makers.add(0L);
            }
            for (RegisterChecker.Operation zero : zeroes) {
                if (zero.began() <= access.ended && zero.ended() >= overwrittenBefore) {
                    makers.add(zero.value());
                }
            }
            if (makers.isEmpty()) {
                return Optional.of("reads zeroes that nobody made: " + access.what);
            }
            if (makers.size() == 1) {
                register.add(read(makers.getFirst(), access.began, access.ended));
            }
        }
        return RegisterChecker.check(initial, register);
    }

    /** A call has read cells: what it saw of each block must be from one moment. */
    void checkWhole(SimCall call) {
        int at = 0;
        while (at < call.count) {
            long block = (call.first + at) / Cells.PER_BLOCK;
            int cell = (int) ((call.first + at) % Cells.PER_BLOCK);
            int count = Math.min(Cells.PER_BLOCK - cell, call.count - at);
            check(
                    sealed.existed(block, cell, call.seen, at, count),
                    "whole blocks",
                    "block ",
                    block,
                    " never was what was read: ",
                    call);
            at += count;
        }
    }
}
