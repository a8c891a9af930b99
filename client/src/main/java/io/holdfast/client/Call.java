package io.holdfast.client;

import io.holdfast.client.BlockDevice.Completion;
import io.holdfast.client.BlockDevice.Outcome;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ClientReply.Refusal;
import io.holdfast.proto.peer.ClientReply.Refused;
import io.holdfast.proto.peer.ClientRequest;
import io.holdfast.proto.peer.Nonce;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.util.Arrays;
import java.util.List;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/**
 * One call of the block device: cut into pieces, a bounded number of them under way at a time,
 * complete when all are. The worst outcome of a piece is the call's; after a failure no further
 * pieces are begun.
 */
final class Call {
    /** Most pieces of one call under way at once. */
    static final int MAX_PIECES = 64;

    private enum Kind {
        READ,
        WRITE,
        ZERO,
        FLUSH
    }

    private final VolumeClient client;
    private final Kind kind;
    private final long offset;
    private final long end;
    private final ByteBuf buffer;
    private final int base;
    private final boolean trim;
    private final boolean fua;
    private final Completion done;
    private final long deadlineNanos;

    /** Where the next piece begins: a byte, or a shard for FLUSH. */
    private long position;

    private int pieces;
    private boolean advancing;
    private Outcome worst = Outcome.OK;

    private Call(
            VolumeClient client,
            Kind kind,
            long offset,
            long length,
            ByteBuf buffer,
            int base,
            boolean trim,
            boolean fua,
            Completion done) {
        this.client = client;
        this.kind = kind;
        this.offset = offset;
        this.end = offset + length;
        this.buffer = buffer;
        this.base = base;
        this.trim = trim;
        this.fua = fua;
        this.done = done;
        this.deadlineNanos = client.deadlineNanos();
        this.position = offset;
        if (kind != Kind.FLUSH && (offset < 0 || length < 0 || end > client.sizeBytes())) {
            throw new IllegalStateException(
                    kind + " of " + length + " bytes at " + offset + " is out of range");
        }
    }

    static Call read(VolumeClient client, long offset, ByteBuf target, Completion done) {
        return new Call(
                client,
                Kind.READ,
                offset,
                target.writableBytes(),
                target,
                target.writerIndex(),
                false,
                false,
                done);
    }

    static Call write(
            VolumeClient client, long offset, ByteBuf source, boolean fua, Completion done) {
        return new Call(
                client,
                Kind.WRITE,
                offset,
                source.readableBytes(),
                source,
                source.readerIndex(),
                false,
                fua,
                done);
    }

    static Call zero(
            VolumeClient client,
            long offset,
            long length,
            boolean trim,
            boolean fua,
            Completion done) {
        return new Call(
                client, Kind.ZERO, offset, length, Unpooled.EMPTY_BUFFER, 0, trim, fua, done);
    }

    static Call flush(VolumeClient client, Completion done) {
        return new Call(
                client,
                Kind.FLUSH,
                0,
                client.shardCount(),
                Unpooled.EMPTY_BUFFER,
                0,
                false,
                false,
                done);
    }

    /** Ends a call that has not begun. */
    void refuse(Outcome outcome) {
        done.done(outcome);
    }

    /** Begins as many pieces as may be under way, and completes the call after the last. */
    void advance() {
        if (advancing) {
            return; // a piece ended within the loop below
        }
        advancing = true;
        while (position < end && pieces < MAX_PIECES && worst == Outcome.OK) {
            pieces++;
            switch (kind) {
                case READ -> readPiece();
                case WRITE, ZERO -> writePiece();
                case FLUSH -> flushPiece();
            }
        }
        advancing = false;
        if (pieces == 0) {
            if (kind == Kind.READ && worst == Outcome.OK) {
                buffer.writerIndex(base + (int) (end - offset));
            }
            done.done(worst);
            client.callEnded();
        }
    }

    void pieceDone(Outcome outcome) {
        if (outcome.compareTo(worst) > 0) {
            worst = outcome;
        }
        pieces--;
        advance();
    }

    long deadlineNanos() {
        return deadlineNanos;
    }

    boolean fua() {
        return fua;
    }

    /** Copies this call's bytes into a block; the zeroes of a zeroing call. */
    void copyInto(byte[] block, int blockOffset, int length, long from) {
        if (kind == Kind.ZERO) {
            Arrays.fill(block, blockOffset, blockOffset + length, (byte) 0);
        } else {
            buffer.getBytes(indexOf(from), block, blockOffset, length);
        }
    }

    private int indexOf(long byteOffset) {
        return base + (int) (byteOffset - offset);
    }

    private void readPiece() {
        long from = position;
        long first = from >> Blocks.SHIFT;
        long last = (end - 1) >> Blocks.SHIFT;
        long most = Math.min(Blocks.MAX_PER_READ, client.blocksInShard(first));
        int count = (int) Math.min(most, last - first + 1);
        position = Math.min(end, (first + count) << Blocks.SHIFT);
        client.channelOf(first).submit(new ReadPiece(first, count, from, position));
    }

