package io.holdfast.node.store;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** One process per data directory: a lock on {@code DIR/lock}, which holds the owner's pid. */
final class DirectoryLock implements AutoCloseable {
    /**
     * Directories locked by this process. The kernel drops a process's lock when the process closes
     * <em>any</em> descriptor of the file, so a second attempt must not even open it.
     */
    private static final Set<Path> HELD = ConcurrentHashMap.newKeySet();

    private final Path directory;
    private final FileChannel file;

    private DirectoryLock(Path directory, FileChannel file) {
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

    private static StoreException inUse(Path directory, String holder) {
        return new StoreException(
                "data directory "
                        + directory
                        + " is in use"
                        + (holder.isEmpty() ? "" : " by process " + holder));
    }

    private static DirectoryLock takeFile(Path directory, Path real) throws IOException {
        Path path = real.resolve("lock");
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
        file.close();
        HELD.remove(directory);
    }
}
