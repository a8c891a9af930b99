package io.holdfast.client.nbd;

import static io.holdfast.proto.nbd.NbdProtocol.*;
import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.client.BlockDevice.Outcome;
import io.holdfast.client.nbd.EmbeddedClient.Chunk;
import io.holdfast.client.nbd.NbdEvents.Kind;
import io.netty.buffer.Unpooled;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;

class TransmissionTest {
    private static final int SIZE = 64 << 20;

    private final MemoryExports exports = new MemoryExports();
    private final MemoryDevice device = exports.add("a", SIZE, false);

    @Test
    void writesAndReadsWithSimpleReplies() throws Exception {
        try (var client = EmbeddedClient.open(exports, "a", false)) {
            for (int length : new int[] {1, 512, 4096, 32767, 32768, 1 << 20, MAX_PAYLOAD}) {
                byte[] data = random(length);
                client.write(0, length, 7, data);
                assertThat(client.simpleReply(length)).isZero();
                client.request(0, NBD_CMD_READ, length + 1, 7, length);
                assertThat(client.simpleReply(length + 1)).isZero();
                assertThat(Arrays.equals(EmbeddedClient.array(client.bytes(length)), data))
                        .isTrue();
            }
            assertThat(client.available()).isZero();
        }
    }

    @Test
    void readsWithOneDataChunkOnceStructuredRepliesAreAgreed() throws Exception {
        try (var client = EmbeddedClient.open(exports, "a", true)) {
            for (int length : new int[] {1, 4096, 65536, MAX_PAYLOAD}) {
                byte[] data = random(length);
                client.write(0, 1, 4096, data);
                assertThat(client.simpleReply(1)).isZero();
                for (int flags : new int[] {0, NBD_CMD_FLAG_DF}) {
                    client.request(flags, NBD_CMD_READ, 2, 4096, length);
                    Chunk chunk = client.chunk();
                    assertThat(chunk.flags()).isEqualTo(NBD_REPLY_FLAG_DONE);
                    assertThat(chunk.type()).isEqualTo(NBD_REPLY_TYPE_OFFSET_DATA);
                    assertThat(chunk.cookie()).isEqualTo(2);
                    assertThat(Unpooled.wrappedBuffer(chunk.payload()).readLong()).isEqualTo(4096);
                    assertThat(
                                    Arrays.equals(
                                            Arrays.copyOfRange(chunk.payload(), 8, length + 8),
                                            data))
                            .isTrue();
                }
            }
        }
    }

    @Test
    void fuaFlushTrimAndZeroesReachTheDevice() throws Exception {
        try (var client = EmbeddedClient.open(exports, "a", false)) {
            client.write(NBD_CMD_FLAG_FUA, 1, 0, random(8192));
            client.request(NBD_CMD_FLAG_FUA, NBD_CMD_TRIM, 2, 0, 1024);
            client.request(0, NBD_CMD_WRITE_ZEROES, 3, 1024, 1024);
            client.request(NBD_CMD_FLAG_NO_HOLE, NBD_CMD_WRITE_ZEROES, 4, 2048, 1024);
            client.request(0, NBD_CMD_FLUSH, 5, 0, 0);
            client.request(0, NBD_CMD_CACHE, 6, 0, 4096);
            for (int cookie = 1; cookie <= 6; cookie++) {
                assertThat(client.simpleReply(cookie)).isZero();
            }
            assertThat(device.fuaWrites).isEqualTo(2);
            assertThat(device.punches).isEqualTo(2);
            assertThat(device.keptZeroes).isEqualTo(1);
            assertThat(device.flushes).isEqualTo(1);
            assertThat(Arrays.copyOf(device.contents(), 3072)).isEqualTo(new byte[3072]);
            assertThat(device.contents()[3072 + 5]).isEqualTo(random(8192)[3072 + 5]);
            assertThat(client.events.done)
                    .extracting(RecordingEvents.Done::kind)
                    .containsExactly(
                            Kind.WRITE,
                            Kind.TRIM,
                            Kind.WRITE_ZEROES,
                            Kind.WRITE_ZEROES,
                            Kind.FLUSH,
                            Kind.CACHE);
        }
    }

