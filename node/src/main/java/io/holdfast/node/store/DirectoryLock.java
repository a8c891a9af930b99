package io.holdfast.node.store;

import io.holdfast.node.store.StoreException.Kind;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Collections;
import java.util.Set;
import java.util.WeakHashMap;
import org.jspecify.annotations.Nullable;

/** One process per data directory: a lock on {@code DIR/lock}, which holds the owner's pid. */
final class DirectoryLock implements AutoCloseable {
    /**
     * Directories locked by this process. The kernel drops a process's lock when the process closes
     * <em>any</em> descriptor of the file, so a second attempt must not even open it. Weak, as the
     * lock itself: a store that was dropped without being closed loses its descriptor with its
     * memory, and must not stay here with all that its path refers to (a simulated disk).
     */
    private static final Set<Path> HELD =
            Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));

    private static final String NAME = "lock";

    private final Path directory;

    /** Null: there is no file to lock, and none is made. */
    private final @Nullable FileChannel file;

    private DirectoryLock(Path directory, @Nullable FileChannel file) {
        this.directory = directory;
        this.file = file;
    }

    /**
     * Takes the lock.
     *
     * @throws StoreException when another process (or another store of this one) holds it
     */
    static DirectoryLock take(Path directory) throws IOException {
        Path real = directory.toRealPath();
        if (!HELD.add(real)) {
            throw inUse(directory, Long.toString(ProcessHandle.current().pid()));
        }
        try {
            return takeFile(directory, real);
        } catch (IOException | RuntimeException e) {
            HELD.remove(real);
            throw e;
        }
    }

    /**
     * Keeps nodes away while the directory is only looked at; several may look at once. Nothing is
     * written: neither the pid, nor the file when there is none, as in a copy of a directory.
     *
     * @throws StoreException when another process (or another store of this one) holds the lock
     */
    static DirectoryLock share(Path directory) throws IOException {
        Path real = directory.toRealPath();
        if (!HELD.add(real)) {
            throw inUse(directory, Long.toString(ProcessHandle.current().pid()));
        }
        try {
            return shareFile(directory, real);
        } catch (IOException | RuntimeException e) {
            HELD.remove(real);
            throw e;
        }
    }

    private static DirectoryLock shareFile(Path directory, Path real) throws IOException {
        Path path = real.resolve(NAME);
        if (!Files.exists(path)) {
            return new DirectoryLock(real, null);
        }
        FileChannel file = FileChannel.open(path, StandardOpenOption.READ);
        try {
            if (file.tryLock(0, Long.MAX_VALUE, true) == null) {
                throw inUse(directory, Files.readString(path).strip());
            }
            return new DirectoryLock(real, file);
        } catch (IOException | RuntimeException e) {
            file.close();
            throw e;
        }
    }

    private static StoreException inUse(Path directory, String holder) {
        return new StoreException(
                Kind.IN_USE,
                "data directory " + directory + " is in use by " + process(holder),
                "Stop that process first (holdfast down).");
    }

    /** Who only looks at the directory leaves the pid of the node before. */
    private static String process(String pid) {
        try {
            if (ProcessHandle.of(Long.parseLong(pid)).isPresent()) {
                return "process " + pid;
            }
        } catch (NumberFormatException _) {
            // Not written yet.
        }
        return "another process, which may be 'holdfast store'";
    }

    private static DirectoryLock takeFile(Path directory, Path real) throws IOException {
        Path path = real.resolve(NAME);
        FileChannel file =
                FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
        try {
            FileLock lock = file.tryLock();
            if (lock == null) {
                throw inUse(directory, Files.readString(path).strip());
            }
            file.truncate(0);
            String pid = ProcessHandle.current().pid() + "\n";
            Disk.REAL.write(file, ByteBuffer.wrap(pid.getBytes(StandardCharsets.US_ASCII)), 0);
            return new DirectoryLock(real, file);
        } catch (IOException | RuntimeException e) {
            file.close();
            throw e;
        }
    }

    @Override
    public void close() throws IOException {
        if (file != null) {
            file.close();
        }
        HELD.remove(directory);
    }
}
