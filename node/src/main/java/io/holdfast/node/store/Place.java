package io.holdfast.node.store;

/**
 * Where something stands in the journal, packed into a long so that places compare in journal
 * order.
 *
 * <pre>
 * bit 63      0
 * bits 62-32  segment number, from 1
 * bits 31-0   offset in the segment, in bytes
 * </pre>
 *
 * <p>31 bits of segments of 64 MiB are 128 PiB written in the life of a store.
 */
final class Place {
    private Place() {}

    /** No place: an extent of zeroes, an entry that is not held. */
    static final long NONE = 0;

    /** Highest segment number. */
    static final int MAX_SEGMENT = Integer.MAX_VALUE;

    static long of(int segment, long offset) {
        return ((long) segment << 32) | offset;
    }

    static int segment(long place) {
        return (int) (place >>> 32);
    }

    static long offset(long place) {
        return place & 0xffff_ffffL;
    }

    static String text(long place) {
        return segment(place) + ":" + offset(place);
    }
}
