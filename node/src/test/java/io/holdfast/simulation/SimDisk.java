package io.holdfast.simulation;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * One node's disk, and the page cache of the kernel above it, with a file system that promises what
 * POSIX does and no more. It outlives processes ({@link SimFileSystem} is what one of them sees).
 *
 * <p>What processes read is the page cache. What lasts is decided when the power fails: bytes that
 * were synced are there; of all other sectors each holds, independently of the others, any of the
 * contents that it has had since (so writes reach the disk in any order); a few are torn in the
 * middle. A file made, removed, or made longer is so afterwards if its directory, or the file, was
 * synced; else it may be.
 */
final class SimDisk {
    /** Smallest unit that reads and writes are kept in; a multiple of any sector's size. */
    private static final int PAGE = 4096;

    private static final String SEGMENT = ".seg";

    /** Older contents of a sector that are remembered until it is synced. */
    private static final int MOST_VERSIONS = 4;

    /** What one file holds. */
    static final class Inode {
        private final boolean directory;
        private final List<byte @Nullable []> pages = new ArrayList<>();

        /** Contents of sectors that are not synced, oldest first; an empty one is zeroes. */
        private final TreeMap<Long, List<byte[]>> older = new TreeMap<>();

        /** With {@link PlantedBug#MAP_BEFORE_JOURNAL}: what the last sync should have made last. */
        private final TreeMap<Long, List<byte[]>> late = new TreeMap<>();

        /** A sync has failed: the kernel may let go of pages that are not on the disk. */
        private boolean syncFailed;

        private long size;
        private long syncedSize;

        private Inode(boolean directory) {
            this.directory = directory;
        }

        boolean isDirectory() {
            return directory;
        }

        long size() {
            return size;
        }
    }

    /** How the disk fails, while it does. */
    private double failChance;

    private boolean syncFailed;

    /** How reads of segments fail, while they do: at random, or at bad places. */
    private double readFailChance;

    private final IdentityHashMap<Inode, Set<Long>> badPages = new IdentityHashMap<>();
    private boolean everUnreadable;

    private final SimRandom random;
    private final SimRandom reads;
    private final int sectorBytes;
    private final PlantedBug bug;
    private final Counters counters;
    private TreeMap<String, Inode> names = new TreeMap<>();
    private TreeMap<String, Inode> syncedNames = new TreeMap<>();
    private long usedBytes;
    private long capacityBytes = Long.MAX_VALUE;

    /** Bytes that a process that is being killed still writes; negative: none is. */
    private long dyingWrites = -1;

    SimDisk(SimRandom random, int sectorBytes, PlantedBug bug, Counters counters) {
        this.random = random;
        this.reads = random.child("reads");
        this.sectorBytes = sectorBytes;
        this.bug = bug;
        this.counters = counters;
    }

    /** Thrown in the middle of a write by a process that is killed there. */
    static final class Killed extends Error {
        private static final long serialVersionUID = 1L;
    }

    // ---- names ----

    Inode find(Path path) throws IOException {
        Inode found = names.get(path.toString());
        if (found == null) {
            throw new NoSuchFileException(path.toString());
        }
        return found;
    }

    boolean exists(Path path) {
        return names.containsKey(path.toString());
    }

    Inode create(Path path, boolean directory) throws IOException {
        failPerhaps(path.toString());
        if (exists(path)) {
            throw new FileAlreadyExistsException(path.toString());
        }
        if (usedBytes >= capacityBytes) {
            throw full(path.toString());
        }
        Inode made = new Inode(directory);
        names.put(path.toString(), made);
        if (path.toString().endsWith(SEGMENT)) {
            counters.add(Rare.STORE_SEGMENT_MADE);
        }
        return made;
    }

    void delete(Path path) throws IOException {
        Inode gone = find(path);
        failPerhaps(path.toString());
        names.remove(path.toString());
        usedBytes -= gone.size;
        if (path.toString().endsWith(SEGMENT)) {
            counters.add(Rare.STORE_SEGMENT_REMOVED);
        }
    }

    /** Names in a directory, sorted. */
    List<Path> list(Path directory) throws IOException {
        find(directory);
        List<Path> found = new ArrayList<>();
        for (String name : names.keySet()) {
            if (isIn(name, directory.toString())) {
                found.add(directory.resolve(Path.of(name).getFileName().toString()));
            }
        }
        return found;
    }

    private static boolean isIn(String name, String directory) {
        return name.length() > directory.length()
                && name.startsWith(directory)
                && name.lastIndexOf('/') == (directory.endsWith("/") ? 0 : directory.length());
    }

    private void syncNames(String directory) {
        syncedNames.keySet().removeIf(name -> isIn(name, directory) && !names.containsKey(name));
        names.forEach((name, inode) -> {
            if (isIn(name, directory)) {
                syncedNames.put(name, inode);
            }
        });
    }

    // ---- bytes ----

