package io.holdfast.node.replica;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * Who may write an exclusive volume, or was the last who might.
 *
 * @param generation rises with every claim; a request of an older one never runs
 * @param held whether the holder still has it
 * @param node the node through which the holder is attached, 0: not held
 * @param incarnation of that node's process when it claimed, 0: not known
 * @param identity of the holder, empty: never claimed, or void since a power loss
 * @param session of the holder: tells its attachments apart, the newest has the highest
 */
record Claim(
        long generation, boolean held, int node, long incarnation, String identity, int session) {
    static final Claim NEVER = voidSince(0);

    private static final int FIXED_BYTES = 12;

    /** Nobody's. */
    static Claim voidSince(long generation) {
        return new Claim(generation, false, 0, 0, "", 0);
    }

    Claim released() {
        return new Claim(generation, false, 0, 0, identity, session);
    }

    /** Identity of who holds it now, empty: nobody. */
    String holder() {
        return held ? identity : "";
    }

    /** Whether the same attachment of the same client asks again. */
    boolean isHeldBy(String who, int itsSession) {
        return held && identity.equals(who) && session == itsSession;
    }

    /**
     * Whether a client has attached anew and claimed since it opened this session. What the older
     * attachment still has under way must not run any more (promise P4), so that one never claims
     * again, though the newer one may be closed by now.
     */
    boolean isLeftBehind(String who, int itsSession) {
        return identity.equals(who) && itsSession < session;
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

    static Claim ofPayload(long generation, boolean held, int session, byte[] payload) {
        ByteBuffer in = ByteBuffer.wrap(payload);
        int node = in.getInt();
        long incarnation = in.getLong();
        String identity =
                new String(
                        payload, FIXED_BYTES, payload.length - FIXED_BYTES, StandardCharsets.UTF_8);
        return new Claim(generation, held, node, incarnation, identity, session);
    }
}
