package io.holdfast.node.store;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.holdfast.proto.peer.Entry;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.rocksdb.ColumnFamilyDescriptor;
import org.rocksdb.ColumnFamilyHandle;
import org.rocksdb.DBOptions;
import org.rocksdb.RocksDB;

/** Which segments go, when, and what a start makes of those that are gone. */
class SegmentRemovalTest {
    private static final long SEGMENT_BYTES = StoreOptions.MIN_SEGMENT_BYTES;

    /** Writes of 64 blocks that fit a segment of that size. */
    private static final int WRITES_PER_SEGMENT = 3;

    private final Loop loop = new Loop();
    private final TestOwner owner = new TestOwner();
    private final List<JournalStore> opened = new ArrayList<>();
    private long last;

    @TempDir Path directory;

    @AfterEach
    void closeAll() {
        opened.forEach(JournalStore::abandon);
    }

    /** A store of {@code segments}: short of room from the first byte if there are 16. */
    private JournalStore open(int segments) throws IOException {
        StoreOptions options =
                new StoreOptions(
                        SEGMENT_BYTES,
                        1L << 40,
                        64 << 20,
                        1 << 20,
                        2,
                        "boot-1",
                        segments * SEGMENT_BYTES);
        JournalStore store = new JournalStore(directory, options, loop);
        opened.add(store);
        return store;
    }

    private JournalStore fresh(int segments) throws IOException {
        JournalStore store = open(segments);
        Rig.create(store, Rig.SHARD, owner);
        return store;
    }

    /** Writes the same 64 blocks until {@code segments} are full of it. */
    private void overwrite(JournalStore store, int segments, long block) {
        for (int i = 0; i < segments * WRITES_PER_SEGMENT; i++) {
            Entry entry = Rig.write(Rig.SHARD, 1, ++last, block, 64);
            store.append(Rig.SHARD, List.of(entry), null);
            store.apply(Rig.SHARD, List.of(entry));
            owner.applied = last;
            owner.appliedEpoch = 1;
        }
        store.write();
    }

    private List<Integer> files() throws IOException {
        return List.copyOf(Segments.list(directory.resolve("journal")).keySet());
    }

    private void turnsUntilGone(JournalStore store, int segment) {
        loop.until(() -> {
            store.turnEnded();
            loop.execute(() -> {});
            return !store.segments().contains(segment);
        });
    }

    @Test
    void aDeadSegmentGoesAfterTheNextCheckpointWhenRoomIsShort() throws IOException {
        JournalStore store = fresh(16);
        overwrite(store, 4, 0);
        assertThat(files()).startsWith(1, 2, 3, 4);

        Rig.checkpoint(store, loop);
        turnsUntilGone(store, 3);

        assertThat(files()).doesNotContain(1, 2, 3);
        assertThat(store.log(Rig.SHARD, 1, 2, 1 << 20)).isEmpty();
        assertThat(store.log(Rig.SHARD, last, last, 1 << 20)).hasSize(1);
        assertThat(store.usage().removedSegments()).isGreaterThanOrEqualTo(3);
        store.abandon();
        JournalStore again = open(16);
        assertThat(again.open(Rig.SHARD, new TestOwner()).applied()).isEqualTo(last);
        assertThat(Rig.read(again, loop, Rig.SHARD, 0, 64).getFirst().payload())
                .isEqualTo(Rig.payload(64, last));
    }

    @Test
    void whileThereIsRoomTheLogIsKeptForFollowers() throws IOException {
        JournalStore store = fresh(200);
        overwrite(store, 4, 0);
        Rig.checkpoint(store, loop);
        store.turnEnded();
        loop.drain();

        assertThat(files()).contains(1, 2, 3, 4);
        assertThat(store.log(Rig.SHARD, 1, 1, 1 << 20)).hasSize(1);
    }

    @Test
    void aSegmentIsNotLetGoWhileItIsRead() throws IOException {
        Segments.prepare(directory, 1, SEGMENT_BYTES, Segments.Fill.RESERVED).close();
        try (SegmentTable table = new SegmentTable(directory, null)) {
            SegmentTable.Handle reading = table.pin(1);
            assertThat(table.release(1)).isFalse();
            table.unpin(reading);
            assertThat(table.release(1)).isTrue();
            assertThat(table.release(1)).isTrue();
        }
    }

    @Test
    void nothingGoesThatALaggingShardMayStillNeed() throws IOException {
        JournalStore store = fresh(16);
        TestOwner lagging = new TestOwner();
        Rig.create(store, Rig.OTHER, lagging);
        store.append(Rig.OTHER, List.of(Rig.write(Rig.OTHER, 1, 1, 0, 1)), null);
        overwrite(store, 4, 0);
        Rig.checkpoint(store, loop);
        store.turnEnded();
        loop.drain();
        assertThat(files()).contains(1, 2, 3, 4);

        store.abandon();
        JournalStore again = open(16);
        assertThat(again.open(Rig.OTHER, lagging).entries()).hasSize(1);
    }

