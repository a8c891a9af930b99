package io.holdfast.proto.nbd;

import static io.holdfast.proto.nbd.NbdProtocol.*;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.holdfast.proto.peer.MalformedException;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.util.List;
import java.util.Random;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** These bytes mean these messages; anything else is refused before it is trusted. */
class NbdCodecTest {
    @Test
    void greetingIsFixedNewstyleWithNoZeroes() {
        assertThat(hex(NbdHandshakeEncoder::greeting))
                .isEqualTo("4e42444d41474943" + "49484156454f5054" + "0003");
    }

    @Test
    void optionHeader() {
        assertThat(NbdOption.decode(bytes("49484156454f5054" + "00000007" + "fffffff0")))
                .isEqualTo(new NbdOption(NBD_OPT_GO, 0xfffffff0L));
        assertThatThrownBy(() -> NbdOption.decode(bytes("49484156454f5055" + "0000000700000000")))
                .isInstanceOf(MalformedException.class)
                .hasMessageContaining("49484156454f5055");
    }

    @Test
    void requestHeader() {
        String golden =
                "25609513" + "0001" + "0001" + "0102030405060708" + "8000000000000000" + "ffffffff";
        NbdRequest request = NbdRequest.decode(bytes(golden));
        assertThat(request)
                .isEqualTo(
                        new NbdRequest(
                                NBD_CMD_FLAG_FUA,
                                NBD_CMD_WRITE,
                                0x0102030405060708L,
                                Long.MIN_VALUE,
                                0xffffffffL));
        assertThat(request.has(NBD_CMD_FLAG_FUA)).isTrue();
        assertThat(request.has(NBD_CMD_FLAG_DF)).isFalse();
        assertThatThrownBy(() -> NbdRequest.decode(bytes("67446698" + golden.substring(8))))
                .isInstanceOf(MalformedException.class)
                .hasMessageContaining("67446698");
    }

    @Test
    void exportQuery() {
        String golden = "00000003" + "766f6c" + "0003" + "0000" + "0003" + "ffff";
        NbdExportQuery query = NbdExportQuery.decode(bytes(golden));
        assertThat(query).isEqualTo(new NbdExportQuery("vol", 1 | 1 << NBD_INFO_BLOCK_SIZE));
        assertThat(query.wants(NBD_INFO_BLOCK_SIZE)).isTrue();
        assertThat(query.wants(NBD_INFO_NAME)).isFalse();
        everyPrefixIsMalformed(golden, NbdExportQuery::decode);
        malformed(golden + "00", NbdExportQuery::decode);
        malformed("ffffffff" + golden.substring(8), NbdExportQuery::decode);
    }

    @Test
    void metaQuery() {
        String golden =
                "00000003"
                        + "766f6c"
                        + "00000002"
                        + "00000005"
                        + "626173653a"
                        + "00000002"
                        + "783a";
        assertThat(NbdMetaQuery.decode(bytes(golden)))
                .isEqualTo(new NbdMetaQuery("vol", List.of("base:", "x:")));
        everyPrefixIsMalformed(golden, NbdMetaQuery::decode);
        malformed(golden + "00", NbdMetaQuery::decode);
        malformed("00000003766f6c" + "ffffffff", NbdMetaQuery::decode);
    }

    @Test
    void stringsAreUtf8WithoutNulAndBounded() {
        assertThat(NbdStrings.read(bytes("c3a4"), 2, "name")).isEqualTo("ä");
        for (String bad : List.of("c3", "610062", "ff")) {
            ByteBuf in = bytes(bad);
            assertThatThrownBy(() -> NbdStrings.read(in, in.readableBytes(), "name"))
                    .isInstanceOf(MalformedException.class)
                    .hasMessageContaining("name");
        }
        ByteBuf tooLong = Unpooled.buffer().writeZero(MAX_STRING + 1);
        assertThatThrownBy(() -> NbdStrings.read(tooLong, MAX_STRING + 1, "name"))
                .isInstanceOf(MalformedException.class)
                .hasMessageContaining("4097");
    }

