package io.holdfast.client.crypto;

import io.holdfast.proto.peer.Nonce;

/**
 * Hands out the nonces of one session of one volume key, each once. The session number was granted
 * by the volume's log and is never granted again, so (session, counter) never repeats as long as
 * one process has one source per session: whoever gets a session number makes one source from it
 * and forgets both together.
 *
 * <p>A repeated nonce would give the plaintext of two blocks away; so every doubt here throws.
 */
public final class NonceSource {
    private final int keyId;
    private final int session;
    private final long limit;
    private long next;

    /**
     * The source of a freshly granted session.
     *
     * @param keyId of the key that will seal, from 1
     * @param session as granted, from 1
     * @throws IllegalStateException when the session is not known (0) or no number at all
     */
    public NonceSource(int keyId, int session) {
        this(keyId, session, 0, Long.MAX_VALUE);
    }

    NonceSource(int keyId, int session, long next, long limit) {
        if (keyId < 1 || session < 1) {
            throw new IllegalStateException(
                    "no nonces for key " + keyId + " in session " + session);
        }
        this.keyId = keyId;
        this.session = session;
        this.next = next;
        this.limit = limit;
    }

    /**
     * Nonces for a run of blocks.
     *
     * @param blocks from 1
     * @return the nonce of the first; {@link Nonce#plus} gives the others
     * @throws IllegalStateException when the session has none left, or {@code blocks} is below 1
     */
    public Nonce take(int blocks) {
        if (blocks < 1 || blocks > limit - next) {
            throw new IllegalStateException(
                    "session " + session + " at counter " + next + " cannot give " + blocks);
        }
        Nonce nonce = new Nonce(keyId, session, next);
        next += blocks;
        return nonce;
    }
}