    @Test
    void filesThatACrashLeftAreRemovedAtTheNextStart() throws IOException {
        JournalStore store = fresh(16);
        overwrite(store, 4, 0);
        Path aside = Files.createDirectory(directory.resolve("aside"));
        Path first = Segments.file(directory.resolve("journal"), 1);
        Files.copy(first, aside.resolve("1"));
        Rig.checkpoint(store, loop);
        turnsUntilGone(store, 1);
        store.abandon();
        Files.copy(aside.resolve("1"), first);

        JournalStore again = open(16);
        again.open(Rig.SHARD, owner);
        turnsUntilGone(again, 1);

        assertThat(files()).doesNotContain(1);
    }

    @Test
    void aMissingSegmentWithLiveBytesIsRefused() throws IOException {
        JournalStore store = fresh(16);
        overwrite(store, 1, 0);
        overwrite(store, 3, 1000);
        Rig.checkpoint(store, loop);
        store.abandon();
        Files.delete(Segments.file(directory.resolve("journal"), 1));

        assertThatThrownBy(() -> open(16))
                .isInstanceOf(StoreException.class)
                .hasMessageContaining("0000000001.seg is missing")
                .hasMessageContaining("" + 64 * 4112);
    }

    @Test
    void aMissingSegmentBehindTheCheckpointIsRefused() throws IOException {
        JournalStore store = fresh(16);
        Rig.checkpoint(store, loop);
        overwrite(store, 4, 0);
        store.abandon();
        Files.delete(Segments.file(directory.resolve("journal"), 2));

        assertThatThrownBy(() -> open(16))
                .isInstanceOf(StoreException.class)
                .hasMessageContaining("journal is damaged")
                .hasMessageContaining("a valid record follows at 3:64");
    }

    @Test
    void aDroppedShardsSegmentsGo() throws IOException {
        JournalStore store = fresh(16);
        for (int i = 0; i < 6; i++) {
            overwrite(store, 1, i * 10_000L);
        }
        Rig.checkpoint(store, loop);
        store.turnEnded();
        assertThat(store.usage().liveBytes()).isEqualTo(6L * 64 * 4112);
        store.drop(Rig.SHARD);

        turnsUntilGone(store, 3);

        assertThat(files()).doesNotContain(1, 2, 3);
        assertThat(store.usage().liveBytes()).isZero();
        assertThat(store.recount().getFirst()).isEmpty();
    }

    @Test
    void withoutTurnsADroppedShardsSegmentsGoAllTheSame() throws IOException {
        JournalStore store = fresh(16);
        for (int i = 0; i < 6; i++) {
            overwrite(store, 1, i * 10_000L);
        }
        store.drop(Rig.SHARD);

        loop.until(() -> !store.segments().contains(4));

        assertThat(store.usage().liveBytes()).isZero();
        assertThat(files()).doesNotContain(1, 2, 3, 4);
    }

    @Test
    void aShardDroppedJustBeforeACrashLeavesNothing() throws IOException {
        JournalStore store = fresh(16);
        for (int i = 0; i < 6; i++) {
            overwrite(store, 1, i * 10_000L);
        }
        Rig.checkpoint(store, loop);
        store.drop(Rig.SHARD);
        store.write();
        store.abandon();

        JournalStore again = open(16);
        assertThat(again.shards()).isEmpty();
        assertThat(again.usage().liveBytes()).isZero();
        turnsUntilGone(again, 3);
        assertThat(again.recount().getFirst()).isEmpty();
    }

    @Test
    void aStoreOfTheFormatBeforeIsCountedOnce() throws Exception {
        JournalStore store = fresh(16);
        for (int i = 0; i < 3; i++) {
            overwrite(store, 1, i * 10_000L);
        }
        Rig.checkpoint(store, loop);
        List<UsageRow> rows = store.recount().getFirst();
        store.abandon();
        downgrade();

        JournalStore again = open(16);

        assertThat(again.recount().getFirst()).isEqualTo(rows).isNotEmpty();
        assertThat(again.usage().liveBytes()).isEqualTo(3L * 64 * 4112);
    }

    /** Makes the map's rows what version 1 wrote. */
    private void downgrade() throws Exception {
        List<ColumnFamilyHandle> handles = new ArrayList<>();
        List<ColumnFamilyDescriptor> families =
                Stream.of("default", "extents", "shards", "meta", "usage")
                        .map(name -> new ColumnFamilyDescriptor(name.getBytes(UTF_8)))
                        .toList();
        try (DBOptions options = new DBOptions();
                RocksDB database =
                        RocksDB.open(
                                options, directory.resolve("map").toString(), families, handles)) {
            byte[] row = database.get(handles.get(3), "store".getBytes(UTF_8));
            ByteBuffer.wrap(row).putInt(0, StoreRow.WITHOUT_USAGE);
            database.put(handles.get(3), "store".getBytes(UTF_8), row);
            database.deleteRange(handles.get(4), new byte[0], new byte[] {-1});
            handles.forEach(ColumnFamilyHandle::close);
        }
    }
}
