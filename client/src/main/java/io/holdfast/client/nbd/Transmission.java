package io.holdfast.client.nbd;

import static io.holdfast.proto.nbd.NbdProtocol.*;

import io.holdfast.client.BlockDevice;
import io.holdfast.client.BlockDevice.Outcome;
import io.holdfast.client.nbd.NbdEvents.Kind;
import io.holdfast.client.nbd.RequestValidator.Refusal;
import io.holdfast.proto.nbd.NbdReplyEncoder;
import io.holdfast.proto.nbd.NbdRequest;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The transmission phase: requests are validated, handed to the device at once and answered in
 * whatever order it completes them.
 *
 * <p>The payload of a WRITE is taken into one heap buffer and data of a short READ read into one,
 * because ciphers work on arrays; a long READ goes through a direct buffer, which the socket takes
 * without a further copy.
 *
 * <p>A request with data takes their length from the {@link PayloadBudget} of all connections, and
 * waits for it before it has a buffer. From then on it is counted ({@code bytesInFlight}) until its
 * reply is written. While a request waits, too much is counted, or the client does not take its
 * replies, nothing is parsed or read. The device is closed exactly once, when the client is gone
 * and no call to it is under way.
 */
final class Transmission implements Phase, PayloadBudget.Holder {
    private static final Logger LOG = LoggerFactory.getLogger(Transmission.class);

    /**
     * Longer payloads start with a buffer of this many bytes, and get one for all once it is full:
     * a header alone must not make the loop clear 32 MiB of memory.
     */
    private static final int PAYLOAD_START = 1 << 20;

    private static final Refusal SHUTTING_DOWN =
            new Refusal(NBD_ESHUTDOWN, "the server is shutting down");

    /** Room for an error chunk's fields and message, bytes. */
    private static final int ERROR_ROOM = 2 * Integer.BYTES + MAX_STRING;

    private final NbdConnection connection;
    private final Channel channel;
    private final ReplyWriter output;
    private final NbdLimits limits;
    private final PayloadBudget budget;
    private final String export;
    private final BlockDevice device;
    private final RequestValidator validator;
    private final boolean structured;

    /** The request that waits for the budget. */
    private @Nullable Operation awaiting;

    /** The WRITE whose payload is arriving, since when, and when its newest byte came. */
    private @Nullable Operation receiving;

    private long payloadStartNanos;
    private long payloadMovedNanos;

    /** A refused WRITE whose payload is arriving, and how much of it is still to be dropped. */
    private @Nullable Operation draining;

    private long bytesToDrain;

    /** Operations the device has not completed. */
    private int requestsInFlight;

    private long bytesInFlight;
    private boolean throttled;

    /** The client said DISC; nothing it sends counts any more. */
    private boolean ending;

    private boolean shuttingDown;
    private boolean gone;
    private boolean deviceClosed;

    Transmission(NbdConnection connection, String export, BlockDevice device, boolean structured) {
        this.connection = connection;
        this.channel = connection.channel();
        this.output = connection.output();
        this.limits = connection.service().limits();
        this.export = export;
        this.device = device;
        this.validator = new RequestValidator(device.sizeBytes(), device.readOnly(), structured);
        this.structured = structured;
        this.budget = connection.service().budget();
        budget.add(this);
    }

    /** Transmission flags of an export; they promise what this class and the device keep. */
    static int flags(boolean readOnly, boolean structured) {
        return NBD_FLAG_HAS_FLAGS
                | NBD_FLAG_SEND_FLUSH
                | NBD_FLAG_SEND_FUA
                | NBD_FLAG_SEND_TRIM
                | NBD_FLAG_SEND_WRITE_ZEROES
                | NBD_FLAG_SEND_CACHE
                | NBD_FLAG_CAN_MULTI_CONN
                | (readOnly ? NBD_FLAG_READ_ONLY : 0)
                | (structured ? NBD_FLAG_SEND_DF : 0);
    }

    @Override
    public boolean step(StreamInput in) {
        Operation write = receiving;
        if (write != null) {
            return receivePayload(in, write);
        }
        if (draining != null) {
            return drainPayload(in, draining);
        }
        ByteBuf header = in.header(NbdRequest.SIZE);
        if (header == null) {
            return false;
        }
        accept(NbdRequest.decode(header));
        return true;
    }

    /** A payload that has begun is taken to its end: its bytes are counted already. */
    @Override
    public boolean paused() {
        return ending
                || (receiving == null
                        && draining == null
                        && (throttled
                                || awaiting != null
                                || output.clogged()
                                || !channel.isWritable()));
    }

    @Override
    public void onShutdown() {
        shuttingDown = true;
        Operation waiting = stopWaiting();
        if (waiting != null) {
            refuseWithPayload(waiting, SHUTTING_DOWN);
            connection.resumeOrFail();
        }
        endIfIdle();
    }

