package io.holdfast.node.store;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.holdfast.node.replica.HardState;
import io.holdfast.node.replica.HardState.Standing;
import io.holdfast.node.replica.Recovered;
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
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a start makes of a journal that a crash, or a bad disk, has left. */
class RecoveryTest {
    private static final UUID STORE = new UUID(1, 2);

    private final Loop loop = new Loop();

    @TempDir Path directory;

    private Path journal() {
        return directory.resolve("journal");
    }

    private Path segment() {
        return Segments.file(journal(), 1);
    }

    private JournalStore open(String boot) throws IOException {
        return new JournalStore(directory, Rig.options(boot), loop);
    }

    /** Three synced entries, then three that are only written. Returns the places of all. */
    private List<Long> threeSyncedThreeNot() throws IOException {
        JournalStore store = open("boot-1");
        Rig.create(store, Rig.SHARD, new TestOwner());
        for (int i = 1; i <= 3; i++) {
            store.append(Rig.SHARD, List.of(Rig.write(Rig.SHARD, 1, i, i, 1)), null);
        }
        Rig.sync(store, loop);
        List<Long> places = new ArrayList<>();
        for (int i = 4; i <= 6; i++) {
            store.append(Rig.SHARD, List.of(Rig.write(Rig.SHARD, 1, i, i, 1)), null);
        }
        store.write();
        for (int i = 1; i <= 6; i++) {
            places.add(store.logPlace(Rig.SHARD, i));
        }
        store.abandon();
        return places;
    }

