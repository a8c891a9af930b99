package io.holdfast.nemesis;

import io.holdfast.integration.Tool;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** A small file system of its own for a node's data, in a file; it can be filled up and freed. */
final class SmallDisk implements AutoCloseable {
    /**
     * Segments of all blocks of a run, and of what is written until they are cleaned, fit many
     * times over.
     */
    static final long BYTES = 768L << 20;

    private static final int CHUNK = 1 << 20;

    private final Path image;
    private final Path folder;

    /** The file system in file {@code image}, to be mounted at {@code folder}. */
    SmallDisk(Path image, Path folder) {
        this.image = image;
        this.folder = folder;
    }

    /** Makes and mounts it. */
    void mount() throws IOException {
        Files.createDirectories(folder);
        try (FileChannel file =
                FileChannel.open(image, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
            file.write(ByteBuffer.allocate(1), BYTES - 1);
        }
        Shell.run("mkfs.ext4", "-q", "-F", "-m", "0", image.toString());
        Shell.run("mount", "-o", "loop", image.toString(), folder.toString());
    }

    /** Why there can be none here; empty: there can. */
    static String missing() {
        if (!Tool.isRoot()) {
            return "it needs root";
        }
        if (!Shell.tries("losetup", "-f")) {
            return "there are no loop devices";
        }
        return Shell.tries("mkfs.ext4", "-V")
                ? ""
                : "it needs mkfs.ext4 (Debian package e2fsprogs)";
    }

    private Path ballast() {
        return folder.resolve("ballast");
    }

    /** Takes all room but {@code leaveBytes}. */
    void fill(long leaveBytes) {
        ByteBuffer zeroes = ByteBuffer.allocate(CHUNK);
        try (FileChannel file =
                FileChannel.open(ballast(), StandardOpenOption.CREATE, StandardOpenOption.APPEND)) {
            while (Files.getFileStore(folder).getUsableSpace() > leaveBytes) {
                file.write(zeroes.clear());
            }
        } catch (IOException full) {
            // As meant: there is no room at all, down to the last block.
        }
    }

    void free() {
        try {
            Files.deleteIfExists(ballast());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Unmounts it; the loop device goes with it. The image stays. */
    @Override
    public void close() {
        if (!Shell.tries("umount", folder.toString())) {
            Shell.tries("umount", "-l", folder.toString());
        }
    }
}
