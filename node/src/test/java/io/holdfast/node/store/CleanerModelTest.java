package io.holdfast.node.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.node.replica.HardState;
import io.holdfast.node.replica.Recovered;
import io.holdfast.proto.peer.ClientReply.Run;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.Nonce;
import io.holdfast.proto.peer.ShardId;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A store that cleans and removes small segments, against one long per block of two shards: writes,
 * trims, dropped shards, checkpoints, cleaning, crashes of the process and losses of power. Every
 * block reads back right, live bytes are what the map adds up to, and in the end the files shrink
 * to what is live.
 */
class CleanerModelTest {
    private static final int BLOCKS = 3 * ExtentPage.BLOCKS;
    private static final int STEPS = 3000;
    private static final long SEGMENT_BYTES = StoreOptions.MIN_SEGMENT_BYTES;
    private static final int SEGMENTS = 40;

    /** With so many segments log is kept, because there is room. */
    private static final int ROOMY_SEGMENTS = SEGMENTS - 2 * Cleaner.START_SEGMENTS;

    /** A segment ends where the next record does not fit: so much of it holds records. */
    private static final double LEAST_FILLED = 1 - (double) Entry.MAX_SIZE / SEGMENT_BYTES;

    @TempDir Path directory;

    private final Loop loop = new Loop();
    private final Map<ShardId, Shard> shards = new TreeMap<>();
    private Random random = new Random();
    private int boot = 1;

    /** What a shard should hold. */
    private static final class Shard {
        final ShardId id;
        final List<Entry> history = new ArrayList<>();
        final ArrayDeque<Entry> unapplied = new ArrayDeque<>();
        TestOwner owner = new TestOwner();
        long epoch = 1;

        Shard(ShardId id) {
            this.id = id;
        }

        long last() {
            return history.size();
        }

        long[] model() {
            long[] newest = new long[BLOCKS];
            for (Entry entry : history.subList(0, (int) owner.applied)) {
                for (int i = 0; i < entry.count(); i++) {
                    newest[(int) entry.block() + i] = entry.sequence();
                }
            }
            return newest;
        }
    }

