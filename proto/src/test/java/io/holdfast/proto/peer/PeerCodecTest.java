package io.holdfast.proto.peer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assertions.fail;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.Test;

final class PeerCodecTest {
    private static final long SEED = 20261130;
    private static final ShardId SHARD = new ShardId(7, 3);

    private static byte[] encoded(PeerMessage message) {
        ByteBuf out = Unpooled.buffer();
        PeerCodec.encode(message, out);
        return ByteBufUtil.getBytes(out);
    }

    private static PeerMessage decoded(byte[] frame) {
        return PeerCodec.decode(Unpooled.wrappedBuffer(frame));
    }

    /** Makes the checksum right, so that a test reaches the fields behind it. */
    private static byte[] resealed(byte[] frame) {
        CRC32C crc = new CRC32C();
        crc.update(frame, 8, frame.length - 8);
        ByteBuffer.wrap(frame).putInt(4, (int) crc.getValue());
        return frame;
    }

    @Test
    void everyMessageTypeHasAGenerator() {
        Set<String> generated = new TreeSet<>();
        Messages.types().forEach(type -> generated.add(type.getName()));
        assertThat(generated).isEqualTo(Messages.permitted(PeerMessage.class));
    }

    @Test
    void decodingGivesBackWhatWasEncoded() {
        Random random = new Random(SEED);
        for (Class<? extends PeerMessage> type : Messages.types()) {
            for (int round = 0; round < 200; round++) {
                PeerMessage message = Messages.random(type, random);
                byte[] frame = encoded(message);
                assertThat(PeerCodec.encodedSize(message)).isEqualTo(frame.length);
                ByteBuf in = Unpooled.directBuffer();
                try {
                    in.writeInt(99).writeBytes(frame).writeInt(98).skipBytes(4);
                    PeerMessage back = PeerCodec.decode(in);
                    assertThat(in.readInt()).isEqualTo(98);
                    assertThat(Messages.same(back, message))
                            .as("%s, seed %d, round %d", message, SEED, round)
                            .isTrue();
                    assertThat(encoded(back)).isEqualTo(frame);
                } finally {
                    in.release();
                }
            }
        }
    }

    @Test
    void goldenBytesMeanTheseMessagesForEver() throws IOException {
        Properties golden = new Properties();
        try (InputStream in = PeerCodecTest.class.getResourceAsStream("golden-frames.properties")) {
            golden.load(in);
        }
        Map<String, PeerMessage> samples = goldenMessages();
        assertThat(golden.stringPropertyNames()).isEqualTo(samples.keySet());
        Set<String> covered = new TreeSet<>();
        samples.forEach((name, message) -> {
            covered.add(message.getClass().getName());
            String hex = expanded(golden.getProperty(name));
            assertThat(ByteBufUtil.hexDump(encoded(message))).as(name).isEqualTo(hex);
            PeerMessage back = decoded(ByteBufUtil.decodeHexDump(hex));
            assertThat(Messages.same(back, message)).as(name).isTrue();
        });
        assertThat(covered).isEqualTo(Messages.permitted(PeerMessage.class));
    }

    /** Writes out runs of zero bytes, which stand as {@code {00*count}} in the file. */
    private static String expanded(String golden) {
        Matcher zeroes = Pattern.compile("\\{00\\*(\\d+)}").matcher(golden);
        return zeroes.replaceAll(found -> "00".repeat(Integer.parseInt(found.group(1))));
    }

