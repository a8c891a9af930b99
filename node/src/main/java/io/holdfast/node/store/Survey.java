package io.holdfast.node.store;

import io.holdfast.node.store.ExtentCheck.Claim;
import io.holdfast.node.store.OfflineStore.Progress;
import io.holdfast.node.store.SegmentWalk.Damage;
import io.holdfast.node.store.SegmentWalk.Elsewhere;
import io.holdfast.node.store.SegmentWalk.Head;
import io.holdfast.node.store.StoreProblem.Kind;
import io.holdfast.node.store.StoreSummary.SegmentLine;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.MalformedException;
import io.holdfast.proto.peer.ShardId;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** One look at a whole store, for {@link OfflineStore}; reads only. */
final class Survey {
    /** Problems that are kept; beyond, they are counted. */
    static final int MAX_LISTED = 1000;

    /**
     * Extents in memory, about 130 bytes each; and those of a segment, of which there are fewer.
     */
    private static final long GROUP_EXTENTS = 500_000;

    private final Path journal;
    private final StoreRow row;
    private final MapDatabase database;
    private final boolean checked;
    private final Progress progress;
    private final boolean tailMayBeLost;

    private final NavigableMap<Integer, Path> files;
    private final Map<Integer, Head> heads = new HashMap<>();
    private final TreeMap<Integer, Long> extentsOf = new TreeMap<>();
    private final TreeMap<Integer, Long> blocksOf = new TreeMap<>();
    private final TreeMap<ShardId, Long> shardExtents = new TreeMap<>();
    private final TreeMap<ShardId, TreeMap<Integer, Long>> live = new TreeMap<>();
    private final List<SegmentLine> lines = new ArrayList<>();

    /** Damage behind what the last checkpoint knew to be synced: it may be no more than a tail. */
    private final List<Tail> tails = new ArrayList<>();

    final TreeMap<ShardId, ShardTrace> shards = new TreeMap<>();
    final List<StoreProblem> listed = new ArrayList<>();
    final List<String> notes = new ArrayList<>();
    long problems;
    long records;
    long extents;
    long blocks;
    long journalBytes;
    long liveBytes;
    long end;

    private ExtentCheck check = new ExtentCheck(this::problem);
    private int checkThrough;
    private long proven;
    private long lastValid;
    private boolean mapReadable = true;
    private @Nullable Claim before;

    private record Tail(StoreProblem problem, long from, boolean torn) {}

    Survey(Path directory, StoreRow row, MapDatabase database, boolean checked, Progress progress)
            throws IOException {
        this.row = row;
        this.database = database;
        this.checked = checked;
        this.progress = progress;
        journal = directory.resolve("journal");
        files = Segments.list(journal);
        tailMayBeLost = !row.clean() && !row.bootId().equals(StoreOptions.currentBoot());
        proven = row.synced();
        end = row.covered();
    }

    private void problem(StoreProblem problem) {
        problems++;
        if (listed.size() < MAX_LISTED) {
            listed.add(problem);
        }
    }

    List<SegmentLine> segmentLines() {
        return lines;
    }

    long extents(ShardId shard) {
        return shardExtents.getOrDefault(shard, 0L);
    }

    void run() throws IOException {
        readHeads();
        readMap();
        findMissing();
        for (Path file : files.values()) {
            journalBytes += Files.size(file);
        }
        long read = 0;
        for (var file : files.entrySet()) {
            int number = file.getKey();
            if (checked && number > checkThrough) {
                loadExtents(number);
            }
            walk(number, file.getValue());
            read += Files.size(file.getValue());
            progress.read(read, journalBytes);
        }
        judgeTails();
    }

    private void readHeads() throws IOException {
        StoreException other = null;
        boolean known = false;
        for (var file : files.entrySet()) {
            Head head = new SegmentWalk(file.getValue(), file.getKey(), checked).head(row.store());
            heads.put(file.getKey(), head);
            if (head.other() != null) {
                other = head.other();
            } else if (head.begun()) {
                known = true;
            }
        }
        if (other != null && !known) {
            throw other;
        }
    }

    private void readMap() throws IOException {
        try {
            database.shards()
                    .forEach((id, shard) ->
                            shards.put(
                                    id,
                                    new ShardTrace(
                                            shard.hardState(), shard.applied(), shard.from())));
            database.extents(this::extent);
        } catch (StoreException e) {
            mapReadable = false;
            problem(StoreProblem.of(Kind.MAP, firstLine(e)));
        }
    }

    private static String firstLine(StoreException e) {
        String text = String.valueOf(e.getMessage());
        return text.lines().findFirst().orElse(text);
    }

