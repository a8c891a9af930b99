package io.holdfast.simulation;

import static io.holdfast.simulation.SimFailure.check;

import io.holdfast.proto.peer.PeerCodec;
import io.holdfast.proto.peer.PeerMessage;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;

/** What a message goes through between two processes: the production codec, there and back. */
final class Wire {
    private Wire() {}

    /** The message as the other side gets it. */
    static PeerMessage copy(PeerMessage message) {
        ByteBuf frame = Unpooled.buffer(PeerCodec.encodedSize(message));
        PeerCodec.encode(message, frame);
        PeerMessage arrived = PeerCodec.decode(frame);
        check(!frame.isReadable(), "codec", "bytes left after ", arrived);
        return arrived;
    }
}
