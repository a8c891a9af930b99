package io.holdfast.node.peer;

import io.holdfast.node.port.PeerLinks;
import io.holdfast.proto.peer.ClientRequest;
import io.holdfast.proto.peer.Hello;
import io.holdfast.proto.peer.MalformedException;
import io.holdfast.proto.peer.PeerCodec;
import io.holdfast.proto.peer.PeerMessage;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelOutboundBuffer;
import org.jspecify.annotations.Nullable;

/**
 * One TCP connection: first the hellos, then frames both ways. Data loop only.
 *
 * <p>States: waiting (until {@link NettyPeerLinks} has judged the peer's hello), up, closed. After
 * closed nothing is delivered any more, even if bytes are left in the read at hand.
 */
// Failures of writes come to exceptionCaught, as they are under the void promise.
@SuppressWarnings("FutureReturnValueIgnored")
final class PeerConnection extends ChannelInboundHandlerAdapter {
    /**
     * Messages are gathered in buffers of this size; small enough for Netty's per-thread cache. A
     * message that does not fit what is left goes into the next buffer, and one flush writes them
     * all with one gathering call.
     */
    private static final int CHUNK_BYTES = 32 << 10;

    private final NettyPeerLinks links;
    private final Channel channel;
    private final FrameParser parser;

    /** Node that was dialled, 0: this connection was accepted. */
    final int dialled;

    /** When the connection was made; for the hello's time-out. */
    final long sinceNanos;

    /** Number of the peer once up, before that {@link RateLimitedLog#STRANGER} or the dialled. */
    int peer;

    private State state = State.WAITING;
    private @Nullable ByteBuf hello;
    private @Nullable ByteBuf chunk;
    private boolean unflushed;
    private long unflushedBytes;
    private boolean sentSinceTick;
    private long lastReceivedNanos;

    PeerConnection(NettyPeerLinks links, Channel channel, int dialled, long nowNanos) {
        this.links = links;
        this.channel = channel;
        this.dialled = dialled;
        peer = dialled;
        parser = new FrameParser(channel.alloc());
        sinceNanos = nowNanos;
        lastReceivedNanos = nowNanos;
    }

    private enum State {
        WAITING,
        UP,
        CLOSED
    }

    boolean isUp() {
        return state == State.UP;
    }

    /** The peer's hello was accepted: from here on frames. */
    void becomeUp(int number) {
        if (state != State.WAITING) {
            throw new IllegalStateException("connection to " + peer + " is " + state);
        }
        state = State.UP;
        peer = number;
    }

    /** Closes once; the links hear of it before this returns. */
    void close() {
        if (state == State.CLOSED) {
            return;
        }
        boolean wasUp = state == State.UP;
        state = State.CLOSED;
        parser.close();
        hello = released(hello);
        chunk = released(chunk);
        channel.close();
        links.closed(this, wasUp);
    }

    private static @Nullable ByteBuf released(@Nullable ByteBuf buffer) {
        if (buffer != null) {
            buffer.release();
        }
        return null;
    }

    String address() {
        return String.valueOf(channel.remoteAddress());
    }

    void sendHello(Hello mine) {
        ByteBuf out = channel.alloc().directBuffer(Hello.MAX_SIZE);
        mine.encode(out);
        channel.writeAndFlush(out, channel.voidPromise());
    }

    /**
     * Queues a message.
     *
     * @return false: too many bytes wait already, the message is dropped
     * @throws IllegalStateException the message breaks a limit of the protocol
     */
    boolean send(PeerMessage message, long queuedBytesMost) {
        int size = PeerCodec.encodedSize(message);
        if (queuedBytes() + size > queuedBytesMost) {
            return false;
        }
        ByteBuf out = chunk;
        if (out == null || out.writableBytes() < size) {
            if (out != null) {
                channel.write(out, channel.voidPromise());
            }
            out = channel.alloc().directBuffer(Math.max(CHUNK_BYTES, size));
            chunk = out;
        }
        PeerCodec.encode(message, out);
        unflushedBytes += size;
        boolean first = !unflushed;
        unflushed = true;
        if (first) {
            links.toFlush(this);
        }
        return true;
    }