    private void extent(byte[] key, byte[] value) {
        Claim claim;
        try {
            claim = OfflineStore.claim(key, value);
        } catch (MalformedException e) {
            problem(StoreProblem.of(Kind.MAP, String.valueOf(e.getMessage())));
            return;
        }
        extents++;
        shardExtents.merge(claim.shard(), 1L, Long::sum);
        if (!shards.containsKey(claim.shard())) {
            problem(claim.problem("map", "the map has no such shard"));
        }
        Claim last = before;
        if (last != null
                && last.shard().equals(claim.shard())
                && last.layer() == claim.layer()
                && last.extent().end() > claim.extent().start) {
            problem(claim.problem("map", "overlaps the extent before"));
        }
        before = claim;
        if (claim.extent().place == Place.NONE) {
            return;
        }
        int segment = Place.segment(claim.extent().place);
        long bytes = (long) claim.extent().count * Blocks.SEALED_SIZE;
        extentsOf.merge(segment, 1L, Long::sum);
        blocksOf.merge(segment, (long) claim.extent().count, Long::sum);
        live.computeIfAbsent(claim.shard(), shard -> new TreeMap<>())
                .merge(segment, bytes, Long::sum);
        blocks += claim.extent().count;
        liveBytes += bytes;
    }

    /**
     * Segments that must be there: those with extents, and all from the covered place through the
     * last one and the synced place.
     */
    private void findMissing() {
        TreeMap<Integer, Long> needed = new TreeMap<>(blocksOf);
        int synced = Place.segment(row.synced()) - (Place.offset(row.synced()) > 0 ? 0 : 1);
        int through = Math.max(synced, files.isEmpty() ? 0 : files.lastKey());
        int covered = Place.segment(row.covered());
        for (int number = covered; number <= through; number++) {
            needed.putIfAbsent(number, 0L);
        }
        if (Place.offset(row.covered()) > 0) {
            needed.putIfAbsent(covered, 0L);
        }
        needed.forEach((number, lost) -> {
            if (!files.containsKey(number)) {
                Path file = Segments.file(journal, number);
                problem(
                        StoreProblem.at(
                                        Kind.SEGMENT,
                                        Place.of(number, 0),
                                        name(file),
                                        0,
                                        "segment is missing")
                                .withLive(lost));
            }
        });
    }

    private static String name(Path file) {
        return "journal/" + file.getFileName();
    }

    /** Loads what points to the next segments, as many as fit. */
    private void loadExtents(int from) throws IOException {
        long count = 0;
        int through = from;
        for (int number : files.tailMap(from, true).keySet()) {
            count += extentsOf.getOrDefault(number, 0L);
            if (number > from && count > GROUP_EXTENTS) {
                break;
            }
            through = number;
        }
        checkThrough = through;
        check = new ExtentCheck(this::problem);
        if (extentsOf.subMap(from, true, through, true).isEmpty()) {
            return;
        }
        int last = through;
        try {
            database.extents((key, value) -> {
                try {
                    Claim claim = OfflineStore.claim(key, value);
                    int segment = Place.segment(claim.extent().place);
                    if (segment >= from && segment <= last && files.containsKey(segment)) {
                        check.add(claim);
                    }
                } catch (MalformedException e) {
                    // Told when the map was read for the first time.
                    return;
                }
            });
        } catch (StoreException e) {
            mapReadable = false;
        }
        check.sort();
    }

    private void walk(int number, Path file) throws IOException {
        Head head = heads.get(number);
        long size = Files.size(file);
        boolean isLast = number == files.lastKey();
        long synced = row.synced();
        long atLeast = Place.segment(synced) == number ? Place.offset(synced) : 0;
        boolean spare = head != null && !head.begun() && isLast && atLeast == 0;
        Walk walk = new Walk(name(file), spare);
        if (spare) {
            new SegmentWalk(file, number, checked).run(0, 0, walk);
        } else if (head != null && head.elsewhere() != Elsewhere.NO) {
            elsewhere(number, file, head);
        } else {
            if (head != null && head.wrong() != null) {
                deferOrTell(
                        StoreProblem.at(
                                Kind.SEGMENT,
                                Place.of(number, 0),
                                name(file),
                                SegmentHeader.SIZE,
                                head.wrong()),
                        Place.of(number, 0),
                        true);
            }
            long knownEnd = knownEnd(number);
            long stopped = new SegmentWalk(file, number, checked).run(knownEnd, atLeast, walk);
            if (knownEnd != 0 && stopped != knownEnd) {
                problem(
                        StoreProblem.at(
                                Kind.SEGMENT,
                                Place.of(number, stopped),
                                name(file),
                                0,
                                "records end here, but the next segment follows "
                                        + Place.text(Place.of(number, knownEnd))));
            }
            end = Place.of(number, stopped);
        }
        check.before(Place.of(number + 1, 0), name(file));
        lines.add(
                new SegmentLine(
                        number,
                        spare,
                        size,
                        blocksOf.getOrDefault(number, 0L) * Blocks.SEALED_SIZE,
                        walk.count,
                        walk.count == 0 ? null : Place.text(walk.first),
                        walk.count == 0 ? null : Place.text(walk.last)));
    }

    /** A whole segment in the place of another. Its records are where they do not belong. */
    private void elsewhere(int number, Path file, Head head) throws IOException {
        long place = Place.of(number, 0);
        StoreProblem found =
                StoreProblem.at(
                                Kind.SEGMENT,
                                place,
                                name(file),
                                Files.size(file),
                                String.valueOf(head.wrong()))
                        .withLive(blocksOf.getOrDefault(number, 0L));
        check.damage(place, Place.of(number + 1, 0), name(file));
        lastValid = Place.of(number, SegmentHeader.SIZE);
        if (head.elsewhere() == Elsewhere.OTHER_STORE) {
            problem(found);
        } else {
            deferOrTell(found, place, false);
        }
    }

