package io.holdfast.client.nbd;

import io.holdfast.client.ClientIdentity;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.epoll.EpollIoHandler;
import java.util.concurrent.TimeUnit;

/** A server over memory on a loop of its own, for tests with real sockets; also a program. */
final class MemoryServer implements AutoCloseable {
    private static final long TIMEOUT_SECONDS = 20;

    final MultiThreadIoEventLoopGroup group =
            new MultiThreadIoEventLoopGroup(1, EpollIoHandler.newFactory());
    final MemoryExports exports = new MemoryExports();
    final NbdServer server;
    final int port;

    MemoryServer(NbdLimits limits, NbdEvents events) throws Exception {
        server =
                new NbdServer(
                        group.next(),
                        exports,
                        limits,
                        address -> new ClientIdentity(String.valueOf(address)),
                        events);
        port = server.bind("127.0.0.1", 0).get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
    }

    String uri(String export) {
        return "nbd://127.0.0.1:%d/%s".formatted(port, export);
    }

    /** Runs an action on the server's loop, and returns when it is done. */
    void onLoop(Runnable action) throws Exception {
        group.next().submit(action).get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
    }

    @Override
    public void close() {
        server.close().orTimeout(TIMEOUT_SECONDS, TimeUnit.SECONDS).join();
        var _ = group.shutdownGracefully(0, 1, TimeUnit.SECONDS).awaitUninterruptibly();
    }

    /** Serves an export "memory" of so many MiB until killed, to measure with fio. */
    public static void main(String[] args) throws Exception {
        var server = new MemoryServer(NbdLimits.DEFAULT, NbdEvents.NONE);
        server.exports.add("memory", Integer.parseInt(args[0]) << 20, false);
        System.out.println(server.uri("memory"));
        server.group.terminationFuture().await();
    }
}
