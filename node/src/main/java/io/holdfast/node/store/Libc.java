package io.holdfast.node.store;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;
import java.nio.file.FileSystemException;
import java.nio.file.FileSystems;
import java.nio.file.Path;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Calls of the C library that Java's own channels do not offer, bound at first use. Linux with
 * glibc; stateless, any thread: a caller brings the memory that takes {@code errno}.
 */
final class Libc {
    static final int O_RDONLY = 0;
    static final int O_WRONLY = 1;
    private static final int O_CLOEXEC = 0x80000;
    static final int RWF_NOWAIT = 8;

    static final int ENOSPC = 28;
    static final int ENOSYS = 38;
    static final int EOPNOTSUPP = 95;

    private static final StructLayout ERRNO = Linker.Option.captureStateLayout();
    private static final VarHandle ERRNO_VALUE =
            ERRNO.varHandle(MemoryLayout.PathElement.groupElement("errno"));

    /** Binding takes a tenth of a second, so only a store that needs it pays. */
    private static final class Bound {
        static final @Nullable Libc FUNCTIONS = bind();

        private static @Nullable Libc bind() {
            try {
                return new Libc(Linker.nativeLinker());
            } catch (UnsupportedOperationException e) {
                return null;
            }
        }
    }

    private final MethodHandle open;
    private final MethodHandle close;
    private final MethodHandle preadv2;
    private final MethodHandle fallocate;

    // Binding to the C library is what this class is for; the launcher enables native access.
    @SuppressWarnings("restricted")
    private Libc(Linker linker) {
        Linker.Option capture = Linker.Option.captureCallState("errno");
        open =
                linker.downcallHandle(
                        symbol(linker, "open"),
                        FunctionDescriptor.of(
                                ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.JAVA_INT),
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
                                ValueLayout.ADDRESS,
                                ValueLayout.JAVA_INT,
                                ValueLayout.JAVA_LONG,
                                ValueLayout.JAVA_INT),
                        capture);
        fallocate =
                linker.downcallHandle(
                        symbol(linker, "fallocate"),
                        FunctionDescriptor.of(
                                ValueLayout.JAVA_INT,
                                ValueLayout.JAVA_INT,
                                ValueLayout.JAVA_INT,
                                ValueLayout.JAVA_LONG,
                                ValueLayout.JAVA_LONG),
                        capture);
    }

    private static MemorySegment symbol(Linker linker, String name) {
        return linker.defaultLookup()
                .find(name)
                .orElseThrow(() -> new UnsupportedOperationException("no " + name));
    }

    /**
     * The functions, if this platform has them and the file is one that the operating system knows.
     */
    static Optional<Libc> of(Path file) {
        return file.getFileSystem().equals(FileSystems.getDefault())
                ? Optional.ofNullable(Bound.FUNCTIONS)
                : Optional.empty();
    }

    /** Memory that takes {@code errno}. */
    static MemorySegment errnoIn(Arena arena) {
        return arena.allocate(ERRNO);
    }

    static int errno(MemorySegment captured) {
        return (int) ERRNO_VALUE.get(captured, 0L);
    }

    /**
     * Opens a file that exists; children of this process do not inherit it.
     *
     * @return the descriptor
     */
    int open(Path file, int flags) throws IOException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = errnoIn(arena);
            int descriptor = open(errno, arena.allocateFrom(file.toString()), flags | O_CLOEXEC);
            if (descriptor < 0) {
                throw failed("open", file, errno(errno));
            }
            return descriptor;
        }
    }

    private int open(MemorySegment errno, MemorySegment name, int flags) {
        try {
            return (int) open.invokeExact(errno, name, flags);
        } catch (Throwable e) {
            throw undeclared("open", e);
        }
    }

    void close(int descriptor) {
        try {
            int ignored = (int) close.invokeExact(descriptor);
        } catch (Throwable e) {
            throw undeclared("close", e);
        }
    }

    /**
     * {@code preadv2(2)} with one vector.
     *
     * @return bytes read, or negative: see {@link #errno}
     */
    long preadv2(
            MemorySegment errno, int descriptor, MemorySegment vector, long offset, int flags) {
        try {
            return (long) preadv2.invokeExact(errno, descriptor, vector, 1, offset, flags);
        } catch (Throwable e) {
            throw undeclared("preadv2", e);
        }
    }

    /**
     * Makes the file at least {@code bytes} long and keeps room for them on the disk; what was not
     * written reads as zeroes.
     *
     * @return whether the file system can do that
     * @throws IOException anything else, such as a full disk
     */
    boolean reserve(Path file, long bytes) throws IOException {
        int descriptor = open(file, O_WRONLY);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = errnoIn(arena);
            if (fallocate(errno, descriptor, 0, 0, bytes) == 0) {
                return true;
            }
            int error = errno(errno);
            if (error == EOPNOTSUPP || error == ENOSYS) {
                return false;
            }
            throw failed("reserve " + bytes + " bytes for", file, error);
        } finally {
            close(descriptor);
        }
    }

    private int fallocate(MemorySegment errno, int descriptor, int mode, long from, long bytes) {
        try {
            return (int) fallocate.invokeExact(errno, descriptor, mode, from, bytes);
        } catch (Throwable e) {
            throw undeclared("fallocate", e);
        }
    }

    private static IOException failed(String what, Path file, int error) {
        String reason = error == ENOSPC ? "no space left on the disk" : "errno " + error;
        return new FileSystemException(file.toString(), null, "cannot " + what + " it: " + reason);
    }

    /** A method handle may throw anything, as far as the compiler knows. */
    private static RuntimeException undeclared(String function, Throwable thrown) {
        return switch (thrown) {
            case RuntimeException e -> e;
            case Error e -> throw e;
            default -> new IllegalStateException(function + " does not throw", thrown);
        };
    }
}
