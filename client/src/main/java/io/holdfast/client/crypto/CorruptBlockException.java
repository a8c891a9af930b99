package io.holdfast.client.crypto;

/**
 * A sealed block is not what was sealed at this address: a flipped bit, another block's bytes, or
 * another key. Nothing of it may be used.
 */
public final class CorruptBlockException extends Exception {
    private static final long serialVersionUID = 1L;

    private final long block;

    /** An exception without stack trace: it tells of damaged data, not of a fault of the code. */
    public CorruptBlockException(long block, String message) {
        super(message, null, false, false);
        this.block = block;
    }

    /** Number of the block within its volume. */
    public long block() {
        return block;
    }
}
