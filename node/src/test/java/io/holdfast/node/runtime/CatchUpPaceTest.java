package io.holdfast.node.runtime;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.node.runtime.DataLoop.CatchUpRates;
import java.util.Random;
import org.junit.jupiter.api.Test;

class CatchUpPaceTest {
    private static final long SECOND = 1_000_000_000L;
    private static final long RATE = 10L << 20;
    private static final long RATE_WITH_CLIENTS = 2L << 20;
    private static final long BURST = RATE / 5;

    private long now = 77 * SECOND;
    private final CatchUpPace pace =
            new CatchUpPace(new CatchUpRates(RATE, RATE_WITH_CLIENTS), now);

    /** Sends parts as {@link CatchUps} does, for as long as this; returns the bytes. */
    private long sendFor(long nanos, Random sizes) {
        long end = now + nanos;
        long sent = 0;
        while (now < end) {
            long wait = pace.waitNanos(now);
            if (wait > 0) {
                now += wait;
                continue;
            }
            int most = pace.partBytes();
            int bytes = sizes.nextInt(most + 1);
            pace.take(most);
            pace.giveBack(most - bytes);
            sent += bytes;
            now += sizes.nextInt(1_000_000);
        }
        return sent;
    }

    @Test
    void keepsTheRateOverAnyTimeAndUsesItUp() {
        for (int seed = 0; seed < 20; seed++) {
            long sent = sendFor(10 * SECOND, new Random(seed));
            assertThat(sent)
                    .as("seed %d", seed)
                    .isBetween(10 * RATE * 95 / 100, 10 * RATE + BURST + pace.partBytes());
        }
    }

    @Test
    void yieldsToClientsAndStillGoesOn() {
        pace.clients(true, now);
        assertThat(sendFor(10 * SECOND, new Random(1)))
                .isBetween(
                        10 * RATE_WITH_CLIENTS * 95 / 100,
                        10 * RATE_WITH_CLIENTS + BURST + pace.partBytes());
        pace.clients(false, now);
        assertThat(sendFor(10 * SECOND, new Random(2))).isGreaterThan(9 * RATE);
    }

    @Test
    void clientsNeverMakeItFasterThanItsRate() {
        CatchUpPace odd = new CatchUpPace(new CatchUpRates(RATE, 100 * RATE), now);
        odd.clients(true, now);
        odd.take(BURST + RATE);
        assertThat(odd.waitNanos(now)).isBetween(SECOND - 1000, SECOND + 1000);
    }

    @Test
    void aWaitIsAsLongAsItSays() {
        pace.take(5 * RATE);
        long wait = pace.waitNanos(now);
        assertThat(pace.waitNanos(now + wait / 2)).isPositive();
        assertThat(pace.waitNanos(now + wait)).isZero();
    }

    @Test
    void aLongPauseEarnsNoMoreThanABurst() {
        now += 1000 * SECOND;
        assertThat(pace.entriesBytes(now)).isEqualTo((int) BURST);
    }

    @Test
    void partsAreSmallWhereTheRateIs() {
        assertThat(pace.partBytes()).isEqualTo((int) (RATE / 10));
        pace.clients(true, now);
        assertThat(pace.partBytes()).isEqualTo((int) (RATE_WITH_CLIENTS / 10));
        CatchUpPace slow = new CatchUpPace(new CatchUpRates(1, 1), now);
        assertThat(slow.partBytes()).isEqualTo(CatchUpPace.MIN_PART_BYTES);
        CatchUpPace fast = new CatchUpPace(new CatchUpRates(16L << 30, 1), now);
        assertThat(fast.partBytes()).isEqualTo(CatchUpPace.MAX_PART_BYTES);
        assertThat(fast.entriesBytes(now)).isEqualTo(Integer.MAX_VALUE);
    }

    @Test
    void entriesWaitUntilThereIsEnoughForAFrame() {
        pace.takeEntries(BURST - 1);
        assertThat(pace.entriesBytes(now)).isZero();
        now += SECOND / 100;
        assertThat(pace.entriesBytes(now)).isGreaterThanOrEqualTo(CatchUpPace.MIN_PART_BYTES);
    }

    @Test
    void whatClientsWriteIsForEntriesOnTop() {
        pace.clients(true, now);
        pace.takeEntries(pace.entriesBytes(now));
        // A follower that lags gets what clients write, and so much more that it comes nearer.
        long sent = 0;
        for (int i = 0; i < 100; i++) {
            now += SECOND / 10;
            pace.earn(1 << 20);
            int may = pace.entriesBytes(now);
            pace.takeEntries(may);
            sent += may;
        }
        assertThat(sent - (100 << 20)).isBetween(9 * RATE_WITH_CLIENTS, 10 * RATE_WITH_CLIENTS);
        // Extents do not: they are not what clients write now.
        pace.take(1 << 20);
        pace.earn(1 << 30);
        assertThat(pace.waitNanos(now)).isPositive();
    }
}
