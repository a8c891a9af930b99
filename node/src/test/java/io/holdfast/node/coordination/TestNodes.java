package io.holdfast.node.coordination;

import io.holdfast.config.NodeConfig;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Configurations of a cluster on free loopback ports. */
final class TestNodes {
    /** Of Atomix' log: small, so that it is compacted within a test. */
    static final int SEGMENT_BYTES = 64 << 10;

    private TestNodes() {}

    static List<Integer> freePorts(int count) throws IOException {
        List<ServerSocket> sockets = new ArrayList<>();
        List<Integer> ports = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
            sockets.add(socket);
            ports.add(socket.getLocalPort());
        }
        for (ServerSocket socket : sockets) {
            socket.close();
        }
        return ports;
    }

    /** Configuration of node {@code number}; ports of all nodes by number from 1. */
    static NodeConfig config(int number, List<Integer> ports, Path directory) throws IOException {
        NodeConfig.Endpoint unused = new NodeConfig.Endpoint("127.0.0.1", 1);
        List<NodeConfig.Member> members = new ArrayList<>();
        for (int i = 1; i <= ports.size(); i++) {
            members.add(
                    new NodeConfig.Member(
                            i,
                            "node" + i,
                            unused,
                            unused,
                            unused,
                            new NodeConfig.Endpoint("127.0.0.1", ports.get(i - 1))));
        }
        Path data = directory.resolve("node" + number);
        Files.createDirectories(data);
        return new NodeConfig(
                "test",
                members.get(number - 1),
                members,
                data,
                data.resolve("key"),
                NodeConfig.Scrub.DEFAULT,
                NodeConfig.CatchUp.DEFAULT,
                new NodeConfig.Limits(1, 1, 1, 1, 1, 0));
    }
}
