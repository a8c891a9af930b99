package io.holdfast.client.nbd;

import static io.holdfast.proto.nbd.NbdProtocol.*;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.buffer.Unpooled;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The memory for the data of all connections: who waits, who goes on, who has to leave. */
class PayloadBudgetTest {
    private static final int SIZE = MAX_PAYLOAD;
    private static final int MIB = 1 << 20;

    /** 48 MiB for large requests, 16 MiB for small ones. */
    private static final long BUDGET = 64L * MIB;

    private static final NbdLimits LIMITS = limits(BUDGET);
    private static final Duration GRACE = LIMITS.payloads().pressureGrace();
    private static final Duration STALL = LIMITS.payloads().stallLimit();

    private final ManualBudget shared = new ManualBudget(LIMITS);
    private final PayloadBudget budget = shared.budget;
    private final List<EmbeddedClient> clients = new ArrayList<>();

    @AfterEach
    void everythingComesBack() {
        for (EmbeddedClient client : clients) {
            client.exports.device("a").completeSome(new Random(1), Integer.MAX_VALUE);
            client.close();
            client.assertNothingHeld();
        }
        assertThat(budget.heldBytes()).isZero();
        assertThat(budget.small().pressed() || budget.large().pressed()).isFalse();
        shared.advance(GRACE);
        assertThat(shared.checkScheduled()).as("checks without anything held").isFalse();
    }

    @Test
    void aWriteThatDoesNotFitWaitsBeforeItHasABuffer() throws Exception {
        EmbeddedClient first = client();
        EmbeddedClient second = client();
        beginWrite(first, MAX_PAYLOAD, 2 * MIB);
        second.write(0, 2, 0, new byte[MAX_PAYLOAD]);
        assertThat(budget.heldBytes()).isEqualTo(MAX_PAYLOAD);
        assertThat(second.allocator.metric().usedHeapMemory()).isZero();
        assertThat(second.channel.config().isAutoRead()).isFalse();
        assertThat(second.connection().closing()).isFalse();

        shared.advance(Duration.ofMillis(7));
        first.send(Unpooled.buffer().writeZero(MAX_PAYLOAD - 2 * MIB));
        assertThat(first.simpleReply(1)).isZero();
        assertThat(second.simpleReply(2)).isZero();
        assertThat(second.channel.config().isAutoRead()).isTrue();
        assertThat(second.events.waitedNanos).containsExactly(Duration.ofMillis(7).toNanos());
        assertThat(first.events.waitedNanos).isEmpty();
    }

    @Test
    void readsWaitTooAndNobodyOvertakes() throws Exception {
        EmbeddedClient first = client();
        EmbeddedClient second = client();
        EmbeddedClient third = client();
        for (EmbeddedClient client : clients) {
            client.exports.device("a").hold();
        }
        first.request(0, NBD_CMD_READ, 1, 0, MAX_PAYLOAD);
        second.request(0, NBD_CMD_READ, 2, 0, MAX_PAYLOAD);
        third.request(0, NBD_CMD_READ, 3, 0, MIB); // would fit
        third.collect();
        assertThat(waiting(second)).isZero();
        assertThat(waiting(third)).isZero();
        assertThat(second.allocator.metric().usedDirectMemory()).isLessThan(MIB);

        complete(first);
        assertThat(first.available()).isEqualTo(16 + MAX_PAYLOAD);
        second.collect();
        third.collect();
        assertThat(waiting(second)).isEqualTo(1);
        assertThat(waiting(third)).isEqualTo(1);
        assertThat(budget.heldBytes()).isEqualTo(MAX_PAYLOAD + MIB);
        complete(third);
        complete(second);
    }

    @Test
    void smallRequestsDoNotQueueBehindLargeOnes() throws Exception {
        EmbeddedClient hostile = client();
        EmbeddedClient waiting = client();
        EmbeddedClient honest = client();
        beginWrite(hostile, MAX_PAYLOAD, 0);
        beginWrite(waiting, MAX_PAYLOAD, 0);
        assertThat(budget.large().pressed()).isTrue();
        for (int i = 0; i < 1000; i++) {
            honest.write(0, i, 0, new byte[4096]);
            assertThat(honest.simpleReply(i)).isZero();
        }
        honest.write(0, 1, 0, new byte[PayloadBudget.SMALL_REQUEST]);
        assertThat(honest.simpleReply(1)).isZero();
        assertThat(budget.small().pressed()).isFalse();
    }

