package io.holdfast.node.replica;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * Who may write an exclusive volume.
 *
 * @param generation rises with every claim; a request of an older one never runs
 * @param node the node through which the holder is attached, 0: nobody holds it
 * @param incarnation of that node's process when it claimed, 0: not known
 * @param identity of the holder, empty: nobody holds it
 */
record Claim(long generation, int node, long incarnation, String identity) {
    static final Claim NEVER = new Claim(0, 0, 0, "");

    private static final int FIXED_BYTES = 12;

    boolean isHeld() {
        return !identity.isEmpty();
    }

    Claim released() {
        return new Claim(generation, 0, 0, "");
    }

    /** Node (4 bytes), incarnation (8), identity in UTF-8; as in a CLAIM entry. */
    byte[] payload() {
        byte[] name = identity.getBytes(StandardCharsets.UTF_8);
        return ByteBuffer.allocate(FIXED_BYTES + name.length)
                .putInt(node)
                .putLong(incarnation)
                .put(name)
                .array();
    }

    static Claim ofPayload(long generation, byte[] payload) {
        ByteBuffer in = ByteBuffer.wrap(payload);
        int node = in.getInt();
        long incarnation = in.getLong();
        String identity =
                new String(
                        payload, FIXED_BYTES, payload.length - FIXED_BYTES, StandardCharsets.UTF_8);
        return new Claim(generation, node, incarnation, identity);
    }
}
