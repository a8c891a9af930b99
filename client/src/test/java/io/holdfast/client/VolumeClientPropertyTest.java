package io.holdfast.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.client.BlockDevice.Outcome;
import io.holdfast.proto.catalogue.Volume.Attach;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/**
 * Random calls of one to three clients over a bad network with moving leaders, against an array of
 * bytes. No two calls that are under way touch the same byte, many touch the same block; so every
 * byte has one right value, unless its last write failed in doubt. A failure names the seed; {@code
 * run(seed)} repeats it.
 */
final class VolumeClientPropertyTest {
    private static final int SEEDS = Integer.getInteger("holdfast.seeds", 100);
    private static final int CALLS = 150;
    private static final int MAX_UNDER_WAY = 8;
    private static final int TIMEOUT_SECONDS = 5;

    /** What happened in all runs together: a branch that is never reached is a gap. */
    private static final class Reached implements ClientEvents {
        int repeated;
        int timedOut;
        int conflicts;
        int sessions;
        int claims;
        int readsChecked;

        @Override
        public void requestRepeated(int volume) {
            repeated++;
        }

        @Override
        public void requestTimedOut(int volume) {
            timedOut++;
        }

        @Override
        public void writeConflicted(int volume) {
            conflicts++;
        }

        @Override
        public void sessionOpened(int volume) {
            sessions++;
        }

        @Override
        public void claimGranted(int volume, long generation) {
            claims++;
        }

        @Override
        public void blockCorrupt(int volume, long block) {
            throw new AssertionError("block " + block + " does not open");
        }

        @Override
        public void replyMalformed(int volume, int node) {
            throw new AssertionError("malformed reply from " + node);
        }
    }

    private final Reached reached = new Reached();

    @Test
    void everyByteReadIsTheOneWrittenLast() {
        for (long seed = 1; seed <= SEEDS; seed++) {
            try {
                new Scenario(seed).run();
            } catch (AssertionError | RuntimeException e) {
                throw new AssertionError("seed " + seed + ": " + e.getMessage(), e);
            }
        }
        assertThat(reached.repeated).isGreaterThan(SEEDS);
        assertThat(reached.timedOut).isPositive();
        assertThat(reached.conflicts).isPositive();
        assertThat(reached.sessions).isGreaterThan(SEEDS);
        assertThat(reached.claims).isPositive();
        assertThat(reached.readsChecked).isGreaterThan(SEEDS);
    }

    @Test
    void aSeedIsARun() {
        for (long seed = 1; seed <= 5; seed++) {
            assertThat(new Scenario(seed).run()).isEqualTo(new Scenario(seed).run());
        }
    }

    private final class Scenario {
        private final Random random;
        private final ModelCluster cluster;
        private final List<VolumeClient> clients = new ArrayList<>();
        private final byte[] model;

        /** Client whose write of the byte failed in doubt, from 1; 0: the model is right. */
        private final int[] doubt;

        private final boolean[] busy;
        private final boolean mayEvict;
        private int underWay;

        Scenario(long seed) {
            random = new Random(seed * 31 + 7);
            int count = 1 + random.nextInt(3);
            Attach attach = count == 1 && random.nextBoolean() ? Attach.EXCLUSIVE : Attach.SHARED;
            cluster = new ModelCluster(seed, 1 + random.nextInt(3), attach, TIMEOUT_SECONDS);
            for (int i = 0; i < count; i++) {
                clients.add(cluster.client(i + 1, "client" + i, reached));
            }
            int size = (int) cluster.volume.sizeBytes();
            model = new byte[size];
            doubt = new int[size];
            busy = new boolean[size];
            mayEvict = random.nextInt(3) == 0;
        }

        long run() {
            for (int i = 0; i < CALLS; i++) {
                if (random.nextInt(12) == 0) {
                    fault();
                }
                call();
                if (underWay >= MAX_UNDER_WAY) {
                    cluster.runUntil(() -> underWay < MAX_UNDER_WAY, 2_000 * TIMEOUT_SECONDS);
                } else if (random.nextInt(4) == 0) {
                    cluster.pass(random.nextInt(50));
                }
            }
            heal();
            cluster.runUntil(() -> underWay == 0, 2_000 * TIMEOUT_SECONDS);
            for (int i = 0; i < clients.size(); i++) {
                read(i, 0, model.length);
                cluster.runUntil(() -> underWay == 0, 2_000 * TIMEOUT_SECONDS);
            }
            int[] open = {clients.size()};
            clients.forEach(client -> client.close(() -> open[0]--));
            cluster.runUntil(() -> open[0] == 0, 2_000);
            assertThat(cluster.shards).allMatch(shard -> shard.holder.isEmpty());
            cluster.pass(30_000);
            assertThat(cluster.step()).as("nothing is left to do").isFalse();
            return cluster.trace;
        }

