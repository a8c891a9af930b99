package io.holdfast.integration;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;

/**
 * The replication connections of a local cluster, each through a relay that can hold up what
 * passes: a far or slow node. Order is kept, nothing is lost. (The kernels these tests run on have
 * no {@code tc netem}.)
 *
 * <pre>
 * node i --"address of node j", made for i alone--> relay (i, j) --> peer port of node j
 * </pre>
 */
final class DelayedLinks implements AutoCloseable {
    private static final int CHUNK_BYTES = 64 << 10;

    /** Chunks under way in one direction of one connection; beyond, TCP holds back the sender. */
    private static final int CHUNKS = 256;

    private record Chunk(long dueNanos, byte[] bytes) {}

    private final LocalCluster cluster;
    private final int nodes;
    private final Map<Integer, Long> delayNanos = new ConcurrentHashMap<>();
    private final List<ServerSocket> relays = new ArrayList<>();

    private DelayedLinks(LocalCluster cluster, int nodes) {
        this.cluster = cluster;
        this.nodes = nodes;
    }

    /** Puts relays between the nodes of a cluster, which are restarted for it. */
    static DelayedLinks between(LocalCluster cluster, int nodes) throws IOException {
        DelayedLinks links = new DelayedLinks(cluster, nodes);
        try {
            cluster.cli("down").succeeds();
            for (int node = 1; node <= nodes; node++) {
                Files.writeString(
                        cluster.nodeDir(node).resolve("node.conf"),
                        links.addressesFor(node),
                        StandardOpenOption.APPEND);
            }
            cluster.up();
        } catch (IOException | RuntimeException | Error e) {
            links.close();
            throw e;
        }
        return links;
    }

    /** From now on whatever a node sends to others, or they to it, arrives later by this. */
    void delay(int node, Duration oneWay) {
        delayNanos.put(node, oneWay.toNanos());
    }

    private long delayNanos(int from, int to) {
        return Math.max(delayNanos.getOrDefault(from, 0L), delayNanos.getOrDefault(to, 0L));
    }

    private String addressesFor(int node) throws IOException {
        StringBuilder list = new StringBuilder("\ncluster.nodes = [\n");
        for (int other = 1; other <= nodes; other++) {
            int peer = other == node ? cluster.peerPort(other) : relay(node, other);
            list.append("  {number = %d, id = node%d, ".formatted(other, other))
                    .append(address("nbd", cluster.nbdPort(other)))
                    .append(address("http", cluster.httpPort(other)))
                    .append(address("peer", peer))
                    .append(address("coordination", cluster.coordinationPort(other)))
                    .append("}\n");
        }
        return list.append("]\n").toString();
    }

    private static String address(String name, int port) {
        return "%s = \"127.0.0.1:%d\", ".formatted(name, port);
    }

    /** Makes the relay from one node to another and says where it listens. */
    private int relay(int from, int to) throws IOException {
        ServerSocket listener = new ServerSocket(0, 16, InetAddress.getLoopbackAddress());
        relays.add(listener);
        Thread.ofVirtual().start(() -> accept(listener, from, to));
        return listener.getLocalPort();
    }

    private void accept(ServerSocket listener, int from, int to) {
        try {
            while (true) {
                Socket caller = listener.accept();
                Socket called = new Socket();
                try {
                    called.connect(
                            new InetSocketAddress(
                                    InetAddress.getLoopbackAddress(), cluster.peerPort(to)));
                    caller.setTcpNoDelay(true);
                    called.setTcpNoDelay(true);
                    carry(caller, called, from, to);
                    carry(called, caller, to, from);
                } catch (IOException notThere) {
                    end(caller, called);
                }
            }
        } catch (IOException closed) {
            // The test is over.
        }
    }

    private void carry(Socket source, Socket sink, int from, int to) throws IOException {
        BlockingQueue<Chunk> underWay = new ArrayBlockingQueue<>(CHUNKS);
        InputStream in = source.getInputStream();
        OutputStream out = sink.getOutputStream();
        Thread writer =
                Thread.ofVirtual()
                        .start(() -> {
                            deliver(underWay, out);
                            end(source, sink);
                        });
        Thread.ofVirtual()
                .start(() -> {
                    take(in, underWay, from, to);
                    writer.interrupt();
                });
    }

    private void take(InputStream in, BlockingQueue<Chunk> underWay, int from, int to) {
        byte[] buffer = new byte[CHUNK_BYTES];
        try {
            for (int read = in.read(buffer); read >= 0; read = in.read(buffer)) {
                byte[] bytes = Arrays.copyOf(buffer, read);
                underWay.put(new Chunk(System.nanoTime() + delayNanos(from, to), bytes));
            }
        } catch (IOException | InterruptedException over) {
            // The connection ends with either side.
        }
    }

    private static void deliver(BlockingQueue<Chunk> underWay, OutputStream out) {
        try {
            while (true) {
                Chunk chunk = underWay.take();
                for (long left = chunk.dueNanos - System.nanoTime();
                        left > 0 && !Thread.currentThread().isInterrupted();
                        left = chunk.dueNanos - System.nanoTime()) {
                    LockSupport.parkNanos(left);
                }
                out.write(chunk.bytes);
            }
        } catch (IOException | InterruptedException over) {
            // The connection ends with either side.
        }
    }

    private static void end(Socket... sockets) {
        for (Socket socket : sockets) {
            try {
                socket.close();
            } catch (IOException e) {
                // It was broken before.
            }
        }
    }

    /** Ends the relays; the nodes do not reach each other any more. */
    @Override
    public void close() {
        for (ServerSocket relay : relays) {
            try {
                relay.close();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }
}