    /** As a process reads. */
    int read(Inode file, String name, ByteBuffer into, long offset) throws IOException {
        if (readsFail() && name.endsWith(SEGMENT) && isUnreadable(file, offset, into.remaining())) {
            counters.add(Rare.STORE_READ_FAILED);
            throw inputOutputError(name);
        }
        return read(file, into, offset);
    }

    private boolean isUnreadable(Inode file, long offset, int length) {
        Set<Long> bad = badPages.get(file);
        if (bad != null) {
            for (long page = offset / PAGE; page * PAGE < offset + length; page++) {
                if (bad.contains(page)) {
                    return true;
                }
            }
        }
        return reads.chance(readFailChance);
    }

    /** What is there, for those who look from outside. */
    int read(Inode file, ByteBuffer into, long offset) {
        if (offset >= file.size) {
            return -1;
        }
        int wanted = (int) Math.min(into.remaining(), file.size - offset);
        int done = 0;
        while (done < wanted) {
            long at = offset + done;
            int within = (int) (at % PAGE);
            int part = Math.min(PAGE - within, wanted - done);
            byte[] page = page(file, at / PAGE);
            if (page == null) {
                into.put(new byte[part]);
            } else {
                into.put(page, within, part);
            }
            done += part;
        }
        return done;
    }

    private static byte @Nullable [] page(Inode file, long number) {
        return number < file.pages.size() ? file.pages.get((int) number) : null;
    }

    void write(Inode file, String name, ByteBuffer bytes, long offset) throws IOException {
        try {
            failPerhaps(name);
        } catch (IOException e) {
            int part = random.between(0, Math.min(bytes.remaining(), 2 * PAGE));
            put(file, name, bytes.slice(bytes.position(), part), offset);
            throw e;
        }
        if (dyingWrites >= 0) {
            int part = (int) Math.min(bytes.remaining(), dyingWrites);
            dyingWrites -= part;
            put(file, name, bytes.slice(bytes.position(), part), offset);
            if (part < bytes.remaining()) {
                throw new Killed();
            }
            bytes.position(bytes.limit());
            return;
        }
        put(file, name, bytes, offset);
    }

    private void put(Inode file, String name, ByteBuffer bytes, long offset) throws IOException {
        grow(file, name, Math.max(file.size, offset + bytes.remaining()));
        long at = offset;
        while (bytes.hasRemaining()) {
            int part = (int) Math.min(sectorBytes - at % sectorBytes, bytes.remaining());
            byte[] chunk = new byte[part];
            bytes.get(chunk);
            putInSector(file, at, chunk);
            at += part;
        }
    }

    private void grow(Inode file, String name, long size) throws IOException {
        if (size - file.size > Math.max(0, capacityBytes - usedBytes)) {
            throw full(name);
        }
        usedBytes += size - file.size;
        file.size = size;
    }

    private void putInSector(Inode file, long offset, byte[] chunk) {
        byte[] page = page(file, offset / PAGE);
        if (page == null) {
            if (isZero(chunk)) {
                return;
            }
            page = makePage(file, offset / PAGE);
        }
        int within = (int) (offset % PAGE);
        if (Arrays.equals(page, within, within + chunk.length, chunk, 0, chunk.length)) {
            return;
        }
        long sector = offset / sectorBytes;
        List<byte[]> versions = file.older.computeIfAbsent(sector, s -> new ArrayList<>());
        if (versions.size() == MOST_VERSIONS) {
            versions.removeLast();
        }
        int from = (int) (sector * sectorBytes % PAGE);
        versions.add(Arrays.copyOfRange(page, from, from + sectorBytes));
        System.arraycopy(chunk, 0, page, within, chunk.length);
    }

    private static byte[] makePage(Inode file, long number) {
        while (file.pages.size() <= number) {
            file.pages.add(null);
        }
        byte[] page = new byte[PAGE];
        file.pages.set((int) number, page);
        return page;
    }

    private static boolean isZero(byte[] bytes) {
        for (byte each : bytes) {
            if (each != 0) {
                return false;
            }
        }
        return true;
    }

    void truncate(Inode file, long size) {
        if (size < file.size) {
            // Only the lock file is ever truncated: nobody asks what a power loss makes of it.
            file.pages.clear();
            file.older.clear();
            usedBytes -= file.size - size;
            file.size = size;
        }
    }

    /** fsync. */
    void sync(Inode file, String name) throws IOException {
        try {
            failPerhaps(name);
        } catch (IOException e) {
            file.syncFailed |= !file.directory;
            syncFailed |= !file.directory;
            throw e;
        }
        if (bug == PlantedBug.SYNC_IS_A_LIE) {
            return;
        }
        if (file.directory) {
            syncNames(name);
            return;
        }
        file.late.clear();
        if (bug == PlantedBug.MAP_BEFORE_JOURNAL) {
            file.late.putAll(file.older);
        }
        file.older.clear();
        file.syncedSize = file.size;
    }

    // ---- room ----

    long freeBytes() {
        return Math.max(0, capacityBytes - usedBytes);
    }

    long capacityBytes() {
        return capacityBytes;
    }