    @Test
    void smallRequestsHaveTheirLimitToo() throws Exception {
        int fitting = (int) (BUDGET / PayloadBudget.SMALL_SHARE / PayloadBudget.SMALL_REQUEST);
        for (int i = 0; i <= fitting; i++) {
            beginWrite(client(PayloadBudget.SMALL_REQUEST), PayloadBudget.SMALL_REQUEST, 0);
        }
        assertThat(budget.heldBytes())
                .isEqualTo((long) fitting * PayloadBudget.SMALL_REQUEST)
                .isLessThanOrEqualTo(BUDGET);
        assertThat(budget.small().pressed()).isTrue();
        assertThat(budget.large().pressed()).isFalse();
    }

    @Test
    void aPayloadThatStopsComingEndsItsConnectionAtTheStallLimit() throws Exception {
        EmbeddedClient client = client();
        beginWrite(client, MAX_PAYLOAD, 5000);
        shared.advance(STALL.minusMillis(1));
        assertThat(client.isOpen()).isTrue();
        client.send(Unpooled.buffer().writeZero(1));
        shared.advance(STALL.minusMillis(1));
        assertThat(client.isOpen()).isTrue();
        shared.advance(GRACE);
        assertThat(client.isOpen()).isFalse();
        assertThat(client.events.evicted)
                .containsExactly(
                        "a: sent nothing for 600000 ms, and 5001 bytes of a payload of "
                                + MAX_PAYLOAD);
        assertThat(client.events.aborted).isEmpty();
    }

    @Test
    void withoutPressureASlowClientTakesItsTime() throws Exception {
        EmbeddedClient client = client();
        beginWrite(client, 4096, 0);
        for (int sent = 0; sent < 4096; sent++) {
            shared.advance(STALL.dividedBy(2));
            client.send(Unpooled.buffer().writeZero(1));
        }
        assertThat(client.simpleReply(1)).isZero();
        assertThat(client.events.evicted).isEmpty();
    }

    @Test
    void underPressureASlowPayloadGoesAndAFastOneStays() throws Exception {
        EmbeddedClient slow = client();
        EmbeddedClient fast = client();
        EmbeddedClient waiting = client();
        beginWrite(slow, MAX_PAYLOAD, 100);
        beginWrite(fast, 16 * MIB, 4 * MIB);
        shared.advance(GRACE.multipliedBy(2));
        assertThat(slow.isOpen()).isTrue();
        waiting.write(0, 3, 0, new byte[MIB]);
        assertThat(waiting.available()).isZero();

        shared.advance(LIMITS.payloads().checkPeriod());
        assertThat(slow.isOpen()).isFalse();
        assertThat(slow.events.evicted)
                .singleElement()
                .asString()
                .startsWith("a: sent 100 bytes of a payload of " + MAX_PAYLOAD)
                .endsWith("others wait");
        assertThat(waiting.simpleReply(3)).isZero();
        shared.advance(GRACE);
        assertThat(fast.isOpen()).isTrue();
        fast.send(Unpooled.buffer().writeZero(12 * MIB));
        assertThat(fast.simpleReply(1)).isZero();
    }

    @Test
    void underPressureALongPayloadMustBeDoneInTime() throws Exception {
        EmbeddedClient slow = client();
        beginWrite(slow, MAX_PAYLOAD, 0);
        beginWrite(client(), MAX_PAYLOAD, 0);
        // Above the lowest rate, but not such that 32 MiB come in 30 s.
        int perGrace = LIMITS.payloads().pressureBytesPerSecond() * 4;
        for (int i = 0; i < 3 && slow.isOpen(); i++) {
            slow.send(Unpooled.buffer().writeZero(perGrace));
            shared.advance(GRACE);
        }
        assertThat(slow.isOpen()).isFalse();
    }

