package io.holdfast.node.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.holdfast.node.store.StoreException.Kind;
import io.holdfast.node.store.StoreSummary.SegmentLine;
import io.holdfast.node.store.StoreSummary.ShardLine;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.EntryKind;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What is told of a store that no node uses, and that nothing in it changes by the telling. */
class OfflineStoreTest {
    private static final OfflineStore.Progress QUIET = (bytes, all) -> {};

    private final Loop loop = new Loop();
    private final TestOwner owner = new TestOwner();

    @TempDir Path directory;

    private String boot = "boot-1";

    private JournalStore open() throws IOException {
        return new JournalStore(directory, Rig.options(boot), loop);
    }

    private void write(JournalStore store, long sequence, long block, int count) {
        Entry entry = Rig.write(Rig.SHARD, 1, sequence, block, count);
        store.append(Rig.SHARD, List.of(entry), null);
        store.apply(Rig.SHARD, List.of(entry));
        owner.applied = sequence;
        owner.appliedEpoch = 1;
    }

    /**
     * Three segments of writes with a checkpoint, and two entries behind it; not closed cleanly.
     */
    private void someSegments() throws IOException {
        JournalStore store = open();
        Rig.create(store, Rig.SHARD, owner);
        Rig.create(store, Rig.OTHER, new TestOwner());
        for (int i = 1; i <= 20; i++) {
            write(store, i, i * 50L, 64);
        }
        store.append(Rig.SHARD, List.of(Rig.zero(Rig.SHARD, 1, 21, 100, 10)), null);
        store.apply(Rig.SHARD, List.of(Rig.zero(Rig.SHARD, 1, 21, 100, 10)));
        owner.applied = 21;
        Rig.checkpoint(store, loop);
        store.append(Rig.SHARD, List.of(Rig.write(Rig.SHARD, 1, 22, 5, 1)), null);
        store.append(Rig.SHARD, List.of(Rig.write(Rig.SHARD, 1, 23, 6, 1)), null);
        store.write();
        store.abandon();
    }

    private StoreCheck verify() throws IOException {
        Map<String, String> before = contents();
        try (OfflineStore store = OfflineStore.open(directory)) {
            return store.verify(QUIET);
        } finally {
            assertThat(contents()).isEqualTo(before);
        }
    }

    private StoreSummary inspect() throws IOException {
        Map<String, String> before = contents();
        try (OfflineStore store = OfflineStore.open(directory)) {
            return store.inspect(QUIET);
        } finally {
            assertThat(contents()).isEqualTo(before);
        }
    }

    /** Every file with its size, time of change and hash. */
    private Map<String, String> contents() throws IOException {
        Map<String, String> all = new TreeMap<>();
        try (Stream<Path> files = Files.walk(directory)) {
            for (Path file : (Iterable<Path>) files::iterator) {
                String content =
                        Files.isDirectory(file)
                                ? "directory"
                                : ByteBuffer.wrap(Files.readAllBytes(file)).hashCode() + "";
                all.put(file.toString(), Files.getLastModifiedTime(file) + " " + content);
            }
        }
        return all;
    }

    private Path segment(int number) {
        return Segments.file(directory.resolve("journal"), number);
    }

