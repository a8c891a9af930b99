package io.holdfast.client.nbd;

import java.net.SocketAddress;

/** What happens in an NBD server, for metrics. All calls on its event loop; they must not block. */
public interface NbdEvents {
    /** Observes nothing. */
    NbdEvents NONE = new NbdEvents() {};

    /** A client was accepted. */
    default void connectionOpened(SocketAddress remote) {}

    /** A connection that was reported as opened has ended. */
    default void connectionClosed(SocketAddress remote) {}

    /** A client was turned away because the server has as many connections as it may. */
    default void connectionRefused(SocketAddress remote) {}

    /**
     * A connection was closed by the server: time-out, wrong magic number, too many options.
     *
     * @param reason for a human
     */
    default void connectionAborted(SocketAddress remote, String reason) {}

    /**
     * A connection was closed because it held data of requests and made too little progress.
     *
     * @param export name the client used
     * @param reason for a human
     */
    default void connectionEvicted(SocketAddress remote, String export, String reason) {}

    /**
     * A request waited for its share of the memory for all connections, and has it now.
     *
     * @param export name the client used
     * @param lengthBytes of its data
     * @param nanos how long it waited
     */
    default void payloadWaited(String export, long lengthBytes, long nanos) {}

    /**
     * A request was answered; not called for one whose client was gone before.
     *
     * @param export name the client used
     * @param lengthBytes as in the request, also when it was refused
     * @param nanos from reading the request off the socket to its reply
     * @param error 0, or an error value of the standard
     */
    default void requestDone(String export, Kind kind, long lengthBytes, long nanos, int error) {}

    /** What a request wants. */
    enum Kind {
        READ,
        WRITE,
        FLUSH,
        TRIM,
        CACHE,
        WRITE_ZEROES,
        /** Any other command; always refused. */
        OTHER
    }
}
