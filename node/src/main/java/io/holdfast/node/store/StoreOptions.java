package io.holdfast.node.store;

import io.holdfast.config.NodeConfig;
import io.holdfast.proto.peer.Entry;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Bounds of a store.
 *
 * @param segmentBytes size of a journal segment, {@link #SMALLEST_SEGMENT_BYTES} to {@link
 *     #MAX_SEGMENT_BYTES}
 * @param checkpointBytes journal written between two checkpoints
 * @param cacheBytes pages of the extent map held in memory
 * @param logCacheBytes newest entries of all shards held in memory, to be sent to followers
 * @param readThreads threads for reads that miss the page cache
 * @param bootId names the boot of this machine; another one than at the last start means that what
 *     was not synced may be gone
 * @param storeBytes what all segments together may take, at least {@link #MIN_SEGMENTS} of them; 0:
 *     what the file system holds
 */
public record StoreOptions(
        long segmentBytes,
        long checkpointBytes,
        long cacheBytes,
        long logCacheBytes,
        int readThreads,
        String bootId,
        long storeBytes) {
    /** A segment holds at least a few of the largest entries. */
    public static final long MIN_SEGMENT_BYTES = 4L * Entry.MAX_SIZE;

    /**
     * Size from which on any segment works whose entries are small enough: for tests that want many
     * segments. No configuration can ask for less than {@link #MIN_SEGMENT_BYTES}.
     */
    public static final long SMALLEST_SEGMENT_BYTES = 64L << 10;

    /** Segments of the smallest store: what the cleaner keeps free, and as many to clean. */
    public static final int MIN_SEGMENTS = 2 * Cleaner.START_SEGMENTS;

    /** Offsets within a segment are ints. */
    public static final long MAX_SEGMENT_BYTES = 1L << 30;

    /** Default of {@code logCacheBytes}. */
    public static final long LOG_CACHE_BYTES = 32L << 20;

    /** Default of {@code readThreads}. */
    public static final int READ_THREADS = 4;

    private static final Path BOOT_ID = Path.of("/proc/sys/kernel/random/boot_id");

    public StoreOptions {
        if (segmentBytes < SMALLEST_SEGMENT_BYTES || segmentBytes > MAX_SEGMENT_BYTES) {
            throw new IllegalArgumentException(
                    "segment size must be "
                            + SMALLEST_SEGMENT_BYTES
                            + " to "
                            + MAX_SEGMENT_BYTES
                            + " bytes, is "
                            + segmentBytes);
        }
        if (storeBytes != 0 && storeBytes < MIN_SEGMENTS * segmentBytes) {
            throw new IllegalArgumentException(
                    "a store needs at least "
                            + MIN_SEGMENTS
                            + " segments of "
                            + segmentBytes
                            + " bytes, has "
                            + storeBytes
                            + " bytes");
        }
        if (checkpointBytes < 1 || cacheBytes < 1 || logCacheBytes < 1 || readThreads < 1) {
            throw new IllegalArgumentException(
                    "checkpoint, cache, log cache and threads must be positive, are "
                            + checkpointBytes
                            + ", "
                            + cacheBytes
                            + ", "
                            + logCacheBytes
                            + ", "
                            + readThreads);
        }
    }

    /** Options of a store that may fill the file system. */
    public StoreOptions(
            long segmentBytes,
            long checkpointBytes,
            long cacheBytes,
            long logCacheBytes,
            int readThreads,
            String bootId) {
        this(segmentBytes, checkpointBytes, cacheBytes, logCacheBytes, readThreads, bootId, 0);
    }

    /**
     * Options from a node's configuration and this machine's boot id.
     *
     * @throws IOException when the boot id cannot be read
     */
    public static StoreOptions of(NodeConfig.Limits limits) throws IOException {
        return new StoreOptions(
                limits.segmentBytes(),
                limits.checkpointBytes(),
                limits.cacheBytes(),
                LOG_CACHE_BYTES,
                READ_THREADS,
                currentBoot(),
                limits.storeBytes());
    }

    /** Names the boot of this machine. */
    static String currentBoot() throws IOException {
        return Files.readString(BOOT_ID).strip();
    }
}
