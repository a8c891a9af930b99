package io.holdfast.node.store;

import java.io.IOException;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * An ordered map on disk, in families; keys are compared as unsigned bytes. What {@link
 * MapDatabase} needs of RocksDB, and all that it promises to the store: a batch is there as a whole
 * or not at all, and lasts when {@link Batch#commit} has returned.
 *
 * <p>Thread-safe, except that {@link #close} must come last.
 */
public interface Rows extends AutoCloseable {
    /** Families of rows. The names are part of the format. */
    enum Family {
        EXTENTS,
        SHARDS,
        META,
        USAGE
    }

    /** Opens the rows in a directory, which is made if it does not exist. */
    interface Opener {
        /** See {@link Opener}. */
        Rows open(Path directory) throws IOException;
    }

    /** Takes rows in order. */
    interface Visitor {
        /** Takes a row; says whether the scan goes on. */
        boolean row(byte[] key, byte[] value);
    }

    /** Changes that take effect together. The arrays may be reused once a method returns. */
    interface Batch extends AutoCloseable {
        void put(Family family, byte[] key, byte[] value) throws IOException;

        void delete(Family family, byte[] key) throws IOException;

        /** Removes the rows from {@code from} on and before {@code to}. */
        void deleteRange(Family family, byte[] from, byte[] to) throws IOException;

        /** Makes the changes, and makes them last. Waits for the disk. */
        void commit() throws IOException;

        @Override
        void close();
    }

    /** The row's value; null: there is none. */
    byte @Nullable [] get(Family family, byte[] key) throws IOException;

    /**
     * Goes through a family's rows from {@code from} on and before {@code to}.
     *
     * @param from null: from the first
     * @param to null: to the last
     */
    void scan(Family family, byte @Nullable [] from, byte @Nullable [] to, Visitor visitor)
            throws IOException;

    /** Begins a batch. */
    Batch batch();

    /** Rows of a family, an estimate. */
    long estimate(Family family);

    @Override
    void close();
}