    /** One small message of each type; entries without payload keep the lines short. */
    private static Map<String, PeerMessage> goldenMessages() {
        Entry noop = Entry.builder(SHARD, EntryKind.NOOP).at(5, 11, 9).request(0, 0, 0, 0).build();
        Entry zero =
                Entry.builder(SHARD, EntryKind.ZERO)
                        .at(5, 12, 10)
                        .blocks(1, 0x1234, 8)
                        .request(21, 22, 20, 2)
                        .flags(Entry.FLAG_TRIM)
                        .build();
        Entry moved =
                Entry.builder(SHARD, EntryKind.ZERO)
                        .at(4, 7, 6)
                        .blocks(0, 64, 2)
                        .flags(Entry.FLAG_MOVED)
                        .build();
        ReplicaMessage.Cursor cursor = new ReplicaMessage.Cursor(1, 0x1000);
        byte[] block = new byte[Blocks.SEALED_SIZE];
        block[0] = 0x11;
        block[Blocks.SEALED_SIZE - 1] = 0x22;
        Nonce nonce = new Nonce(1, 21, 0x0102030405L);
        Map<String, PeerMessage> samples = new LinkedHashMap<>();
        samples.put(
                "PromiseRequest",
                new ReplicaMessage.PromiseRequest(SHARD, 6, true, false, 5, 12, true));
        samples.put(
                "PromiseReply",
                new ReplicaMessage.PromiseReply(SHARD, 6, false, true, 6, Voice.VOTER, 5, 12));
        samples.put(
                "Append",
                new ReplicaMessage.Append(SHARD, 5, 4, 10, 9, 8, true, -2, List.of(noop, zero)));
        samples.put(
                "Append.heartbeat",
                new ReplicaMessage.Append(SHARD, 5, 5, 12, 12, 0, false, 1, List.of()));
        samples.put(
                "AppendReply",
                new ReplicaMessage.AppendReply(
                        SHARD, 5, true, 12, 11, 13, 10, false, Room.SOON, -2));
        samples.put(
                "InstallBegin",
                new ReplicaMessage.InstallBegin(
                        SHARD, 5, 3, 4, 10, "state".getBytes(StandardCharsets.UTF_8)));
        samples.put(
                "InstallExtents",
                new ReplicaMessage.InstallExtents(
                        SHARD, 5, 10, ReplicaMessage.Cursor.START, cursor, true, List.of(moved)));
        samples.put("InstallReply", new ReplicaMessage.InstallReply(SHARD, 5, 10, cursor, true));
        samples.put("HandOver", new ReplicaMessage.HandOver(SHARD, 5));
        samples.put("FetchBlock", new ReplicaMessage.FetchBlock(SHARD, 5, 4, 1, 0x1234));
        samples.put(
                "FetchedBlock",
                new ReplicaMessage.FetchedBlock(SHARD, 5, 4, 1, 0x1234, 12, nonce, true, block));
        samples.put(
                "FetchedBlock.unreadable",
                new ReplicaMessage.FetchedBlock(
                        SHARD, 5, 4, 1, 0x1234, 12, nonce, false, new byte[0]));
        samples.put(
                "AskVersions", new ScrubMessage.AskVersions(SHARD, 4, cursor, ScrubMessage.END));
        samples.put(
                "Versions",
                new ScrubMessage.Versions(
                        SHARD,
                        4,
                        13,
                        cursor,
                        ScrubMessage.END,
                        List.of(
                                new ScrubMessage.Stretch(
                                        1, 0x1234, 2, 12, 5, nonce, false, false, new byte[8]),
                                new ScrubMessage.Stretch(
                                        1,
                                        0x1236,
                                        1024,
                                        7,
                                        4,
                                        Nonce.NONE,
                                        true,
                                        true,
                                        new byte[0]))));
        samples.put("OpenSession", new ClientRequest.OpenSession(SHARD, 2, 1, 0));
        samples.put("CloseSession", new ClientRequest.CloseSession(SHARD, 2, 3, 21));
        samples.put("Claim", new ClientRequest.Claim(SHARD, 2, 4, 21, "hôte", 2, true));
        samples.put("Release", new ClientRequest.Release(SHARD, 2, 5, 21, 2));
        samples.put(
                "Write",
                new ClientRequest.Write(
                        SHARD, 2, 6, 21, 4, 2, 1, 0x1234, 1, nonce, 12, true, block));
        samples.put(
                "Zero",
                new ClientRequest.Zero(SHARD, 2, 7, 21, 4, 2, 1, 0x1234, 262144, true, false));
        samples.put("Flush", new ClientRequest.Flush(SHARD, 2, 8, 21));
        samples.put("Read", new ClientRequest.Read(SHARD, 2, 9, 1, 0x1234, 64, 0));
        samples.put("Read.copy", new ClientRequest.Read(SHARD, 2, 9, 1, 0x1234, 1, 3));
        samples.put("AskHolder", new ClientRequest.AskHolder(SHARD, 2, 10));
        samples.put("Done", new ClientReply.Done(SHARD, 2, 6, 13));
        samples.put(
                "Refused",
                new ClientReply.Refused(
                        SHARD, 2, 6, ClientReply.Refusal.NOT_LEADER, 3, 6, "node3 leads"));
        samples.put(
                "Data",
                new ClientReply.Data(
                        SHARD,
                        2,
                        9,
                        List.of(
                                new ClientReply.Run(16, 2, 0, Nonce.NONE, new byte[0]),
                                new ClientReply.Run(18, 1, 12, nonce, block))));
        samples.put("Holder", new ClientReply.Holder(SHARD, 2, 10, 2, true, "client-a"));
        return samples;
    }

