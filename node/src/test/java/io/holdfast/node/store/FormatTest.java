package io.holdfast.node.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.holdfast.node.replica.HardState;
import io.holdfast.node.replica.HardState.CatchUp;
import io.holdfast.node.replica.HardState.Standing;
import io.holdfast.node.store.ExtentPage.Extent;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.MalformedException;
import io.holdfast.proto.peer.ShardId;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.List;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Golden bytes: these mean these records, for ever. */
class FormatTest {
    private static final ShardId SHARD = new ShardId(0x01020304, 5);
    private static final HardState STATE = new HardState(0x1122334455667788L, 9, Standing.LEARNER);

    private static String hex(byte @Nullable [] bytes) {
        return bytes == null ? "none" : HexFormat.of().formatHex(bytes);
    }

    /** A mark without its checksum, which the second half of each test covers. */
    private static String withoutChecksum(byte[] mark) {
        ByteBuffer.wrap(mark).putInt(4, 0);
        return hex(mark);
    }

    @Test
    void stateMark() {
        Mark mark = Mark.state(SHARD, STATE);
        byte[] bytes = mark.encode(Place.of(2, 0x40));

        assertThat(Mark.decode(ByteBuffer.wrap(bytes), Place.of(2, 0x40)))
                .usingRecursiveComparison()
                .isEqualTo(mark);
        assertThat(withoutChecksum(bytes))
                .isEqualTo(
                        "48465331"
                                + "00000000"
                                + "00000050"
                                + "01"
                                + "02"
                                + "0000"
                                + "01020304"
                                + "00000005"
                                + "0000000200000040"
                                + "1122334455667788"
                                + "00000009"
                                + "00000000"
                                + "0000000000000000"
                                + "0000000000000000"
                                + "0000000000000000"
                                + "0000000000000000");
    }

    @Test
    void stateMarkWithACatchUpThatABaseLeavesAsItWas() {
        HardState state = STATE.withCatchUp(new CatchUp(10, 11));
        byte[] bytes = Mark.state(SHARD, state).encode(Place.of(2, 0x40));

        Mark read = Mark.decode(ByteBuffer.wrap(bytes), Place.of(2, 0x40));
        assertThat(read.after(HardState.FRESH)).isEqualTo(state);
        assertThat(withoutChecksum(bytes))
                .contains("00000000" + "000000000000000a" + "000000000000000b");
        Mark base = Mark.base(SHARD, STATE, 3, 4, 5, new byte[0]);
        Mark again = Mark.decode(ByteBuffer.wrap(base.encode(8)), 8);
        assertThat(again.after(state)).isEqualTo(state);
    }

    @Test
    void baseMark() {
        Mark mark = Mark.base(SHARD, STATE, 3, 4, 5, new byte[] {6, 7});
        byte[] bytes = mark.encode(Place.of(1, 64));

        assertThat(Mark.decode(ByteBuffer.wrap(bytes), Place.of(1, 64)))
                .usingRecursiveComparison()
                .isEqualTo(mark);
        assertThat(withoutChecksum(bytes))
                .isEqualTo(
                        "48465331"
                                + "00000000"
                                + "00000052"
                                + "03"
                                + "02"
                                + "0000"
                                + "01020304"
                                + "00000005"
                                + "0000000100000040"
                                + "1122334455667788"
                                + "00000009"
                                + "00000000"
                                + "0000000000000003"
                                + "0000000000000004"
                                + "0000000000000005"
                                + "0000000000000000"
                                + "0607");
    }

    @Test
    void otherMarks() {
        assertThat(hex(Mark.create(SHARD, STATE).encode(1))).contains("00000050" + "02" + "02");
        assertThat(hex(Mark.truncate(SHARD, 1).encode(1))).contains("00000050" + "04" + "00");
        assertThat(hex(Mark.drop(SHARD).encode(1))).contains("00000050" + "05" + "00");
        assertThat(hex(Mark.synced(77).encode(1)))
                .contains("00000050" + "06" + "00" + "0000" + "00000000" + "00000000")
                .contains("000000000000004d");
    }

    @Test
    void aMarkMovedToAnotherPlaceIsRefused() {
        byte[] bytes = Mark.drop(SHARD).encode(Place.of(1, 64));

        assertThatThrownBy(() -> Mark.decode(ByteBuffer.wrap(bytes), Place.of(1, 72)))
                .isInstanceOf(MalformedException.class)
                .hasMessageContaining("1:64");
    }