    @Test
    void nobodyIsBlamedForTheTimeInWhichTheLoopStoodStill() throws Exception {
        EmbeddedClient sender = client();
        EmbeddedClient waiting = client();
        beginWrite(sender, MAX_PAYLOAD, 0);
        beginWrite(waiting, MAX_PAYLOAD, 0);
        shared.standStill(STALL.multipliedBy(2));
        assertThat(sender.isOpen()).isTrue();
        sender.send(Unpooled.buffer().writeZero(MAX_PAYLOAD));
        assertThat(sender.simpleReply(1)).isZero();
        waiting.collect();
        shared.advance(GRACE.multipliedBy(2));
        assertThat(waiting.isOpen()).isTrue();
    }

    @Test
    void pressureOnLargeRequestsIsNoneOnSmallOnes() throws Exception {
        EmbeddedClient large = client();
        EmbeddedClient small = client();
        beginWrite(large, MAX_PAYLOAD, 0);
        beginWrite(small, 4096, 0);
        beginWrite(client(), MAX_PAYLOAD, 0);
        shared.advance(GRACE.multipliedBy(2));
        assertThat(large.isOpen()).isFalse();
        assertThat(small.isOpen()).isTrue();
    }

    @Test
    void dataThatTheClientDoesNotTakeIsHeldAndEndsItsConnectionAtTheStallLimit() throws Exception {
        for (int length : new int[] {4096, MIB}) {
            EmbeddedClient client = client();
            client.channel.take(0);
            client.request(0, NBD_CMD_READ, 1, 0, length);
            client.collect();
            assertThat(budget.heldBytes()).isEqualTo(length);
            shared.advance(STALL.minus(GRACE));
            assertThat(client.isOpen()).isTrue();
            shared.advance(GRACE.multipliedBy(2));
            assertThat(client.isOpen()).isFalse();
            assertThat(client.events.evicted)
                    .containsExactly(
                            "a: took nothing for 600000 ms of %d bytes of data that wait for it"
                                    .formatted(length));
            assertThat(budget.heldBytes()).isZero();
        }
    }

    @Test
    void dataComeBackWhenTheClientTakesThem() throws Exception {
        EmbeddedClient client = client();
        client.channel.take(0);
        client.request(0, NBD_CMD_READ, 1, 0, MIB);
        client.collect();
        client.request(0, NBD_CMD_READ, 2, 0, MIB);
        client.request(0, NBD_CMD_READ, 3, 0, 4096);
        assertThat(client.available()).isZero();
        assertThat(budget.heldBytes()).isEqualTo(2 * MIB + 4096);
        client.channel.take(3); // head and data of the first one, and the mark after it
        client.collect();
        assertThat(budget.heldBytes()).isEqualTo(MIB + 4096);
        client.channel.take(Integer.MAX_VALUE);
        assertThat(client.available()).isEqualTo(3 * 16 + 2 * MIB + 4096);
        assertThat(budget.heldBytes()).isZero();
    }

    @Test
    void underPressureAClientThatDoesNotTakeItsDataGoes() throws Exception {
        EmbeddedClient hostile = client();
        EmbeddedClient waiting = client();
        hostile.channel.take(0);
        hostile.request(0, NBD_CMD_READ, 1, 0, MAX_PAYLOAD);
        hostile.collect();
        waiting.request(0, NBD_CMD_READ, 2, 0, MAX_PAYLOAD);
        shared.advance(GRACE.multipliedBy(2));
        assertThat(hostile.isOpen()).isFalse();
        assertThat(hostile.events.evicted).singleElement().asString().startsWith("a: took 0 bytes");
        assertThat(waiting.available()).isEqualTo(16 + MAX_PAYLOAD);
    }

    @Test
    void withoutPressureAClientTakesItsDataSlowly() throws Exception {
        EmbeddedClient client = client();
        client.channel.take(0);
        for (int cookie = 0; cookie < 10; cookie++) {
            client.request(0, NBD_CMD_READ, cookie, 0, MIB / 4);
            client.collect();
        }
        for (int i = 0; i < 30; i++) {
            shared.advance(STALL.dividedBy(2));
            client.channel.take(1);
            assertThat(client.isOpen()).isTrue();
        }
        assertThat(client.available()).isEqualTo(10 * (16 + MIB / 4));
        assertThat(budget.heldBytes()).isZero();
    }