    private JournalStore open() throws IOException {
        StoreOptions options =
                new StoreOptions(
                        SEGMENT_BYTES,
                        6 << 20,
                        60_000,
                        1 << 20,
                        2,
                        "boot-" + boot,
                        SEGMENTS * SEGMENT_BYTES);
        return new JournalStore(directory, options, loop);
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6})
    void losesNothingAndLeaksNothing(long seed) throws IOException {
        random = new Random(seed);
        JournalStore store = open();
        try {
            create(store, Rig.SHARD);
            create(store, Rig.OTHER);
            for (int step = 0; step < STEPS; step++) {
                Shard shard = shards.get(random.nextBoolean() ? Rig.SHARD : Rig.OTHER);
                int action = random.nextInt(1000);
                if (action < 550) {
                    append(store, shard);
                } else if (action < 800) {
                    apply(store, shard, random.nextInt(8));
                } else if (action < 860) {
                    check(store, shard, random.nextInt(BLOCKS - 64), 64);
                } else if (action < 950) {
                    turn(store);
                } else if (action < 970) {
                    store.clean();
                    loop.drain();
                } else if (action < 985) {
                    checkpoint(store);
                } else if (action < 990) {
                    Rig.sync(store, loop);
                } else if (action < 992) {
                    store.drop(shard.id);
                    create(store, shard.id);
                } else if (action < 996) {
                    store = restart(store, false);
                } else {
                    store = restart(store, true);
                }
            }
            converges(store);
            store = restart(store, random.nextBoolean());
            checkAll(store);
        } catch (AssertionError | RuntimeException e) {
            throw new AssertionError("seed " + seed, e);
        } finally {
            store.abandon();
        }
    }

    private void create(JournalStore store, ShardId id) {
        Shard shard = new Shard(id);
        shards.put(id, shard);
        store.create(id, HardState.FRESH, shard.owner);
    }

    private void append(JournalStore store, Shard shard) {
        long sequence = shard.last() + 1;
        Entry entry;
        if (random.nextInt(8) == 0) {
            int count = 1 + random.nextInt(random.nextInt(4) == 0 ? BLOCKS / 2 : 60);
            int block = random.nextInt(BLOCKS - count);
            entry = Rig.zero(shard.id, shard.epoch, sequence, block, count);
        } else {
            int count = 1 + random.nextInt(random.nextInt(4) == 0 ? 64 : 12);
            int block = random.nextInt(BLOCKS - count);
            entry = Rig.write(shard.id, shard.epoch, sequence, block, count);
        }
        store.append(shard.id, List.of(entry), null);
        shard.history.add(entry);
        shard.unapplied.add(entry);
    }

    private void apply(JournalStore store, Shard shard, int count) {
        List<Entry> entries = new ArrayList<>();
        while (entries.size() < count && !shard.unapplied.isEmpty()) {
            entries.add(shard.unapplied.remove());
        }
        store.apply(shard.id, entries);
        if (!entries.isEmpty()) {
            shard.owner.applied = entries.getLast().sequence();
            shard.owner.appliedEpoch = entries.getLast().epoch();
        }
    }

    private void turn(JournalStore store) {
        store.write();
        store.turnEnded();
        loop.drain();
    }

    private void checkpoint(JournalStore store) throws IOException {
        loop.until(() -> !store.checkpointRunning());
        Rig.checkpoint(store, loop);
        List<List<UsageRow>> rows = store.recount();
        assertThat(rows.getFirst()).isEqualTo(rows.getLast());
        turn(store);
    }

    /** Ends the store as a crash would, and starts it again. */
    private JournalStore restart(JournalStore store, boolean powerLoss) throws IOException {
        loop.drain();
        if (random.nextBoolean()) {
            store.write();
        }
        long end = store.write();
        boolean cleanly = !powerLoss && random.nextInt(3) == 0;
        if (cleanly) {
            store.close();
        } else {
            store.abandon();
        }
        long synced = store.syncedThrough();
        loop.drain();
        if (powerLoss) {
            boot++;
            losePower(synced, end);
        }
        JournalStore again = open();
        for (Shard shard : List.copyOf(shards.values())) {
            if (!again.shards().contains(shard.id)) {
                // Its beginning was lost; the one before it, too, for the drop is older.
                assertThat(powerLoss).isTrue();
                create(again, shard.id);
                continue;
            }
            shard.owner = new TestOwner();
            Recovered past = again.open(shard.id, shard.owner);
            long last = past.applied() + past.entries().size();
            if (!powerLoss) {
                assertThat(last).isEqualTo(shard.last());
            }
            assertThat(last).isLessThanOrEqualTo(shard.last());
            shard.history.subList((int) last, shard.history.size()).clear();
            shard.epoch += powerLoss ? 1 : 0;
            shard.owner.applied = past.applied();
            shard.owner.appliedEpoch = past.appliedEpoch();
            shard.unapplied.clear();
            shard.unapplied.addAll(past.entries());
            apply(again, shard, Integer.MAX_VALUE);
        }
        return again;
    }

    /** Of what was not synced only a beginning is left. */
    private void losePower(long synced, long end) throws IOException {
        Path journal = directory.resolve("journal");
        int first = Place.segment(synced);
        int last = Place.segment(end);
        int cutIn = first + random.nextInt(last - first + 1);
        long from = cutIn == first ? Place.offset(synced) : 0;
        long to = cutIn == last ? Place.offset(end) : SEGMENT_BYTES;
        long cut = from + (to > from ? random.nextLong(to - from + 1) : 0);
        for (var file : Segments.list(journal).tailMap(cutIn, true).entrySet()) {
            try (FileChannel out = FileChannel.open(file.getValue(), StandardOpenOption.WRITE)) {
                Segments.zero(out, file.getKey() == cutIn ? cut : 0, out.size());
            }
        }
    }

    private void checkAll(JournalStore store) {
        for (Shard shard : shards.values()) {
            for (int block = 0; block < BLOCKS; block += 64) {
                check(store, shard, block, 64);
            }
        }
    }

    private void check(JournalStore store, Shard shard, int block, int count) {
        long[] model = shard.model();
        int at = block;
        for (Run run : Rig.read(store, loop, shard.id, block, count)) {
            assertThat(run.block()).isEqualTo(at);
            for (int i = 0; i < run.count(); i++) {
                assertThat(run.sequence()).as("block %d of %s", at, shard.id).isEqualTo(model[at]);
                if (!run.isZero()) {
                    Nonce nonce = run.nonce().plus(i);
                    int inWrite = (int) (nonce.counter() - run.sequence() * 1000);
                    byte expected = (byte) (run.sequence() * 31 + inWrite + 1);
                    assertThat(run.payload()[i * 4112]).as("block %d", at).isEqualTo(expected);
                    assertThat(run.payload()[i * 4112 + 4111]).isEqualTo(expected);
                }
                at++;
            }
        }
        assertThat(at).isEqualTo(block + count);
    }

    /** Without more writes, cleaning leaves little but what is live. */
    private void converges(JournalStore store) throws IOException {
        for (Shard shard : shards.values()) {
            apply(store, shard, Integer.MAX_VALUE);
        }
        // Where room is short a turn cleans by itself, and what it moves may fill a segment that
        // only the checkpoint after it makes a victim: it is over when that one moves nothing.
        long end = 0;
        checkpoint(store);
        for (int i = 0; i < 200 && (store.isCleanable() || store.write() > end); i++) {
            store.clean();
            loop.until(() -> !store.cleaning());
            end = store.write();
            checkpoint(store);
        }
        assertThat(store.write()).isEqualTo(end);
        assertThat(store.isCleanable())
                .as("segments %s of %s", store.recount().getFirst(), store.segments())
                .isFalse();
        long live = store.usage().liveBytes();
        long used = store.recount().getFirst().stream().map(UsageRow::segment).distinct().count();
        // The youngest segments are no victims: the one being written, those of the last moves.
        assertThat(used * SEGMENT_BYTES)
                .as("segments %s", store.recount().getFirst())
                .isLessThanOrEqualTo(
                        (long) (live / Cleaner.MOST_LIVE / LEAST_FILLED) + 4 * SEGMENT_BYTES);
        // Removals that are under way come to an end.
        loop.until(() -> {
            turn(store);
            loop.execute(() -> {});
            return store.segments().size() <= Math.max(used + 4, ROOMY_SEGMENTS)
                    && files().containsAll(store.segments());
        });
        assertThat(files().size()).isLessThanOrEqualTo(store.segments().size() + 1);
        checkAll(store);
    }

    private Set<Integer> files() {
        try {
            return Segments.list(directory.resolve("journal")).keySet();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