    @Test
    void optionReplies() {
        String magic = "0003e889045565a9";
        assertThat(hex(out -> NbdHandshakeEncoder.ack(out, NBD_OPT_LIST)))
                .isEqualTo(magic + "00000003" + "00000001" + "00000000");
        assertThat(hex(out -> NbdHandshakeEncoder.server(out, NBD_OPT_LIST, "ä")))
                .isEqualTo(magic + "00000003" + "00000002" + "00000006" + "00000002" + "c3a4");
        assertThat(hex(out -> NbdHandshakeEncoder.error(out, 99, NBD_REP_ERR_UNSUP, "no")))
                .isEqualTo(magic + "00000063" + "80000001" + "00000002" + "6e6f");
        assertThat(hex(out -> NbdHandshakeEncoder.infoExport(out, NBD_OPT_GO, 4096, 0x56d)))
                .isEqualTo(
                        magic
                                + "00000007"
                                + "00000003"
                                + "0000000c"
                                + "0000"
                                + "0000000000001000"
                                + "056d");
        assertThat(hex(out -> NbdHandshakeEncoder.infoText(out, NBD_OPT_GO, NBD_INFO_NAME, "ä")))
                .isEqualTo(magic + "00000007" + "00000003" + "00000004" + "0001" + "c3a4");
        assertThat(hex(out -> NbdHandshakeEncoder.infoBlockSize(out, 7, 1, 4096, MAX_PAYLOAD)))
                .isEqualTo(
                        magic
                                + "00000007"
                                + "00000003"
                                + "0000000e"
                                + "0003"
                                + "00000001"
                                + "00001000"
                                + "02000000");
    }

    @Test
    void exportNameReplyHasZeroesUnlessWaived() {
        String head = "0000000000001000" + "0001";
        assertThat(hex(out -> NbdHandshakeEncoder.exportName(out, 4096, 1, true))).isEqualTo(head);
        assertThat(hex(out -> NbdHandshakeEncoder.exportName(out, 4096, 1, false)))
                .isEqualTo(head + "00".repeat(124));
    }

    @Test
    void repliesOfTheTransmissionPhase() {
        long cookie = 0x0102030405060708L;
        assertThat(hex(out -> NbdReplyEncoder.simple(out, cookie, NBD_EINVAL)))
                .isEqualTo("67446698" + "00000016" + "0102030405060708");
        assertThat(hex(out -> NbdReplyEncoder.none(out, cookie)))
                .isEqualTo("668e33ef" + "0001" + "0000" + "0102030405060708" + "00000000");
        assertThat(hex(out -> NbdReplyEncoder.offsetData(out, cookie, 4096, 512)))
                .isEqualTo(
                        "668e33ef"
                                + "0001"
                                + "0001"
                                + "0102030405060708"
                                + "00000208"
                                + "0000000000001000");
        assertThat(hex(out -> NbdReplyEncoder.error(out, cookie, NBD_ENOSPC, "no")))
                .isEqualTo(
                        "668e33ef"
                                + "0001"
                                + "8001"
                                + "0102030405060708"
                                + "00000008"
                                + "0000001c"
                                + "0002"
                                + "6e6f");
    }

    @Test
    void longErrorMessagesAreCutBetweenCharacters() {
        ByteBuf out = Unpooled.buffer();
        NbdReplyEncoder.error(out, 1, NBD_EIO, "x" + "ä".repeat(MAX_STRING));
        assertThat(out.readableBytes()).isEqualTo(NbdReplyEncoder.CHUNK_SIZE + 6 + MAX_STRING - 1);
    }

    /** Whatever arrives, a decoder returns or says that it is malformed. */
    @Test
    void randomDataNeverBreaksADecoder() {
        var random = new Random(20261130);
        for (int i = 0; i < 20_000; i++) {
            var data = new byte[random.nextInt(40)];
            random.nextBytes(data);
            if (data.length > 4 && random.nextBoolean()) {
                data[0] = 0;
                data[1] = 0;
                data[2] = 0;
                data[3] = (byte) random.nextInt(data.length);
            }
            decodeOrRefuse(NbdExportQuery::decode, data);
            decodeOrRefuse(NbdMetaQuery::decode, data);
        }
    }

    private static void decodeOrRefuse(Consumer<ByteBuf> decoder, byte[] data) {
        try {
            decoder.accept(Unpooled.wrappedBuffer(data));
        } catch (MalformedException e) {
            assertThat(e).hasMessageMatching("(?s).+");
        }
    }

    private static void everyPrefixIsMalformed(String golden, Consumer<ByteBuf> decoder) {
        for (int end = 0; end < golden.length(); end += 2) {
            malformed(golden.substring(0, end), decoder);
        }
    }

    private static void malformed(String hex, Consumer<ByteBuf> decoder) {
        assertThatThrownBy(() -> decoder.accept(bytes(hex)))
                .as(hex)
                .isInstanceOf(MalformedException.class);
    }

    private static ByteBuf bytes(String hex) {
        return Unpooled.wrappedBuffer(ByteBufUtil.decodeHexDump(hex));
    }

    private static String hex(Consumer<ByteBuf> encoder) {
        ByteBuf out = Unpooled.buffer();
        encoder.accept(out);
        return ByteBufUtil.hexDump(out);
    }
}