    @Override
    public void onDisconnect() {
        gone = true;
        budget.remove(this);
        var _ = stopWaiting();
        Operation unfinished = receiving;
        if (unfinished != null) {
            receiving = null;
            uncount(unfinished);
            unfinished.release();
        }
        draining = null;
        closeDeviceIfIdle();
    }

    /**
     * The request that waited goes on in a turn of its own: whoever gave the bytes back is in the
     * middle of something. Until then it is still {@link #awaiting}, so that it can be ended.
     */
    @Override
    public void onGranted() {
        Operation granted = Objects.requireNonNull(awaiting);
        granted.charged = true;
        channel.eventLoop()
                .execute(() -> {
                    if (awaiting == granted) {
                        goOn(granted);
                    }
                });
    }

    private void goOn(Operation granted) {
        awaiting = null;
        long now = connection.service().nanoTime().getAsLong();
        long waited = now - granted.startNanos;
        connection.service().events().payloadWaited(export, granted.bytes(), waited);
        try {
            begin(granted, now);
            connection.resume();
        } catch (RuntimeException | OutOfMemoryError e) {
            connection.fail(e);
        }
    }

    @Override
    public void onCheck(long nowNanos) {
        if (!channel.isOpen()) {
            return;
        }
        NbdLimits.Payloads payloads = limits.payloads();
        Operation write = receiving;
        String reason = write == null ? null : slowness(write, nowNanos, payloads);
        if (reason == null) {
            reason = output.slowness(nowNanos, payloads);
        }
        if (reason != null) {
            connection.evict(export, reason);
        }
    }

    /** Says what is wrong with the payload that is arriving, or null if nothing is. */
    private @Nullable String slowness(Operation write, long nowNanos, NbdLimits.Payloads payloads) {
        int came = write.data().readableBytes();
        if (nowNanos - payloadMovedNanos >= payloads.stallLimit().toNanos()) {
            return "sent nothing for %d ms, and %d bytes of a payload of %d"
                    .formatted(payloads.stallLimit().toMillis(), came, write.bytes());
        }
        long age = nowNanos - payloadStartNanos;
        return budget.pool(write.bytes()).pressed() && payloads.tooSlow(write.bytes(), came, age)
                ? "sent %d bytes of a payload of %d in %d ms, and others wait"
                        .formatted(came, write.bytes(), age / 1_000_000)
                : null;
    }

    /** Returns the request that waited, if any, without what it had been granted. */
    private @Nullable Operation stopWaiting() {
        Operation waiting = awaiting;
        if (waiting != null) {
            awaiting = null;
            if (waiting.charged) {
                waiting.release();
            } else {
                budget.pool(waiting.bytes()).cancel(this);
            }
        }
        return waiting;
    }

    private void accept(NbdRequest request) {
        if (request.type() == NBD_CMD_DISC) {
            ending = true;
            endIfIdle();
            return;
        }
        var operation = new Operation(request, connection.nowNanos());
        Refusal refusal = shuttingDown ? SHUTTING_DOWN : validator.check(request);
        if (refusal != null) {
            refuseWithPayload(operation, refusal);
            return;
        }
        if (operation.bytes() > 0) {
            PayloadBudget.Pool pool = budget.pool(operation.bytes());
            if (!pool.tryTake(operation.bytes())) {
                awaiting = operation;
                pool.await(this, operation.bytes());
                return;
            }
            operation.charged = true;
        }
        begin(operation, connection.nowNanos());
    }

    /** Begins a request that is valid and has what it needs of the budget. */
    private void begin(Operation operation, long nowNanos) {
        if (operation.request.type() != NBD_CMD_WRITE || operation.bytes() == 0) {
            handle(operation);
            return;
        }
        count(operation);
        receiving = operation;
        payloadStartNanos = nowNanos;
        payloadMovedNanos = nowNanos;
        int length = (int) operation.bytes();
        operation.data = channel.alloc().heapBuffer(Math.min(length, PAYLOAD_START), length);
    }

    private boolean receivePayload(StreamInput in, Operation write) {
        ByteBuf data = write.data();
        int missing = (int) write.bytes() - data.readableBytes();
        if (missing == 0) {
            receiving = null;
            handle(write);
            return true;
        }
        if (!data.isWritable()) {
            data.capacity((int) write.bytes());
        }
        if (in.transfer(data, data.writableBytes()) == 0) {
            return false;
        }
        payloadMovedNanos = connection.nowNanos();
        return true;
    }

    private boolean drainPayload(StreamInput in, Operation refused) {
        if (bytesToDrain > 0) {
            int skipped = in.skip(bytesToDrain);
            bytesToDrain -= skipped;
            return skipped > 0;
        }
        draining = null;
        refuse(refused, Objects.requireNonNull(refused.refusal));
        return true;
    }

