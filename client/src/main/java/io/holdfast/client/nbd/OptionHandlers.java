package io.holdfast.client.nbd;

import static io.holdfast.proto.nbd.NbdProtocol.*;

import io.holdfast.client.BlockDevice;
import io.holdfast.proto.nbd.NbdExportQuery;
import io.holdfast.proto.nbd.NbdHandshakeEncoder;
import io.holdfast.proto.nbd.NbdMetaQuery;
import io.holdfast.proto.nbd.NbdOption;
import io.holdfast.proto.nbd.NbdStrings;
import io.holdfast.proto.peer.MalformedException;
import io.netty.buffer.ByteBuf;
import org.jspecify.annotations.Nullable;

/** One handler per option of section "Option types"; options without one are not supported. */
final class OptionHandlers {
    private OptionHandlers() {}

    /** Answers one option. */
    @FunctionalInterface
    interface Handler {
        /**
         * Sends replies, the last of them final, now or later.
         *
         * @param data all of the option's data, valid during the call
         * @throws MalformedException before any reply, when the data is not what it should be
         */
        void handle(Handshake handshake, NbdOption option, ByteBuf data);
    }

    static @Nullable Handler of(int option) {
        return switch (option) {
            case NBD_OPT_EXPORT_NAME -> OptionHandlers::exportName;
            case NBD_OPT_ABORT -> OptionHandlers::abort;
            case NBD_OPT_LIST -> OptionHandlers::list;
            case NBD_OPT_INFO -> OptionHandlers::info;
            case NBD_OPT_GO -> OptionHandlers::go;
            case NBD_OPT_STRUCTURED_REPLY -> OptionHandlers::structuredReply;
            case NBD_OPT_LIST_META_CONTEXT, NBD_OPT_SET_META_CONTEXT -> OptionHandlers::metaContext;
            default -> null;
        };
    }

    /** No error can be answered: whatever is wrong ends the connection. */
    private static void exportName(Handshake handshake, NbdOption option, ByteBuf data) {
        String name = NbdStrings.read(data, data.readableBytes(), "export name");
        handshake.open(
                name,
                opened -> {
                    if (opened.isEmpty()) {
                        handshake.abort("no export '" + name + "'");
                        return;
                    }
                    BlockDevice device = opened.get();
                    NbdHandshakeEncoder.exportName(
                            handshake.reply(EXPORT_NAME_ZEROES),
                            device.sizeBytes(),
                            flags(handshake, device.readOnly()),
                            handshake.noZeroes());
                    handshake.enterTransmission(name, device);
                });
    }

    /** Data is ignored, as the standard asks. */
    private static void abort(Handshake handshake, NbdOption option, ByteBuf data) {
        handshake.ack(option);
        handshake.closeAfterFlush();
    }

    private static void list(Handshake handshake, NbdOption option, ByteBuf data) {
        expectNoData(data);
        for (String name : handshake.exports().names(handshake.identity())) {
            NbdHandshakeEncoder.server(handshake.reply(MAX_STRING), option.number(), name);
        }
        handshake.ack(option);
    }

    private static void info(Handshake handshake, NbdOption option, ByteBuf data) {
        NbdExportQuery query = NbdExportQuery.decode(data);
        handshake.describe(
                query.name(),
                found -> {
                    if (found.isEmpty()) {
                        unknownExport(handshake, option, query.name());
                        return;
                    }
                    boolean readOnly = found.get().readOnly();
                    describe(handshake, option, query, found.get().sizeBytes(), readOnly);
                    handshake.ack(option);
                });
    }

    private static void go(Handshake handshake, NbdOption option, ByteBuf data) {
        NbdExportQuery query = NbdExportQuery.decode(data);
        handshake.open(
                query.name(),
                opened -> {
                    if (opened.isEmpty()) {
                        unknownExport(handshake, option, query.name());
                        return;
                    }
                    BlockDevice device = opened.get();
                    describe(handshake, option, query, device.sizeBytes(), device.readOnly());
                    handshake.ack(option);
                    handshake.enterTransmission(query.name(), device);
                });
    }

    private static void structuredReply(Handshake handshake, NbdOption option, ByteBuf data) {
        expectNoData(data);
        handshake.agreeOnStructuredReplies();
        handshake.ack(option);
    }

    /** There are no contexts to list or select yet, so a valid query ends in an empty list. */
    private static void metaContext(Handshake handshake, NbdOption option, ByteBuf data) {
        if (!handshake.structuredReplies()) {
            throw new MalformedException("metadata contexts need structured replies");
        }
        NbdMetaQuery query = NbdMetaQuery.decode(data);
        handshake.describe(
                query.export(),
                found -> {
                    if (found.isEmpty()) {
                        unknownExport(handshake, option, query.export());
                    } else {
                        handshake.ack(option);
                    }
                });
    }

    /** NBD_INFO_EXPORT always, the rest if it was asked for. */
    private static void describe(
            Handshake handshake,
            NbdOption option,
            NbdExportQuery query,
            long sizeBytes,
            boolean readOnly) {
        int to = option.number();
        NbdHandshakeEncoder.infoExport(
                handshake.reply(0), to, sizeBytes, flags(handshake, readOnly));
        if (query.wants(NBD_INFO_NAME)) {
            NbdHandshakeEncoder.infoText(
                    handshake.reply(MAX_STRING), to, NBD_INFO_NAME, query.name());
        }
        if (query.wants(NBD_INFO_DESCRIPTION)) {
            NbdHandshakeEncoder.infoText(
                    handshake.reply(MAX_STRING), to, NBD_INFO_DESCRIPTION, "Holdfast volume");
        }
        if (query.wants(NBD_INFO_BLOCK_SIZE)) {
            NbdHandshakeEncoder.infoBlockSize(
                    handshake.reply(0), to, MIN_BLOCK, PREFERRED_BLOCK, MAX_PAYLOAD);
        }
    }

    private static int flags(Handshake handshake, boolean readOnly) {
        return Transmission.flags(readOnly, handshake.structuredReplies());
    }

    private static void unknownExport(Handshake handshake, NbdOption option, String name) {
        handshake.error(option, NBD_REP_ERR_UNKNOWN, "no export '" + name + "'");
    }

    private static void expectNoData(ByteBuf data) {
        if (data.isReadable()) {
            throw new MalformedException(data.readableBytes() + " bytes of data, none expected");
        }
    }
}
