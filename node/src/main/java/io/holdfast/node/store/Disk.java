package io.holdfast.node.store;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;

/**
 * The calls that make room for the journal and make its bytes last; a seam for tests of failures
 * and counts.
 */
interface Disk {
    /** The real one. */
    Disk REAL =
            new Disk() {
                @Override
                public void write(FileChannel file, ByteBuffer bytes, long offset)
                        throws IOException {
                    long at = offset;
                    while (bytes.hasRemaining()) {
                        at += file.write(bytes, at);
                    }
                }

                @Override
                public void force(FileChannel file) throws IOException {
                    file.force(false);
                }
            };

    /** Writes all of {@code bytes} at {@code offset}. */
    void write(FileChannel file, ByteBuffer bytes, long offset) throws IOException;

    /** Syncs the file's data. */
    void force(FileChannel file) throws IOException;

    /** Makes a segment file; see {@link Segments#prepare}. */
    default FileChannel prepare(Path directory, int segment, long bytes, Segments.Fill fill)
            throws IOException {
        return Segments.prepare(directory, segment, bytes, fill);
    }
}