    private long queuedBytes() {
        ChannelOutboundBuffer outbound = channel.unsafe().outboundBuffer();
        long written = outbound == null ? 0 : outbound.totalPendingWriteBytes();
        return written + (chunk == null ? 0 : chunk.readableBytes());
    }

    /** Writes what is queued, as far as the socket takes it; the rest follows by itself. */
    void flush() {
        if (!unflushed || state == State.CLOSED) {
            return;
        }
        unflushed = false;
        sentSinceTick = true;
        ByteBuf out = chunk;
        chunk = null;
        links.countSent(peer, unflushedBytes);
        unflushedBytes = 0;
        if (out == null) {
            channel.flush();
        } else {
            channel.writeAndFlush(out, channel.voidPromise());
        }
    }

    /**
     * Once per ping interval: notices a dead peer, and says something when nothing else was said.
     *
     * @param judge false: this loop itself stood still, so that silence says nothing of the peer
     */
    void tick(long nowNanos, boolean judge, PeerLimits limits) {
        if (state == State.WAITING) {
            if (nowNanos - sinceNanos > limits.helloMillis() * 1_000_000L) {
                links.refuse(this, "said no hello in time");
            }
            return;
        }
        if (judge && nowNanos - lastReceivedNanos > limits.silenceMillis() * 1_000_000L) {
            links.silent(this);
            return;
        }
        if (!sentSinceTick) {
            ByteBuf ping = channel.alloc().directBuffer(PeerCodec.LENGTH_SIZE);
            channel.writeAndFlush(ping.writeInt(0), channel.voidPromise());
        }
        sentSinceTick = false;
    }

    @Override
    public void channelActive(ChannelHandlerContext context) {
        links.opened(this);
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        ByteBuf in = (ByteBuf) message;
        try {
            if (state != State.CLOSED) {
                lastReceivedNanos = links.now();
                links.countReceived(peer, in.readableBytes());
                received(in);
            }
        } finally {
            in.release();
        }
    }

    private void received(ByteBuf in) {
        if (state == State.WAITING) {
            readHello(in);
        }
        while (state == State.UP) {
            PeerMessage next;
            try {
                next = parser.next(in);
                if (next == null) {
                    return;
                }
                if (peer >= PeerLinks.FIRST_AGENT && !(next instanceof ClientRequest)) {
                    throw new MalformedException(
                            "an agent sent " + next.getClass().getSimpleName());
                }
            } catch (MalformedException e) {
                links.malformed(this, e);
                return;
            }
            links.deliver(peer, next);
        }
    }

    private void readHello(ByteBuf in) {
        ByteBuf begun = hello;
        if (begun == null) {
            begun = channel.alloc().directBuffer(Hello.MAX_SIZE, Hello.MAX_SIZE);
            hello = begun;
        }
        int held = begun.readableBytes();
        begun.writeBytes(in, in.readerIndex(), Math.min(begun.writableBytes(), in.readableBytes()));
        Hello whole;
        try {
            whole = Hello.decode(begun);
        } catch (MalformedException e) {
            links.refuse(this, "sent no hello: " + e.getMessage());
            return;
        }
        if (whole == null) {
            in.skipBytes(in.readableBytes());
            return;
        }
        int used = begun.readerIndex() - held;
        hello = released(begun);
        // Of another version nothing was taken, and the connection does not come up.
        in.skipBytes(Math.max(used, 0));
        links.judge(this, whole);
    }

    @Override
    public void channelReadComplete(ChannelHandlerContext context) {
        links.endTurn();
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
        if (state == State.WAITING) {
            links.refuse(this, "closed without a hello");
        } else {
            close();
        }
        links.endTurn();
    }

    /**
     * A failed read or write, or an exception from the receiver of a message. Handled in a turn of
     * its own: a failed write comes here from within send or flush, whose caller must not be told
     * of a lost connection in the middle of its work.
     */
    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
        channel.eventLoop()
                .execute(() -> {
                    if (state != State.CLOSED) {
                        links.failed(this, cause);
                    }
                });
    }
}