    private void flip(int segment, long offset) throws IOException {
        try (FileChannel file =
                FileChannel.open(
                        segment(segment), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            ByteBuffer one = ByteBuffer.allocate(1);
            file.read(one, offset);
            one.put(0, (byte) (one.get(0) ^ 0x40)).rewind();
            file.write(one, offset);
        }
    }

    /** Offset of the first WRITE in a segment. */
    private long firstWrite(int segment) throws IOException {
        long[] found = {0};
        new SegmentWalk(segment(segment), segment, true)
                .run(
                        0,
                        0,
                        new SegmentWalk.Visitor() {
                            @Override
                            public void entry(EntryHead entry, long place) {
                                if (found[0] == 0 && entry.kind() == EntryKind.WRITE.code) {
                                    found[0] = Place.offset(place);
                                }
                            }

                            @Override
                            public void mark(Mark mark, long place) {}

                            @Override
                            public void damage(SegmentWalk.Damage damage) {
                                throw new AssertionError(damage.why());
                            }
                        });
        return found[0];
    }

    @Test
    void aSoundStoreIsSound() throws IOException {
        someSegments();

        StoreCheck check = verify();

        assertThat(check.listed()).isEmpty();
        assertThat(check.sound()).isTrue();
        assertThat(check.notes()).isEmpty();
        assertThat(check.segments()).isGreaterThanOrEqualTo(3);
        assertThat(check.shards()).isEqualTo(2);
        // 50 blocks of each write but the last stay; ten became zeroes.
        assertThat(check.blocks()).isEqualTo(19 * 50 + 64 - 10);
        assertThat(check.extents()).isGreaterThan(20);
    }

    @Test
    void aSummaryTellsSegmentsAndShards() throws IOException {
        someSegments();

        StoreSummary found = inspect();

        assertThat(found.clean()).isFalse();
        assertThat(found.boot()).isEqualTo("boot-1");
        assertThat(found.mapFormat()).isEqualTo(StoreRow.VERSION);
        assertThat(found.damages()).isZero();
        assertThat(found.liveBytes()).isEqualTo((19 * 50 + 64 - 10) * 4112L);
        assertThat(found.segments()).extracting(SegmentLine::number).startsWith(1, 2, 3);
        assertThat(found.segments().getFirst().first()).isEqualTo("1:64");
        assertThat(found.segments().stream().mapToLong(SegmentLine::records).sum())
                .isEqualTo(found.records());
        assertThat(found.segments().stream().mapToLong(SegmentLine::liveBytes).sum())
                .isEqualTo(found.liveBytes());
        ShardLine shard = found.shards().getFirst();
        assertThat(shard.applied()).isEqualTo(21);
        assertThat(shard.logFirst()).isEqualTo(22);
        assertThat(shard.logLast()).isEqualTo(23);
        assertThat(shard.standing()).isEqualTo("VOTER");
        assertThat(shard.extents()).isEqualTo(found.extents());
    }

    @Test
    void aStoreThatWasClosedIsClean() throws IOException {
        someSegments();
        JournalStore store = open();
        store.open(Rig.SHARD, owner);
        store.open(Rig.OTHER, new TestOwner());
        store.close();

        assertThat(inspect().clean()).isTrue();
        assertThat(verify().sound()).isTrue();
    }

    @Test
    void aFlippedBitIsFoundWithWhatIsLostByIt() throws IOException {
        someSegments();
        long offset = firstWrite(2);
        flip(2, offset + Entry.HEADER_SIZE + 10_000);

        StoreCheck check = verify();

        assertThat(check.sound()).isFalse();
        assertThat(check.problems()).isEqualTo(1);
        StoreProblem problem = check.listed().getFirst();
        assertThat(problem.kind()).isEqualTo(StoreProblem.Kind.RECORD);
        assertThat(problem.place()).isEqualTo("2:" + offset);
        assertThat(problem.file()).isEqualTo("journal/0000000002.seg");
        assertThat(problem.bytes()).isEqualTo(128 + 64 * 4112);
        assertThat(problem.record()).isEqualTo("WRITE");
        assertThat(problem.shard()).isEqualTo("7/0");
        assertThat(problem.liveBlocks()).isEqualTo(50);
        assertThat(problem.text())
                .contains("checksum does not match")
                .contains("sequence " + problem.sequence())
                .contains("50 blocks of the map lost");
    }

    @Test
    void damageDoesNotHideWhatFollowsIt() throws IOException {
        someSegments();
        List<String> places = new ArrayList<>();
        for (int segment = 1; segment <= 3; segment++) {
            long offset = firstWrite(segment);
            places.add(segment + ":" + offset);
            flip(segment, offset + new int[] {9, 200, 0}[segment - 1]);
        }

        assertThat(verify().listed()).extracting(StoreProblem::place).isEqualTo(places);
    }

    @Test
    void aMissingSegmentIsFoundWithItsBlocks() throws IOException {
        someSegments();
        Files.delete(segment(2));

        StoreCheck check = verify();

        assertThat(check.listed())
                .anySatisfy(problem -> {
                    assertThat(problem.kind()).isEqualTo(StoreProblem.Kind.SEGMENT);
                    assertThat(problem.file()).isEqualTo("journal/0000000002.seg");
                    assertThat(problem.liveBlocks()).isPositive();
                });
    }

    @Test
    void swappedSegmentsAreTwoDamagesAndNotOneForEachRecord() throws IOException {
        someSegments();
        List<SegmentLine> segments = inspect().segments();
        byte[] first = Files.readAllBytes(segment(1));
        Files.write(segment(1), Files.readAllBytes(segment(2)));
        Files.write(segment(2), first);

        List<StoreProblem> problems = verify().listed();

        assertThat(problems).extracting(StoreProblem::place).containsExactly("1:0", "2:0");
        assertThat(problems)
                .extracting(problem -> problem.liveBlocks() * 4112)
                .containsExactly(segments.get(0).liveBytes(), segments.get(1).liveBytes());
        assertThat(problems.getFirst().what()).isEqualTo("this is segment 2 in the place of 1");
    }

    @Test
    void whatATruncatedLastSegmentLostIsOneDamage() throws IOException {
        someSegments();
        StoreSummary found = inspect();
        int last = Place.segment(place(found.synced()));
        long lost = found.segments().get(last - 1).liveBytes() / 4112;
        assertThat(lost).isPositive();
        byte[] whole = Files.readAllBytes(segment(last));
        for (long size : new long[] {0, SegmentHeader.SIZE, 10_000}) {
            try (FileChannel file = FileChannel.open(segment(last), StandardOpenOption.WRITE)) {
                file.truncate(size);
            }
            List<StoreProblem> problems = verify().listed();
            // Without its header it is damaged there, too.
            assertThat(problems).hasSize(size == 0 ? 2 : 1);
            assertThat(problems).extracting(StoreProblem::liveBlocks).contains(lost);
            Files.write(segment(last), whole);
        }
    }

    @Test
    void aMissingLastSegmentIsOneDamage() throws IOException {
        someSegments();
        int last = Place.segment(place(inspect().synced()));
        for (int number = last; Files.exists(segment(number)); number++) {
            Files.delete(segment(number));
        }

        assertThat(verify().listed()).extracting(StoreProblem::place).containsExactly(last + ":0");
    }

    /** A start reads on behind the end that the next segment tells, if it finds a record there. */
    @Test
    void aRecordBehindTheSegmentsEndIsDamage() throws IOException {
        someSegments();
        long end;
        try (SegmentReader reader = new SegmentReader(segment(2))) {
            byte[] head = new byte[SegmentHeader.SIZE];
            reader.at(0, SegmentHeader.SIZE).get(head);
            end = SegmentHeader.decode(head, "segment 2").previousEnd();
        }
        try (FileChannel file =
                FileChannel.open(segment(1), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            ByteBuffer record = ByteBuffer.allocate(128);
            file.read(record, firstWrite(1));
            file.write(record.flip(), Place.offset(end));
        }

        List<StoreProblem> problems = verify().listed();

        assertThat(problems).extracting(StoreProblem::place).containsExactly(Place.text(end));
        assertThat(problems.getFirst().what()).contains("behind the segment's last record");
    }

    @Test
    void aDamagedHeaderIsNoOtherFormatAsLongAsOthersAreFine() throws IOException {
        someSegments();
        flip(2, 11);

        assertThat(verify().listed())
                .extracting(StoreProblem::text)
                .singleElement()
                .asString()
                .contains("2:0", "format 65", "format 1");
    }

    @Test
    void aJournalOfAnotherFormatIsRefusedNamingBoth() throws IOException {
        someSegments();
        for (int number = Place.segment(place(inspect().end())); number >= 1; number--) {
            flip(number, 11);
        }

        assertThatThrownBy(this::verify)
                .isInstanceOf(StoreException.class)
                .hasMessageContaining("format 65")
                .hasMessageContaining("knows format 1")
                .extracting(e -> ((StoreException) e).kind())
                .isEqualTo(Kind.OTHER_FORMAT);
    }

    /** The extent's record is valid, but of other blocks: the place was swapped. */
    @Test
    void anExtentThatPointsToAnotherRecordIsFound() throws IOException {
        someSegments();
        try (RocksRows rows = new RocksRows(directory.resolve("map"))) {
            byte[][] found = new byte[4][];
            rows.scan(
                    Rows.Family.EXTENTS,
                    null,
                    null,
                    (key, value) -> {
                        int at = found[0] == null ? 0 : 2;
                        found[at] = key;
                        found[at + 1] = value;
                        return at == 0;
                    });
            long first = ByteBuffer.wrap(found[1]).getLong(4);
            ByteBuffer.wrap(found[3]).putLong(4, first);
            try (Rows.Batch batch = rows.batch()) {
                batch.put(Rows.Family.EXTENTS, found[2], found[3]);
                batch.commit();
            }
        }

        List<StoreProblem> problems = verify().listed();
        assertThat(problems)
                .extracting(StoreProblem::kind)
                .containsExactly(StoreProblem.Kind.EXTENT, StoreProblem.Kind.USAGE);
        assertThat(problems.getFirst().what()).contains("is another: WRITE of shard 7/0");
    }

    @Test
    void aCopyFromADamagedRecordIsFoundThoughItsOwnRecordIsRight() throws IOException {
        JournalStore store = open();
        Rig.create(store, Rig.SHARD, owner);
        Entry entry = Rig.write(Rig.SHARD, 1, 7, 100, 3);
        store.appendMoved(
                Rig.SHARD,
                List.of(
                        Entry.builder(Rig.SHARD, entry.kind())
                                .at(1, 7, 0)
                                .blocks(0, 100, 3)
                                .sealed(entry.nonce(), entry.payload())
                                .flags(Entry.FLAG_MOVED | Entry.FLAG_DOUBTFUL)
                                .build()));
        store.write();
        Rig.checkpoint(store, loop);
        store.abandon();
        List<StoreProblem> problems = verify().listed();
        assertThat(problems).hasSize(1);
        StoreProblem problem = problems.getFirst();
        assertThat(problem.kind()).isEqualTo(StoreProblem.Kind.EXTENT);
        assertThat(problem.what()).isEqualTo("copied from a damaged record");
        assertThat(problem.liveBlocks()).isEqualTo(3);
    }

    @Test
    void wrongLiveBytesAndALostRowAreFound() throws IOException {
        someSegments();
        try (RocksRows rows = new RocksRows(directory.resolve("map"));
                Rows.Batch batch = rows.batch()) {
            UsageRow row = new UsageRow(Rig.SHARD, 2, 4112);
            batch.put(Rows.Family.USAGE, row.key(), row.value());
            batch.put(Rows.Family.EXTENTS, ExtentRow.key(Rig.SHARD, 1, 1 << 20), new byte[] {9, 9});
            batch.commit();
        }

        assertThat(verify().listed())
                .extracting(StoreProblem::kind)
                .containsExactlyInAnyOrder(StoreProblem.Kind.USAGE, StoreProblem.Kind.MAP);
    }

    @Test
    void anUnfinishedWriteAtTheEndIsNoDamage() throws IOException {
        someSegments();
        int last = Place.segment(place(inspect().end()));
        long end = Place.offset(place(inspect().end()));
        try (FileChannel file = FileChannel.open(segment(last), StandardOpenOption.WRITE)) {
            Segments.zero(file, end - 3000, end);
        }

        StoreCheck check = verify();

        // The boot id of the store is not this machine's, so the tail may be gone in any shape.
        assertThat(check.sound()).isTrue();
        assertThat(check.notes()).singleElement().asString().contains("next start cuts off");
    }

    private static long place(String text) {
        String[] parts = text.split(":", 2);
        return Place.of(Integer.parseInt(parts[0]), Long.parseLong(parts[1]));
    }

    @Test
    void aTornWriteWithoutARestartIsNoDamageButAFlippedBitIs() throws IOException {
        boot = StoreOptions.currentBoot();
        someSegments();
        int last = Place.segment(place(inspect().end()));
        long end = Place.offset(place(inspect().end()));
        byte[] sound = Files.readAllBytes(segment(last));
        try (FileChannel file = FileChannel.open(segment(last), StandardOpenOption.WRITE)) {
            Segments.zero(file, end - 3000, end);
        }
        assertThat(verify().sound()).isTrue();

        Files.write(segment(last), sound);
        flip(last, end - 3000);
        assertThat(verify().sound()).isFalse();
        assertThatThrownBy(this::open).isInstanceOf(StoreException.class);
    }

    /** The fuzzer's seed 6111: the start takes it, and so does not take the damage for a tail. */
    @Test
    void aLastRecordThatLacksOnlyZeroesIsValid() throws IOException {
        boot = StoreOptions.currentBoot();
        JournalStore store = open();
        Rig.create(store, Rig.SHARD, owner);
        store.append(Rig.SHARD, List.of(Rig.write(Rig.SHARD, 1, 1, 5, 1)), null);
        store.append(Rig.SHARD, List.of(Rig.zero(Rig.SHARD, 1, 2, 100, 10)), null);
        store.write();
        store.abandon();
        // The length of the first is more than it was, so that it may seem to be torn.
        flip(1, firstWrite(1) + 10);
        Files.write(segment(1), withoutZeroesAtTheEnd(Files.readAllBytes(segment(1))));

        assertThat(verify().sound()).isFalse();
        assertThatThrownBy(this::open)
                .isInstanceOf(StoreException.class)
                .hasMessageContaining("a valid record follows");
    }

    private static byte[] withoutZeroesAtTheEnd(byte[] bytes) {
        int end = bytes.length;
        while (bytes[end - 1] == 0) {
            end--;
        }
        return Arrays.copyOf(bytes, end);
    }

    @Test
    void aFewBytesAtTheEndThatAreNoPartOfARecordAreDamage() throws IOException {
        boot = StoreOptions.currentBoot();
        someSegments();
        long end = place(inspect().end());
        flip(Place.segment(end), Place.offset(end) + 20);

        StoreCheck check = verify();

        assertThat(check.listed())
                .singleElement()
                .satisfies(problem -> {
                    assertThat(problem.place()).isEqualTo(Place.text(end));
                    assertThat(problem.what())
                            .startsWith("the records end here, but the bytes from offset ");
                });
        assertThatThrownBy(this::open).isInstanceOf(StoreException.class);
    }

    @Test
    void aStoreInUseIsRefusedNamingTheProcess() throws IOException {
        JournalStore store = open();
        try {
            assertThatThrownBy(() -> OfflineStore.open(directory))
                    .isInstanceOf(StoreException.class)
                    .hasMessageContaining("is in use by process " + ProcessHandle.current().pid())
                    .extracting(e -> ((StoreException) e).kind())
                    .isEqualTo(Kind.IN_USE);
        } finally {
            store.close();
        }
    }

    @Test
    void whatIsNoStoreIsRefused() throws IOException {
        assertThatThrownBy(() -> OfflineStore.open(directory.resolve("nowhere")))
                .hasMessageContaining("is no directory")
                .extracting(e -> ((StoreException) e).kind())
                .isEqualTo(Kind.NO_STORE);
        assertThatThrownBy(() -> OfflineStore.open(directory))
                .hasMessageContaining("holds no store")
                .hasMessageContaining("run/node-1");
        Files.createDirectory(directory.resolve("journal"));
        assertThatThrownBy(() -> OfflineStore.open(directory))
                .hasMessageContaining("the map is damaged")
                .hasMessageContaining("learner");
        assertThat(directory.resolve("map")).doesNotExist();
        assertThat(directory.resolve("lock")).doesNotExist();
    }
}