    /** Leaves so much room. */
    void leaveFree(long bytes) {
        capacityBytes = usedBytes + bytes;
    }

    /** As much room as anybody wants. */
    void grow() {
        capacityBytes = Long.MAX_VALUE;
    }

    private static FileSystemException full(String name) {
        return new FileSystemException(name, null, "No space left on device");
    }

    // ---- faults ----

    /** From now on writes, syncs and new names fail with this probability. */
    void fail(double chance) {
        failChance = chance;
    }

    boolean isFailing() {
        return failChance > 0;
    }

    void failPerhaps(String name) throws IOException {
        if (random.chance(failChance)) {
            counters.add(Rare.STORE_DISK_ERROR);
            throw inputOutputError(name);
        }
    }

    private static FileSystemException inputOutputError(String name) {
        return new FileSystemException(name, null, "Input/output error");
    }

    /** From now on reads of segments fail, with this probability each. */
    void failReads(double chance) {
        readFailChance = chance;
        everUnreadable = true;
    }

    /** From now on a part of what segments hold cannot be read. */
    void failReadsInPlaces(double part) {
        everUnreadable = true;
        names.forEach((name, file) -> {
            if (name.endsWith(SEGMENT)) {
                Set<Long> bad = new TreeSet<>();
                for (long page = 0; page * PAGE < file.size; page++) {
                    if (reads.chance(part)) {
                        bad.add(page);
                    }
                }
                badPages.put(file, bad);
            }
        });
    }

    /** Everything can be read again. */
    void mendReads() {
        readFailChance = 0;
        badPages.clear();
    }

    boolean readsFail() {
        return readFailChance > 0 || !badPages.isEmpty();
    }

    /** Whether reads have ever failed here, or could have. */
    boolean wasEverUnreadable() {
        return everUnreadable;
    }

    /** A process begins to die: it writes at most so many bytes more. */
    void dying(long bytes) {
        dyingWrites = bytes;
    }

    /**
     * The process is dead. If a sync has failed, pages that never reached the disk leave the page
     * cache.
     */
    void dead() {
        dyingWrites = -1;
        for (Inode file : names.values()) {
            if (file.syncFailed) {
                file.syncFailed = false;
                loseUnsynced(file, random.between(0, 2) / 2.0);
            }
        }
    }

    /** Whether a sync has failed since {@link #trust}. */
    boolean hasSyncFailed() {
        return syncFailed;
    }

    /** Whoever uses the disk knows of everything that was wrong with it. */
    void trust() {
        syncFailed = false;
    }

    boolean isFull() {
        return capacityBytes < Long.MAX_VALUE;
    }

    /** The power fails: what was not synced is decided now. */
    void powerLoss() {
        double kept = random.chance(0.6) ? random.between(0, 2) / 2.0 : random.between(0, 9) / 9.0;
        TreeSet<String> all = new TreeSet<>(names.keySet());
        all.addAll(syncedNames.keySet());
        TreeMap<String, Inode> left = new TreeMap<>();
        for (String name : all) {
            Inode now = names.get(name);
            Inode synced = syncedNames.get(name);
            Inode kind = now == synced || random.chance(kept) ? now : synced;
            if (kind != null) {
                left.put(name, kind);
            }
        }
        names = left;
        syncedNames = new TreeMap<>(left);
        usedBytes = 0;
        for (Inode file : left.values()) {
            loseUnsynced(file, kept);
            usedBytes += file.size;
        }
    }

    private void loseUnsynced(Inode file, double kept) {
        file.late.forEach((sector, versions) ->
                file.older.merge(
                        sector,
                        versions,
                        (newer, late) -> {
                            List<byte[]> both = new ArrayList<>(late);
                            both.addAll(newer);
                            return both;
                        }));
        file.late.clear();
        file.older.forEach((sector, versions) -> {
            if (!random.chance(kept)) {
                revert(file, sector, random.pick(versions));
            }
        });
        file.older.clear();
        if (!random.chance(kept)) {
            file.size = Math.min(file.size, file.syncedSize);
        }
        file.syncedSize = file.size;
    }

    private void revert(Inode file, long sector, byte[] old) {
        byte[] page = page(file, sector * sectorBytes / PAGE);
        if (page != null) {
            // A sector is whole as a rule; some disks tear one.
            int from = random.chance(0.02) ? random.between(0, sectorBytes) : 0;
            int at = (int) (sector * sectorBytes % PAGE);
            System.arraycopy(old, from, page, at + from, sectorBytes - from);
            counters.add(Rare.STORE_SECTOR_LOST);
        }
    }

    /** An empty disk in the place of this one. */
    void wipe() {
        names.clear();
        syncedNames.clear();
        usedBytes = 0;
        failChance = 0;
        syncFailed = false;
    }

    /** Damage at rest: one bit turns over. */
    void flip(Inode file, long offset, int bit) {
        byte[] page = page(file, offset / PAGE);
        if (page == null) {
            page = makePage(file, offset / PAGE);
        }
        page[(int) (offset % PAGE)] ^= (byte) (1 << bit);
    }
}
