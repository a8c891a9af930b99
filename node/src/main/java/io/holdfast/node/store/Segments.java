package io.holdfast.node.store;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** Names, making and listing of segment files. Stateless; any thread. */
final class Segments {
    private Segments() {}

    private static final Pattern NAME = Pattern.compile("(\\d{10})\\.seg");

    private static final ByteBuffer ZEROES = ByteBuffer.allocateDirect(1 << 20).asReadOnlyBuffer();

    static Path file(Path directory, int segment) {
        return directory.resolve("%010d.seg".formatted(segment));
    }

    /** Segment files by number. */
    static NavigableMap<Integer, Path> list(Path directory) throws IOException {
        TreeMap<Integer, Path> found = new TreeMap<>();
        try (Stream<Path> files = Files.list(directory)) {
            for (Path file : (Iterable<Path>) files::iterator) {
                Matcher name = NAME.matcher(file.getFileName().toString());
                if (name.matches()) {
                    found.put(Integer.parseInt(name.group(1)), file);
                }
            }
        }
        return found;
    }

    /** How the bytes of a new segment come to read as zeroes. */
    enum Fill {
        /**
         * They are written. Every byte of the journal then goes to the disk twice, but writing into
         * the segment later changes no metadata of the file system, which makes a sync three times
         * as fast.
         */
        WRITTEN,

        /** The file system keeps room for them, where it can; written otherwise. */
        RESERVED
    }

    /** Makes a segment file that reads as zeroes, synced with its directory entry. */
    static FileChannel prepare(Path directory, int segment, long bytes, Fill fill)
            throws IOException {
        // An attempt that failed may have left it, on a disk that failed to remove it, too.
        Files.deleteIfExists(file(directory, segment));
        FileChannel made =
                FileChannel.open(
                        file(directory, segment),
                        StandardOpenOption.CREATE_NEW,
                        StandardOpenOption.WRITE);
        try {
            if (fill == Fill.WRITTEN || !reserve(file(directory, segment), bytes)) {
                zero(made, 0, bytes);
            }
            made.force(true);
            syncDirectory(directory);
            return made;
        } catch (IOException | RuntimeException e) {
            made.close();
            Files.deleteIfExists(file(directory, segment));
            throw e;
        }
    }

    private static boolean reserve(Path file, long bytes) throws IOException {
        Optional<Libc> libc = Libc.of(file);
        return libc.isPresent() && libc.get().reserve(file, bytes);
    }

    /**
     * Makes all from an offset on read as zeroes, synced, and keeps the file's room. What was there
     * goes in one step: a process killed while it overwrote the rest of a torn record would leave
     * zeroes <em>before</em> what is left of it, which no torn write looks like.
     */
    static void cut(Path file, long offset) throws IOException {
        long size = Files.size(file);
        try (FileChannel out = FileChannel.open(file, StandardOpenOption.WRITE)) {
            out.truncate(offset);
            out.force(true);
        }
        lengthen(file, size);
    }

    /** Makes a file that is shorter read as zeroes through {@code bytes}, synced. */
    static void lengthen(Path file, long bytes) throws IOException {
        long size = Files.size(file);
        if (size >= bytes) {
            return;
        }
        try (FileChannel out = FileChannel.open(file, StandardOpenOption.WRITE)) {
            if (!reserve(file, bytes)) {
                zero(out, size, bytes);
            }
            out.force(true);
        }
    }

    /** Overwrites [from, to) with zeroes. */
    static void zero(FileChannel file, long from, long to) throws IOException {
        ByteBuffer zeroes = ZEROES.duplicate();
        for (long at = from; at < to; ) {
            zeroes.clear().limit((int) Math.min(zeroes.capacity(), to - at));
            Disk.REAL.write(file, zeroes, at);
            at += zeroes.limit();
        }
    }

    /** Makes a directory in one that exists, if it is not there; its name lasts. */
    static void makeDirectory(Path directory) throws IOException {
        Files.createDirectories(directory);
        Path parent = directory.toAbsolutePath().getParent();
        if (parent != null) {
            syncDirectory(parent);
        }
    }

    /**
     * Makes the data directory and what is missing above it; their names last before anything is
     * kept below them. A directory that is there is left to whoever made it, who may not even let
     * this process read the one above.
     */
    static void makeDataDirectory(Path directory) throws IOException {
        if (Files.isDirectory(directory)) {
            return;
        }
        Path parent = directory.toAbsolutePath().getParent();
        if (parent != null) {
            makeDataDirectory(parent);
        }
        makeDirectory(directory);
    }

    /** Makes names made or removed in the directory last. */
    static void syncDirectory(Path directory) throws IOException {
        try (FileChannel channel = FileChannel.open(directory, StandardOpenOption.READ)) {
            channel.force(true);
        }
    }
}
