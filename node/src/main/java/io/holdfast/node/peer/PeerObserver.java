package io.holdfast.node.peer;

import io.holdfast.proto.peer.PeerMessage;

/** What the links count. Called on the data loop, must be quick and not throw. */
public interface PeerObserver {
    /** Counts nothing. */
    PeerObserver NONE = new PeerObserver() {};

    /** A connection came up. */
    default void connected(int peer) {}

    /** A connection that was up is gone. */
    default void disconnected(int peer) {}

    /** A message was dropped: not connected, or too many bytes wait. */
    default void dropped(int to, PeerMessage message) {}

    /** Bytes were handed to the operating system's side of a connection. */
    default void sent(int to, long bytes) {}

    /** Bytes arrived. */
    default void received(int from, long bytes) {}

    /** A connection was refused before it was up. */
    default void refused() {}

    /** A connection was closed for bytes that are no message. */
    default void malformed(int from) {}
}