    @Test
    void segmentHeader() throws StoreException {
        SegmentHeader header = new SegmentHeader(3, new UUID(1, 2), Place.of(2, 0x1000));
        byte[] bytes = header.encode();

        assertThat(SegmentHeader.decode(bytes, "file")).isEqualTo(header);
        assertThat(withoutHeaderChecksum(bytes))
                .isEqualTo(
                        "48464a4f55524e4c"
                                + "00000001"
                                + "00000000"
                                + "00000003"
                                + "00000000"
                                + "0000000000000001"
                                + "0000000000000002"
                                + "0000000200001000"
                                + "00000000000000000000000000000000");
    }

    private static String withoutHeaderChecksum(byte[] header) {
        ByteBuffer.wrap(header).putInt(12, 0);
        return hex(header);
    }

    @Test
    void extentRow() {
        Extent extent = new Extent();
        extent.count = 1024;
        extent.place = Place.of(2, 0x40);
        extent.sequence = 3;
        extent.epoch = 4;
        extent.keyId = 5;
        extent.nonceSession = 6;
        extent.nonceCounter = 7;
        ByteBuffer value = ByteBuffer.allocate(ExtentRow.VALUE_SIZE);
        ExtentRow.value(value, extent);
        Extent back = new Extent();
        ExtentRow.decode(value.array(), back);

        assertThat(back).usingRecursiveComparison().isEqualTo(extent);
        assertThat(hex(value.array()))
                .isEqualTo(
                        "01"
                                + "00"
                                + "0400"
                                + "0000000200000040"
                                + "0000000000000003"
                                + "0000000000000004"
                                + "00000005"
                                + "00000006"
                                + "0000000000000007");
        assertThat(hex(ExtentRow.key(SHARD, 1, 0x0a0b)))
                .isEqualTo("01020304" + "00000005" + "00000001" + "0000000000000a0b");
        value.put(0, (byte) 2);
        assertThatThrownBy(() -> ExtentRow.decode(value.array(), back))
                .isInstanceOf(MalformedException.class)
                .hasMessageContaining("version 2")
                .hasMessageContaining("version 1");
    }

    @Test
    void shardRowOfVersion1IsRead() {
        String row =
                "01"
                        + "02"
                        + "0000"
                        + "00000009"
                        + "1122334455667788"
                        + "0000000000000003"
                        + "0000000000000004"
                        + "0000000100000040"
                        + "08";
        assertThat(ShardRow.decode(HexFormat.of().parseHex(row)))
                .usingRecursiveComparison()
                .isEqualTo(new ShardRow(STATE, 3, 4, Place.of(1, 64), new byte[] {8}));
    }

    @Test
    void shardRow() {
        HardState state = STATE.withCatchUp(new CatchUp(10, 11));
        ShardRow row = new ShardRow(state, 3, 4, Place.of(1, 64), new byte[] {8});

        assertThat(ShardRow.decode(row.encode())).usingRecursiveComparison().isEqualTo(row);
        assertThat(hex(row.encode()))
                .isEqualTo(
                        "02"
                                + "02"
                                + "0000"
                                + "00000009"
                                + "1122334455667788"
                                + "0000000000000003"
                                + "0000000000000004"
                                + "0000000100000040"
                                + "000000000000000a"
                                + "000000000000000b"
                                + "08");
    }

    @Test
    void storeRow() throws StoreException {
        StoreRow row = new StoreRow(true, new UUID(1, 2), Place.of(1, 64), Place.of(2, 80), "b");

        assertThat(StoreRow.decode(row.encode())).isEqualTo(row);
        assertThat(hex(row.encode()))
                .isEqualTo(
                        "00000002"
                                + "01"
                                + "000000"
                                + "0000000000000001"
                                + "0000000000000002"
                                + "0000000100000040"
                                + "0000000200000050"
                                + "62");
    }

    @Test
    void usageRow() {
        UsageRow row = new UsageRow(SHARD, 0x0a0b, 4112);

        assertThat(UsageRow.decode(row.key(), row.value())).isEqualTo(row);
        assertThat(hex(row.key())).isEqualTo("01020304" + "00000005" + "00000a0b");
        assertThat(hex(row.value())).isEqualTo("0000000000001010");
        assertThatThrownBy(() -> UsageRow.decode(row.key(), new byte[9]))
                .isInstanceOf(MalformedException.class)
                .hasMessageContaining("9 bytes");
    }

