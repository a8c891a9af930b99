package io.holdfast.node.store;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Iterator;
import java.util.LinkedHashMap;
import org.jspecify.annotations.Nullable;

/**
 * Segment files open for reading, at most {@link #MAX_OPEN} besides those that are being read.
 * Owned by the data loop; a pinned segment may be read by any thread.
 */
final class SegmentTable implements AutoCloseable {
    /** Most segments kept open; each takes two file descriptors. */
    static final int MAX_OPEN = 256;

    private final Path directory;
    private final PageCacheFile.@Nullable Reader pageCache;
    private final LinkedHashMap<Integer, Handle> open = new LinkedHashMap<>(16, 0.75f, true);

    /**
     * Opens segments of a directory.
     *
     * @param pageCache null: no reads without waiting
     */
    SegmentTable(Path directory, PageCacheFile.@Nullable Reader pageCache) {
        this.directory = directory;
        this.pageCache = pageCache;
    }

    /** A segment open for reading. While it is pinned it is neither closed nor removed. */
    static final class Handle {
        final FileChannel file;
        final @Nullable PageCacheFile cached;
        private int pins;

        private Handle(FileChannel file, @Nullable PageCacheFile cached) {
            this.file = file;
            this.cached = cached;
        }

        /** Reads all of {@code into}; may wait for the disk. Any thread. */
        void read(byte[] into, long offset) throws IOException {
            ByteBuffer buffer = ByteBuffer.wrap(into);
            while (buffer.hasRemaining()) {
                if (file.read(buffer, offset + buffer.position()) < 0) {
                    throw new IOException(
                            "segment ends before " + (offset + into.length) + " bytes");
                }
            }
        }

        private void close() throws IOException {
            file.close();
            if (cached != null) {
                cached.close();
            }
        }
    }

    /** The segment, pinned until {@link #unpin}. */
    Handle pin(int segment) throws IOException {
        Handle handle = open.get(segment);
        if (handle == null) {
            Path path = Segments.file(directory, segment);
            FileChannel file = FileChannel.open(path, StandardOpenOption.READ);
            try {
                handle = new Handle(file, pageCache == null ? null : pageCache.open(path));
            } catch (IOException e) {
                file.close();
                throw e;
            }
            open.put(segment, handle);
            closeSome();
        }
        handle.pins++;
        return handle;
    }

    void unpin(Handle handle) {
        handle.pins--;
    }

    /**
     * Closes a segment that is to be removed; nobody may ask for it again.
     *
     * @return false: somebody is reading it
     */
    boolean release(int segment) throws IOException {
        Handle handle = open.get(segment);
        if (handle == null) {
            return true;
        }
        if (handle.pins > 0) {
            return false;
        }
        open.remove(segment);
        handle.close();
        return true;
    }

    private void closeSome() throws IOException {
        Iterator<Handle> eldest = open.values().iterator();
        for (int excess = open.size() - MAX_OPEN; excess > 0 && eldest.hasNext(); ) {
            Handle handle = eldest.next();
            // The newest one is being opened by the caller, who has not pinned it yet.
            if (handle.pins == 0 && eldest.hasNext()) {
                eldest.remove();
                handle.close();
                excess--;
            }
        }
    }

    @Override
    public void close() throws IOException {
        for (Handle handle : open.values()) {
            handle.close();
        }
        open.clear();
    }
}
