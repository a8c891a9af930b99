package io.holdfast.client;

import io.netty.buffer.ByteBuf;

/**
 * A disk as the NBD server sees it: bytes at offsets, with the promises of the NBD standard. The
 * volume client implements it over the cluster; tests implement it in memory.
 *
 * <p>All calls and all completions happen on one thread, the event loop that opened the device. Any
 * number of calls may be under way; they complete in any order. The caller has checked ranges:
 * {@code 0 <= offset}, {@code offset + length <= sizeBytes}.
 *
 * <p>Buffers stay the caller's: the device reads or fills them until it completes the call, and
 * never releases them. A failed call leaves the target undefined.
 */
public interface BlockDevice {
    /** Bytes; does not change while the device is open. */
    long sizeBytes();

    /** Whether writes, trims and zeroes are refused with {@link Outcome#NOT_PERMITTED}. */
    boolean readOnly();

    /**
     * Fills {@code target} with {@code target.writableBytes()} bytes from {@code offset}, moving
     * its writer index.
     */
    void read(long offset, ByteBuf target, Completion done);

    /**
     * Writes the readable bytes of {@code source} (its reader index is not moved) at {@code
     * offset}.
     *
     * @param fua complete only when the data would survive power loss
     */
    void write(long offset, ByteBuf source, boolean fua, Completion done);

    /**
     * Makes a range read as zeroes.
     *
     * @param punch the space may be given back (TRIM, WRITE_ZEROES without NO_HOLE)
     */
    void zero(long offset, long length, boolean punch, boolean fua, Completion done);

    /** Completes when everything completed before this call would survive power loss. */
    void flush(Completion done);

    /**
     * The client is gone. Calls under way still complete; then the device gives up its claim. No
     * further calls may follow.
     */
    void close();

    /** Called once, on the device's thread. */
    @FunctionalInterface
    interface Completion {
        void done(Outcome outcome);
    }

    /** How a call ended; the NBD server maps each to an error of the standard. */
    enum Outcome {
        OK,
        /** EIO: failed, or in doubt after the volume's time-out. */
        IO_ERROR,
        /** EPERM: read-only, or another client holds the volume. */
        NOT_PERMITTED,
        /** ENOSPC. */
        NO_SPACE,
        /** ESHUTDOWN: the node is stopping, or the volume was deleted. */
        SHUTTING_DOWN
    }
}