    @Test
    void onlyAMovedWriteCanBeDoubtful() {
        Entry.Builder moved =
                Entry.builder(SHARD, EntryKind.WRITE)
                        .at(4, 7, 6)
                        .blocks(0, 64, 1)
                        .sealed(new Nonce(1, 21, 5), new byte[Blocks.SEALED_SIZE]);
        Entry doubtful = moved.flags(Entry.FLAG_MOVED | Entry.FLAG_DOUBTFUL).build();
        ByteBuffer record = ByteBuffer.allocate(doubtful.sizeBytes());
        record.put(doubtful.header()).put(doubtful.payload()).flip();
        assertThat(Entry.decode(record).isDoubtful()).isTrue();
        assertThat(moved.flags(Entry.FLAG_MOVED).build().isDoubtful()).isFalse();
        assertThatThrownBy(() -> moved.flags(Entry.FLAG_DOUBTFUL).build())
                .isInstanceOf(MalformedException.class);
        assertThatThrownBy(() ->
                        Entry.builder(SHARD, EntryKind.ZERO)
                                .at(4, 7, 6)
                                .blocks(0, 64, 2)
                                .flags(Entry.FLAG_MOVED | Entry.FLAG_DOUBTFUL)
                                .build())
                .isInstanceOf(MalformedException.class);
    }

    @Test
    void everyFlippedBitIsNoticed() {
        goldenMessages()
                .forEach((name, message) -> {
                    byte[] frame = encoded(message);
                    for (int bit = 0; bit < frame.length * 8; bit++) {
                        byte[] broken = frame.clone();
                        broken[bit / 8] ^= (byte) (1 << bit % 8);
                        assertThatThrownBy(() -> decoded(broken))
                                .as("%s bit %d", name, bit)
                                .isInstanceOf(MalformedException.class);
                    }
                });
    }

    @Test
    void aFlippedBitBehindARightChecksumIsRefusedOrMeansSomethingElse() {
        goldenMessages()
                .forEach((name, message) -> {
                    byte[] frame = encoded(message);
                    for (int bit = 8 * 8; bit < frame.length * 8; bit++) {
                        byte[] broken = frame.clone();
                        broken[bit / 8] ^= (byte) (1 << bit % 8);
                        refusedOrFaithful(name, resealed(broken));
                    }
                });
    }

    /** What decodes must encode to the very same bytes: no two frames mean the same. */
    private static void refusedOrFaithful(String name, byte[] frame) {
        PeerMessage message;
        try {
            message = decoded(frame);
        } catch (MalformedException e) {
            assertThat(e.getMessage()).as(name).isNotBlank();
            return;
        }
        assertThat(encoded(message)).as(name).isEqualTo(frame);
    }

    @Test
    void aFrameCutAnywhereIsRefused() {
        goldenMessages()
                .forEach((name, message) -> {
                    byte[] frame = encoded(message);
                    for (int length = 0; length < frame.length; length++) {
                        byte[] cut = Arrays.copyOf(frame, length);
                        assertThatThrownBy(() -> decoded(cut))
                                .as("%s cut at %d", name, length)
                                .isInstanceOf(MalformedException.class);
                        if (length >= PeerCodec.HEADER_SIZE) {
                            ByteBuffer.wrap(cut).putInt(0, length - 4);
                            byte[] sealed = resealed(cut);
                            assertThatThrownBy(() -> decoded(sealed))
                                    .as("%s made to end at %d", name, length)
                                    .isInstanceOf(MalformedException.class);
                        }
                    }
                });
    }

    @Test
    void bytesAfterTheFieldsAreRefused() {
        goldenMessages()
                .forEach((name, message) -> {
                    byte[] frame = encoded(message);
                    byte[] longer = Arrays.copyOf(frame, frame.length + 1);
                    ByteBuffer.wrap(longer).putInt(0, longer.length - 4);
                    assertThatThrownBy(() -> decoded(resealed(longer)))
                            .as(name)
                            .isInstanceOf(MalformedException.class);
                });
    }

