package io.holdfast.client;

/**
 * What operators want to count. Called on the client's thread; must not block or throw. Every
 * method does nothing unless overridden.
 */
public interface ClientEvents {
    /** Counts nothing. */
    ClientEvents NONE = new ClientEvents() {};

    /** A request was sent once more: no answer, another leader, or a full queue. */
    default void requestRepeated(int volume) {}

    /** A request failed because its time was up (promise P6). */
    default void requestTimedOut(int volume) {}

    /** A merged write found its block changed meanwhile and reads it again. */
    default void writeConflicted(int volume) {}

    /** A copy of a block had a wrong tag (promise P8). */
    default void blockCorrupt(int volume, long block) {}

    /** A block that was corrupt, or that a disk could not read, was read from another replica. */
    default void blockRecovered(int volume, long block) {}

    /** No replica has a good copy of the block: the call fails. */
    default void blockUnreadable(int volume, long block) {}

    /** A reply that no honest replica sends; it was dropped. */
    default void replyMalformed(int volume, int node) {}

    /** A session was opened. */
    default void sessionOpened(int volume) {}

    /** A claim was granted. */
    default void claimGranted(int volume, long generation) {}

    /** A write was refused because another client holds the volume. */
    default void writeRefused(int volume) {}
}
