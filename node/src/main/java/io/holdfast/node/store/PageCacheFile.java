package io.holdfast.node.store;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;

/**
 * Reads a file only as far as its bytes are in the page cache: {@code preadv2} with {@code
 * RWF_NOWAIT}.
 *
 * <p>The staging memory belongs to the thread that uses the {@link Reader}: the data loop.
 */
final class PageCacheFile implements AutoCloseable {
    /** Result of {@link #read}: the kernel or the file system cannot do this. */
    static final int UNSUPPORTED = -2;

    /** Result of {@link #read}: not all bytes are in the page cache. */
    static final int WOULD_WAIT = -1;

    private final Reader reader;
    private final int descriptor;

    private PageCacheFile(Reader reader, int descriptor) {
        this.reader = reader;
        this.descriptor = descriptor;
    }

    /**
     * Reads {@code length} bytes at {@code offset} into the staging memory.
     *
     * @param length at most the staging size that {@link Reader} was made with
     * @return {@code length}, {@link #WOULD_WAIT} or {@link #UNSUPPORTED}
     */
    int read(long offset, int length) {
        return reader.read(descriptor, offset, length);
    }

    @Override
    public void close() {
        reader.libc.close(descriptor);
    }

    /** Opens files for one thread, and holds the staging memory they read into. */
    static final class Reader {
        private final Libc libc;
        private final MemorySegment errno;
        private final MemorySegment vector;
        private final MemorySegment staging;

        Reader(Libc libc, int stagingBytes) {
            this.libc = libc;
            Arena arena = Arena.ofAuto();
            errno = Libc.errnoIn(arena);
            staging = arena.allocate(stagingBytes);
            vector = arena.allocate(2 * ValueLayout.JAVA_LONG.byteSize(), 8);
            vector.set(ValueLayout.JAVA_LONG, 0, staging.address());
        }

        PageCacheFile open(Path file) throws IOException {
            return new PageCacheFile(this, libc.open(file, Libc.O_RDONLY));
        }

        private int read(int descriptor, long offset, int length) {
            vector.set(ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG.byteSize(), length);
            long read = libc.preadv2(errno, descriptor, vector, offset, Libc.RWF_NOWAIT);
            if (read == length) {
                return length;
            }
            int error = read < 0 ? Libc.errno(errno) : 0;
            return error == Libc.EOPNOTSUPP || error == Libc.ENOSYS ? UNSUPPORTED : WOULD_WAIT;
        }

        /** Copies from the staging memory what the last read put there. */
        void copy(int stagingOffset, byte[] into, int length) {
            MemorySegment.copy(staging, ValueLayout.JAVA_BYTE, stagingOffset, into, 0, length);
        }
    }
}
