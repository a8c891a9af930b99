package io.holdfast.node.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.node.replica.HardState;
import io.holdfast.node.replica.Recovered;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.ShardId;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Journals that are damaged in all ways a disk or a person can do it. A start either refuses with a
 * {@link StoreException}, or the shards are as after some first part of the journal: one that ends
 * nowhere before the damage; and, if the machine was not restarted, that has every record in it
 * that is not damaged. What a start refuses, {@link OfflineStore#verify} finds.
 *
 * <p>{@code -Dholdfast.store.fuzz=N}: so many damages, {@code -Dholdfast.store.fuzz.seed=N}: the
 * first seed. What fails with seed N fails again with {@code -Dholdfast.store.fuzz=1
 * -Dholdfast.store.fuzz.seed=N}.
 */
class RecoveryFuzzTest {
    private static final int CASES = Integer.getInteger("holdfast.store.fuzz", 150);
    private static final long FIRST_SEED = Long.getLong("holdfast.store.fuzz.seed", 1);
    private static final int CASES_PER_STORE = 25;
    private static final int LIMIT_MINUTES = 60;
    private static final long SEGMENT_BYTES = StoreOptions.SMALLEST_SEGMENT_BYTES;

    @TempDir Path directory;

    private final Loop loop = new Loop();

    /** A journal as it was written, with the database beside it. */
    private record Original(
            NavigableMap<Integer, byte[]> segments, MemoryRows rows, List<Event> events) {}

    /** A record that changes what a start finds. */
    private record Event(
            long place, int length, ShardId shard, @Nullable Entry entry, @Nullable Mark mark) {}

    /** A shard's log as a start finds it. */
    private static final class Log {
        private long base;
        private final List<Entry> entries = new ArrayList<>();

        private long last() {
            return base + entries.size();
        }
    }

    private StoreOptions options(String boot) {
        return new StoreOptions(SEGMENT_BYTES, 1L << 40, 1 << 20, 1 << 20, 1, boot);
    }

    private JournalStore open(Path where, MemoryRows rows, String boot) throws IOException {
        return new JournalStore(where, options(boot), loop, Threads.REAL, map -> rows);
    }

    @Test
    @Timeout(value = LIMIT_MINUTES, unit = TimeUnit.MINUTES)
    void noDamageIsTakenForGood() throws IOException {
        int refused = 0;
        Original original = null;
        Original stranger = null;
        for (int i = 0; i < CASES; i++) {
            long seed = FIRST_SEED + i;
            if (original == null || stranger == null || seed % CASES_PER_STORE == 0) {
                // Of the seed alone, so that a case can be repeated without those before it.
                Random stores = new Random(~(seed - Math.floorMod(seed, CASES_PER_STORE)));
                stranger = make(stores);
                original = make(stores);
            }
            try {
                refused += isRefused(original, stranger, new Random(seed)) ? 1 : 0;
            } catch (AssertionError | RuntimeException | IOException e) {
                throw new AssertionError("seed " + seed, e);
            }
        }
        if (CASES >= CASES_PER_STORE) {
            assertThat(refused).isBetween(CASES / 4, CASES - 1);
        }
    }

    private static final List<ShardId> SHARDS = List.of(Rig.SHARD, Rig.OTHER);

    /** Some segments with entries, tails that are replaced, syncs, now and then a checkpoint. */
    private Original make(Random random) throws IOException {
        Path where = Files.createTempDirectory(directory, "made");
        MemoryRows rows = new MemoryRows();
        boolean rebooted = random.nextBoolean();
        JournalStore store = open(where, rows, rebooted ? "before" : StoreOptions.currentBoot());
        List<TestOwner> owners = new ArrayList<>();
        long[] last = new long[SHARDS.size()];
        long epoch = 1;
        for (ShardId shard : SHARDS) {
            owners.add(new TestOwner());
            Rig.create(store, shard, owners.getLast());
        }
        int steps = 20 + random.nextInt(60);
        for (int step = 0; step < steps; step++) {
            int who = random.nextInt(SHARDS.size());
            ShardId shard = SHARDS.get(who);
            int action = random.nextInt(100);
            if (action < 70) {
                last[who]++;
                Entry entry =
                        random.nextInt(4) == 0
                                ? Rig.zero(shard, epoch, last[who], random.nextInt(100), 5)
                                : Rig.write(
                                        shard,
                                        epoch,
                                        last[who],
                                        random.nextInt(100),
                                        1 + random.nextInt(3));
                store.append(shard, List.of(entry), null);
            } else if (action < 80) {
                Rig.sync(store, loop);
            } else if (action < 88) {
                store.write();
            } else if (action < 92) {
                epoch++;
                store.append(shard, List.of(), new HardState(epoch, 1, HardState.FRESH.standing()));
            } else if (action < 96 && last[who] > owners.get(who).applied) {
                last[who]--;
                store.truncate(shard, last[who]);
                epoch++;
            } else {
                apply(store, shard, owners.get(who), last[who]);
                Rig.checkpoint(store, loop);
            }
        }
        store.write();
        store.abandon();
        Original made = new Original(load(where), rows, new ArrayList<>());
        note(made);
        delete(where);
        return made;
    }

    private static void apply(JournalStore store, ShardId shard, TestOwner owner, long through) {
        List<Entry> entries = store.log(shard, owner.applied + 1, through, 1 << 30);
        store.apply(shard, entries);
        if (!entries.isEmpty()) {
            owner.applied = entries.getLast().sequence();
            owner.appliedEpoch = entries.getLast().epoch();
        }
    }

    private static NavigableMap<Integer, byte[]> load(Path where) throws IOException {
        TreeMap<Integer, byte[]> all = new TreeMap<>();
        for (var file : Segments.list(where.resolve("journal")).entrySet()) {
            all.put(file.getKey(), Files.readAllBytes(file.getValue()));
        }
        return all;
    }

    /** Lists the records from the covered place on. */
    private void note(Original made) throws IOException {
        StoreRow row = new MapDatabase(made.rows).store().orElseThrow();
        Path where = Files.createTempDirectory(directory, "noted");
        store(where, made.segments);
        new JournalScan(where.resolve("journal"), row.store(), 0, true)
                .run(
                        row.covered(),
                        new JournalScan.Visitor() {
                            @Override
                            public void entry(Entry entry, long place) {
                                made.events.add(
                                        new Event(
                                                place,
                                                entry.sizeBytes(),
                                                entry.shard(),
                                                entry,
                                                null));
                            }

                            @Override
                            public void mark(Mark mark, long place) {
                                ShardId shard = mark.shard();
                                made.events.add(
                                        new Event(
                                                place,
                                                mark.sizeBytes(),
                                                shard == null ? Rig.SHARD : shard,
                                                null,
                                                mark));
                            }
                        });
        delete(where);
    }

    private static void store(Path where, NavigableMap<Integer, byte[]> segments)
            throws IOException {
        Path journal = Files.createDirectories(where.resolve("journal"));
        for (var segment : segments.entrySet()) {
            Files.write(Segments.file(journal, segment.getKey()), segment.getValue());
        }
    }

    private static void delete(Path where) throws IOException {
        try (Stream<Path> files = Files.walk(where)) {
            for (Path file : files.sorted((a, b) -> b.compareTo(a)).toList()) {
                Files.delete(file);
            }
        }
    }

    private boolean isRefused(Original original, Original stranger, Random random)
            throws IOException {
        NavigableMap<Integer, byte[]> damaged = new TreeMap<>();
        original.segments.forEach((number, bytes) -> damaged.put(number, bytes.clone()));
        StringBuilder story = new StringBuilder();
        for (int count = 1 + random.nextInt(2); count > 0; count--) {
            story.append(damage(damaged, stranger, original.events, random)).append("; ");
        }
        Path where = Files.createTempDirectory(directory, "damaged");
        store(where, damaged);
        MemoryRows rows = original.rows.copy();
        StoreRow row = new MapDatabase(rows).store().orElseThrow();
        boolean sameBoot = row.bootId().equals(StoreOptions.currentBoot());
        boolean sound = isSound(where, rows, row);
        try {
            JournalStore store = open(where, rows, StoreOptions.currentBoot());
            try {
                check(store, original, damaged, sameBoot, story.toString());
            } finally {
                store.abandon();
                loop.drain();
            }
            return false;
        } catch (StoreException e) {
            assertThat(sound).as("verify after %s: %s", story, e.getMessage()).isFalse();
            return true;
        } finally {
            delete(where);
        }
    }

    private static boolean isSound(Path where, MemoryRows rows, StoreRow row) throws IOException {
        try {
            Survey survey = new Survey(where, row, new MapDatabase(rows), true, (bytes, all) -> {});
            survey.run();
            survey.checkUsage();
            return survey.problems == 0;
        } catch (StoreException e) {
            return false;
        }
    }

    private static int anySegment(NavigableMap<Integer, byte[]> segments, Random random) {
        return List.copyOf(segments.keySet()).get(random.nextInt(segments.size()));
    }

    /** An offset that is more likely to matter than any. */
    private static int anyOffset(byte[] bytes, List<Event> events, int segment, Random random) {
        List<Event> here =
                events.stream().filter(event -> Place.segment(event.place) == segment).toList();
        if (here.isEmpty() || random.nextInt(8) == 0) {
            return random.nextInt(bytes.length);
        }
        Event event = here.get(random.nextInt(here.size()));
        int within = random.nextBoolean() ? random.nextInt(event.length) : random.nextInt(16);
        return (int) Math.min(bytes.length - 1, Place.offset(event.place) + within);
    }

    /** Does one damage; says which. */
    private static String damage(
            NavigableMap<Integer, byte[]> segments,
            Original stranger,
            List<Event> events,
            Random random) {
        if (segments.isEmpty()) {
            return "nothing is left";
        }
        int number = anySegment(segments, random);
        int second = anySegment(segments, random);
        byte[] bytes = segments.getOrDefault(number, new byte[0]);
        byte[] other = segments.getOrDefault(second, new byte[0]);
        if (bytes.length == 0 || other.length == 0) {
            segments.remove(number);
            return "deleted " + number;
        }
        int at = anyOffset(bytes, events, number, random);
        int to = anyOffset(other, events, second, random);
        int length =
                1 + random.nextInt(Math.min(8192, Math.min(bytes.length - at, other.length - to)));
        String where = number + ":" + at;
        return switch (random.nextInt(12)) {
            case 0, 1, 2 -> {
                bytes[at] ^= (byte) (1 << random.nextInt(8));
                yield "flipped a bit at " + where;
            }
            case 3 -> {
                segments.put(number, Arrays.copyOf(bytes, at));
                yield "truncated at " + where;
            }
            case 4 -> {
                Arrays.fill(bytes, at, at + length, (byte) 0);
                yield "zeroes at " + where + "+" + length;
            }
            case 5 -> {
                Arrays.fill(bytes, at, bytes.length, (byte) 0);
                yield "zeroes from " + where;
            }
            case 6 -> {
                System.arraycopy(bytes, at, other, to, length);
                yield "copied " + where + "+" + length + " to " + second + ":" + to;
            }
            case 7 -> {
                byte[] saved = Arrays.copyOfRange(bytes, at, at + length);
                System.arraycopy(other, to, bytes, at, length);
                System.arraycopy(saved, 0, other, to, length);
                yield "swapped " + where + "+" + length + " with " + second + ":" + to;
            }
            case 8 -> {
                segments.put(number, other);
                segments.put(second, bytes);
                yield "swapped segments " + number + " and " + second;
            }
            case 9 -> {
                segments.put(number, stranger.segments.firstEntry().getValue().clone());
                yield "a stranger's segment as " + number;
            }
            case 10 -> {
                byte[] noise = new byte[length];
                random.nextBytes(noise);
                System.arraycopy(noise, 0, bytes, at, length);
                yield "noise at " + where + "+" + length;
            }
            default -> copyRecord(segments, events, random);
        };
    }

    /** A whole record, valid as it is, at the place of another. */
    private static String copyRecord(
            NavigableMap<Integer, byte[]> segments, List<Event> events, Random random) {
        if (events.isEmpty()) {
            return "nothing";
        }
        Event from = events.get(random.nextInt(events.size()));
        Event to = events.get(random.nextInt(events.size()));
        byte[] source = segments.get(Place.segment(from.place));
        byte[] target = segments.get(Place.segment(to.place));
        int at = (int) Place.offset(from.place);
        int into = (int) Place.offset(to.place) + (random.nextInt(3) == 0 ? to.length + 7 & -8 : 0);
        if (source == null
                || target == null
                || source.length < at + from.length
                || target.length < into + from.length) {
            return "nothing";
        }
        System.arraycopy(source, at, target, into, from.length);
        return "copied the record at " + Place.text(from.place) + " to " + into;
    }

    /** Where the first byte stands that differs. */
    private static long firstDifference(
            NavigableMap<Integer, byte[]> was, NavigableMap<Integer, byte[]> is) {
        for (var segment : was.entrySet()) {
            byte[] before = segment.getValue();
            byte[] now = is.getOrDefault(segment.getKey(), new byte[0]);
            int at = Arrays.mismatch(before, Arrays.copyOf(now, before.length));
            if (at >= 0) {
                return Place.of(segment.getKey(), at);
            }
        }
        return Long.MAX_VALUE;
    }

    private static boolean isIntact(
            Event event, NavigableMap<Integer, byte[]> was, NavigableMap<Integer, byte[]> is) {
        int segment = Place.segment(event.place);
        int at = (int) Place.offset(event.place);
        byte[] before = was.getOrDefault(segment, new byte[0]);
        byte[] now = is.getOrDefault(segment, new byte[0]);
        return now.length >= at + event.length
                && Arrays.equals(before, at, at + event.length, now, at, at + event.length);
    }

    private static void check(
            JournalStore store,
            Original original,
            NavigableMap<Integer, byte[]> damaged,
            boolean sameBoot,
            String story)
            throws IOException {
        Map<ShardId, Recovered> found = new TreeMap<>();
        for (ShardId shard : store.shards()) {
            found.put(shard, store.open(shard, new TestOwner()));
        }
        long damage = firstDifference(original.segments, damaged);
        Map<ShardId, Log> logs = new TreeMap<>();
        Map<ShardId, Long> from = new TreeMap<>();
        new MapDatabase(original.rows)
                .shards()
                .forEach((id, shard) -> {
                    Log log = new Log();
                    log.base = shard.applied();
                    logs.put(id, log);
                    from.put(id, shard.from());
                });
        boolean fits = false;
        boolean lostIntact = false;
        boolean holdsFirstPart = false;
        boolean firstAfter = true;
        for (int i = 0; i <= original.events.size(); i++) {
            Event next = i < original.events.size() ? original.events.get(i) : null;
            boolean beforeDamage = next != null && next.place + next.length <= damage;
            if (!beforeDamage && equal(logs, found)) {
                fits = true;
                lostIntact = false;
            }
            if (!beforeDamage && firstAfter) {
                firstAfter = false;
                holdsFirstPart = isFirstPart(logs, found);
            }
            if (next == null) {
                break;
            }
            lostIntact |= isIntact(next, original.segments, damaged) && changes(next, from);
            play(next, logs, from);
        }
        // A record that was copied as a whole is as valid as the one it overwrote, if it follows
        // the same entry. Where a tail was cut behind it, a learner may hold a log that never was,
        // of entries that all were.
        boolean isCopied = !sameBoot && holdsFirstPart && isGenuine(original, found);
        assertThat(fits || isCopied).as("%s: found %s", story, found).isTrue();
        if (sameBoot) {
            assertThat(lostIntact).as("%s: an intact record is gone", story).isFalse();
        }
    }

    private static boolean isFirstPart(Map<ShardId, Log> logs, Map<ShardId, Recovered> found) {
        for (var log : logs.entrySet()) {
            Recovered past = found.get(log.getKey());
            List<Entry> entries = log.getValue().entries;
            if (past == null || past.entries().size() < entries.size()) {
                return false;
            }
            for (int i = 0; i < entries.size(); i++) {
                if (!equal(entries.get(i), past.entries().get(i))) {
                    return false;
                }
            }
        }
        return true;
    }

    private static boolean isGenuine(Original original, Map<ShardId, Recovered> found) {
        return found.values().stream()
                .flatMap(past -> past.entries().stream())
                .allMatch(entry ->
                        original.events.stream()
                                .anyMatch(
                                        event -> event.entry != null && equal(event.entry, entry)));
    }

    private static boolean changes(Event event, Map<ShardId, Long> from) {
        return event.place >= from.getOrDefault(event.shard, 0L)
                && (event.entry != null
                        || (event.mark != null && event.mark.type() == Mark.Type.TRUNCATE));
    }

    private static void play(Event event, Map<ShardId, Log> logs, Map<ShardId, Long> from) {
        if (event.mark != null && event.mark.type() == Mark.Type.CREATE) {
            logs.putIfAbsent(event.shard, new Log());
        }
        Log log = logs.get(event.shard);
        if (log == null || event.place < from.getOrDefault(event.shard, 0L)) {
            return;
        }
        if (event.entry != null && event.entry.sequence() == log.last() + 1) {
            log.entries.add(event.entry);
        } else if (event.mark != null && event.mark.type() == Mark.Type.TRUNCATE) {
            while (!log.entries.isEmpty() && log.last() > event.mark.position()) {
                log.entries.removeLast();
            }
        }
    }

    private static boolean equal(Map<ShardId, Log> logs, Map<ShardId, Recovered> found) {
        if (!logs.keySet().equals(found.keySet())) {
            return false;
        }
        for (var log : logs.entrySet()) {
            Recovered past = found.get(log.getKey());
            List<Entry> entries = log.getValue().entries;
            if (past == null
                    || past.applied() != log.getValue().base
                    || past.entries().size() != entries.size()) {
                return false;
            }
            for (int i = 0; i < entries.size(); i++) {
                if (!equal(entries.get(i), past.entries().get(i))) {
                    return false;
                }
            }
        }
        return true;
    }

    /** Headers hold the checksum over the payload. */
    private static boolean equal(Entry a, Entry b) {
        return Arrays.equals(a.header(), b.header());
    }
}
