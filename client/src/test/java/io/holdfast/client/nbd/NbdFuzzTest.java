package io.holdfast.client.nbd;

import static io.holdfast.proto.nbd.NbdProtocol.*;
import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.time.Duration;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Whatever a peer sends, nothing is thrown, kept or allocated without bound; each run ends with a
 * disconnect, after which every buffer is back and every device closed ({@link EmbeddedClient}
 * checks it). A failure names its seed.
 */
@Timeout(120)
class NbdFuzzTest {
    private static final int SIZE = 1 << 20;

    /** More than a connection may hold in these runs, bytes: one option, some payloads, replies. */
    private static final long MEMORY_BOUND = 8 << 20;

    private static final int FLAGS = NBD_FLAG_C_FIXED_NEWSTYLE | NBD_FLAG_C_NO_ZEROES;

    private static final NbdLimits LIMITS =
            new NbdLimits(
                    10,
                    Duration.ofSeconds(10),
                    100,
                    64 << 10,
                    1 << 20,
                    16,
                    1 << 20,
                    1 << 20,
                    Duration.ofSeconds(1),
                    NbdLimits.DEFAULT.payloads());

    @Test
    void randomBytes() throws Exception {
        for (long seed = 1; seed <= 300; seed++) {
            var random = new Random(seed);
            var data = new byte[random.nextInt(4000)];
            random.nextBytes(data);
            converse(seed, random, data);
        }
    }

    @Test
    void randomBytesAfterAValidHandshake() throws Exception {
        byte[] valid = conversation(new Random(0), 0);
        for (long seed = 1001; seed <= 1300; seed++) {
            var random = new Random(seed);
            byte[] data = Arrays.copyOf(valid, valid.length + random.nextInt(4000));
            for (int i = valid.length; i < data.length; i++) {
                data[i] = (byte) random.nextInt();
            }
            converse(seed, random, data);
        }
    }

    @Test
    void mutatedConversations() throws Exception {
        for (long seed = 2001; seed <= 2600; seed++) {
            var random = new Random(seed);
            byte[] data = conversation(random, 20);
            int mutations = 1 + random.nextInt(4);
            for (int i = 0; i < mutations; i++) {
                int at = random.nextInt(data.length);
                data[at] =
                        switch (random.nextInt(3)) {
                            case 0 -> (byte) random.nextInt();
                            case 1 -> (byte) (data[at] ^ 1 << random.nextInt(8));
                            default -> (byte) 0xff;
                        };
            }
            converse(seed, random, data);
        }
    }

    @Test
    void everyPrefixOfAConversation() throws Exception {
        byte[] data = conversation(new Random(3), 6);
        for (int end = 0; end <= data.length; end += end < 300 ? 1 : 7) {
            converse(end, new Random(end), Arrays.copyOf(data, end));
        }
    }

    /** Random valid requests against a model, with a device that completes in any order. */
    @Test
    void validRequestsGiveTheRightDataInWhateverOrderTheyComplete() throws Exception {
        for (long seed = 4001; seed <= 4040; seed++) {
            var random = new Random(seed);
            var exports = new MemoryExports();
            MemoryDevice device = exports.add("vol", SIZE, false);
            device.hold();
            boolean structured = random.nextBoolean();
            var model = new byte[SIZE];
            try (var client = EmbeddedClient.open(exports, "vol", structured, LIMITS)) {
                for (int round = 0; round < 20; round++) {
                    // Ranges of one round do not overlap, so that any order gives one result.
                    int slots = 1 + random.nextInt(40);
                    int slotSize = SIZE / slots;
                    var expected = new byte[slots][];
                    for (int slot = 0; slot < slots; slot++) {
                        int offset = slot * slotSize + random.nextInt(slotSize / 2);
                        int length = 1 + random.nextInt(Math.min(slotSize / 2, 60_000));
                        if (random.nextBoolean()) {
                            var data = new byte[length];
                            random.nextBytes(data);
                            System.arraycopy(data, 0, model, offset, length);
                            client.write(0, slot, offset, data);
                        } else {
                            expected[slot] = Arrays.copyOfRange(model, offset, offset + length);
                            client.request(0, NBD_CMD_READ, slot, offset, length);
                        }
                        device.completeSome(random, random.nextInt(3));
                    }
                    while (device.waiting() > 0) {
                        device.completeSome(random, 1 + random.nextInt(8));
                        client.collect();
                    }
                    for (int i = 0; i < slots; i++) {
                        checkReply(client, structured, expected, seed);
                    }
                    assertThat(client.available()).as("seed %d", seed).isZero();
                }
                assertThat(Arrays.equals(device.contents(), model)).as("seed %d", seed).isTrue();
            }
        }
    }

