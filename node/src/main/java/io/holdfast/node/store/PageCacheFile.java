package io.holdfast.node.store;

import java.io.IOException;
import java.lang.foreign.AddressLayout;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;
import java.nio.file.Path;
import java.util.Optional;

/**
 * Reads a file only as far as its bytes are in the page cache: {@code preadv2} with {@code
 * RWF_NOWAIT}, which Java's own channels do not offer. Linux with glibc.
 *
 * <p>The staging memory belongs to the thread that uses the {@link Calls}: the data loop.
 */
final class PageCacheFile implements AutoCloseable {
    private static final int O_RDONLY_CLOEXEC = 0x80000;
    private static final int RWF_NOWAIT = 8;
    private static final int ENOSYS = 38;
    private static final int EOPNOTSUPP = 95;

    /** Result of {@link #read}: the kernel or the file system cannot do this. */
    static final int UNSUPPORTED = -2;

    /** Result of {@link #read}: not all bytes are in the page cache. */
    static final int WOULD_WAIT = -1;

    private final Calls calls;
    private final int descriptor;

    private PageCacheFile(Calls calls, int descriptor) {
        this.calls = calls;
        this.descriptor = descriptor;
    }

    /**
     * Reads {@code length} bytes at {@code offset} into the staging memory.
     *
     * @param length at most the staging size that {@link Calls} was made with
     * @return {@code length}, {@link #WOULD_WAIT} or {@link #UNSUPPORTED}
     */
    int read(long offset, int length) {
        return calls.read(descriptor, offset, length);
    }

    @Override
    public void close() {
        calls.close(descriptor);
    }

    /** The C library's functions, bound once per store. */
    static final class Calls {
        private static final AddressLayout POINTER = ValueLayout.ADDRESS;
        private static final StructLayout ERRNO = Linker.Option.captureStateLayout();
        private static final VarHandle ERRNO_VALUE =
                ERRNO.varHandle(MemoryLayout.PathElement.groupElement("errno"));

        private final MethodHandle open;
        private final MethodHandle close;
        private final MethodHandle preadv2;
        private final MemorySegment errno;
        private final MemorySegment vector;
        private final MemorySegment staging;

        // Binding to the C library is what this class is for; the launcher enables native access.
        @SuppressWarnings("restricted")
        private Calls(Linker linker, int stagingBytes) {
            Linker.Option capture = Linker.Option.captureCallState("errno");
            open =
                    linker.downcallHandle(
                            symbol(linker, "open"),
                            FunctionDescriptor.of(
                                    ValueLayout.JAVA_INT, POINTER, ValueLayout.JAVA_INT),
                            capture,
                            Linker.Option.firstVariadicArg(2));
            close =
                    linker.downcallHandle(
                            symbol(linker, "close"),
                            FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT));
            preadv2 =
                    linker.downcallHandle(
                            symbol(linker, "preadv2"),
                            FunctionDescriptor.of(
                                    ValueLayout.JAVA_LONG,
                                    ValueLayout.JAVA_INT,
                                    POINTER,
                                    ValueLayout.JAVA_INT,
                                    ValueLayout.JAVA_LONG,
                                    ValueLayout.JAVA_INT),
                            capture);
            Arena arena = Arena.ofAuto();
            errno = arena.allocate(ERRNO);
            staging = arena.allocate(stagingBytes);
            vector = arena.allocate(2 * ValueLayout.JAVA_LONG.byteSize(), 8);
            vector.set(ValueLayout.JAVA_LONG, 0, staging.address());
        }

        private static MemorySegment symbol(Linker linker, String name) {
            return linker.defaultLookup()
                    .find(name)
                    .orElseThrow(() -> new UnsupportedOperationException("no " + name));
        }

        /** The functions, if this platform has them. */
        static Optional<Calls> bind(int stagingBytes) {
            try {
                return Optional.of(new Calls(Linker.nativeLinker(), stagingBytes));
            } catch (UnsupportedOperationException e) {
                return Optional.empty();
            }
        }

        PageCacheFile open(Path file) throws IOException {
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment name = arena.allocateFrom(file.toString());
                int descriptor = (int) open.invokeExact(errno, name, O_RDONLY_CLOEXEC);
                if (descriptor < 0) {
                    throw new IOException("cannot open " + file + ": errno " + errno());
                }
                return new PageCacheFile(this, descriptor);
            } catch (IOException | RuntimeException | Error e) {
                throw e;
            } catch (Throwable e) {
                throw new IllegalStateException("open does not throw", e);
            }
        }

        private int errno() {
            return (int) ERRNO_VALUE.get(errno, 0L);
        }

        private int read(int descriptor, long offset, int length) {
            vector.set(ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG.byteSize(), length);
            long read;
            try {
                read = (long) preadv2.invokeExact(errno, descriptor, vector, 1, offset, RWF_NOWAIT);
            } catch (RuntimeException | Error e) {
                throw e;
            } catch (Throwable e) {
                throw new IllegalStateException("preadv2 does not throw", e);
            }
            if (read == length) {
                return length;
            }
            int error = read < 0 ? errno() : 0;
            return error == EOPNOTSUPP || error == ENOSYS ? UNSUPPORTED : WOULD_WAIT;
        }

        /** Copies from the staging memory what the last read put there. */
        void copy(int stagingOffset, byte[] into, int length) {
            MemorySegment.copy(staging, ValueLayout.JAVA_BYTE, stagingOffset, into, 0, length);
        }

        private void close(int descriptor) {
            try {
                int ignored = (int) close.invokeExact(descriptor);
            } catch (RuntimeException | Error e) {
                throw e;
            } catch (Throwable e) {
                throw new IllegalStateException("close does not throw", e);
            }
        }
    }
}
