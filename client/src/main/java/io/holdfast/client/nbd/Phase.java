package io.holdfast.client.nbd;

/** One of the two parts of a connection's life. All calls on its event loop. */
sealed interface Phase permits Handshake, Transmission {
    /**
     * Uses the next piece of the stream.
     *
     * @return whether there may be more to use; false: more must arrive first
     * @throws io.holdfast.proto.peer.MalformedException when the stream is out of step: the
     *     connection must end
     */
    boolean step(StreamInput in);

    /** Whether nothing may be parsed or read now; {@link NbdConnection#resume} ends it. */
    boolean paused();

    /** The server stops: end the connection as soon as the standard allows. */
    void onShutdown();

    /** The client is gone: release what is held. Calls to the device may still be under way. */
    void onDisconnect();
}
