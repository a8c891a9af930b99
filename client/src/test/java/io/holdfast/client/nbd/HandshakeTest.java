package io.holdfast.client.nbd;

import static io.holdfast.client.nbd.EmbeddedClient.exportQuery;
import static io.holdfast.client.nbd.EmbeddedClient.metaQuery;
import static io.holdfast.proto.nbd.NbdProtocol.*;
import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.client.nbd.EmbeddedClient.OptionReply;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class HandshakeTest {
    private static final int SIZE = 1 << 20;
    private static final int BOTH = NBD_FLAG_C_FIXED_NEWSTYLE | NBD_FLAG_C_NO_ZEROES;
    private static final int BASE_FLAGS =
            NBD_FLAG_HAS_FLAGS
                    | NBD_FLAG_SEND_FLUSH
                    | NBD_FLAG_SEND_FUA
                    | NBD_FLAG_SEND_TRIM
                    | NBD_FLAG_SEND_WRITE_ZEROES
                    | NBD_FLAG_SEND_CACHE
                    | NBD_FLAG_CAN_MULTI_CONN;

    private final MemoryExports exports = new MemoryExports();

    @BeforeEach
    void addExports() {
        exports.add("a", SIZE, false);
        exports.add("b", SIZE, true);
        exports.add("secret", SIZE, false);
    }

    @Test
    void unknownClientFlagsCloseTheConnection() throws Exception {
        try (var client = new EmbeddedClient(exports, NbdLimits.DEFAULT)) {
            client.greet(BOTH | 1 << 2);
            assertThat(client.isOpen()).isFalse();
            assertThat(client.events.aborted).containsExactly("client flags 0x7");
        }
    }

    @Test
    void wrongOptionMagicClosesTheConnection() throws Exception {
        try (var client = greeted()) {
            client.send(Unpooled.buffer().writeLong(NBDMAGIC).writeLong(0));
            assertThat(client.isOpen()).isFalse();
        }
    }

    @Test
    void listNamesOnlyWhatTheClientMaySee() throws Exception {
        try (var client = greeted()) {
            client.option(NBD_OPT_LIST);
            assertThat(client.optionReply())
                    .satisfies(reply -> {
                        assertThat(reply.option()).isEqualTo(NBD_OPT_LIST);
                        assertThat(reply.type()).isEqualTo(NBD_REP_SERVER);
                        assertThat(ByteBufUtil.hexDump(reply.data())).isEqualTo("0000000161");
                    });
            assertThat(ByteBufUtil.hexDump(client.optionReply().data())).isEqualTo("0000000162");
            assertThat(client.optionReply().type()).isEqualTo(NBD_REP_ACK);
            assertThat(client.available()).isZero();
        }
    }

    @Test
    void listWithDataIsInvalidAndTheStreamGoesOn() throws Exception {
        try (var client = greeted()) {
            client.option(NBD_OPT_LIST, Unpooled.buffer().writeInt(1));
            assertThat(client.optionReply().type()).isEqualTo(NBD_REP_ERR_INVALID);
            client.option(NBD_OPT_STRUCTURED_REPLY, Unpooled.buffer().writeInt(1));
            assertThat(client.optionReply().type()).isEqualTo(NBD_REP_ERR_INVALID);
            client.option(NBD_OPT_STRUCTURED_REPLY);
            assertThat(client.optionReply().type()).isEqualTo(NBD_REP_ACK);
        }
    }

    @Test
    void unsupportedOptionsAreRefusedAndTheStreamGoesOn() throws Exception {
        try (var client = greeted()) {
            for (int option : new int[] {0, 4, NBD_OPT_STARTTLS, NBD_OPT_EXTENDED_HEADERS, -1}) {
                client.option(option, Unpooled.buffer().writeLong(7));
                OptionReply reply = client.optionReply();
                assertThat(reply.option()).isEqualTo(option);
                assertThat(reply.type()).isEqualTo(NBD_REP_ERR_UNSUP);
                assertThat(reply.text())
                        .isEqualTo(
                                "option %s is not supported"
                                        .formatted(Integer.toUnsignedString(option)));
            }
            client.option(NBD_OPT_ABORT);
            assertThat(client.optionReply().type()).isEqualTo(NBD_REP_ACK);
        }
    }

    @Test
    void abortIsAcknowledgedWhateverItsDataAndCloses() throws Exception {
        try (var client = greeted()) {
            client.option(NBD_OPT_ABORT, Unpooled.buffer().writeInt(5));
            assertThat(client.optionReply().type()).isEqualTo(NBD_REP_ACK);
            assertThat(client.isOpen()).isFalse();
        }
    }

    @Test
    void infoTellsWhatWasAskedForAndDoesNotOpenTheExport() throws Exception {
        try (var client = greeted()) {
            client.option(
                    NBD_OPT_INFO,
                    exportQuery(
                            "b",
                            NBD_INFO_BLOCK_SIZE,
                            NBD_INFO_NAME,
                            NBD_INFO_DESCRIPTION,
                            NBD_INFO_EXPORT,
                            77));
            assertThat(ByteBufUtil.hexDump(client.optionReply().data()))
                    .isEqualTo(
                            "0000"
                                    + "0000000000100000"
                                    + "%04x".formatted(BASE_FLAGS | NBD_FLAG_READ_ONLY));
            assertThat(ByteBufUtil.hexDump(client.optionReply().data())).isEqualTo("000162");
            assertThat(client.optionReply().text()).endsWith("Holdfast volume");
            assertThat(ByteBufUtil.hexDump(client.optionReply().data()))
                    .isEqualTo("0003" + "00000001" + "00001000" + "02000000");
            assertThat(client.optionReply().type()).isEqualTo(NBD_REP_ACK);
            assertThat(client.available()).isZero();
            assertThat(exports.device("b").opens).isZero();
        }
    }

    @Test
    void infoAndGoOfUnknownExportsAreRefusedAndTheStreamGoesOn() throws Exception {
        try (var client = greeted()) {
            for (int option : new int[] {NBD_OPT_INFO, NBD_OPT_GO}) {
                client.option(option, exportQuery("nope"));
                assertThat(client.optionReply().type()).isEqualTo(NBD_REP_ERR_UNKNOWN);
                client.option(option, exportQuery(""));
                assertThat(client.optionReply().type()).isEqualTo(NBD_REP_ERR_UNKNOWN);
                client.option(option, Unpooled.buffer().writeInt(100).writeShort(0));
                assertThat(client.optionReply().type()).isEqualTo(NBD_REP_ERR_INVALID);
            }
            client.option(NBD_OPT_GO, exportQuery("a"));
            assertThat(client.optionReply().type()).isEqualTo(NBD_REP_INFO);
            assertThat(client.optionReply().type()).isEqualTo(NBD_REP_ACK);
            client.request(0, NBD_CMD_READ, 9, 0, 16);
            assertThat(client.simpleReply(9)).isZero();
        }
    }

    @Test
    void dfIsOfferedOnlyAfterStructuredReplies() throws Exception {
        try (var client = greeted()) {
            client.option(NBD_OPT_INFO, exportQuery("a"));
            assertThat(flags(client.optionReply())).isEqualTo(BASE_FLAGS);
            client.optionReply();
            client.option(NBD_OPT_STRUCTURED_REPLY);
            client.optionReply();
            client.option(NBD_OPT_INFO, exportQuery("a"));
            assertThat(flags(client.optionReply())).isEqualTo(BASE_FLAGS | NBD_FLAG_SEND_DF);
        }
    }

    @Test
    void exportNameEntersTransmissionWithZeroesUnlessWaived() throws Exception {
        for (boolean waived : new boolean[] {true, false}) {
            try (var client = new EmbeddedClient(exports, NbdLimits.DEFAULT)) {
                client.greet(NBD_FLAG_C_FIXED_NEWSTYLE | (waived ? NBD_FLAG_C_NO_ZEROES : 0));
                client.option(NBD_OPT_EXPORT_NAME, text("a"));
                ByteBuf reply = client.bytes(waived ? 10 : 134);
                assertThat(reply.readLong()).isEqualTo(SIZE);
                assertThat(reply.readUnsignedShort()).isEqualTo(BASE_FLAGS);
                client.request(0, NBD_CMD_READ, 9, 0, 16);
                assertThat(client.simpleReply(9)).isZero();
            }
        }
    }

    @Test
    void exportNameThatCannotBeServedClosesTheConnection() throws Exception {
        for (ByteBuf name : new ByteBuf[] {text("nope"), text("a\0b"), text("x".repeat(5000))}) {
            try (var client = greeted()) {
                client.option(NBD_OPT_EXPORT_NAME, name);
                assertThat(client.isOpen()).isFalse();
                assertThat(client.available()).isZero();
            }
        }
    }

    @Test
    void metaContextNeedsStructuredRepliesAndSelectsNothing() throws Exception {
        try (var client = greeted()) {
            for (int option : new int[] {NBD_OPT_LIST_META_CONTEXT, NBD_OPT_SET_META_CONTEXT}) {
                client.option(option, metaQuery("a", "base:allocation"));
                assertThat(client.optionReply().type()).isEqualTo(NBD_REP_ERR_INVALID);
            }
            client.option(NBD_OPT_STRUCTURED_REPLY);
            client.optionReply();
            for (int option : new int[] {NBD_OPT_LIST_META_CONTEXT, NBD_OPT_SET_META_CONTEXT}) {
                client.option(option, metaQuery("a", "base:allocation", "x-nothing:"));
                assertThat(client.optionReply().type()).isEqualTo(NBD_REP_ACK);
                client.option(option, metaQuery("nope"));
                assertThat(client.optionReply().type()).isEqualTo(NBD_REP_ERR_UNKNOWN);
                client.option(option, Unpooled.buffer().writeInt(0).writeInt(99));
                assertThat(client.optionReply().type()).isEqualTo(NBD_REP_ERR_INVALID);
            }
        }
    }

    @Test
    void tooLongOptionsAreDrainedWithoutBufferingAndRefused() throws Exception {
        try (var client = greeted()) {
            int length = 100 << 20;
            client.send(
                    Unpooled.buffer().writeLong(IHAVEOPT).writeInt(NBD_OPT_LIST).writeInt(length));
            var piece = new byte[1 << 20];
            for (int sent = 0; sent < length; sent += piece.length) {
                client.send(Unpooled.copiedBuffer(piece));
                assertThat(held(client)).isLessThan(1 << 20);
            }
            assertThat(client.optionReply().type()).isEqualTo(NBD_REP_ERR_TOO_BIG);
            client.option(NBD_OPT_LIST);
            assertThat(client.optionReply().type()).isEqualTo(NBD_REP_SERVER);
        }
    }

    @Test
    void drainingHasALimitPerHandshake() throws Exception {
        try (var client = greeted()) {
            client.send(Unpooled.buffer().writeLong(IHAVEOPT).writeInt(NBD_OPT_LIST).writeInt(-1));
            assertThat(client.isOpen()).isFalse();
            assertThat(client.events.aborted).containsExactly("options of 4294967295 bytes");
        }
    }

    @Test
    void tooManyOptionsCloseTheConnection() throws Exception {
        try (var client = greeted()) {
            for (int i = 0; i < NbdLimits.DEFAULT.maxOptions(); i++) {
                client.option(99);
                assertThat(client.optionReply().type()).isEqualTo(NBD_REP_ERR_UNSUP);
            }
            client.option(99);
            assertThat(client.isOpen()).isFalse();
        }
    }

    @Test
    void slowHandshakesAreClosedAndFinishedOnesAreNot() throws Exception {
        Duration timeout = NbdLimits.DEFAULT.handshakeTimeout();
        try (var slow = new EmbeddedClient(exports, NbdLimits.DEFAULT)) {
            // Real time passes, too, and not always quickly.
            slow.channel.advanceTimeBy(timeout.toMillis() / 2, TimeUnit.MILLISECONDS);
            slow.channel.runScheduledPendingTasks();
            assertThat(slow.isOpen()).isTrue();
            slow.channel.advanceTimeBy(timeout.toMillis(), TimeUnit.MILLISECONDS);
            slow.channel.runScheduledPendingTasks();
            assertThat(slow.isOpen()).isFalse();
            assertThat(slow.events.aborted).containsExactly("handshake took too long");
        }
        try (var done = EmbeddedClient.open(exports, "a", false)) {
            done.channel.advanceTimeBy(timeout.toMillis() * 2, TimeUnit.MILLISECONDS);
            done.channel.runScheduledPendingTasks();
            assertThat(done.isOpen()).isTrue();
        }
    }

    @Test
    void requestsSentBeforeTheExportIsOpenAreKeptAndServed() throws Exception {
        exports.hold();
        try (var client = greeted()) {
            client.option(NBD_OPT_GO, exportQuery("a"));
            client.request(0, NBD_CMD_READ, 5, 0, 16);
            client.request(0, NBD_CMD_FLUSH, 6, 0, 0);
            assertThat(client.available()).isZero();
            assertThat(client.channel.config().isAutoRead()).isFalse();
            exports.release();
            assertThat(client.optionReply().type()).isEqualTo(NBD_REP_INFO);
            assertThat(client.optionReply().type()).isEqualTo(NBD_REP_ACK);
            assertThat(client.simpleReply(5)).isZero();
            client.bytes(16);
            assertThat(client.simpleReply(6)).isZero();
            assertThat(client.channel.config().isAutoRead()).isTrue();
        }
    }

    @Test
    void exportOpenedForAClientThatLeftIsClosed() throws Exception {
        exports.hold();
        var client = greeted();
        client.option(NBD_OPT_GO, exportQuery("a"));
        var _ = client.channel.close();
        client.collect();
        exports.release();
        assertThat(exports.device("a").opens).isEqualTo(1);
        client.close();
    }

    @Test
    void everyByteMayArriveAlone() throws Exception {
        try (var client = new EmbeddedClient(exports, NbdLimits.DEFAULT)) {
            client.bytes(18);
            ByteBuf all = Unpooled.buffer().writeInt(BOTH);
            ByteBuf query = exportQuery("a");
            all.writeLong(IHAVEOPT).writeInt(NBD_OPT_GO).writeInt(query.readableBytes());
            all.writeBytes(query);
            all.writeBytes(EmbeddedClient.header(0, NBD_CMD_WRITE, 3, 100, 5));
            all.writeBytes(new byte[] {1, 2, 3, 4, 5});
            while (all.isReadable()) {
                client.send(Unpooled.buffer().writeByte(all.readByte()));
            }
            client.optionReply();
            client.optionReply();
            assertThat(client.simpleReply(3)).isZero();
            assertThat(exports.device("a").contents())
                    .startsWith(new byte[100])
                    .containsSequence(1, 2, 3, 4, 5);
        }
    }

    private EmbeddedClient greeted() throws Exception {
        var client = new EmbeddedClient(exports, NbdLimits.DEFAULT);
        client.greet(BOTH);
        return client;
    }

    private static long held(EmbeddedClient client) {
        return client.allocator.metric().usedDirectMemory()
                + client.allocator.metric().usedHeapMemory();
    }

    private static int flags(OptionReply info) {
        return Unpooled.wrappedBuffer(info.data()).getUnsignedShort(10);
    }

    private static ByteBuf text(String text) {
        return Unpooled.copiedBuffer(text, StandardCharsets.UTF_8);
    }
}