    @Test
    void requestsOfNoBytesSucceedWithoutTheDevice() throws Exception {
        try (var client = EmbeddedClient.open(exports, "a", true)) {
            client.request(0, NBD_CMD_READ, 1, 0, 0);
            Chunk none = client.chunk();
            assertThat(none.type()).isEqualTo(NBD_REPLY_TYPE_NONE);
            assertThat(none.flags()).isEqualTo(NBD_REPLY_FLAG_DONE);
            for (int command : new int[] {NBD_CMD_WRITE, NBD_CMD_TRIM, NBD_CMD_WRITE_ZEROES}) {
                client.request(NBD_CMD_FLAG_FUA, command, 2, SIZE, 0);
                assertThat(client.simpleReply(2)).isZero();
            }
        }
        try (var client = EmbeddedClient.open(exports, "a", false)) {
            client.request(0, NBD_CMD_READ, 1, 0, 0);
            assertThat(client.simpleReply(1)).isZero();
            assertThat(client.available()).isZero();
        }
    }

    @Test
    void refusedRequestsLeaveTheStreamInStep() throws Exception {
        for (boolean structured : new boolean[] {false, true}) {
            try (var client = EmbeddedClient.open(exports, "a", structured)) {
                client.request(0, NBD_CMD_READ, 1, SIZE, 1);
                client.request(0, 77, 2, 0, 0);
                client.request(NBD_CMD_FLAG_FAST_ZERO, NBD_CMD_WRITE_ZEROES, 3, 0, 4096);
                client.write(0, 4, SIZE - 1, random(1000));
                client.write(1 << 9, 5, 0, random(1000));
                client.request(0, NBD_CMD_BLOCK_STATUS, 6, 0, 4096);
                client.request(0, NBD_CMD_FLUSH, 7, 0, 0);
                int[] errors = {NBD_EINVAL, NBD_EINVAL, NBD_EINVAL, NBD_ENOSPC, NBD_EINVAL, 22};
                for (int i = 0; i < errors.length; i++) {
                    if (structured) {
                        Chunk chunk = client.chunk();
                        assertThat(chunk.cookie()).isEqualTo(i + 1);
                        assertThat(chunk.type()).isEqualTo(NBD_REPLY_TYPE_ERROR);
                        assertThat(chunk.flags()).isEqualTo(NBD_REPLY_FLAG_DONE);
                        assertThat(chunk.error()).isEqualTo(errors[i]);
                    } else {
                        assertThat(client.simpleReply(i + 1)).isEqualTo(errors[i]);
                    }
                }
                assertThat(client.simpleReply(7)).isZero();
                assertThat(device.contents()).isEqualTo(new byte[SIZE]);
            }
        }
    }

    @Test
    void payloadOfARefusedWriteIsDrainedWithoutBufferingIt() throws Exception {
        try (var client = EmbeddedClient.open(exports, "a", false)) {
            int length = 100 << 20;
            client.request(0, NBD_CMD_WRITE, 1, 0, length);
            var piece = new byte[1 << 20];
            for (int sent = 0; sent < length; sent += piece.length) {
                assertThat(client.available()).isZero();
                client.send(Unpooled.copiedBuffer(piece));
                assertThat(client.allocator.metric().usedHeapMemory()).isZero();
            }
            assertThat(client.simpleReply(1)).isEqualTo(NBD_ENOSPC);
            client.request(0, NBD_CMD_FLUSH, 2, 0, 0);
            assertThat(client.simpleReply(2)).isZero();
        }
    }

    @Test
    void aHeaderAloneDoesNotCostThePayloadItAnnounces() throws Exception {
        try (var client = EmbeddedClient.open(exports, "a", false)) {
            client.request(0, NBD_CMD_WRITE, 1, 0, MAX_PAYLOAD);
            assertThat(client.allocator.metric().usedHeapMemory()).isLessThanOrEqualTo(1 << 20);
        }
    }

