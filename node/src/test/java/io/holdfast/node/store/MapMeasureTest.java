package io.holdfast.node.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.ReplicaMessage.Cursor;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a catch-up is said to take is what it takes. */
class MapMeasureTest {
    private static final int BLOCKS = 8 * ExtentPage.BLOCKS;

    private final Loop loop = new Loop();
    private final TestOwner owner = new TestOwner();
    private final Random random = new Random(4711);
    private long sequence;

    @TempDir Path directory;
    private JournalStore store;

    @BeforeEach
    void open() throws IOException {
        store = new JournalStore(directory, Rig.OPTIONS, loop);
        Rig.create(store, Rig.SHARD, owner);
    }

    @AfterEach
    void close() {
        store.abandon();
    }

    private void write(int times) {
        for (int i = 0; i < times; i++) {
            long block = random.nextInt(BLOCKS);
            int count = 1 + random.nextInt(64);
            Entry entry =
                    random.nextInt(8) == 0
                            ? Rig.zero(Rig.SHARD, 1, ++sequence, block, count)
                            : Rig.write(Rig.SHARD, 1, ++sequence, block, count);
            store.append(Rig.SHARD, List.of(entry), null);
            store.apply(Rig.SHARD, List.of(entry));
            owner.applied = sequence;
            owner.appliedEpoch = 1;
        }
        store.write();
    }

    private long measured(long since) {
        List<Long> got = new ArrayList<>();
        store.extentBytes(Rig.SHARD, since, got::add);
        loop.until(() -> !got.isEmpty());
        return got.getFirst();
    }

    private long given(long since) {
        long bytes = 0;
        Cursor from = Cursor.START;
        while (true) {
            var part = Rig.extents(store, loop, since, from, 1 << 20);
            for (Entry entry : part.moved()) {
                bytes += entry.sizeBytes();
            }
            if (part.done()) {
                return bytes;
            }
            from = part.next();
        }
    }

    @Test
    void anEmptyMapTakesNothing() {
        assertThat(measured(0)).isZero();
    }

    @Test
    void rowsAndPagesInMemoryAreCountedOnceEach() {
        write(200);
        assertThat(measured(0)).as("in memory only").isEqualTo(given(0));
        Rig.checkpoint(store, loop);
        assertThat(measured(0)).as("in the database only").isEqualTo(given(0));
        long before = sequence;
        write(20);
        for (long since : List.of(0L, before / 2, before, sequence)) {
            assertThat(measured(since)).as("since %d", since).isEqualTo(given(since));
        }
    }
}
