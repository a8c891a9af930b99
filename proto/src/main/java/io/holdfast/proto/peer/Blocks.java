package io.holdfast.proto.peer;

/** Sizes that every layer agrees on. */
public final class Blocks {
    private Blocks() {}

    /** Bytes of a block as the client sees it. */
    public static final int SIZE = 4096;

    /** {@code SIZE == 1 << SHIFT}. */
    public static final int SHIFT = 12;

    /** Bytes of the authentication tag that follows each block's ciphertext. */
    public static final int TAG_SIZE = 16;

    /**
     * Bytes of a sealed block: ciphertext, then tag, as AES-GCM gives them out. A payload of n
     * blocks is n sealed blocks in a row, on the wire and in the journal.
     */
    public static final int SEALED_SIZE = SIZE + TAG_SIZE;

    /** No block has this number or a larger one: byte offsets fit a long. */
    public static final long END = 1L << (63 - SHIFT);

    /** Most blocks one entry may carry (256 KiB); a larger write becomes several entries. */
    public static final int MAX_PER_ENTRY = 64;

    /** Most blocks one ZERO entry may cover (1 GiB). */
    public static final int MAX_PER_ZERO = 1 << 18;

    /** Most blocks one read request may ask for (256 KiB), as for entries. */
    public static final int MAX_PER_READ = MAX_PER_ENTRY;
}