    @Test
    void randomFieldsNeitherCrashNorAllocate() {
        Random random = new Random(SEED);
        for (int round = 0; round < 200_000; round++) {
            byte[] frame = new byte[PeerCodec.HEADER_SIZE + random.nextInt(120)];
            random.nextBytes(frame);
            ByteBuffer.wrap(frame).putInt(0, frame.length - 4);
            frame[8] = (byte) random.nextInt(40);
            if (random.nextBoolean()) {
                // Small numbers get past the first checks.
                for (int i = 9; i < frame.length; i++) {
                    frame[i] = (byte) (random.nextInt(4) == 0 ? random.nextInt(3) : 0);
                }
            }
            refusedOrFaithful("seed " + SEED + " round " + round, resealed(frame));
        }
    }

    @Test
    void errorsNameFieldAndValue() {
        byte[] promise =
                encoded(new ReplicaMessage.PromiseRequest(SHARD, 1, true, true, 1, 1, true));
        promise[9 + 8 + 8] = 2;
        assertThatThrownBy(() -> decoded(resealed(promise)))
                .hasMessageContaining("preliminary is 2");
        byte[] handOver = encoded(new ReplicaMessage.HandOver(SHARD, 1));
        handOver[9 + 8] = (byte) 0x80;
        assertThatThrownBy(() -> decoded(resealed(handOver))).hasMessageContaining("epoch is -");
        handOver[8] = 99;
        assertThatThrownBy(() -> decoded(resealed(handOver)))
                .hasMessageContaining("unknown message type 99");
        byte[] refused =
                encoded(new ClientReply.Refused(SHARD, 1, 1, ClientReply.Refusal.BUSY, 0, 0, "x"));
        refused[9 + 20] = 77;
        assertThatThrownBy(() -> decoded(resealed(refused)))
                .hasMessageContaining("unknown refusal 77");
        refused[9 + 20] = 1;
        refused[refused.length - 1] = (byte) 0xff;
        assertThatThrownBy(() -> decoded(resealed(refused)))
                .hasMessageContaining("text is not UTF-8");
        byte[] huge = encoded(new ReplicaMessage.HandOver(SHARD, 1));
        ByteBuffer.wrap(huge).putInt(0, Integer.MAX_VALUE);
        assertThatThrownBy(() -> decoded(huge)).hasMessageContaining("length is 2147483647");
    }

    @Test
    void entriesOfAnotherShardOrWithAGapAreRefused() {
        Entry other = Entry.builder(new ShardId(8, 0), EntryKind.NOOP).at(1, 1, 0).build();
        byte[] foreign =
                encoded(new ReplicaMessage.Append(SHARD, 1, 0, 0, 0, 0, false, 0, List.of(other)));
        assertThatThrownBy(() -> decoded(foreign)).hasMessageContaining("entries[0].shard is 8/0");
        Entry late = Entry.builder(SHARD, EntryKind.NOOP).at(1, 2, 0).build();
        byte[] gap =
                encoded(new ReplicaMessage.Append(SHARD, 1, 0, 0, 0, 0, false, 0, List.of(late)));
        assertThatThrownBy(() -> decoded(gap)).hasMessageContaining("entry sequence is 2");
    }

    @Test
    void whatIsTooLargeFailsAtItsSenderAndWritesNothing() {
        Entry noop = Entry.builder(SHARD, EntryKind.NOOP).at(1, 1, 0).build();
        List<PeerMessage> tooLarge =
                List.of(
                        new ReplicaMessage.InstallBegin(
                                SHARD, 1, 0, 1, 1, new byte[PeerCodec.MAX_STATE_BYTES + 1]),
                        new ReplicaMessage.Append(
                                SHARD,
                                1,
                                0,
                                0,
                                0,
                                0,
                                false,
                                0,
                                Collections.nCopies(PeerCodec.MAX_ENTRIES + 1, noop)),
                        new ReplicaMessage.Append(
                                SHARD,
                                1,
                                0,
                                0,
                                0,
                                0,
                                false,
                                0,
                                Collections.nCopies(16, largest(1))),
                        new ClientReply.Holder(SHARD, 1, 1, 1, true, "x".repeat(513)));
        for (PeerMessage message : tooLarge) {
            ByteBuf out = Unpooled.buffer();
            assertThatThrownBy(() -> PeerCodec.encode(message, out))
                    .isInstanceOf(IllegalStateException.class);
            assertThat(out.readableBytes()).isZero();
        }
    }

