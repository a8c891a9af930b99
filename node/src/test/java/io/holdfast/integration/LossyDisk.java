package io.holdfast.integration;

import static java.nio.file.StandardOpenOption.WRITE;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * A mounted file system that can lose power: {@code src/test/fuse/lossfs.c}, which says what it
 * models. Closing unmounts it, and all in it is gone.
 */
final class LossyDisk implements AutoCloseable {
    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final Duration MOUNT_LIMIT = Duration.ofSeconds(10);

    /** The kernel tells of a killed process's files a moment after its end. */
    private static final Duration CLOSING_LIMIT = Duration.ofSeconds(10);

    private final Path mount;
    private final Path control;
    private final Tool process;

    private LossyDisk(Path mount, Tool process) {
        this.mount = mount;
        this.process = process;
        control = mount.resolve(".lossfs-control");
    }

    /** Why this machine cannot have such disks; empty: it can. */
    static Optional<String> obstacle() {
        if (!Tool.isRoot()) {
            return Optional.of("mounting needs root");
        }
        if (!Files.isWritable(Path.of("/dev/fuse"))) {
            return Optional.of("there is no /dev/fuse");
        }
        Tool.Result mounts = Tool.run(LIMIT, "unshare", "--mount", "true");
        return mounts.exit() == 0
                ? Optional.empty()
                : Optional.of("mounting is not allowed: " + mounts.output().strip());
    }

    /** Compiles the file system; the program's path. */
    static Path compile(Path into) {
        Path source = Tool.projectRoot().resolve("node/src/test/fuse/lossfs.c");
        Path program = into.resolve("lossfs");
        List<String> command =
                new ArrayList<>(
                        List.of("gcc", "-std=gnu17", "-O2", "-Wall", "-Wextra", "-Werror", "-o"));
        command.add(program.toString());
        command.add(source.toString());
        String flags =
                Tool.run(LIMIT, "pkg-config", "fuse3", "--cflags", "--libs").succeeds().output();
        command.addAll(List.of(flags.strip().split("\\s+", -1)));
        Tool.run(LIMIT, Map.of(), command).succeeds();
        return program;
    }

    /** Mounts an empty one at {@code directory/mount}. */
    static LossyDisk mount(Path program, Path directory) throws IOException {
        Path mount = Files.createDirectories(directory.resolve("mount"));
        Path backing = Files.createDirectories(directory.resolve("backing"));
        LossyDisk disk =
                new LossyDisk(
                        mount,
                        Tool.start(program.toString(), mount.toString(), backing.toString()));
        try {
            TestCluster.await(
                    "a lossy disk to be mounted",
                    MOUNT_LIMIT,
                    () -> Files.exists(disk.control) || disk.hasEnded());
            if (disk.hasEnded()) {
                throw new AssertionError("lossfs ended:\n" + disk.process.output());
            }
        } catch (AssertionError e) {
            disk.close();
            throw e;
        }
        return disk;
    }

    private boolean hasEnded() {
        return !process.isRunning();
    }

    Path path() {
        return mount;
    }

    /**
     * Loses power, as {@code seed} decides. No process may have a file open any more.
     *
     * @param dropAll nothing survives that was not synced
     * @return numbers of what was unsynced and what of it was lost, by name
     */
    Map<String, Long> losePower(long seed, boolean dropAll) {
        TestCluster.await(
                "all files of a lossy disk to be closed",
                CLOSING_LIMIT,
                () -> command("loss " + Long.toUnsignedString(seed) + (dropAll ? " drop" : "")));
        Map<String, Long> numbers = new LinkedHashMap<>();
        try {
            for (String pair : Files.readString(control).strip().split(" ", -1)) {
                int equals = pair.indexOf('=');
                numbers.put(pair.substring(0, equals), Long.parseLong(pair.substring(equals + 1)));
            }
        } catch (IOException e) {
            throw new AssertionError("lossfs does not answer", e);
        }
        return numbers;
    }

    /** From now on, syncs of files with names that end so do nothing, and say they did. */
    void ignoreSyncs(String nameEnd) {
        if (!command("ignore-fsync " + nameEnd)) {
            throw new AssertionError("lossfs is busy");
        }
    }

    /** Whether it was done; false: files are open. */
    private boolean command(String text) {
        try (FileChannel to = FileChannel.open(control, WRITE)) {
            to.write(ByteBuffer.wrap(text.getBytes(StandardCharsets.US_ASCII)));
            return true;
        } catch (FileSystemException e) {
            throw new AssertionError("lossfs refuses '" + text + "':\n" + process.output(), e);
        } catch (IOException e) {
            if (String.valueOf(e.getMessage()).contains("busy")) {
                return false;
            }
            throw new AssertionError("lossfs refuses '" + text + "':\n" + process.output(), e);
        }
    }

    @Override
    public void close() {
        // Lazily: whatever still has a file open must not keep the mount.
        Tool.run(LIMIT, "umount", "--lazy", mount.toString());
        process.close();
    }
}
