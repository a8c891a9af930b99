package io.holdfast.node.store;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** One process per data directory: a lock on {@code DIR/lock}, which holds the owner's pid. */
final class DirectoryLock implements AutoCloseable {
    private final FileChannel file;

    private DirectoryLock(FileChannel file) {
        this.file = file;
    }

    /**
     * Takes the lock.
     *
     * @throws StoreException when another process (or another store of this one) holds it
     */
    static DirectoryLock take(Path directory) throws IOException {
        Path path = directory.resolve("lock");
        FileChannel file =
                FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
        try {
            FileLock lock = tryLock(file);
            if (lock == null) {
                String holder = Files.readString(path).strip();
                throw new StoreException(
                        "data directory "
                                + directory
                                + " is in use"
                                + (holder.isEmpty() ? "" : " by process " + holder));
            }
            file.truncate(0);
            String pid = ProcessHandle.current().pid() + "\n";
            Disk.REAL.write(file, ByteBuffer.wrap(pid.getBytes(StandardCharsets.US_ASCII)), 0);
            return new DirectoryLock(file);
        } catch (IOException | RuntimeException e) {
            file.close();
            throw e;
        }
    }

    private static @org.jspecify.annotations.Nullable FileLock tryLock(FileChannel file)
            throws IOException {
        try {
            return file.tryLock();
        } catch (OverlappingFileLockException e) {
            return null;
        }
    }

    @Override
    public void close() throws IOException {
        file.close();
    }
}
