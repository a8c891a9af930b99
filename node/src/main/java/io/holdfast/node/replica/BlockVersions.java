package io.holdfast.node.replica;

/** What the core must know of the map to decide conditional writes. In memory, never waits long. */
public interface BlockVersions {
    /**
     * Newest sequence among {@code count} blocks from {@code block}, as far as {@link Effect.Apply}
     * effects have been carried out; 0: none was ever written.
     */
    long newestSequence(int layer, long block, int count);
}
