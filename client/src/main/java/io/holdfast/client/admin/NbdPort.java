package io.holdfast.client.admin;

import io.holdfast.config.NodeConfig.Endpoint;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/** Tells an NBD server from an admin interface: people mix the two ports up. */
final class NbdPort {
    /** What an NBD server sends first, unasked. */
    private static final String GREETING = "NBDMAGIC";

    private static final int PATIENCE_MILLIS = 1_000;

    private NbdPort() {}

    /** The address is an NBD server's; no admin interface has seen the request. */
    static final class FoundException extends IOException {
        private static final long serialVersionUID = 1L;

        FoundException(IOException cause) {
            super(
                    "this is an NBD port; a node's admin port is another one, see ADMIN in 'holdfast"
                            + " status' or 'http' in cluster.conf",
                    cause);
        }
    }

    static boolean answersAt(Endpoint address) {
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(address.host(), address.port()), PATIENCE_MILLIS);
            socket.setSoTimeout(PATIENCE_MILLIS);
            byte[] first = socket.getInputStream().readNBytes(GREETING.length());
            return GREETING.equals(new String(first, StandardCharsets.US_ASCII));
        } catch (IOException e) {
            return false;
        }
    }
}