    /** Hands a validated request, with its payload, to the device. */
    private void handle(Operation operation) {
        NbdRequest request = operation.request;
        if (request.length() == 0 && request.type() != NBD_CMD_FLUSH) {
            // Unspecified by the standard; nothing to do is done, on every command.
            finish(operation, Outcome.OK);
            return;
        }
        boolean fua = request.has(NBD_CMD_FLAG_FUA);
        try {
            switch (request.type()) {
                case NBD_CMD_READ -> read(operation);
                case NBD_CMD_WRITE ->
                        device.write(request.offset(), operation.data(), fua, operation);
                case NBD_CMD_FLUSH -> {
                    count(operation);
                    device.flush(operation);
                }
                case NBD_CMD_TRIM -> zero(operation, true, fua);
                case NBD_CMD_WRITE_ZEROES ->
                        zero(operation, !request.has(NBD_CMD_FLAG_NO_HOLE), fua);
                // A hint; the device has no cache of its own to fill.
                case NBD_CMD_CACHE -> finish(operation, Outcome.OK);
                default -> throw new IllegalStateException("passed validation: " + request);
            }
        } catch (RuntimeException e) {
            LOG.error("export {}: the device failed on {}", export, request, e);
            if (!operation.counted) {
                throw e; // the reply failed, not the device: end the connection
            }
            operation.done(Outcome.IO_ERROR);
        }
    }

    private void read(Operation operation) {
        int length = (int) operation.request.length();
        count(operation);
        try {
            operation.data =
                    length < ReplyWriter.COPY_LIMIT
                            ? channel.alloc().heapBuffer(length, length)
                            : channel.alloc().directBuffer(length, length);
        } catch (OutOfMemoryError e) {
            LOG.warn("export {}: no memory for a read of {} bytes", export, length, e);
            uncount(operation);
            operation.release();
            refuse(operation, new Refusal(NBD_ENOMEM, "out of memory"));
            return;
        }
        device.read(operation.request.offset(), operation.data(), operation);
    }

    private void zero(Operation operation, boolean punch, boolean fua) {
        NbdRequest request = operation.request;
        count(operation);
        device.zero(request.offset(), request.length(), punch, fua, operation);
    }

    private void count(Operation operation) {
        operation.counted = true;
        requestsInFlight++;
        bytesInFlight += operation.bytes();
        throttled |=
                requestsInFlight >= limits.maxRequestsInFlight()
                        || bytesInFlight >= limits.maxBytesInFlight();
    }

    private void uncount(Operation operation) {
        operation.counted = false;
        requestsInFlight--;
        bytesInFlight -= operation.bytes();
        if (throttled
                && requestsInFlight <= limits.maxRequestsInFlight() / 2
                && bytesInFlight <= limits.maxBytesInFlight() / 2) {
            throttled = false;
        }
    }

    private void complete(Operation operation, Outcome outcome) {
        if (!operation.counted) {
            throw new IllegalStateException("completed twice: " + operation.request);
        }
        boolean wasThrottled = throttled;
        uncount(operation);
        if (gone) {
            operation.release();
            closeDeviceIfIdle();
            return;
        }
        try {
            finish(operation, checked(operation, outcome));
        } finally {
            operation.release(); // if there was no memory for the reply
        }
        endIfIdle();
        if (wasThrottled && !throttled) {
            connection.resume();
        }
    }

    /** A device that breaks its contract must not break the stream: a short read is an error. */
    private Outcome checked(Operation operation, Outcome outcome) {
        ByteBuf data = operation.data;
        if (outcome != Outcome.OK || data == null) {
            return outcome;
        }
        if (data.readableBytes() != operation.request.length()) {
            LOG.error(
                    "export {}: the device left {} bytes after {}",
                    export,
                    data.readableBytes(),
                    operation.request);
            return Outcome.IO_ERROR;
        }
        return outcome;
    }

    /** Replies, and gives the operation's buffer away or back. */
    private void finish(Operation operation, Outcome outcome) {
        NbdRequest request = operation.request;
        if (outcome != Outcome.OK) {
            operation.release();
            refuse(operation, new Refusal(errorOf(outcome), "the device said " + outcome));
            return;
        }
        if (request.type() == NBD_CMD_READ) {
            replyData(operation);
        } else {
            operation.release();
            NbdReplyEncoder.simple(
                    output.room(NbdReplyEncoder.SIMPLE_SIZE), request.cookie(), NBD_SUCCESS);
        }
        report(operation, NBD_SUCCESS);
    }