    private static Entry largest(long sequence) {
        return Entry.builder(SHARD, EntryKind.WRITE)
                .at(1, sequence, 0)
                .blocks(0, 0, Blocks.MAX_PER_ENTRY)
                .sealed(new Nonce(1, 1, 0), new byte[Entry.MAX_PAYLOAD])
                .build();
    }

    @Test
    void theLargestStateAndTheMostEntriesFit() {
        PeerMessage state =
                new ReplicaMessage.InstallBegin(
                        SHARD, 1, 0, 1, 1, new byte[PeerCodec.MAX_STATE_BYTES]);
        assertThat(Messages.same(decoded(encoded(state)), state)).isTrue();
        List<Entry> entries = new ArrayList<>();
        for (int i = 1; i <= PeerCodec.MAX_ENTRIES; i++) {
            entries.add(Entry.builder(SHARD, EntryKind.NOOP).at(1, i, 0).build());
        }
        byte[] frame = encoded(new ReplicaMessage.Append(SHARD, 1, 0, 0, 0, 0, false, 0, entries));
        assertThat(((ReplicaMessage.Append) decoded(frame)).entries())
                .hasSize(PeerCodec.MAX_ENTRIES);
    }

    @Test
    void fittingNeverExceedsAFrameAndTakesAtLeastOne() {
        List<Entry> entries = new ArrayList<>();
        for (int i = 1; i <= 40; i++) {
            entries.add(largest(i));
        }
        int count = PeerCodec.fitting(entries, 0, PeerCodec.MAX_FRAME);
        assertThat(count).isEqualTo(15);
        encoded(
                new ReplicaMessage.Append(
                        SHARD, 1, 0, 0, 0, 0, false, 0, entries.subList(0, count)));
        assertThat(PeerCodec.fitting(entries, 38, Integer.MAX_VALUE)).isEqualTo(2);
        assertThat(PeerCodec.fitting(entries, 0, 10)).isEqualTo(1);
        assertThat(PeerCodec.fitting(entries, 40, 10)).isZero();
    }

    @Test
    void aTextTooLongIsCutAtACharacter() {
        PeerMessage refused =
                new ClientReply.Refused(
                        SHARD, 1, 1, ClientReply.Refusal.HELD, 0, 0, "漢".repeat(500));
        if (decoded(encoded(refused)) instanceof ClientReply.Refused back) {
            assertThat(back.text()).isEqualTo("漢".repeat(PeerCodec.MAX_TEXT_BYTES / 3));
        } else {
            fail("another type came back");
        }
    }

    @Test
    void helloRoundTripsAndItsBytesAreFixed() {
        Hello hello =
                new Hello(
                        Hello.VERSION,
                        Hello.Role.NODE,
                        Hello.Verdict.OTHER_CLUSTER,
                        3,
                        9,
                        10,
                        "bö");
        ByteBuf out = Unpooled.buffer();
        hello.encode(out);
        assertThat(ByteBufUtil.hexDump(out))
                .isEqualTo(
                        "4846505200000003010200030000000300000000000000"
                                + "09000000000000000a62c3b6");
        byte[] bytes = ByteBufUtil.getBytes(out);
        for (int length = 0; length < bytes.length; length++) {
            assertThat(Hello.decode(Unpooled.wrappedBuffer(bytes, 0, length))).isNull();
        }
        out.writeByte(1);
        assertThat(Hello.decode(out)).isEqualTo(hello);
        assertThat(out.readableBytes()).isEqualTo(1);
    }

    @Test
    void aHelloOfAnotherVersionOrWithoutMagicIsToldFromTheFirstBytes() {
        Hello later =
                Hello.decode(Unpooled.wrappedBuffer(ByteBufUtil.decodeHexDump("4846505200000004")));
        assertThat(Objects.requireNonNull(later).version()).isEqualTo(4);
        assertThatThrownBy(
                        () -> Hello.decode(Unpooled.copiedBuffer("GET /", StandardCharsets.UTF_8)))
                .isInstanceOf(MalformedException.class)
                .hasMessageContaining("hello magic is 0x47455420");
    }
}