    @Test
    void lostConnectionsGiveBackWhatTheyHadAndLeaveTheLine() throws Exception {
        EmbeddedClient holder = client();
        EmbeddedClient inLine = client();
        EmbeddedClient last = client();
        beginWrite(holder, MAX_PAYLOAD, 1000);
        beginWrite(inLine, MAX_PAYLOAD, 0);
        last.request(0, NBD_CMD_READ, 3, 0, MIB);
        var _ = inLine.channel.close();
        inLine.collect();
        assertThat(last.available()).isEqualTo(16 + MIB);
        beginWrite(last, MAX_PAYLOAD, 0);
        var _ = holder.channel.close();
        holder.collect();
        assertThat(budget.heldBytes()).as("granted, not begun").isEqualTo(MAX_PAYLOAD);
        var _ = last.channel.close();
        last.collect();
        assertThat(budget.heldBytes()).isZero();
    }

    @Test
    void whatTheDeviceWorksOnIsHeldUntilItCompletes() throws Exception {
        EmbeddedClient client = client();
        client.exports.device("a").hold();
        client.write(0, 1, 0, new byte[MIB]);
        client.request(0, NBD_CMD_READ, 2, 0, MIB);
        var _ = client.channel.close();
        client.collect();
        assertThat(budget.heldBytes()).isEqualTo(2 * MIB);
        complete(client);
        assertThat(budget.heldBytes()).isZero();
    }

    @Test
    void shutdownRefusesWhatWaits() throws Exception {
        EmbeddedClient holder = client();
        EmbeddedClient inLine = client();
        inLine.exports.device("a").hold();
        inLine.request(0, NBD_CMD_READ, 1, 0, 512);
        beginWrite(holder, MAX_PAYLOAD, 0);
        inLine.request(0, NBD_CMD_READ, 2, 0, MAX_PAYLOAD);
        inLine.connection().onShutdown();
        assertThat(inLine.simpleReply(2)).isEqualTo(NBD_ESHUTDOWN);
        complete(inLine);
        assertThat(inLine.simpleReply(1)).isZero();
        inLine.bytes(512);
        assertThat(inLine.isOpen()).isFalse();
    }

    @Test
    void repliesWithoutDataThatAreNotTakenPauseTheConnection() throws Exception {
        EmbeddedClient client = client();
        client.channel.take(0);
        int requests = 100_000;
        var burst = Unpooled.buffer();
        for (int cookie = 0; cookie < requests; cookie++) {
            burst.writeBytes(EmbeddedClient.header(0, NBD_CMD_CACHE, cookie, 0, 4096));
        }
        client.send(burst);
        assertThat(client.channel.config().isAutoRead()).isFalse();
        assertThat(client.events.done.size()).isLessThanOrEqualTo(2 * ReplyWriter.PLAIN_LIMIT / 16);
        client.channel.take(Integer.MAX_VALUE);
        for (int cookie = 0; cookie < requests; cookie++) {
            assertThat(client.simpleReply(cookie)).isZero();
        }
        assertThat(client.channel.config().isAutoRead()).isTrue();
    }

    @Test
    void aPausedConnectionGoesOnWhenDataBecomeReadyJustAsItsRepliesAreTaken() throws Exception {
        EmbeddedClient client = client();
        MemoryDevice device = client.exports.device("a");
        device.hold();
        client.request(0, NBD_CMD_READ, 1, 0, 4096);
        client.channel.take(0);
        int requests = 10_000;
        var burst = Unpooled.buffer();
        for (int i = 0; i < requests; i++) {
            burst.writeBytes(EmbeddedClient.header(0, NBD_CMD_CACHE, 2, 0, 4096));
        }
        client.send(burst);
        assertThat(client.channel.config().isAutoRead()).isFalse();
        device.completeSome(new Random(1), 1); // gathered, its flush is yet to run
        client.channel.take(Integer.MAX_VALUE);
        assertThat(client.available()).isEqualTo(16 * (requests + 1) + 4096);
        assertThat(client.channel.config().isAutoRead()).isTrue();
    }