        private void fault() {
            int shard = random.nextInt(cluster.leaders.length);
            int node = 1 + random.nextInt(3);
            switch (random.nextInt(9)) {
                case 0 -> cluster.loss = random.nextDouble() * 0.3;
                case 1 -> cluster.duplication = random.nextDouble() * 0.3;
                case 2 -> cluster.maxDelay = (1 + random.nextInt(100)) * ModelCluster.MS;
                case 3 -> cluster.busy = random.nextDouble() * 0.3;
                case 4 -> cluster.lead(shard, random.nextInt(4));
                case 5 -> {
                    cluster.lead(shard, node);
                    clients.forEach(client -> client.onLeader(shard, node, cluster.epochs[shard]));
                }
                case 6 -> {
                    if (cluster.down.size() < 2 && cluster.down.add(node)) {
                        clients.forEach(client -> client.onDisconnected(node));
                    }
                }
                case 7 -> heal();
                default -> {
                    if (mayEvict) {
                        cluster.shards.get(shard).evictAll();
                    } else {
                        clients.forEach(client -> client.onLeader(shard, node, 1));
                    }
                }
            }
        }

        private void heal() {
            List<Integer> back = List.copyOf(cluster.down);
            cluster.heal();
            back.forEach(node -> clients.forEach(client -> client.onConnected(node)));
        }

        private void call() {
            int who = random.nextInt(clients.size());
            int offset = random.nextInt(model.length);
            int most =
                    switch (random.nextInt(3)) {
                        case 0 -> 100;
                        case 1 -> 10_000;
                        default -> 100_000;
                    };
            if (random.nextInt(4) == 0) {
                offset &= -4096;
                most = 8192;
            }
            int length = Math.min(1 + random.nextInt(most), model.length - offset);
            if (random.nextInt(4) == 0 && length > 4096) {
                length &= -4096;
            }
            for (int i = offset; i < offset + length; i++) {
                if (busy[i] || (doubt[i] != 0 && doubt[i] != who + 1)) {
                    return;
                }
            }
            switch (random.nextInt(10)) {
                case 0, 1, 2 -> read(who, offset, length);
                case 3 -> {
                    underWay++;
                    clients.get(who)
                            .flush(outcome -> {
                                underWay--;
                                assertThat(outcome).isIn(Outcome.OK, Outcome.IO_ERROR);
                            });
                }
                case 4 -> zero(who, offset, length);
                default -> write(who, offset, length);
            }
        }

        private void write(int who, int offset, int length) {
            byte[] data = new byte[length];
            random.nextBytes(data);
            ByteBuf source =
                    random.nextBoolean()
                            ? Unpooled.wrappedBuffer(data)
                            : Unpooled.directBuffer(length).writeBytes(data);
            begin(offset, length);
            clients.get(who)
                    .write(
                            offset,
                            source,
                            random.nextBoolean(),
                            outcome -> {
                                source.release();
                                ended(who, offset, data, outcome);
                            });
        }

        private void zero(int who, int offset, int length) {
            begin(offset, length);
            clients.get(who)
                    .zero(
                            offset,
                            length,
                            random.nextBoolean(),
                            random.nextBoolean(),
                            outcome -> ended(who, offset, new byte[length], outcome));
        }

        private void begin(int offset, int length) {
            underWay++;
            Arrays.fill(busy, offset, offset + length, true);
        }

        private void ended(int who, int offset, byte[] data, Outcome outcome) {
            underWay--;
            int end = offset + data.length;
            Arrays.fill(busy, offset, end, false);
            assertThat(outcome).isIn(Outcome.OK, Outcome.IO_ERROR);
            Arrays.fill(doubt, offset, end, outcome == Outcome.OK ? 0 : who + 1);
            System.arraycopy(data, 0, model, offset, data.length);
        }

        private void read(int who, int offset, int length) {
            ByteBuf target =
                    random.nextBoolean()
                            ? Unpooled.buffer(length, length)
                            : Unpooled.directBuffer(length, length);
            begin(offset, length);
            clients.get(who)
                    .read(
                            offset,
                            target,
                            outcome -> {
                                underWay--;
                                Arrays.fill(busy, offset, offset + length, false);
                                if (outcome == Outcome.OK) {
                                    compare(offset, length, target);
                                } else {
                                    assertThat(outcome).isEqualTo(Outcome.IO_ERROR);
                                }
                                target.release();
                            });
        }

        private void compare(int offset, int length, ByteBuf target) {
            reached.readsChecked++;
            assertThat(target.readableBytes()).isEqualTo(length);
            byte[] bytes = ByteBufUtil.getBytes(target);
            for (int i = 0; i < length; i++) {
                if (doubt[offset + i] == 0 && bytes[i] != model[offset + i]) {
                    throw new AssertionError(
                            "byte "
                                    + (offset + i)
                                    + " (block "
                                    + (offset + i) / 4096
                                    + ") reads "
                                    + bytes[i]
                                    + " instead of "
                                    + model[offset + i]);
                }
            }
        }
    }
}