    private void replyData(Operation operation) {
        NbdRequest request = operation.request;
        ByteBuf data = operation.data;
        int length = (int) request.length();
        if (data == null) {
            ByteBuf out = output.room(NbdReplyEncoder.CHUNK_SIZE);
            if (structured) {
                NbdReplyEncoder.none(out, request.cookie());
            } else {
                NbdReplyEncoder.simple(out, request.cookie(), NBD_SUCCESS);
            }
            return;
        }
        boolean copy = length < ReplyWriter.COPY_LIMIT;
        ByteBuf out = output.room(NbdReplyEncoder.OFFSET_DATA_SIZE + (copy ? length : 0));
        if (structured) {
            NbdReplyEncoder.offsetData(out, request.cookie(), request.offset(), length);
        } else {
            NbdReplyEncoder.simple(out, request.cookie(), NBD_SUCCESS);
        }
        operation.data = null;
        operation.charged = false;
        output.owe(length);
        if (copy) {
            out.writeBytes(data);
            data.release();
        } else {
            output.gather(data);
        }
    }

    /** Answers a refused request, once its payload, if there is one, has been dropped. */
    private void refuseWithPayload(Operation operation, Refusal refusal) {
        NbdRequest request = operation.request;
        if (request.type() == NBD_CMD_WRITE && request.length() > 0) {
            operation.refusal = refusal;
            draining = operation;
            bytesToDrain = request.length();
        } else {
            refuse(operation, refusal);
        }
    }

    private void refuse(Operation operation, Refusal refusal) {
        long cookie = operation.request.cookie();
        if (structured) {
            ByteBuf out = output.room(NbdReplyEncoder.CHUNK_SIZE + ERROR_ROOM);
            NbdReplyEncoder.error(out, cookie, refusal.error(), refusal.message());
        } else {
            NbdReplyEncoder.simple(
                    output.room(NbdReplyEncoder.SIMPLE_SIZE), cookie, refusal.error());
        }
        report(operation, refusal.error());
    }

    private void report(Operation operation, int error) {
        connection
                .service()
                .events()
                .requestDone(
                        export,
                        kindOf(operation.request.type()),
                        operation.request.length(),
                        connection.service().nanoTime().getAsLong() - operation.startNanos,
                        error);
    }

    /** Closes the connection once DISC or the server's end has been honoured. */
    private void endIfIdle() {
        if ((ending || shuttingDown) && requestsInFlight == 0) {
            connection.closeAfterFlush();
        }
    }

    private void closeDeviceIfIdle() {
        if (gone && requestsInFlight == 0 && !deviceClosed) {
            deviceClosed = true;
            device.close();
        }
    }

    private static int errorOf(Outcome outcome) {
        return switch (outcome) {
            case OK -> NBD_SUCCESS;
            case IO_ERROR -> NBD_EIO;
            case NOT_PERMITTED -> NBD_EPERM;
            case NO_SPACE -> NBD_ENOSPC;
            case SHUTTING_DOWN -> NBD_ESHUTDOWN;
        };
    }

    private static Kind kindOf(int command) {
        return switch (command) {
            case NBD_CMD_READ -> Kind.READ;
            case NBD_CMD_WRITE -> Kind.WRITE;
            case NBD_CMD_FLUSH -> Kind.FLUSH;
            case NBD_CMD_TRIM -> Kind.TRIM;
            case NBD_CMD_CACHE -> Kind.CACHE;
            case NBD_CMD_WRITE_ZEROES -> Kind.WRITE_ZEROES;
            default -> Kind.OTHER;
        };
    }

    /** One request from its header to its reply. */
    private final class Operation implements BlockDevice.Completion {
        final NbdRequest request;
        final long startNanos;

        /** Payload of a WRITE, or what a READ fills. */
        @Nullable ByteBuf data;

        /** Why a WRITE is not served whose payload is still to be dropped. */
        @Nullable Refusal refusal;

        /** Whether it is among the requests in flight. */
        boolean counted;

        /** Whether {@link #bytes} are taken from the budget. */
        boolean charged;

        Operation(NbdRequest request, long startNanos) {
            this.request = request;
            this.startNanos = startNanos;
        }

        /** Data that it carries or asks for; 0 with commands that have none. */
        long bytes() {
            int type = request.type();
            return type == NBD_CMD_WRITE || type == NBD_CMD_READ ? request.length() : 0;
        }

        ByteBuf data() {
            return Objects.requireNonNull(data);
        }

        /** Gives back the buffer, and its bytes to the budget. Done twice, it does nothing. */
        void release() {
            ByteBuf held = data;
            if (held != null) {
                data = null;
                held.release();
            }
            if (charged) {
                charged = false;
                budget.pool(bytes()).release(bytes());
            }
        }

        @Override
        public void done(Outcome outcome) {
            try {
                complete(this, outcome);
            } catch (RuntimeException | OutOfMemoryError e) {
                // Also parses what the client sent meanwhile. Whoever called is the cluster's side
                // of the device, which must not suffer for one connection.
                connection.fail(e);
            }
        }
    }
}
