package io.holdfast.client.nbd;

import io.holdfast.proto.peer.MalformedException;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import java.io.IOException;
import java.net.SocketAddress;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One client: takes bytes in, lets the current phase use them, and reads from the socket only while
 * the phase wants more. A streaming parser in one handler; on the channel's event loop throughout.
 */
final class NbdConnection extends ChannelInboundHandlerAdapter {
    private static final Logger LOG = LoggerFactory.getLogger(NbdConnection.class);

    private final Channel channel;
    private final NbdService service;
    private final Consumer<NbdConnection> closed;
    private final SocketAddress remote;
    private final StreamInput input = new StreamInput();
    private final ReplyWriter output;
    private @Nullable Phase phase;
    private boolean processing;
    private boolean closing;
    private long nowNanos;

    /**
     * @param closed called once, when the channel has closed
     */
    NbdConnection(Channel channel, NbdService service, Consumer<NbdConnection> closed) {
        this.channel = channel;
        this.service = service;
        this.closed = closed;
        this.remote = channel.remoteAddress();
        this.output = new ReplyWriter(channel, service.budget(), this::resumeOrFail);
    }

    Channel channel() {
        return channel;
    }

    NbdService service() {
        return service;
    }

    SocketAddress remote() {
        return remote;
    }

    ReplyWriter output() {
        return output;
    }

    /** {@link NbdService#nanoTime} at the start of the current burst of input. */
    long nowNanos() {
        return nowNanos;
    }

    /** Whether nothing will be sent or used any more. */
    boolean closing() {
        return closing;
    }

    @Override
    public void channelActive(ChannelHandlerContext ctx) {
        service.events().connectionOpened(remote);
        phase = new Handshake(this);
    }

    @Override
    public void channelRead(ChannelHandlerContext ctx, Object message) {
        var buffer = (ByteBuf) message;
        if (closing) {
            buffer.release();
            return;
        }
        input.add(buffer);
        output.onReadStart();
        process();
    }

    @Override
    public void channelReadComplete(ChannelHandlerContext ctx) {
        output.onReadEnd();
    }

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext ctx) {
        resume();
    }

    @Override
    public void channelInactive(ChannelHandlerContext ctx) {
        closing = true;
        input.release();
        output.release();
        Phase current = phase;
        if (current != null) {
            current.onDisconnect();
            service.events().connectionClosed(remote);
        }
        closed.accept(this);
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext ctx, Throwable cause) {
        fail(cause);
    }

    /** Closes because something went wrong here. */
    void fail(Throwable cause) {
        if (cause instanceof IOException) {
            LOG.debug("nbd client {}: {}", remote, cause.toString());
        } else {
            LOG.error("nbd client {}: closing the connection", remote, cause);
        }
        closeNow();
    }

    /** Goes on with input that was held back, if the phase allows it now. */
    void resume() {
        if (!processing && !closing) {
            process();
        }
    }

    /** The same, for callers that must not suffer for one connection. */
    void resumeOrFail() {
        try {
            resume();
        } catch (RuntimeException | OutOfMemoryError e) {
            fail(e);
        }
    }

    /** Ends the handshake; the next byte belongs to {@code next}. */
    void enter(Phase next) {
        phase = next;
    }

    /** The server stops. */
    void onShutdown() {
        Phase current = phase;
        if (current != null && !closing) {
            current.onShutdown();
        }
    }

    /**
     * Sends what is gathered, then closes; closes anyway if the client does not take it in time.
     */
    void closeAfterFlush() {
        if (closing) {
            return;
        }
        closing = true;
        output.flush();
        channel.writeAndFlush(Unpooled.EMPTY_BUFFER).addListener(ChannelFutureListener.CLOSE);
        var deadline =
                channel.eventLoop()
                        .schedule(
                                this::closeNow,
                                service.limits().shutdownGrace().toMillis(),
                                TimeUnit.MILLISECONDS);
        channel.closeFuture().addListener(_ -> deadline.cancel(false));
    }

    /** Closes because the client broke the protocol or a limit. */
    void abort(String reason) {
        if (closing) {
            return;
        }
        LOG.info("nbd client {}: closing the connection: {}", remote, reason);
        service.events().connectionAborted(remote, reason);
        closeNow();
    }

    /** Closes because the client holds memory that others wait for, or does nothing with it. */
    void evict(String export, String reason) {
        if (!channel.isOpen()) {
            return;
        }
        LOG.info("nbd client {}, export {}: closing the connection: {}", remote, export, reason);
        service.events().connectionEvicted(remote, export, reason);
        closeNow();
    }

    void closeNow() {
        closing = true;
        var _ = channel.close();
    }

    /**
     * Lets the phase use the input. A device that completes in the same call stack comes back here
     * through {@link #resume}; the flag keeps that from nesting, since this loop goes on anyway.
     */
    private void process() {
        if (phase == null) {
            return;
        }
        processing = true;
        nowNanos = service.nanoTime().getAsLong();
        try {
            boolean more = true;
            while (more && !closing && !phase().paused()) {
                more = phase().step(input);
            }
        } catch (MalformedException e) {
            abort(String.valueOf(e.getMessage()));
        } finally {
            processing = false;
        }
        if (closing) {
            input.release();
            return;
        }
        input.trim();
        boolean wanted = !phase().paused();
        if (channel.config().isAutoRead() != wanted) {
            channel.config().setAutoRead(wanted);
        }
    }

    private Phase phase() {
        return Objects.requireNonNull(phase);
    }
}