    @Test
    void payloadsUpToOneMebibyteHaveOneBufferFromTheStart() throws Exception {
        device.hold();
        try (var client = EmbeddedClient.open(exports, "a", false)) {
            client.request(0, NBD_CMD_WRITE, 1, 0, 1 << 20);
            assertThat(client.allocator.metric().usedHeapMemory()).isEqualTo(1 << 20);
            client.send(Unpooled.buffer().writeZero(1 << 20));
            assertThat(client.allocator.metric().usedHeapMemory()).isEqualTo(1 << 20);
            device.completeSome(new Random(1), 1);
        }
    }

    @Test
    void wrongMagicClosesTheConnection() throws Exception {
        try (var client = EmbeddedClient.open(exports, "a", false)) {
            client.request(0, NBD_CMD_FLUSH, 1, 0, 0);
            client.send(Unpooled.buffer().writeZero(28));
            assertThat(client.simpleReply(1)).isZero();
            assertThat(client.isOpen()).isFalse();
            assertThat(client.events.aborted).containsExactly("request magic 0x0");
        }
    }

    @Test
    void readOnlyExportsRefuseWrites() throws Exception {
        exports.add("ro", SIZE, true);
        try (var client = EmbeddedClient.open(exports, "ro", false)) {
            client.write(0, 1, 0, random(4096));
            assertThat(client.simpleReply(1)).isEqualTo(NBD_EPERM);
            client.request(0, NBD_CMD_TRIM, 2, 0, 4096);
            assertThat(client.simpleReply(2)).isEqualTo(NBD_EPERM);
        }
    }

    @Test
    void outcomesOfTheDeviceBecomeErrorsOfTheStandard() throws Exception {
        for (boolean structured : new boolean[] {false, true}) {
            try (var client = EmbeddedClient.open(exports, "a", structured)) {
                for (Outcome outcome : Outcome.values()) {
                    if (outcome == Outcome.OK) {
                        continue;
                    }
                    int error =
                            switch (outcome) {
                                case OK -> NBD_SUCCESS;
                                case IO_ERROR -> NBD_EIO;
                                case NOT_PERMITTED -> NBD_EPERM;
                                case NO_SPACE -> NBD_ENOSPC;
                                case SHUTTING_DOWN -> NBD_ESHUTDOWN;
                            };
                    device.failWith(outcome);
                    client.request(0, NBD_CMD_READ, 1, 0, 4096);
                    client.write(0, 1, 0, random(10));
                    for (int i = 0; i < 2; i++) {
                        assertThat(structured ? client.chunk().error() : client.simpleReply(1))
                                .isEqualTo(error);
                    }
                }
                device.failWith(null);
            }
        }
    }

    @Test
    void repliesGoOutInTheOrderOfCompletion() throws Exception {
        device.hold();
        try (var client = EmbeddedClient.open(exports, "a", false)) {
            for (int cookie = 0; cookie < 100; cookie++) {
                client.write(0, cookie, cookie * 10L, random(10));
            }
            assertThat(device.waiting()).isEqualTo(100);
            assertThat(client.available()).isZero();
            device.completeSome(new Random(4), 100);
            Set<Long> seen = new HashSet<>();
            long previous = -1;
            boolean outOfOrder = false;
            for (int i = 0; i < 100; i++) {
                long cookie = client.simpleReplyCookie();
                outOfOrder |= cookie < previous;
                previous = cookie;
                seen.add(cookie);
            }
            assertThat(seen).hasSize(100);
            assertThat(outOfOrder).isTrue();
        }
    }

