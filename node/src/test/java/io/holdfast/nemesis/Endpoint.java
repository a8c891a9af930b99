package io.holdfast.nemesis;

import java.net.InetSocketAddress;

/** Where a node listens. */
record Endpoint(String host, int nbd, int http, int peer, int coordination) {
    InetSocketAddress nbdAddress() {
        return new InetSocketAddress(host, nbd);
    }

    String httpAddress() {
        return host + ":" + http;
    }

    /** The line of the cluster's configuration. */
    String configLine(int node) {
        return """
            { number = %d, id = node%d, nbd = "%s:%d", http = "%s:%d", peer = "%s:%d", coordination = "%s:%d" }
        """
                .formatted(node, node, host, nbd, host, http, host, peer, host, coordination);
    }
}
