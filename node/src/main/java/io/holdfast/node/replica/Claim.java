package io.holdfast.node.replica;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * Who may write an exclusive volume.
 *
 * @param generation rises with every claim; a request of an older one never runs
 * @param node the node through which the holder is attached, 0: nobody holds it
 * @param identity of the holder, empty: nobody holds it
 */
record Claim(long generation, int node, String identity) {
    static final Claim NEVER = new Claim(0, 0, "");

    boolean isHeld() {
        return !identity.isEmpty();
    }

    Claim released() {
        return new Claim(generation, 0, "");
    }

    /** Payload of a CLAIM entry: the holder's node (4 bytes), then its identity in UTF-8. */
    byte[] payload() {
        byte[] name = identity.getBytes(StandardCharsets.UTF_8);
        return ByteBuffer.allocate(4 + name.length).putInt(node).put(name).array();
    }

    static Claim ofPayload(long generation, byte[] payload) {
        ByteBuffer in = ByteBuffer.wrap(payload);
        int node = in.getInt();
        String identity = new String(payload, 4, payload.length - 4, StandardCharsets.UTF_8);
        return new Claim(generation, node, identity);
    }
}
