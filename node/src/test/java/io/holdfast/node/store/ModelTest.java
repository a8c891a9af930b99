package io.holdfast.node.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.node.port.Store.Extents;
import io.holdfast.node.replica.Recovered;
import io.holdfast.proto.peer.ClientReply.Run;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.EntryKind;
import io.holdfast.proto.peer.Nonce;
import io.holdfast.proto.peer.ReplicaMessage.Cursor;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The store against one long per block: random writes, zeroes, moved copies, checkpoints, crashes
 * and clean restarts, with a cache that holds a few pages only.
 */
class ModelTest {
    private static final int BLOCKS = 12 * ExtentPage.BLOCKS;
    private static final int STEPS = 4000;

    @TempDir Path directory;

    private final Loop loop = new Loop();
    private final long[] model = new long[BLOCKS];
    private final ArrayDeque<Entry> unapplied = new ArrayDeque<>();
    private final List<Entry> history = new ArrayList<>();
    private TestOwner owner = new TestOwner();
    private long last;

    private static StoreOptions options(boolean small) {
        return new StoreOptions(2 << 20, 3 << 20, small ? 40_000 : 64 << 20, 200_000, 2, "boot");
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4})
    void agreesWithAnArray(long seed) throws IOException {
        Random random = new Random(seed);
        JournalStore store = new JournalStore(directory, options(seed % 2 == 0), loop);
        Rig.create(store, Rig.SHARD, owner);
        try {
            for (int step = 0; step < STEPS; step++) {
                int action = random.nextInt(1000);
                if (action < 600) {
                    append(store, random);
                } else if (action < 900) {
                    apply(store, random.nextInt(4));
                } else if (action < 950) {
                    check(store, random);
                } else if (action < 980) {
                    store.write();
                    store.turnEnded();
                    loop.drain();
                } else if (action < 990) {
                    move(store, random);
                } else if (action < 996) {
                    checkpoint(store);
                } else {
                    store = reopen(store, random, seed);
                }
            }
            store.write();
            checkAll(store);
            walk(store, random.nextInt((int) last));
        } catch (AssertionError | RuntimeException e) {
            throw new AssertionError("seed " + seed, e);
        } finally {
            store.abandon();
        }
    }

    private void checkpoint(JournalStore store) {
        loop.until(() -> !store.checkpointRunning());
        Rig.checkpoint(store, loop);
    }

    private void append(JournalStore store, Random random) {
        last++;
        Entry entry;
        if (random.nextInt(4) == 0) {
            int count = 1 + random.nextInt(random.nextInt(8) == 0 ? 3000 : 40);
            entry = Rig.zero(Rig.SHARD, 1, last, random.nextInt(BLOCKS - count), count);
        } else {
            int count = 1 + random.nextInt(6);
            entry = Rig.write(Rig.SHARD, 1, last, random.nextInt(BLOCKS - count), count);
        }
        store.append(Rig.SHARD, List.of(entry), null);
        history.add(entry);
        unapplied.add(entry);
    }

    private void apply(JournalStore store, int count) {
        List<Entry> entries = new ArrayList<>();
        for (int i = 0; i < count && !unapplied.isEmpty(); i++) {
            Entry entry = unapplied.remove();
            entries.add(entry);
            put(entry);
            owner.applied = entry.sequence();
            owner.appliedEpoch = 1;
        }
        store.apply(Rig.SHARD, entries);
    }

    private void put(Entry entry) {
        for (long block = entry.block(); block < entry.block() + entry.count(); block++) {
            model[(int) block] = Math.max(model[(int) block], entry.sequence());
        }
    }

    /** Moves what stands in a range, as the cleaner would; nothing may change by it. */
    private void move(JournalStore store, Random random) {
        int block = random.nextInt(BLOCKS - 64);
        List<Entry> moved = new ArrayList<>();
        for (Run run : Rig.read(store, loop, Rig.SHARD, block, 64)) {
            if (!run.isZero()) {
                moved.add(
                        Entry.builder(Rig.SHARD, EntryKind.WRITE)
                                .at(1, run.sequence(), 0)
                                .blocks(1, run.block(), run.count())
                                .sealed(run.nonce(), run.payload())
                                .flags(Entry.FLAG_MOVED)
                                .build());
            }
        }
        store.appendMoved(Rig.SHARD, moved);
    }

    private JournalStore reopen(JournalStore store, Random random, long seed) throws IOException {
        loop.drain();
        long before = owner.applied;
        if (random.nextBoolean()) {
            store.close();
        } else {
            store.write();
            store.abandon();
        }
        loop.drain();
        JournalStore again = new JournalStore(directory, options(seed % 2 == 0), loop);
        owner = new TestOwner();
        Recovered past = again.open(Rig.SHARD, owner);
        assertThat(past.applied() + past.entries().size()).isEqualTo(last);
        owner.applied = past.applied();
        owner.appliedEpoch = past.appliedEpoch();
        // Back to what is in the map: whatever the log holds is applied again, from there on.
        unapplied.clear();
        unapplied.addAll(past.entries());
        List<Entry> known = new ArrayList<>();
        // A moved copy is in the map again at once, even of an entry after the recovered point.
        while (!unapplied.isEmpty()
                && (unapplied.getFirst().sequence() <= before || random.nextInt(10) > 0)) {
            known.add(unapplied.remove());
        }
        rebuild(again, known);
        return again;
    }

    /** Applies a part of the recovered log; the rest of the model's knowledge follows later. */
    private void rebuild(JournalStore store, List<Entry> known) {
        store.apply(Rig.SHARD, known);
        if (!known.isEmpty()) {
            owner.applied = known.getLast().sequence();
            owner.appliedEpoch = 1;
        }
        Arrays.fill(model, 0);
        history.stream().filter(entry -> entry.sequence() <= owner.applied).forEach(this::put);
    }

    private void check(JournalStore store, Random random) {
        int count = 1 + random.nextInt(64);
        int block = random.nextInt(BLOCKS - count);
        check(store, block, count);
    }

    private void checkAll(JournalStore store) {
        for (int block = 0; block < BLOCKS; block += 64) {
            check(store, block, 64);
        }
    }

    private void check(JournalStore store, int block, int count) {
        long newest = 0;
        int at = block;
        for (Run run : Rig.read(store, loop, Rig.SHARD, block, count)) {
            assertThat(run.block()).isEqualTo(at);
            for (int i = 0; i < run.count(); i++) {
                assertThat(run.sequence()).as("block %d", at).isEqualTo(model[at]);
                newest = Math.max(newest, model[at]);
                if (!run.isZero()) {
                    checkPayload(run, i, at);
                }
                at++;
            }
        }
        assertThat(at).isEqualTo(block + count);
        assertThat(store.newestSequence(Rig.SHARD, 1, block, count)).isEqualTo(newest);
    }

    private void checkPayload(Run run, int index, int block) {
        Nonce nonce = run.nonce().plus(index);
        int inWrite = (int) (nonce.counter() - run.sequence() * 1000);
        byte expected = (byte) (run.sequence() * 31 + inWrite + 1);
        assertThat(run.payload()[index * 4112]).as("block %d", block).isEqualTo(expected);
        assertThat(run.payload()[index * 4112 + 4111]).as("block %d", block).isEqualTo(expected);
    }

    /** All extents newer than {@code since}, in small parts, are just what the model says. */
    private void walk(JournalStore store, long since) {
        long[] seen = new long[BLOCKS];
        Cursor from = Cursor.START;
        Extents part;
        do {
            part = Rig.extents(store, loop, since, from, 20_000);
            for (Entry entry : part.moved()) {
                for (long block = entry.block(); block < entry.block() + entry.count(); block++) {
                    assertThat(seen[(int) block]).isZero();
                    seen[(int) block] = entry.sequence();
                }
            }
            from = part.next();
        } while (!part.done());
        for (int block = 0; block < BLOCKS; block++) {
            assertThat(seen[block]).isEqualTo(model[block] > since ? model[block] : 0);
        }
    }
}