    private void flip(long offset) throws IOException {
        try (FileChannel file =
                FileChannel.open(segment(), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            ByteBuffer one = ByteBuffer.allocate(1);
            file.read(one, offset);
            one.put(0, (byte) (one.get(0) ^ 0x40)).rewind();
            file.write(one, offset);
        }
    }

    private void zeroFrom(long offset, long to) throws IOException {
        try (FileChannel file = FileChannel.open(segment(), StandardOpenOption.WRITE)) {
            Segments.zero(file, offset, to);
        }
    }

    @Test
    void corruptionBeforeASyncedMarkIsRefusedInAnyBoot() throws IOException {
        long second = threeSyncedThreeNot().get(1);
        flip(Place.offset(second) + 300);

        for (String boot : List.of("boot-1", "boot-2")) {
            assertThatThrownBy(() -> open(boot))
                    .isInstanceOf(StoreException.class)
                    .hasMessageContaining(segment().toString())
                    .hasMessageContaining("offset " + Place.offset(second))
                    .hasMessageContaining("synced through");
        }
    }

    @Test
    void aBadRecordBeforeAGoodOneIsCorruptionWithoutARestartOfTheMachine() throws IOException {
        long fifth = threeSyncedThreeNot().get(4);
        flip(Place.offset(fifth) + 300);

        assertThatThrownBy(() -> open("boot-1"))
                .isInstanceOf(StoreException.class)
                .hasMessageContaining("offset " + Place.offset(fifth))
                .hasMessageContaining("valid record follows");
    }

    @Test
    void aBadRecordInTheUnsyncedTailIsCutAfterAPowerLoss() throws IOException {
        long fifth = threeSyncedThreeNot().get(4);
        flip(Place.offset(fifth) + 300);

        JournalStore store = open("boot-2");
        Recovered past = store.open(Rig.SHARD, new TestOwner());
        assertThat(past.entries()).hasSize(4);
        assertThat(past.hardState().standing()).isEqualTo(Standing.LEARNER);
        // A record of the sixth's size ends where the old sixth began; it must not come back.
        store.append(Rig.SHARD, List.of(Rig.write(Rig.SHARD, 2, 5, 5, 1)), null);
        store.write();
        store.abandon();

        store = open("boot-2");
        past = store.open(Rig.SHARD, new TestOwner());
        store.abandon();
        assertThat(past.entries()).extracting(Entry::epoch).containsExactly(1L, 1L, 1L, 1L, 2L);
    }

    @Test
    void everythingAfterTheLastSyncMayBeGone() throws IOException {
        List<Long> places = threeSyncedThreeNot();
        long afterThird = Place.offset(places.get(2)) + Entry.HEADER_SIZE + 4112;
        zeroFrom(afterThird, Rig.OPTIONS.segmentBytes());

        JournalStore store = open("boot-2");
        Recovered past = store.open(Rig.SHARD, new TestOwner());
        store.abandon();

        assertThat(past.entries()).extracting(Entry::sequence).containsExactly(1L, 2L, 3L);
    }

    @Test
    void whatACheckpointSawSyncedMustBeThere() throws IOException {
        JournalStore store = open("boot-1");
        TestOwner owner = new TestOwner();
        Rig.create(store, Rig.SHARD, owner);
        store.append(
                Rig.SHARD,
                List.of(Rig.write(Rig.SHARD, 1, 1, 0, 1), Rig.write(Rig.SHARD, 1, 2, 0, 1)),
                null);
        Rig.checkpoint(store, loop);
        long second = store.logPlace(Rig.SHARD, 2);
        store.abandon();
        zeroFrom(Place.offset(second), Rig.OPTIONS.segmentBytes());

        assertThatThrownBy(() -> open("boot-2"))
                .isInstanceOf(StoreException.class)
                .hasMessageContaining("synced through");
    }

    @Test
    void aFutureFormatIsRefusedNamingBothVersions() throws IOException {
        threeSyncedThreeNot();
        flip(11);

        assertThatThrownBy(() -> open("boot-1"))
                .isInstanceOf(StoreException.class)
                .hasMessageContaining("format 65")
                .hasMessageContaining("knows format 1");
    }

    @Test
    void segmentsWithoutAMapAreRefused() throws IOException {
        Files.createDirectories(journal());
        Segments.prepare(journal(), 1, 1 << 20, Segments.Fill.WRITTEN).close();

        assertThatThrownBy(() -> open("boot-1"))
                .isInstanceOf(StoreException.class)
                .hasMessageContaining("no map");
    }

    @Test
    void goesOnOverManySegmentsAndIsReadBack() throws IOException {
        JournalStore store = open("boot-1");
        Rig.create(store, Rig.SHARD, new TestOwner());
        for (int i = 1; i <= 40; i++) {
            store.append(Rig.SHARD, List.of(Rig.write(Rig.SHARD, 1, i, i * 64L, 64)), null);
            if (i % 3 == 0) {
                store.write();
            }
        }
        Rig.sync(store, loop);
        store.append(Rig.SHARD, List.of(Rig.write(Rig.SHARD, 1, 41, 0, 64)), null);
        store.write();
        store.abandon();
        assertThat(Segments.list(journal())).hasSizeGreaterThan(5);

        store = open("boot-1");
        Recovered past = store.open(Rig.SHARD, new TestOwner());
        assertThat(past.entries()).hasSize(41);
        assertThat(past.entries().get(39).payload()).isEqualTo(Rig.payload(64, 40));
        store.abandon();
    }

    /** Scans every cut of the last record: each must end just before it, and none be an error. */
    @Test
    void aTailTornAtAnyByteIsCut() throws IOException {
        Files.createDirectories(journal());
        Entry first = Rig.write(Rig.SHARD, 1, 1, 0, 1);
        Entry last =
                Entry.builder(Rig.SHARD, EntryKind.CLAIM)
                        .at(1, 2, 1)
                        .request(3, 4, 5, 6)
                        .payload("node 4, an incarnation".getBytes(UTF_8))
                        .build();
        byte[] header = new SegmentHeader(1, STORE, 0).encode();
        ByteBuffer whole = ByteBuffer.allocate(8192);
        whole.put(header).put(first.header()).put(first.payload());
        int lastAt = whole.position();
        whole.put(last.header()).put(last.payload());
        int end = whole.position();

        for (int cut = lastAt; cut <= end; cut++) {
            byte[] torn = Arrays.copyOf(whole.array(), cut);
            Files.write(segment(), Arrays.copyOf(torn, 8192));
            List<Entry> seen = new ArrayList<>();
            JournalScan.End at = scan(seen);
            assertThat(seen).as("cut at %d", cut).hasSize(cut == end ? 2 : 1);
            assertThat(Place.offset(at.place()))
                    .isEqualTo(cut == end ? Journal.padded(end - lastAt) + lastAt : lastAt);
            byte[] left = Files.readAllBytes(segment());
            for (int i = (int) Place.offset(at.place()); i < left.length; i++) {
                assertThat(left[i]).isZero();
            }
        }
    }

    /** A process killed as it began a segment (the simulator's seed 179608405704482). */
    @Test
    void aSegmentHeaderTornAtAnyByteIsCut() throws IOException {
        Files.createDirectories(journal());
        Entry first = Rig.write(Rig.SHARD, 1, 1, 0, 1);
        ByteBuffer whole = ByteBuffer.allocate(8192);
        whole.put(new SegmentHeader(1, STORE, 0).encode()).put(first.header()).put(first.payload());
        long end = Place.of(1, Journal.padded(whole.position()));
        Files.write(segment(), whole.array());
        byte[] header = new SegmentHeader(2, STORE, end).encode();
        // What is missing of the rest is zeroes all the same.
        int complete = 48;
        Path next = Segments.file(journal(), 2);

        for (int cut = 1; cut <= complete; cut++) {
            Files.write(next, Arrays.copyOf(Arrays.copyOf(header, cut), 8192));
            List<Entry> seen = new ArrayList<>();
            JournalScan.End at = scan(seen);
            assertThat(seen).hasSize(1);
            assertThat(at.place())
                    .as("cut at %d", cut)
                    .isEqualTo(cut == complete ? Place.of(2, SegmentHeader.SIZE) : end);
            assertThat(Files.exists(next)).isEqualTo(cut == complete);
        }
    }

    @Test
    void aBitFlippedInAnyByteOfARecordIsNoticed() throws IOException {
        Files.createDirectories(journal());
        byte[] header = new SegmentHeader(1, STORE, 0).encode();
        byte[] mark =
                Mark.base(
                                Rig.SHARD,
                                new HardState(9, 2, Standing.LEARNER),
                                3,
                                4,
                                5,
                                new byte[] {1, 2, 3, 4})
                        .encode(Place.of(1, 64));
        for (int bit = 0; bit < mark.length * 8; bit += 9) {
            ByteBuffer whole = ByteBuffer.allocate(1024);
            whole.put(header).put(mark);
            int at = header.length + bit / 8;
            whole.put(at, (byte) (whole.get(at) ^ (1 << (bit % 8))));
            Files.write(segment(), whole.array());

            int flipped = bit;
            assertThatThrownBy(
                            () -> {
                                JournalScan.End end = scan(new ArrayList<>());
                                // A length that grew makes it the beginning of a longer record.
                                assertThat(Place.offset(end.place()))
                                        .as("bit %d", flipped)
                                        .isEqualTo(64);
                                throw new StoreException("cut");
                            })
                    .isInstanceOf(StoreException.class);
        }
    }

    /** Damage to the very last record, which no mark proves to be synced, and nothing follows. */
    @Test
    void aCompleteRecordWithAWrongChecksumIsNoTornWrite() throws IOException {
        long sixth = threeSyncedThreeNot().get(5);
        flip(Place.offset(sixth) + 300);

        assertThatThrownBy(() -> open("boot-1"))
                .isInstanceOf(StoreException.class)
                .hasMessageContaining("offset " + Place.offset(sixth))
                .hasMessageContaining("no torn write");
        // After a power loss it may be what is left of an unsynced one; the replica is a learner.
        JournalStore store = open("boot-2");
        Recovered past = store.open(Rig.SHARD, new TestOwner());
        store.abandon();
        assertThat(past.entries()).hasSize(5);
        assertThat(past.hardState().standing()).isEqualTo(Standing.LEARNER);
    }

    @Test
    void bytesBehindATornRecordAreNoTornWrite() throws IOException {
        long sixth = threeSyncedThreeNot().get(5);
        long torn = Place.offset(sixth) + 1000;
        zeroFrom(torn, Rig.OPTIONS.segmentBytes());
        try (FileChannel file = FileChannel.open(segment(), StandardOpenOption.WRITE)) {
            file.write(ByteBuffer.wrap(new byte[] {1}), torn + 100_000);
        }

        assertThatThrownBy(() -> open("boot-1"))
                .isInstanceOf(StoreException.class)
                .hasMessageContaining("no torn write");
    }

    /** The kernel may call pages clean that a failed sync did not bring to the disk. */
    @Test
    void aReplicaDoesNotVoteWithWhatAFailedSyncMayHaveLost() throws IOException {
        UnsyncableDisk failing = new UnsyncableDisk();
        JournalStore store = new JournalStore(directory, Rig.options("boot-1"), loop, failing);
        TestOwner owner = new TestOwner();
        Rig.create(store, Rig.SHARD, owner);
        store.append(Rig.SHARD, List.of(Rig.write(Rig.SHARD, 1, 1, 0, 1)), null);
        store.write();
        failing.breakDown();
        store.sync(through -> {});
        loop.until(() -> !owner.failures.isEmpty());
        store.close();

        store = open("boot-1");
        Recovered past = store.open(Rig.SHARD, new TestOwner());
        store.close();
        assertThat(past.hardState().standing()).isEqualTo(Standing.LEARNER);
    }

    private JournalScan.End scan(List<Entry> seen) throws IOException {
        return new JournalScan(journal(), STORE, Place.of(1, 0), false)
                .run(
                        Place.of(1, 0),
                        new JournalScan.Visitor() {
                            @Override
                            public void entry(Entry entry, long place) {
                                seen.add(entry);
                            }

                            @Override
                            public void mark(Mark mark, long place) {
                                assertThat(mark.body()).hasSize(4);
                            }
                        });
    }
}
