package io.holdfast.node.store;

import io.holdfast.node.port.Store.Space;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * How much room there is for segments: what the configured size leaves and what the file system
 * has, whichever is less. Owned by the data loop, except for {@link #measure}.
 */
final class SpaceMeter {
    private static final Logger LOG = LoggerFactory.getLogger(SpaceMeter.class);

    /**
     * Fewer segments than this can be made: the store is full. They are the cleaner's: a victim
     * that is worth it fills less than one, and its room comes back with the next checkpoint; and
     * they take what was under way when the clients were stopped.
     */
    static final int FULL_SEGMENTS = 3;

    /** The store is no longer full when this many can be made. */
    static final int NOT_FULL_SEGMENTS = 4;

    /** The store warns when all but a part of 1 in this many is live. */
    static final int WARN_FRACTION = 10;

    private final Path directory;
    private final long limitBytes;
    private final long segmentBytes;
    private final SegmentUsage usage;

    /** Written by whoever has just changed it. */
    private volatile long fileSystemFree;

    private Space space = Space.OK;

    /**
     * A meter.
     *
     * @param limitBytes of all segments, 0: what the file system holds
     */
    SpaceMeter(Path directory, long limitBytes, long segmentBytes, SegmentUsage usage) {
        this.directory = directory;
        this.limitBytes = limitBytes;
        this.segmentBytes = segmentBytes;
        this.usage = usage;
        measure();
    }

    /** Asks the file system, which may wait for the disk. Any thread. */
    void measure() {
        try {
            fileSystemFree = Files.getFileStore(directory).getUsableSpace();
        } catch (IOException e) {
            LOG.warn("Cannot find out how much room {} has", directory, e);
        }
    }

    /**
     * Bytes for which segments can be made.
     *
     * @param spareBytes of a segment that is prepared, and not counted as used
     */
    long freeBytes(long spareBytes) {
        long free = fileSystemFree;
        if (limitBytes == 0) {
            return free;
        }
        return Math.clamp(limitBytes - usage.bytes() - spareBytes, 0, free);
    }

    /** Bytes of segments when the store is as large as it may get. */
    long capacityBytes(long spareBytes) {
        return usage.bytes() + spareBytes + freeBytes(spareBytes);
    }

    /**
     * Looks again.
     *
     * @param starved the next segment could not be made
     * @return whether the state has changed
     */
    boolean update(long spareBytes, boolean starved) {
        long free = freeBytes(spareBytes);
        long capacity = capacityBytes(spareBytes);
        int enough = space == Space.FULL ? NOT_FULL_SEGMENTS : FULL_SEGMENTS;
        Space now;
        if (starved || free < enough * segmentBytes) {
            now = Space.FULL;
        } else if (capacity - usage.liveBytes() < capacity / WARN_FRACTION) {
            now = Space.WARN;
        } else {
            now = Space.OK;
        }
        boolean changed = now != space;
        space = now;
        return changed;
    }

    Space space() {
        return space;
    }
}
