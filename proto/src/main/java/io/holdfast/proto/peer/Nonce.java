package io.holdfast.proto.peer;

/**
 * Names the nonces of a run of sealed blocks: block i of the run was sealed with (session, counter
 * + i). The session number is granted once per volume through its log and never again, the counter
 * counts within it, so that no nonce is ever used twice with the same key.
 *
 * @param keyId which key of the volume sealed the blocks, from 1
 * @param session the session number that sealed them, from 1
 * @param counter counter of the run's first block, from 0
 */
public record Nonce(int keyId, int session, long counter) {
    /** For entries and extents without payload. */
    public static final Nonce NONE = new Nonce(0, 0, 0);

    /** The nonce name of the block {@code blocks} further on in the same run. */
    public Nonce plus(long blocks) {
        return blocks == 0 || keyId == 0 ? this : new Nonce(keyId, session, counter + blocks);
    }
}
