package io.holdfast.client.nbd;

import static io.holdfast.proto.nbd.NbdProtocol.*;

import io.holdfast.client.BlockDevice;
import io.holdfast.client.ClientIdentity;
import io.holdfast.client.Exports;
import io.holdfast.proto.nbd.NbdHandshakeEncoder;
import io.holdfast.proto.nbd.NbdOption;
import io.holdfast.proto.peer.MalformedException;
import io.netty.buffer.ByteBuf;
import java.util.Optional;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Option haggling: takes each option in, or drains it when it is too long, and hands it to its
 * handler. What was agreed so far is kept here. Ends by entering {@link Transmission} or by closing
 * the connection; a timer bounds it.
 */
final class Handshake implements Phase {
    /** Room for an option reply without text, bytes; generous. */
    private static final int REPLY_ROOM = 64;

    private final NbdConnection connection;
    private final NbdLimits limits;
    private final ClientIdentity identity;
    private final Future<?> timeout;

    private boolean greeted;
    private boolean noZeroes;
    private boolean structuredReplies;

    private int optionCount;
    private long drainedBytes;
    private @Nullable NbdOption option;

    /** Data of {@link #option} as far as it has arrived; null while it is drained. */
    private @Nullable ByteBuf data;

    private long bytesToDrain;
    private boolean waiting;

    Handshake(NbdConnection connection) {
        this.connection = connection;
        this.limits = connection.service().limits();
        this.identity = connection.service().identify().apply(connection.remote());
        NbdHandshakeEncoder.greeting(connection.output().room(REPLY_ROOM));
        connection.output().flush();
        this.timeout =
                connection
                        .channel()
                        .eventLoop()
                        .schedule(
                                () -> connection.abort("handshake took too long"),
                                limits.handshakeTimeout().toMillis(),
                                TimeUnit.MILLISECONDS);
    }

    @Override
    public boolean step(StreamInput in) {
        if (!greeted) {
            return readClientFlags(in);
        }
        NbdOption current = option;
        if (current == null) {
            return readHeader(in);
        }
        ByteBuf target = data;
        if (target == null) {
            return drain(in, current);
        }
        int missing = (int) current.length() - target.readableBytes();
        if (missing > 0) {
            return in.transfer(target, missing) > 0;
        }
        option = null;
        data = null;
        try {
            handle(current, target);
        } finally {
            target.release();
        }
        return true;
    }

    @Override
    public boolean paused() {
        return waiting || connection.output().clogged() || !connection.channel().isWritable();
    }

    @Override
    public void onShutdown() {
        connection.closeAfterFlush();
    }

    @Override
    public void onDisconnect() {
        timeout.cancel(false);
        ByteBuf unfinished = data;
        if (unfinished != null) {
            data = null;
            unfinished.release();
        }
    }

    boolean noZeroes() {
        return noZeroes;
    }

    boolean structuredReplies() {
        return structuredReplies;
    }

    void agreeOnStructuredReplies() {
        structuredReplies = true;
    }

    ClientIdentity identity() {
        return identity;
    }

    Exports exports() {
        return connection.service().exports();
    }

    /** Buffer for an option reply with {@code textBytes} of text. */
    ByteBuf reply(int textBytes) {
        return connection.output().room(REPLY_ROOM + textBytes);
    }

    void ack(NbdOption to) {
        NbdHandshakeEncoder.ack(reply(0), to.number());
    }

    void error(NbdOption to, int type, String message) {
        NbdHandshakeEncoder.error(reply(MAX_STRING), to.number(), type, message);
    }

    /** Soft disconnect: what was answered goes out first. */
    void closeAfterFlush() {
        connection.closeAfterFlush();
    }

    /** Hard disconnect, where the standard leaves no other answer. */
    void abort(String reason) {
        connection.abort(reason);
    }

    /** Opens an export; no further option is looked at until {@code then} has run. */
    void open(String name, Consumer<Optional<BlockDevice>> then) {
        waiting = true;
        exports()
                .open(
                        name,
                        identity,
                        device -> {
                            if (connection.closing()) {
                                device.ifPresent(BlockDevice::close);
                                return;
                            }
                            answered(device, then);
                        });
    }

    /** Describes an export; no further option is looked at until {@code then} has run. */
    void describe(String name, Consumer<Optional<Exports.Description>> then) {
        waiting = true;
        exports().describe(name, identity, description -> answered(description, then));
    }

    /** Goes on to the transmission phase, with the reply that lets the client do so written. */
    void enterTransmission(String export, BlockDevice device) {
        timeout.cancel(false);
        connection.enter(new Transmission(connection, export, device, structuredReplies));
    }

    private <T> void answered(T answer, Consumer<T> then) {
        waiting = false;
        if (!connection.closing()) {
            then.accept(answer);
            connection.resume();
        }
    }

    private boolean readClientFlags(StreamInput in) {
        ByteBuf header = in.header(Integer.BYTES);
        if (header == null) {
            return false;
        }
        int flags = header.readInt();
        if ((flags & ~(NBD_FLAG_C_FIXED_NEWSTYLE | NBD_FLAG_C_NO_ZEROES)) != 0) {
            connection.abort("client flags 0x" + Integer.toHexString(flags));
            return false;
        }
        noZeroes = (flags & NBD_FLAG_C_NO_ZEROES) != 0;
        greeted = true;
        return true;
    }

    private boolean readHeader(StreamInput in) {
        ByteBuf header = in.header(NbdOption.SIZE);
        if (header == null) {
            return false;
        }
        NbdOption next = NbdOption.decode(header);
        optionCount++;
        if (optionCount > limits.maxOptions()) {
            connection.abort("more than %d options".formatted(limits.maxOptions()));
            return false;
        }
        option = next;
        if (next.length() > limits.maxOptionBytes()) {
            drainedBytes += next.length();
            if (drainedBytes > limits.maxDrainedBytes()) {
                connection.abort("options of %d bytes".formatted(drainedBytes));
                return false;
            }
            bytesToDrain = next.length();
        } else {
            data = connection.channel().alloc().heapBuffer((int) next.length());
        }
        return true;
    }

    private boolean drain(StreamInput in, NbdOption current) {
        if (bytesToDrain > 0) {
            int skipped = in.skip(bytesToDrain);
            bytesToDrain -= skipped;
            return skipped > 0;
        }
        option = null;
        if (current.number() == NBD_OPT_EXPORT_NAME) {
            connection.abort("export name of %d bytes".formatted(current.length()));
            return false;
        }
        error(
                current,
                NBD_REP_ERR_TOO_BIG,
                "option data of %d bytes, limit %d"
                        .formatted(current.length(), limits.maxOptionBytes()));
        return true;
    }

    private void handle(NbdOption current, ByteBuf body) {
        OptionHandlers.Handler handler = OptionHandlers.of(current.number());
        if (handler == null) {
            error(
                    current,
                    NBD_REP_ERR_UNSUP,
                    "option " + Integer.toUnsignedString(current.number()) + " is not supported");
            return;
        }
        try {
            handler.handle(this, current, body);
        } catch (MalformedException e) {
            if (current.number() == NBD_OPT_EXPORT_NAME) {
                throw e; // the only option without an error reply
            }
            error(current, NBD_REP_ERR_INVALID, String.valueOf(e.getMessage()));
        }
    }
}