    @Test
    void requestsInFlightAreBoundedAndReadingPauses() throws Exception {
        device.hold();
        var random = new Random(5);
        NbdLimits limits = limits(8, MAX_PAYLOAD);
        try (var client = EmbeddedClient.open(exports, "a", false, limits)) {
            var burst = Unpooled.buffer();
            for (int cookie = 0; cookie < 1000; cookie++) {
                burst.writeBytes(EmbeddedClient.header(0, NBD_CMD_READ, cookie, 0, 512));
            }
            client.send(burst);
            assertThat(device.waiting()).isEqualTo(8);
            assertThat(client.channel.config().isAutoRead()).isFalse();
            int replies = 0;
            while (replies < 1000) {
                device.completeSome(random, 1 + random.nextInt(3));
                while (client.available() > 0) {
                    client.simpleReplyCookie();
                    client.bytes(512);
                    replies++;
                }
            }
            assertThat(device.mostWaiting).isEqualTo(8);
            assertThat(client.channel.config().isAutoRead()).isTrue();
        }
    }

    @Test
    void bytesInFlightAreBounded() throws Exception {
        device.hold();
        NbdLimits limits = limits(1000, 1 << 20);
        try (var client = EmbeddedClient.open(exports, "a", false, limits)) {
            var burst = Unpooled.buffer();
            for (int cookie = 0; cookie < 64; cookie++) {
                burst.writeBytes(EmbeddedClient.header(0, NBD_CMD_READ, cookie, 0, 256 << 10));
            }
            client.send(burst);
            assertThat(device.waiting()).isEqualTo(4);
            device.completeSome(new Random(6), 1);
            assertThat(device.waiting()).isEqualTo(3);
            device.completeSome(new Random(6), 1);
            assertThat(device.waiting()).isEqualTo(4);
            while (device.waiting() > 0) {
                device.completeSome(new Random(6), 1);
                client.collect();
            }
            assertThat(client.available()).isEqualTo(64 * (16 + (256 << 10)));
        }
    }

    @Test
    void disconnectWaitsForWhatIsUnderWay() throws Exception {
        device.hold();
        try (var client = EmbeddedClient.open(exports, "a", false)) {
            client.write(0, 1, 0, random(4096));
            client.request(0, NBD_CMD_DISC, 2, 0, 0);
            client.request(0, NBD_CMD_READ, 3, 0, 512);
            assertThat(client.isOpen()).isTrue();
            assertThat(device.waiting()).isEqualTo(1);
            device.completeSome(new Random(7), 1);
            assertThat(client.simpleReply(1)).isZero();
            assertThat(client.isOpen()).isFalse();
            assertThat(client.available()).isZero();
            assertThat(device.closes).isEqualTo(1);
        }
    }

    @Test
    void lostConnectionFreesEverythingAndClosesTheDeviceLast() throws Exception {
        device.hold();
        var client = EmbeddedClient.open(exports, "a", false);
        client.write(0, 1, 0, random(4096));
        client.request(0, NBD_CMD_READ, 2, 0, 1 << 20);
        client.request(0, NBD_CMD_WRITE, 3, 0, 1 << 20);
        client.send(Unpooled.buffer().writeZero(5000));
        client.close();
        assertThat(device.closes).isZero();
        device.completeSome(new Random(8), 1);
        assertThat(device.closes).isZero();
        device.completeSome(new Random(8), 1);
        assertThat(device.closes).isEqualTo(1);
        client.assertNothingHeld();
        assertThat(client.events.done).isEmpty();
    }

    @Test
    void shutdownAnswersNewRequestsAndEndsAfterTheLastOne() throws Exception {
        device.hold();
        try (var client = EmbeddedClient.open(exports, "a", false)) {
            client.write(0, 1, 0, random(4096));
            client.connection().onShutdown();
            assertThat(client.isOpen()).isTrue();
            client.write(0, 2, 0, random(4096));
            assertThat(client.simpleReply(2)).isEqualTo(NBD_ESHUTDOWN);
            device.completeSome(new Random(9), 1);
            assertThat(client.simpleReply(1)).isZero();
            assertThat(client.isOpen()).isFalse();
        }
    }

    private static NbdLimits limits(int requests, long bytes) {
        return TestLimits.ofConnection(requests, bytes, Duration.ofSeconds(1));
    }

    private static byte[] random(int length) {
        var data = new byte[length];
        new Random(length).nextBytes(data);
        return data;
    }
}