    /** Where the segment's records end, as the next one's header says; 0: it does not. */
    private long knownEnd(int number) {
        Head next = heads.get(number + 1);
        if (next == null || next.header() == null) {
            return 0;
        }
        long previousEnd = next.header().previousEnd();
        return Place.segment(previousEnd) == number ? Place.offset(previousEnd) : 0;
    }

    /** Damage behind the last checkpoint's synced place waits for what follows it. */
    private void deferOrTell(StoreProblem problem, long from, boolean torn) {
        if (from >= row.synced() && tails.size() < MAX_LISTED) {
            tails.add(new Tail(problem, from, torn));
        } else {
            problem(problem);
        }
    }

    /** The rules of {@link JournalScan}. A write that ended half-way leaves one torn place. */
    private void judgeTails() {
        boolean alone = tails.size() == 1;
        for (Tail tail : tails) {
            boolean follows = lastValid > tail.from;
            boolean cut =
                    tail.from >= proven
                            && !row.clean()
                            && (tailMayBeLost || (!follows && alone && tail.torn));
            if (cut) {
                notes.add(
                        "unfinished write at the journal's end, which the next start cuts off: "
                                + tail.problem.text());
            } else {
                problem(tail.problem);
            }
        }
    }

    private final class Walk implements SegmentWalk.Visitor {
        private final String file;

        /** Made ahead of time, and so without anything in it: no write can have ended half-way. */
        private final boolean spare;

        private long count;
        private long first;
        private long last;

        Walk(String file, boolean spare) {
            this.file = file;
            this.spare = spare;
        }

        private void record(long place) {
            first = count == 0 ? place : first;
            last = place;
            lastValid = place;
            count++;
            records++;
        }

        @Override
        public void entry(EntryHead entry, long place) {
            record(place);
            check.entry(entry, place, file);
            if (entry.isMoved() || place < row.covered()) {
                return;
            }
            ShardTrace shard = shards.get(new ShardId(entry.volume(), entry.index()));
            if (shard == null || place < shard.from) {
                return;
            }
            long expected = shard.last + 1;
            if (!shard.entry(entry.sequence())) {
                problem(
                        StoreProblem.at(
                                        Kind.LOG,
                                        place,
                                        file,
                                        entry.length(),
                                        "the log has a gap: sequence "
                                                + expected
                                                + " should be here")
                                .about(entry));
            }
        }

        @Override
        public void mark(Mark mark, long place) {
            record(place);
            if (mark.type() == Mark.Type.SYNCED) {
                proven = Math.max(proven, mark.position());
                return;
            }
            ShardId id = mark.shard();
            if (id == null || place < row.covered()) {
                return;
            }
            ShardTrace shard = shards.get(id);
            if (mark.type() == Mark.Type.CREATE && mark.state() != null) {
                if (shard == null) {
                    shards.put(id, new ShardTrace(mark.state(), 0, place));
                }
            } else if (shard != null && place >= shard.from) {
                if (mark.type() == Mark.Type.DROP) {
                    shards.remove(id);
                } else {
                    shard.mark(mark);
                }
            }
        }

        @Override
        public void damage(Damage damage) {
            long from = damage.from();
            long bytes = damage.to() - from;
            StoreProblem found =
                    StoreProblem.at(Kind.RECORD, from, file, bytes, damage.why())
                            .withLive(check.damage(from, damage.to(), file));
            EntryHead head = damage.head();
            found = head == null ? found.withRecord(damage.record()) : found.about(head);
            if (damage.behindEnd()) {
                problem(found);
            } else {
                deferOrTell(found, from, damage.torn() && !spare);
            }
        }
    }

    /** The map's live bytes of segments must be what its extents add up to. */
    void checkUsage() throws IOException {
        if (!mapReadable) {
            return;
        }
        TreeMap<ShardId, TreeMap<Integer, Long>> rest = new TreeMap<>();
        live.forEach((shard, segments) -> rest.put(shard, new TreeMap<>(segments)));
        try {
            for (UsageRow usage : database.usage()) {
                TreeMap<Integer, Long> segments = rest.get(usage.shard());
                Long counted = segments == null ? null : segments.remove(usage.segment());
                compare(
                        usage.shard(),
                        usage.segment(),
                        usage.live(),
                        counted == null ? 0 : counted);
            }
            rest.forEach((shard, segments) ->
                    segments.forEach((segment, bytes) -> compare(shard, segment, 0, bytes)));
        } catch (StoreException e) {
            problem(StoreProblem.of(Kind.MAP, firstLine(e)));
        }
    }

    private void compare(ShardId shard, int segment, long said, long counted) {
        if (said != counted) {
            problem(
                    StoreProblem.of(
                            Kind.USAGE,
                            "shard "
                                    + shard
                                    + " has "
                                    + counted
                                    + " live bytes in segment "
                                    + segment
                                    + ", the map says "
                                    + said));
        }
    }
}