    @Test
    void optionRepliesThatAreNotTakenPauseTheHandshake() throws Exception {
        var exports = new MemoryExports();
        for (int i = 0; i < 100; i++) {
            exports.add("export-" + i, 512, false);
        }
        try (var client = new EmbeddedClient(exports, LIMITS, shared)) {
            client.greet(NBD_FLAG_C_FIXED_NEWSTYLE | NBD_FLAG_C_NO_ZEROES);
            client.channel.take(0);
            for (int i = 0; i < 500; i++) {
                client.option(NBD_OPT_LIST);
            }
            assertThat(client.channel.config().isAutoRead()).isFalse();
            assertThat(client.allocator.metric().usedDirectMemory()).isLessThan(MIB);
        }
    }

    @Test
    void theBudgetTakesTheLargestRequestAtLeast() {
        NbdLimits.Payloads smallHeap = NbdLimits.Payloads.forHeap(16 * MIB);
        var budget = new PayloadBudget(smallHeap, () -> 0, _ -> {});
        assertThat(budget.large().tryTake(MAX_PAYLOAD)).isTrue();
        assertThat(budget.small().tryTake(PayloadBudget.SMALL_REQUEST)).isTrue();
        assertThat(NbdLimits.Payloads.forHeap(1L << 30).budgetBytes()).isEqualTo(256L * MIB);
        assertThatThrownBy(() -> limits(MAX_PAYLOAD)).isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    void whateverClientsDoTheBudgetHoldsAndEverythingEnds() throws Exception {
        int[] lengths = {512, 4096, 100_000, PayloadBudget.SMALL_REQUEST, 3 * MIB, 20 * MIB};
        for (int i = 0; i < 8; i++) {
            client().exports.device("a").hold();
        }
        for (long seed = 1; seed <= 4; seed++) {
            var random = new Random(seed);
            int[] sent = new int[clients.size()];
            for (int step = 0; step < 200; step++) {
                int which = random.nextInt(clients.size());
                EmbeddedClient client = clients.get(which);
                int length = lengths[random.nextInt(lengths.length)];
                switch (random.nextInt(4)) {
                    case 0 -> {
                        client.request(0, NBD_CMD_READ, 1, 0, length);
                        sent[which]++;
                    }
                    case 1 -> {
                        client.write(0, 1, 0, new byte[Math.min(length, 3 * MIB)]);
                        sent[which]++;
                    }
                    case 2 -> client.channel.take(random.nextInt(5));
                    default -> client.exports.device("a").completeSome(random, random.nextInt(4));
                }
                client.collect();
                assertThat(budget.heldBytes()).as("seed %d", seed).isBetween(0L, BUDGET);
            }
            boolean busy = true;
            for (int turn = 0; busy; turn++) {
                assertThat(turn).as("turns to the end, seed %d", seed).isLessThan(1000);
                busy = false;
                for (int which = 0; which < sent.length; which++) {
                    EmbeddedClient client = clients.get(which);
                    client.channel.take(Integer.MAX_VALUE);
                    complete(client);
                    client.bytes(client.available());
                    busy |= client.events.done.size() < sent[which];
                }
            }
            assertThat(budget.heldBytes()).as("seed %d", seed).isZero();
            clients.forEach(client -> client.events.done.clear());
        }
    }

    private EmbeddedClient client() throws Exception {
        return client(SIZE);
    }

    private EmbeddedClient client(int sizeBytes) throws Exception {
        var exports = new MemoryExports();
        exports.add("a", sizeBytes, false);
        EmbeddedClient client = EmbeddedClient.open(exports, "a", false, LIMITS, shared);
        clients.add(client);
        return client;
    }

    private static void beginWrite(EmbeddedClient client, int length, int sent) {
        client.request(0, NBD_CMD_WRITE, 1, 0, length);
        client.send(Unpooled.buffer().writeZero(sent));
    }

    private static int waiting(EmbeddedClient client) {
        return client.exports.device("a").waiting();
    }

    private static void complete(EmbeddedClient client) {
        client.exports.device("a").completeSome(new Random(1), Integer.MAX_VALUE);
        client.collect();
    }

    private static NbdLimits limits(long budgetBytes) {
        NbdLimits base = NbdLimits.DEFAULT;
        NbdLimits.Payloads usual = base.payloads();
        return TestLimits.ofServer(
                base.maxConnections(),
                base.shutdownGrace(),
                new NbdLimits.Payloads(
                        budgetBytes,
                        usual.stallLimit(),
                        usual.pressureGrace(),
                        usual.pressureBytesPerSecond(),
                        usual.pressureTime()));
    }
}