    private static void checkReply(
            EmbeddedClient client, boolean structured, byte[][] expected, long seed) {
        ByteBuf head = client.bytes(16);
        boolean chunk = head.readInt() == NBD_STRUCTURED_REPLY_MAGIC;
        int status = head.readInt();
        int cookie = (int) head.readLong();
        byte[] data = expected[cookie];
        assertThat(chunk).as("seed %d", seed).isEqualTo(structured && data != null);
        assertThat(status)
                .as("seed %d", seed)
                .isEqualTo(chunk ? NBD_REPLY_FLAG_DONE << 16 | NBD_REPLY_TYPE_OFFSET_DATA : 0);
        if (chunk) {
            client.bytes(4 + 8);
        }
        if (data != null) {
            assertThat(Arrays.equals(EmbeddedClient.array(client.bytes(data.length)), data))
                    .as("seed %d", seed)
                    .isTrue();
        }
    }

    /** Sends {@code data} in random pieces and leaves. */
    private static void converse(long seed, Random random, byte[] data) throws Exception {
        var exports = new MemoryExports();
        MemoryDevice device = exports.add("vol", SIZE, false);
        if (random.nextBoolean()) {
            device.hold();
        }
        var client = new EmbeddedClient(exports, LIMITS);
        try {
            for (int at = 0; at < data.length; ) {
                int piece = Math.min(data.length - at, 1 + random.nextInt(2000));
                client.send(Unpooled.copiedBuffer(data, at, piece));
                at += piece;
                device.completeSome(random, random.nextInt(3));
                long held =
                        client.allocator.metric().usedDirectMemory()
                                + client.allocator.metric().usedHeapMemory();
                assertThat(held).isLessThan(MEMORY_BOUND);
            }
            client.close();
            device.completeSome(random, Integer.MAX_VALUE);
            client.assertNothingHeld();
        } catch (Throwable e) {
            throw new AssertionError("seed " + seed, e);
        }
    }

    /** A whole session with random options and {@code requests} random requests, as bytes. */
    private static byte[] conversation(Random random, int requests) {
        ByteBuf out = Unpooled.buffer().writeInt(FLAGS);
        option(out, NBD_OPT_STRUCTURED_REPLY, Unpooled.EMPTY_BUFFER);
        option(out, NBD_OPT_LIST, Unpooled.EMPTY_BUFFER);
        option(out, NBD_OPT_INFO, EmbeddedClient.exportQuery("vol", NBD_INFO_BLOCK_SIZE));
        option(out, NBD_OPT_SET_META_CONTEXT, EmbeddedClient.metaQuery("vol", "base:allocation"));
        option(out, 77, Unpooled.buffer().writeZero(random.nextInt(100)));
        option(out, NBD_OPT_GO, EmbeddedClient.exportQuery("vol", NBD_INFO_NAME));
        for (int i = 0; i < requests; i++) {
            int command = random.nextInt(8);
            if (command == NBD_CMD_DISC) {
                command = NBD_CMD_WRITE;
            }
            int length = random.nextInt(5000);
            out.writeBytes(
                    EmbeddedClient.header(
                            random.nextInt(2), command, i, random.nextInt(SIZE), length));
            if (command == NBD_CMD_WRITE) {
                out.writeZero(length);
            }
        }
        return EmbeddedClient.array(out);
    }

    private static void option(ByteBuf out, int number, ByteBuf data) {
        out.writeLong(IHAVEOPT).writeInt(number).writeInt(data.readableBytes()).writeBytes(data);
    }
}
