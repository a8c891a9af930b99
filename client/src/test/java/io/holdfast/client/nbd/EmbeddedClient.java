package io.holdfast.client.nbd;

import static io.holdfast.proto.nbd.NbdProtocol.*;
import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.client.ClientIdentity;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.buffer.UnpooledByteBufAllocator;
import io.netty.channel.Channel;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOutboundBuffer;
import io.netty.channel.WriteBufferWaterMark;
import io.netty.channel.embedded.EmbeddedChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * A connection without a socket and the client's end of it, in one thread. Encodes and decodes by
 * itself, not with the code under test. {@link #close} fails if any buffer is left.
 */
final class EmbeddedClient implements AutoCloseable {
    /** Counts every byte that is not released. */
    final UnpooledByteBufAllocator allocator = new UnpooledByteBufAllocator(true, true);

    final MemoryExports exports;
    final RecordingEvents events = new RecordingEvents();
    final Wire channel = new Wire();
    final List<NbdConnection> closed = new ArrayList<>();
    private final ByteBuf received = Unpooled.buffer();
    private final NbdConnection[] connection = new NbdConnection[1];

    record OptionReply(int option, int type, byte[] data) {
        String text() {
            return new String(data, StandardCharsets.UTF_8);
        }
    }

    record Chunk(int flags, int type, long cookie, byte[] payload) {
        /** Of an error chunk. */
        int error() {
            return Unpooled.wrappedBuffer(payload).getInt(0);
        }
    }

    /** A socket that takes a given number of buffers, by default any. */
    static final class Wire extends EmbeddedChannel {
        private int capacity = Integer.MAX_VALUE;

        Wire() {
            super(false, false);
        }

        /** From now on takes {@code buffers} more. */
        void take(int buffers) {
            capacity = buffers;
            flush();
        }

        @Override
        protected void doWrite(ChannelOutboundBuffer out) {
            for (; capacity > 0 && out.current() != null; capacity--) {
                outboundMessages().add(((ByteBuf) out.current()).retain());
                out.remove();
            }
        }
    }

    EmbeddedClient(MemoryExports exports, NbdLimits limits) throws Exception {
        this(exports, limits, new ManualBudget(limits));
    }

    EmbeddedClient(MemoryExports exports, NbdLimits limits, ManualBudget shared) throws Exception {
        this.exports = exports;
        var service =
                new NbdService(
                        exports,
                        limits,
                        shared.budget,
                        _ -> new ClientIdentity("embedded"),
                        events,
                        shared::nanoTime);
        channel.config().setAllocator(allocator);
        int high = limits.outboundHighBytes();
        channel.config().setWriteBufferWaterMark(new WriteBufferWaterMark(high / 2, high));
        channel.pipeline()
                .addLast(
                        new ChannelInitializer<Channel>() {
                            @Override
                            protected void initChannel(Channel ch) {
                                connection[0] = new NbdConnection(ch, service, closed::add);
                                ch.pipeline().addLast(connection[0]);
                            }
                        });
        channel.register();
        channel.freezeTime();
    }

    /** With the handshake done and an export open. */
    static EmbeddedClient open(MemoryExports exports, String name, boolean structured)
            throws Exception {
        return open(exports, name, structured, NbdLimits.DEFAULT);
    }

    static EmbeddedClient open(
            MemoryExports exports, String name, boolean structured, NbdLimits limits)
            throws Exception {
        return open(exports, name, structured, limits, new ManualBudget(limits));
    }

    static EmbeddedClient open(
            MemoryExports exports,
            String name,
            boolean structured,
            NbdLimits limits,
            ManualBudget shared)
            throws Exception {
        var client = new EmbeddedClient(exports, limits, shared);
        client.greet(NBD_FLAG_C_FIXED_NEWSTYLE | NBD_FLAG_C_NO_ZEROES);
        if (structured) {
            client.option(NBD_OPT_STRUCTURED_REPLY);
            assertThat(client.optionReply().type()).isEqualTo(NBD_REP_ACK);
        }
        client.option(NBD_OPT_GO, exportQuery(name));
        assertThat(client.optionReply().type()).isEqualTo(NBD_REP_INFO);
        assertThat(client.optionReply().type()).isEqualTo(NBD_REP_ACK);
        return client;
    }

    NbdConnection connection() {
        return connection[0];
    }

    void greet(int flags) {
        assertThat(bytes(18).readLong()).isEqualTo(NBDMAGIC);
        send(Unpooled.buffer().writeInt(flags));
    }

    void option(int number) {
        option(number, Unpooled.EMPTY_BUFFER);
    }

    void option(int number, ByteBuf data) {
        send(
                Unpooled.buffer()
                        .writeLong(IHAVEOPT)
                        .writeInt(number)
                        .writeInt(data.readableBytes())
                        .writeBytes(data));
    }

    static ByteBuf exportQuery(String name, int... infoTypes) {
        byte[] text = name.getBytes(StandardCharsets.UTF_8);
        ByteBuf data = Unpooled.buffer().writeInt(text.length).writeBytes(text);
        data.writeShort(infoTypes.length);
        for (int type : infoTypes) {
            data.writeShort(type);
        }
        return data;
    }

    static ByteBuf metaQuery(String name, String... queries) {
        byte[] text = name.getBytes(StandardCharsets.UTF_8);
        ByteBuf data = Unpooled.buffer().writeInt(text.length).writeBytes(text);
        data.writeInt(queries.length);
        for (String query : queries) {
            byte[] queryText = query.getBytes(StandardCharsets.UTF_8);
            data.writeInt(queryText.length).writeBytes(queryText);
        }
        return data;
    }

    static ByteBuf header(int flags, int command, long cookie, long offset, long length) {
        return Unpooled.buffer()
                .writeInt(NBD_REQUEST_MAGIC)
                .writeShort(flags)
                .writeShort(command)
                .writeLong(cookie)
                .writeLong(offset)
                .writeInt((int) length);
    }

    void request(int flags, int command, long cookie, long offset, long length) {
        send(header(flags, command, cookie, offset, length));
    }

    void write(int flags, long cookie, long offset, byte[] payload) {
        send(header(flags, NBD_CMD_WRITE, cookie, offset, payload.length).writeBytes(payload));
    }

    /** Sends bytes; they are lost if the server has closed the connection. */
    void send(ByteBuf data) {
        if (!channel.isOpen()) {
            data.release();
            return;
        }
        ByteBuf copy = allocator.directBuffer(Math.max(1, data.readableBytes())).writeBytes(data);
        data.release();
        channel.writeInbound(copy);
        collect();
    }

    /** Runs what was scheduled for the loop, and takes what was sent. */
    void collect() {
        channel.runPendingTasks();
        for (ByteBuf out = channel.readOutbound(); out != null; out = channel.readOutbound()) {
            received.writeBytes(out);
            out.release();
        }
    }

    int available() {
        collect();
        return received.readableBytes();
    }

    ByteBuf bytes(int count) {
        collect();
        assertThat(received.readableBytes()).isGreaterThanOrEqualTo(count);
        var data = new byte[count];
        received.readBytes(data);
        return Unpooled.wrappedBuffer(data);
    }

    OptionReply optionReply() {
        ByteBuf head = bytes(20);
        assertThat(head.readLong()).isEqualTo(OPTION_REPLY_MAGIC);
        int option = head.readInt();
        int type = head.readInt();
        return new OptionReply(option, type, array(bytes(head.readInt())));
    }

    /** Expects a simple reply with this cookie, and returns its error. */
    int simpleReply(long cookie) {
        ByteBuf head = bytes(16);
        assertThat(Integer.toHexString(head.readInt())).isEqualTo("67446698");
        int error = head.readInt();
        assertThat(head.readLong()).isEqualTo(cookie);
        return error;
    }

    long simpleReplyCookie() {
        ByteBuf head = bytes(16);
        assertThat(Integer.toHexString(head.readInt())).isEqualTo("67446698");
        assertThat(head.readInt()).isZero();
        return head.readLong();
    }

    Chunk chunk() {
        ByteBuf head = bytes(20);
        assertThat(Integer.toHexString(head.readInt())).isEqualTo("668e33ef");
        int flags = head.readUnsignedShort();
        int type = head.readUnsignedShort();
        long cookie = head.readLong();
        return new Chunk(flags, type, cookie, array(bytes(head.readInt())));
    }

    boolean isOpen() {
        collect();
        return channel.isOpen();
    }

    static byte[] array(ByteBuf buffer) {
        var data = new byte[buffer.readableBytes()];
        buffer.readBytes(data);
        return data;
    }

    /** Disconnects, and checks that nothing is left behind. */
    @Override
    public void close() {
        var _ = channel.close();
        collect();
        assertThat(closed).hasSize(1);
        assertThat(events.opened).isEqualTo(1);
        assertThat(events.closed).isEqualTo(1);
        if (exports.devices.values().stream().allMatch(device -> device.waiting() == 0)) {
            assertNothingHeld();
        }
    }

    void assertNothingHeld() {
        collect();
        assertThat(allocator.metric().usedHeapMemory()).as("heap buffers").isZero();
        assertThat(allocator.metric().usedDirectMemory()).as("direct buffers").isZero();
        for (MemoryDevice device : exports.devices.values()) {
            assertThat(device.closes).as("devices closed").isEqualTo(device.opens);
        }
    }
}