    private void writePiece() {
        long from = position;
        long first = from >> Blocks.SHIFT;
        int inBlock = (int) (from & (Blocks.SIZE - 1));
        if (inBlock != 0 || end - from < Blocks.SIZE) {
            int length = (int) Math.min(Blocks.SIZE - inBlock, end - from);
            position += length;
            client.partialWrites().submit(this, first, inBlock, length, from);
            return;
        }
        int limit = kind == Kind.WRITE ? Blocks.MAX_PER_ENTRY : Blocks.MAX_PER_ZERO;
        long most = Math.min(limit, client.blocksInShard(first));
        int count = (int) Math.min(most, (end - from) >> Blocks.SHIFT);
        position += (long) count << Blocks.SHIFT;
        ShardChannel channel = client.channelOf(first);
        channel.submit(
                kind == Kind.WRITE
                        ? new WritePiece(channel, first, count, indexOf(from))
                        : new ZeroPiece(channel, first, count));
    }

    private void flushPiece() {
        ShardChannel channel = client.channel((int) position);
        position++;
        channel.submit(new FlushPiece(channel));
    }

    /** What all pieces that end with Done have in common. */
    private abstract class Piece extends Request {
        Piece(ShardChannel channel) {
            super(channel, Call.this.deadlineNanos);
        }

        @Override
        boolean sequenced() {
            return true;
        }

        @Override
        boolean accepts(ClientReply reply) {
            return reply instanceof ClientReply.Done;
        }

        @Override
        void succeeded(ClientReply reply) {
            pieceDone(Outcome.OK);
        }

        @Override
        void failed(Outcome outcome) {
            pieceDone(outcome);
        }
    }

    private final class WritePiece extends Piece {
        private final long first;
        private final int count;
        private final int index;

        WritePiece(ShardChannel channel, long first, int count, int index) {
            super(channel);
            this.first = first;
            this.count = count;
            this.index = index;
        }

        @Override
        boolean needsClaim() {
            return true;
        }

        @Override
        int sizeBytes() {
            return count * Blocks.SEALED_SIZE;
        }

        @Override
        ClientRequest make(long newNumber, long lowWater) {
            Nonce nonce = client.attachment().nonces().take(count);
            return new ClientRequest.Write(
                    channel.id,
                    client.number(),
                    newNumber,
                    session,
                    lowWater,
                    generation,
                    client.layer(),
                    first,
                    count,
                    nonce,
                    ClientRequest.UNCONDITIONAL,
                    fua,
                    client.seal(buffer, index, first, count, nonce.session(), nonce.counter()));
        }
    }

    private final class ZeroPiece extends Piece {
        private final long first;
        private final int count;

        ZeroPiece(ShardChannel channel, long first, int count) {
            super(channel);
            this.first = first;
            this.count = count;
        }

        @Override
        boolean needsClaim() {
            return true;
        }

        @Override
        ClientRequest make(long newNumber, long lowWater) {
            return new ClientRequest.Zero(
                    channel.id,
                    client.number(),
                    newNumber,
                    session,
                    lowWater,
                    generation,
                    client.layer(),
                    first,
                    count,
                    trim,
                    fua);
        }
    }

    private final class FlushPiece extends Piece {
        FlushPiece(ShardChannel channel) {
            super(channel);
        }

        @Override
        boolean isRepeatable() {
            return true;
        }

        @Override
        ClientRequest make(long newNumber, long lowWater) {
            return new ClientRequest.Flush(channel.id, client.number(), newNumber, session);
        }
    }

    private final class ReadPiece extends ReadRequest {
        private final long first;
        private final int count;
        private final long from;
        private final long to;

        /** Blocks that are looked for elsewhere. */
        private int missing;

        private Outcome worstOfMissing = Outcome.OK;

        ReadPiece(long first, int count, long from, long to) {
            super(
                    client,
                    client.channelOf(first),
                    Call.this.deadlineNanos,
                    first,
                    count,
                    ClientRequest.OWN_COPY);
            this.first = first;
            this.count = count;
            this.from = from;
            this.to = to;
        }

        @Override
        void succeeded(ClientReply reply) {
            List<Long> corrupt = client.openAll((ClientReply.Data) reply, this::take);
            if (corrupt.isEmpty()) {
                pieceDone(Outcome.OK);
            } else {
                recover(corrupt, false);
            }
        }

        private void take(long block, byte @Nullable [] plain) {
            long start = Math.max(from, block << Blocks.SHIFT);
            long stop = Math.min(to, (block + 1) << Blocks.SHIFT);
            int length = (int) (stop - start);
            if (plain == null) {
                buffer.setZero(indexOf(start), length);
            } else {
                int skip = (int) (start & (Blocks.SIZE - 1));
                buffer.setBytes(indexOf(start), plain, skip, length);
            }
        }

        /** A disk that cannot read one of the blocks may still read the others. */
        @Override
        void refused(Refused refused) {
            if (refused.why() == Refusal.IO_ERROR) {
                recover(LongStream.range(first, first + count).boxed().toList(), count > 1);
            } else {
                super.refused(refused);
            }
        }

        private void recover(List<Long> blocks, boolean leaderFirst) {
            missing = blocks.size();
            for (long block : blocks) {
                new BlockRecovery(
                                client,
                                channel,
                                block,
                                deadlineNanos,
                                leaderFirst,
                                this::take,
                                (outcome, sequence) -> recovered(outcome))
                        .begin();
            }
        }

        private void recovered(Outcome outcome) {
            missing--;
            if (outcome.compareTo(worstOfMissing) > 0) {
                worstOfMissing = outcome;
            }
            if (missing == 0) {
                pieceDone(worstOfMissing);
            }
        }

        @Override
        void failed(Outcome outcome) {
            pieceDone(outcome);
        }
    }
}
