package io.holdfast.node.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.node.port.Store.Space;
import io.holdfast.node.port.Store.Usage;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.ClientReply.Run;
import io.holdfast.proto.peer.Entry;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A store that is 70 % full is overwritten at random, 4 KiB at a time, with four times its size,
 * and stays within its size, at a bounded price.
 */
class StoreAgingTest {
    private static final long SEGMENT_BYTES = StoreOptions.MIN_SEGMENT_BYTES;
    private static final int SEGMENTS = 96;
    private static final long STORE_BYTES = SEGMENTS * SEGMENT_BYTES;
    private static final int BLOCKS = (int) (STORE_BYTES / 10 * 7 / Blocks.SIZE);
    private static final int TURN = 32;
    private static final double MOST_AMPLIFICATION = 3.5;

    @TempDir Path directory;

    private final Loop loop = new Loop();
    private final TestOwner owner = new TestOwner();
    private final long[] newest = new long[BLOCKS];
    private long last;
    private long peakBytes;
    private int timesFull;

    private JournalStore open() throws IOException {
        return new JournalStore(
                directory,
                new StoreOptions(
                        SEGMENT_BYTES, 16 << 20, 64 << 20, 1 << 20, 2, "boot", STORE_BYTES),
                loop);
    }

    @Test
    void overwritingManyTimesStaysWithinTheStoresSize() throws IOException {
        Random random = new Random(7);
        JournalStore store = open();
        try {
            Rig.create(store, Rig.SHARD, owner);
            for (int block = 0; block < BLOCKS; block += 32) {
                write(store, block, Math.min(32, BLOCKS - block));
                turn(store);
            }
            Usage before = store.usage();
            long overwrites = 4 * STORE_BYTES / Blocks.SIZE;
            for (long i = 0; i < overwrites; i += TURN) {
                for (int j = 0; j < TURN; j++) {
                    write(store, random.nextInt(BLOCKS), 1);
                }
                turn(store);
            }
            Usage after = store.usage();
            double amplification =
                    (double) (after.appendedBytes() - before.appendedBytes())
                            / (after.clientBytes() - before.clientBytes());
            assertThat(amplification)
                    .as("%s, %d times full", after, timesFull)
                    .isLessThan(MOST_AMPLIFICATION);
            // The limit is soft for what was under way, and for the cleaner itself.
            assertThat(peakBytes)
                    .isLessThanOrEqualTo(STORE_BYTES + SpaceMeter.FULL_SEGMENTS * SEGMENT_BYTES);
            assertThat(after.removedSegments()).isGreaterThan(SEGMENTS);
            stopsSoonAfterTheClients(store);
            checkAll(store);
        } finally {
            store.close();
        }
        JournalStore again = open();
        try {
            assertThat(again.open(Rig.SHARD, new TestOwner()).applied()).isEqualTo(last);
            checkAll(again);
        } finally {
            again.abandon();
        }
    }

    private void write(JournalStore store, int block, int count) {
        Entry entry = Rig.write(Rig.SHARD, 1, ++last, block, count);
        store.append(Rig.SHARD, List.of(entry), null);
        store.apply(Rig.SHARD, List.of(entry));
        owner.applied = last;
        owner.appliedEpoch = 1;
        for (int i = 0; i < count; i++) {
            newest[block + i] = last;
        }
    }

    /** The end of a turn; and turns without writes as long as the store is full. */
    private void turn(JournalStore store) throws IOException {
        boolean wasFull = false;
        do {
            store.write();
            store.turnEnded();
            loop.drain();
            peakBytes = Math.max(peakBytes, store.usage().journalBytes());
            if (store.usage().space() == Space.FULL) {
                timesFull += wasFull ? 0 : 1;
                wasFull = true;
                assertThat(store.usage().cleanable() || store.usage().deadBytes() > 0).isTrue();
            }
        } while (store.usage().space() == Space.FULL);
    }

    private void stopsSoonAfterTheClients(JournalStore store) {
        int[] turns = {0};
        long[] moved = {-1};
        loop.until(() -> {
            store.turnEnded();
            loop.execute(() -> {});
            boolean quiet = store.usage().movedBytes() == moved[0];
            moved[0] = store.usage().movedBytes();
            turns[0] = quiet ? turns[0] + 1 : 0;
            return turns[0] > 1000;
        });
    }

    private void checkAll(JournalStore store) {
        for (int block = 0; block < BLOCKS; block += 64) {
            int count = Math.min(64, BLOCKS - block);
            List<Long> sequences = new ArrayList<>();
            for (Run run : Rig.read(store, loop, Rig.SHARD, block, count)) {
                for (int i = 0; i < run.count(); i++) {
                    sequences.add(run.sequence());
                    long inWrite = run.nonce().plus(i).counter() - run.sequence() * 1000;
                    assertThat(run.payload()[i * Blocks.SEALED_SIZE])
                            .isEqualTo((byte) (run.sequence() * 31 + inWrite + 1));
                }
            }
            for (int i = 0; i < count; i++) {
                assertThat(sequences.get(i)).isEqualTo(newest[block + i]);
            }
        }
    }
}
