package io.holdfast.simulation;

import io.holdfast.proto.peer.PeerMessage;

/** What a message goes through between two processes. */
final class Wire {
    private Wire() {}

    /** The message as the other side gets it. Messages are immutable, so it may be the same. */
    static PeerMessage copy(PeerMessage message) {
        return message;
    }
}
