package io.holdfast.client.nbd;

import io.holdfast.client.ClientIdentity;
import io.holdfast.client.Exports;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.PooledByteBufAllocator;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.FixedRecvByteBufAllocator;
import io.netty.channel.IoEventLoop;
import io.netty.channel.ServerChannel;
import io.netty.channel.WriteBufferWaterMark;
import io.netty.channel.epoll.EpollIoHandler;
import io.netty.channel.epoll.EpollServerDomainSocketChannel;
import io.netty.channel.epoll.EpollServerSocketChannel;
import io.netty.channel.unix.DomainSocketAddress;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Serves exports to NBD clients over TCP and Unix sockets. Listeners and connections live on one
 * event loop, which is also the thread of all calls to {@link Exports} and the devices; the public
 * methods may be called from any thread.
 */
public final class NbdServer {
    private static final Logger LOG = LoggerFactory.getLogger(NbdServer.class);

    /** What is read from a socket at once, bytes. */
    private static final int RECEIVE_BUFFER = 128 << 10;

    /** Connections that wait to be accepted. */
    private static final int BACKLOG = 128;

    private final IoEventLoop loop;
    private final NbdService service;

    private final List<Channel> listeners = new ArrayList<>();
    private final List<Path> sockets = new ArrayList<>();
    private final Set<NbdConnection> connections = new LinkedHashSet<>();
    private final CompletableFuture<Void> closed = new CompletableFuture<>();
    private boolean closing;

    /**
     * @param loop an epoll event loop
     * @param identify who a client is, by its address; called on the loop
     */
    public NbdServer(
            IoEventLoop loop,
            Exports exports,
            NbdLimits limits,
            Function<SocketAddress, ClientIdentity> identify,
            NbdEvents events) {
        if (!loop.isIoType(EpollIoHandler.class)) {
            throw new IllegalArgumentException("not an epoll event loop: " + loop);
        }
        this.loop = loop;
        long checkMillis = limits.payloads().checkPeriod().toMillis();
        var budget =
                new PayloadBudget(
                        limits.payloads(),
                        System::nanoTime,
                        check -> {
                            var _ = loop.schedule(check, checkMillis, TimeUnit.MILLISECONDS);
                        });
        this.service = new NbdService(exports, limits, budget, identify, events, System::nanoTime);
    }

    /** On the loop. */
    PayloadBudget budget() {
        return service.budget();
    }

    /**
     * Listens on a TCP port.
     *
     * @param port 0: any free one
     * @return the port, or what bind said
     */
    public CompletableFuture<Integer> bind(String host, int port) {
        var bound = new CompletableFuture<Integer>();
        ServerBootstrap bootstrap =
                bootstrap(EpollServerSocketChannel.class)
                        .option(ChannelOption.SO_REUSEADDR, true)
                        .childOption(ChannelOption.TCP_NODELAY, true)
                        .childOption(ChannelOption.SO_KEEPALIVE, true);
        ChannelFuture binding = bootstrap.bind(host, port);
        binding.addListener(_ -> {
            if (binding.isSuccess() && onBound(binding.channel())) {
                var address = (InetSocketAddress) binding.channel().localAddress();
                LOG.info("nbd: listening on {}", address);
                bound.complete(address.getPort());
            } else {
                bound.completeExceptionally(failure(binding));
            }
        });
        return bound;
    }

    /**
     * Listens on a Unix socket; {@link #close} removes its file.
     *
     * @param socket a path where nothing is yet
     * @return completes when clients can connect, or with what bind said
     */
    public CompletableFuture<Void> bind(Path socket) {
        var bound = new CompletableFuture<Void>();
        ChannelFuture binding =
                bootstrap(EpollServerDomainSocketChannel.class)
                        .bind(new DomainSocketAddress(socket.toFile()));
        binding.addListener(_ -> {
            if (binding.isSuccess() && onBound(binding.channel())) {
                sockets.add(socket);
                LOG.info("nbd: listening on {}", socket);
                bound.complete(null);
            } else {
                bound.completeExceptionally(failure(binding));
            }
        });
        return bound;
    }

    /**
     * Stops accepting, answers new requests with NBD_ESHUTDOWN, lets requests under way end for
     * {@link NbdLimits#shutdownGrace}, and closes all connections.
     *
     * @return completes on the loop when no connection is left; the same one on every call
     */
    public CompletableFuture<Void> close() {
        loop.execute(this::closeOnLoop);
        return closed;
    }

    private void closeOnLoop() {
        if (closing) {
            return;
        }
        closing = true;
        for (Channel listener : listeners) {
            var _ = listener.close();
        }
        for (Path socket : sockets) {
            try {
                Files.deleteIfExists(socket);
            } catch (IOException e) {
                LOG.warn("nbd: cannot remove {}", socket, e);
            }
        }
        for (NbdConnection connection : List.copyOf(connections)) {
            connection.onShutdown();
        }
        var deadline =
                loop.schedule(
                        this::closeRemaining,
                        service.limits().shutdownGrace().toMillis(),
                        TimeUnit.MILLISECONDS);
        var _ = closed.thenRun(() -> deadline.cancel(false));
        completeIfEmpty();
    }

    private void closeRemaining() {
        for (NbdConnection connection : List.copyOf(connections)) {
            LOG.warn("nbd client {}: closing with requests under way", connection.remote());
            connection.closeNow();
        }
    }

    private void completeIfEmpty() {
        if (closing && connections.isEmpty()) {
            closed.complete(null);
        }
    }

    /** Whether a listener that was bound may stay: not if {@link #close} came first. */
    private boolean onBound(Channel listener) {
        if (closing) {
            var _ = listener.close();
            return false;
        }
        listeners.add(listener);
        return true;
    }

    private static Throwable failure(ChannelFuture binding) {
        Throwable cause = binding.cause();
        return cause != null ? cause : new IllegalStateException("the server is closed");
    }

    private ServerBootstrap bootstrap(Class<? extends ServerChannel> type) {
        int high = service.limits().outboundHighBytes();
        return new ServerBootstrap()
                .group(loop)
                .channel(type)
                .option(ChannelOption.SO_BACKLOG, BACKLOG)
                .childOption(ChannelOption.ALLOCATOR, PooledByteBufAllocator.DEFAULT)
                .childOption(
                        ChannelOption.RECVBUF_ALLOCATOR,
                        new FixedRecvByteBufAllocator(RECEIVE_BUFFER))
                .childOption(
                        ChannelOption.WRITE_BUFFER_WATER_MARK,
                        new WriteBufferWaterMark(high / 2, high))
                .childHandler(
                        new ChannelInitializer<Channel>() {
                            @Override
                            protected void initChannel(Channel channel) {
                                accept(channel);
                            }
                        });
    }

    private void accept(Channel channel) {
        if (closing || connections.size() >= service.limits().maxConnections()) {
            LOG.debug(
                    "nbd client {}: refused, {} are served",
                    channel.remoteAddress(),
                    connections.size());
            service.events().connectionRefused(channel.remoteAddress());
            var _ = channel.close();
            return;
        }
        var connection = new NbdConnection(channel, service, this::onClosed);
        connections.add(connection);
        channel.pipeline().addLast(connection);
    }

    private void onClosed(NbdConnection connection) {
        connections.remove(connection);
        completeIfEmpty();
    }
}
