package io.holdfast.node.store;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;

/** Reads one segment front to back through a window. Bytes past the file's end are zeroes. */
final class SegmentReader implements AutoCloseable {
    private static final int WINDOW_BYTES = 2 << 20;

    private final Path file;
    private final FileChannel channel;
    private final long size;
    private byte[] window;
    private long windowFrom;
    private int windowBytes;

    SegmentReader(Path file) throws IOException {
        this(file, WINDOW_BYTES);
    }

    SegmentReader(Path file, int windowBytes) throws IOException {
        this.file = file;
        channel = FileChannel.open(file, StandardOpenOption.READ);
        size = channel.size();
        window = new byte[(int) Math.max(SegmentHeader.SIZE, Math.min(windowBytes, size))];
    }

    Path file() {
        return file;
    }

    long size() {
        return size;
    }

    /** The bytes [offset, offset + length), valid until the next call. */
    ByteBuffer at(long offset, int length) throws IOException {
        if (offset < windowFrom || offset + length > windowFrom + windowBytes) {
            fill(offset, length);
        }
        return ByteBuffer.wrap(window, (int) (offset - windowFrom), length);
    }

    private void fill(long offset, int length) throws IOException {
        if (length > window.length) {
            window = new byte[length];
        }
        windowFrom = offset;
        windowBytes = window.length;
        ByteBuffer into = ByteBuffer.wrap(window);
        while (into.hasRemaining()) {
            if (channel.read(into, offset + into.position()) < 0) {
                break;
            }
        }
        Arrays.fill(window, into.position(), window.length, (byte) 0);
    }

    @Override
    public void close() throws IOException {
        channel.close();
    }
}
