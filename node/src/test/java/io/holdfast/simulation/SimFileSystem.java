package io.holdfast.simulation;

import io.holdfast.node.store.StoreInside;
import java.io.IOException;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.ReadableByteChannel;
import java.nio.channels.SeekableByteChannel;
import java.nio.channels.WritableByteChannel;
import java.nio.file.AccessMode;
import java.nio.file.CopyOption;
import java.nio.file.DirectoryStream;
import java.nio.file.FileStore;
import java.nio.file.FileSystem;
import java.nio.file.FileSystemException;
import java.nio.file.LinkOption;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.PathMatcher;
import java.nio.file.StandardOpenOption;
import java.nio.file.WatchEvent;
import java.nio.file.WatchKey;
import java.nio.file.WatchService;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.FileAttributeView;
import java.nio.file.attribute.FileStoreAttributeView;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.UserPrincipalLookupService;
import java.nio.file.spi.FileSystemProvider;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A {@link SimDisk} as one process sees it: what the store uses of {@code java.nio.file}. After
 * {@link #end} every call fails, as if nobody were there to make it.
 */
final class SimFileSystem extends FileSystem {
    private final SimDisk disk;
    private final PlantedBug bug;
    private final Provider provider = new Provider();
    private boolean ended;

    SimFileSystem(SimDisk disk, PlantedBug bug) {
        this.disk = disk;
        this.bug = bug;
    }

    /** The process is gone. */
    void end() {
        ended = true;
    }

    private void checkAlive(String name) throws IOException {
        if (ended) {
            throw new FileSystemException(name, null, "the process has ended");
        }
    }

    /** A path: one of the default file system that belongs to this one. */
    record SimPath(SimFileSystem system, Path path) implements Path {
        private Path of(Path other) {
            return new SimPath(system, other);
        }

        private @Nullable Path ofNullable(@Nullable Path other) {
            return other == null ? null : of(other);
        }

        private static Path bare(Path other) {
            return other instanceof SimPath sim ? sim.path : other;
        }

        @Override
        public FileSystem getFileSystem() {
            return system;
        }

        @Override
        public boolean isAbsolute() {
            return path.isAbsolute();
        }

        @Override
        public @Nullable Path getRoot() {
            return ofNullable(path.getRoot());
        }

        @Override
        public @Nullable Path getFileName() {
            return ofNullable(path.getFileName());
        }

        @Override
        public @Nullable Path getParent() {
            return ofNullable(path.getParent());
        }

        @Override
        public int getNameCount() {
            return path.getNameCount();
        }

        @Override
        public Path getName(int index) {
            return of(path.getName(index));
        }

        @Override
        public Path subpath(int from, int to) {
            return of(path.subpath(from, to));
        }

        @Override
        public boolean startsWith(Path other) {
            return path.startsWith(bare(other));
        }

        @Override
        public boolean endsWith(Path other) {
            return path.endsWith(bare(other));
        }

        @Override
        public Path normalize() {
            return of(path.normalize());
        }

        @Override
        public Path resolve(Path other) {
            return of(path.resolve(bare(other)));
        }

        @Override
        public Path relativize(Path other) {
            return of(path.relativize(bare(other)));
        }

        @Override
        public URI toUri() {
            return path.toUri();
        }

        @Override
        public Path toAbsolutePath() {
            return this;
        }

        @Override
        public Path toRealPath(LinkOption... options) {
            return this;
        }

        @Override
        public WatchKey register(
                WatchService watcher,
                WatchEvent.Kind<?>[] kinds,
                WatchEvent.Modifier... modifiers) {
            throw new UnsupportedOperationException();
        }

        @Override
        public int compareTo(Path other) {
            return path.compareTo(bare(other));
        }

        @Override
        public String toString() {
            return path.toString();
        }
    }

    @Override
    public FileSystemProvider provider() {
        return provider;
    }

    @Override
    public void close() {}

    @Override
    public boolean isOpen() {
        return true;
    }

    @Override
    public boolean isReadOnly() {
        return false;
    }

    @Override
    public String getSeparator() {
        return "/";
    }

    @Override
    public Iterable<Path> getRootDirectories() {
        return List.of(getPath("/"));
    }

    @Override
    public Iterable<FileStore> getFileStores() {
        return List.of(new Store());
    }

    @Override
    public Set<String> supportedFileAttributeViews() {
        return Set.of("basic");
    }

    @Override
    public Path getPath(String first, String... more) {
        return new SimPath(this, Path.of(first, more));
    }

    @Override
    public PathMatcher getPathMatcher(String pattern) {
        throw new UnsupportedOperationException();
    }

    @Override
    public UserPrincipalLookupService getUserPrincipalLookupService() {
        throw new UnsupportedOperationException();
    }

    @Override
    public WatchService newWatchService() {
        throw new UnsupportedOperationException();
    }

    private final class Provider extends FileSystemProvider {
        @Override
        public String getScheme() {
            return "sim";
        }

        @Override
        public FileSystem newFileSystem(URI uri, Map<String, ?> environment) {
            throw new UnsupportedOperationException();
        }

        @Override
        public FileSystem getFileSystem(URI uri) {
            return SimFileSystem.this;
        }

        @Override
        public Path getPath(URI uri) {
            throw new UnsupportedOperationException();
        }

        @Override
        public SeekableByteChannel newByteChannel(
                Path path, Set<? extends OpenOption> options, FileAttribute<?>... attributes)
                throws IOException {
            return newFileChannel(path, options, attributes);
        }

        @Override
        public FileChannel newFileChannel(
                Path path, Set<? extends OpenOption> options, FileAttribute<?>... attributes)
                throws IOException {
            checkAlive(path.toString());
            boolean made =
                    options.contains(StandardOpenOption.CREATE_NEW)
                            || (options.contains(StandardOpenOption.CREATE) && !disk.exists(path));
            SimDisk.Inode file = made ? disk.create(path, false) : disk.find(path);
            return new Channel(path.toString(), file);
        }

        @Override
        public DirectoryStream<Path> newDirectoryStream(
                Path directory, DirectoryStream.Filter<? super Path> filter) throws IOException {
            checkAlive(directory.toString());
            List<Path> found = new ArrayList<>();
            for (Path each : disk.list(directory)) {
                if (filter.accept(each)) {
                    found.add(each);
                }
            }
            return new DirectoryStream<>() {
                @Override
                public Iterator<Path> iterator() {
                    return found.iterator();
                }

                @Override
                public void close() {}
            };
        }

        @Override
        public void createDirectory(Path directory, FileAttribute<?>... attributes)
                throws IOException {
            checkAlive(directory.toString());
            disk.create(directory, true);
        }

        @Override
        public void delete(Path path) throws IOException {
            checkAlive(path.toString());
            disk.delete(path);
        }

        @Override
        public void copy(Path source, Path target, CopyOption... options) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void move(Path source, Path target, CopyOption... options) {
            throw new UnsupportedOperationException();
        }

        @Override
        public boolean isSameFile(Path path, Path other) {
            return path.equals(other);
        }

        @Override
        public boolean isHidden(Path path) {
            return false;
        }

        @Override
        public FileStore getFileStore(Path path) {
            return new Store();
        }

        @Override
        public void checkAccess(Path path, AccessMode... modes) throws IOException {
            checkAlive(path.toString());
            if (path.getNameCount() > 0) {
                disk.find(path);
            }
        }

        @Override
        public <V extends FileAttributeView> @Nullable V getFileAttributeView(
                Path path, Class<V> type, LinkOption... options) {
            return null;
        }

        @Override
        public <A extends BasicFileAttributes> A readAttributes(
                Path path, Class<A> type, LinkOption... options) throws IOException {
            checkAlive(path.toString());
            return type.cast(new Attributes(disk.find(path)));
        }

        @Override
        public Map<String, Object> readAttributes(
                Path path, String attributes, LinkOption... options) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void setAttribute(Path path, String attribute, Object value, LinkOption... options) {
            throw new UnsupportedOperationException();
        }
    }

    private record Attributes(SimDisk.Inode file) implements BasicFileAttributes {
        private static final FileTime NEVER = FileTime.fromMillis(0);

        @Override
        public FileTime lastModifiedTime() {
            return NEVER;
        }

        @Override
        public FileTime lastAccessTime() {
            return NEVER;
        }

        @Override
        public FileTime creationTime() {
            return NEVER;
        }

        @Override
        public boolean isRegularFile() {
            return !file.isDirectory();
        }

        @Override
        public boolean isDirectory() {
            return file.isDirectory();
        }

        @Override
        public boolean isSymbolicLink() {
            return false;
        }

        @Override
        public boolean isOther() {
            return false;
        }

        @Override
        public long size() {
            return file.size();
        }

        @Override
        public @Nullable Object fileKey() {
            return null;
        }
    }

    private final class Store extends FileStore {
        @Override
        public String name() {
            return "sim";
        }

        @Override
        public String type() {
            return "sim";
        }

        @Override
        public boolean isReadOnly() {
            return false;
        }

        @Override
        public long getTotalSpace() {
            return disk.capacityBytes();
        }

        @Override
        public long getUsableSpace() throws IOException {
            checkAlive("sim");
            return disk.freeBytes();
        }

        @Override
        public long getUnallocatedSpace() throws IOException {
            return getUsableSpace();
        }

        @Override
        public boolean supportsFileAttributeView(Class<? extends FileAttributeView> type) {
            return false;
        }

        @Override
        public boolean supportsFileAttributeView(String name) {
            return false;
        }

        @Override
        public <V extends FileStoreAttributeView> @Nullable V getFileStoreAttributeView(
                Class<V> type) {
            return null;
        }

        @Override
        public Object getAttribute(String attribute) {
            throw new UnsupportedOperationException();
        }
    }

    /** An open file. */
    private final class Channel extends FileChannel {
        private final String name;
        private final SimDisk.Inode file;
        private long position;

        Channel(String name, SimDisk.Inode file) {
            this.name = name;
            this.file = file;
        }

        private void check() throws IOException {
            if (!isOpen()) {
                throw new ClosedChannelException();
            }
            checkAlive(name);
        }

        @Override
        public int read(ByteBuffer into, long offset) throws IOException {
            check();
            int from = into.position();
            int read = disk.read(file, name, into, offset);
            if (bug == PlantedBug.TORN_RECORD_ACCEPTED && read > 0) {
                StoreInside.acceptTorn(into.slice(from, read), offset);
            }
            return read;
        }

        @Override
        public int read(ByteBuffer into) throws IOException {
            int read = read(into, position);
            position += Math.max(0, read);
            return read;
        }

        @Override
        public int write(ByteBuffer bytes, long offset) throws IOException {
            check();
            int length = bytes.remaining();
            disk.write(file, name, bytes, offset);
            return length;
        }

        @Override
        public int write(ByteBuffer bytes) throws IOException {
            int written = write(bytes, position);
            position += written;
            return written;
        }

        @Override
        public void force(boolean metadata) throws IOException {
            check();
            disk.sync(file, name);
        }

        @Override
        public long size() throws IOException {
            check();
            return file.size();
        }

        @Override
        public FileChannel truncate(long size) throws IOException {
            check();
            disk.truncate(file, name, size);
            return this;
        }

        @Override
        public long position() {
            return position;
        }

        @Override
        public FileChannel position(long newPosition) {
            position = newPosition;
            return this;
        }

        @Override
        public FileLock tryLock(long from, long size, boolean shared) {
            return new FileLock(this, from, size, shared) {
                @Override
                public boolean isValid() {
                    return Channel.this.isOpen();
                }

                @Override
                public void release() {}
            };
        }

        @Override
        public FileLock lock(long from, long size, boolean shared) {
            return tryLock(from, size, shared);
        }

        @Override
        protected void implCloseChannel() {}

        @Override
        public long read(ByteBuffer[] into, int offset, int length) {
            throw new UnsupportedOperationException();
        }

        @Override
        public long write(ByteBuffer[] bytes, int offset, int length) {
            throw new UnsupportedOperationException();
        }

        @Override
        public long transferTo(long from, long count, WritableByteChannel target) {
            throw new UnsupportedOperationException();
        }

        @Override
        public long transferFrom(ReadableByteChannel source, long from, long count) {
            throw new UnsupportedOperationException();
        }

        @Override
        public MappedByteBuffer map(MapMode mode, long from, long size) {
            throw new UnsupportedOperationException();
        }
    }
}