    /** The record kinds' layout is {@code EntryTest}'s; here is what the journal makes of one. */
    @Test
    void entryRecord() {
        Entry entry = Rig.zero(SHARD, 3, 4, 5, 6);
        byte[] header = entry.header().clone();
        ByteBuffer.wrap(header).putInt(4, 0);

        assertThat(hex(header))
                .isEqualTo(
                        "48464531"
                                + "00000000"
                                + "00000080"
                                + "03"
                                + "01"
                                + "0000"
                                + "01020304"
                                + "00000005"
                                + "0000000000000003"
                                + "0000000000000004"
                                + "0000000000000000"
                                + "0000000000000005"
                                + "00000006"
                                + "00000001"
                                + "00".repeat(64));
        EntryHead head = EntryHead.read(ByteBuffer.wrap(entry.header()));
        assertThat(head.length()).isEqualTo(128);
        assertThat(head.kindName()).isEqualTo("ZERO");
        assertThat(head.shard()).isEqualTo(SHARD.toString());
        assertThat(head.epoch()).isEqualTo(3);
        assertThat(head.sequence()).isEqualTo(4);
        assertThat(head.block()).isEqualTo(5);
        assertThat(head.count()).isEqualTo(6);
        assertThat(head.layer()).isEqualTo(1);
    }

    @Test
    void recordsOfAnotherVersionAreRefusedNamingBoth() {
        byte[] mark = Mark.drop(SHARD).encode(Place.of(1, 64));
        mark[3] = '2';
        assertThatThrownBy(() -> Mark.decode(ByteBuffer.wrap(mark), Place.of(1, 64)))
                .isInstanceOf(MalformedException.class)
                .hasMessageContaining("version 2")
                .hasMessageContaining("version 1");
        byte[] entry = Rig.zero(SHARD, 3, 4, 5, 6).header().clone();
        entry[3] = '2';
        assertThatThrownBy(() -> Entry.decode(ByteBuffer.wrap(entry)))
                .isInstanceOf(MalformedException.class)
                .hasMessageContaining("version 2")
                .hasMessageContaining("version 1");
    }

    @Test
    void rowsAndSegmentsOfAnotherVersionAreRefusedNamingBoth() {
        byte[] shard = new ShardRow(STATE, 3, 4, Place.of(1, 64), new byte[0]).encode();
        shard[0] = 3;
        assertThatThrownBy(() -> ShardRow.decode(shard))
                .isInstanceOf(MalformedException.class)
                .hasMessageContaining("version 3")
                .hasMessageContaining("versions 1 and 2");
        byte[] store = new StoreRow(true, new UUID(1, 2), 1, 1, "b").encode();
        store[3] = 9;
        assertThatThrownBy(() -> StoreRow.decode(store))
                .isInstanceOf(StoreException.class)
                .hasMessageContaining("format 9")
                .hasMessageContaining("format 2")
                .extracting(e -> ((StoreException) e).kind())
                .isEqualTo(StoreException.Kind.OTHER_FORMAT);
        byte[] segment = new SegmentHeader(3, new UUID(1, 2), 0).encode();
        segment[11] = 7;
        assertThatThrownBy(() -> SegmentHeader.decode(segment, "0000000003.seg"))
                .isInstanceOf(StoreException.class)
                .hasMessageContaining("0000000003.seg")
                .hasMessageContaining("format 7")
                .hasMessageContaining("format 1");
    }

    /** A checkpoint is one batch of these rows; its families' names are part of the format. */
    @Test
    void checkpoint() throws IOException {
        MemoryRows rows = new MemoryRows();
        StoreRow row = new StoreRow(false, new UUID(1, 2), Place.of(1, 64), Place.of(2, 80), "b");
        MapChanges changes = new MapChanges(List.of(), row);
        changes.shards.put(SHARD, new ShardRow(STATE, 3, 4, Place.of(1, 64), new byte[] {8}));
        changes.usage(SHARD, 7, 4112);
        new MapDatabase(rows).write(changes);

        assertThat(Rows.Family.values())
                .extracting(Enum::name)
                .containsExactly("EXTENTS", "SHARDS", "META", "USAGE");
        assertThat(hex(rows.get(Rows.Family.META, new byte[] {'s', 't', 'o', 'r', 'e'})))
                .isEqualTo(hex(row.encode()));
        byte[] key = HexFormat.of().parseHex("01020304" + "00000005");
        assertThat(hex(rows.get(Rows.Family.SHARDS, key))).startsWith("0202").endsWith("08");
        byte[] usage = HexFormat.of().parseHex("01020304" + "00000005" + "00000007");
        assertThat(hex(rows.get(Rows.Family.USAGE, usage))).isEqualTo("0000000000001010");
    }
}
