package io.holdfast.node.runtime;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.holdfast.node.replica.Effect.SendExtents;
import io.holdfast.node.runtime.CatchUpProgress.By;
import io.holdfast.proto.peer.ReplicaMessage.Cursor;
import java.util.OptionalLong;
import java.util.Random;
import org.junit.jupiter.api.Test;

class CatchUpTest {
    private static final long LOOK = 100_000_000L;
    private static final long ENTRY = 1000;

    private long now;

    private static SendExtents ask(long base, long since, long block) {
        return new SendExtents(3, 1, base, since, new Cursor(0, block));
    }

    private CatchUpProgress look(CatchUp catchUp, long has, long last) {
        now += LOOK;
        catchUp.look(has, last, now);
        return catchUp.progress();
    }

    @Test
    void entriesAreCountedBySequenceAndInBytesByTheirMeanSize() {
        CatchUp catchUp = new CatchUp(3, 1000, 2000);
        catchUp.sent(10, 10 * ENTRY);
        look(catchUp, 1000, 2000);
        CatchUpProgress half = look(catchUp, 1500, 2000);
        assertThat(half.by()).isEqualTo(By.ENTRIES);
        assertThat(half.node()).isEqualTo(3);
        assertThat(half.percent()).isEqualTo(50);
        assertThat(half.doneBytes()).isEqualTo(500 * ENTRY);
        assertThat(half.totalBytes()).hasValue(1000 * ENTRY);
        assertThat(half.bytesPerSecond()).isEqualTo(5000 * ENTRY);
        assertThat(half.secondsLeft()).hasValue(1);
    }

    @Test
    void timeLeftIsByWhatIsLeftAndNotByWhatIsMoved() {
        CatchUp catchUp = new CatchUp(3, 0, 1000);
        catchUp.sent(1, ENTRY);
        look(catchUp, 0, 1000);
        // As fast as clients write: it never ends, at this pace.
        CatchUpProgress losing = look(catchUp, 100, 1100);
        assertThat(losing.bytesPerSecond()).isEqualTo(1000 * ENTRY);
        assertThat(losing.secondsLeft()).isEmpty();
        assertThat(look(catchUp, 300, 1200).secondsLeft()).isEqualTo(OptionalLong.of(2));
    }

    @Test
    void extentsAreCountedWhenTheNextPartIsAskedFor() {
        CatchUp catchUp = new CatchUp(3, 10, 100);
        assertThat(catchUp.asks(ask(100, 10, 0))).as("to be measured").isTrue();
        CatchUpProgress unknown = look(catchUp, 10, 100);
        assertThat(unknown.by()).isEqualTo(By.EXTENTS);
        assertThat(unknown.percent()).isZero();
        assertThat(unknown.totalBytes()).isEmpty();
        assertThat(unknown.secondsLeft()).isEmpty();

        catchUp.sent(ask(100, 10, 0), 250_000);
        catchUp.measured(10, 1_000_000);
        assertThat(look(catchUp, 10, 100).percent()).isZero();
        assertThat(catchUp.asks(ask(100, 10, 64))).isFalse();
        CatchUpProgress quarter = look(catchUp, 10, 100);
        assertThat(quarter.percent()).isEqualTo(25);
        assertThat(quarter.totalBytes()).hasValue(1_000_000);

        // Sent again, since the first one or its answer was lost.
        catchUp.sent(ask(100, 10, 64), 750_000);
        catchUp.asks(ask(100, 10, 64));
        catchUp.sent(ask(100, 10, 64), 750_000);
        assertThat(look(catchUp, 10, 100).percent()).isEqualTo(25);
        CatchUpProgress there = look(catchUp, 100, 100);
        assertThat(there.by()).isEqualTo(By.ENTRIES);
        assertThat(there.doneBytes()).isEqualTo(1_000_000);
        assertThat(there.percent()).as("over only when it is in sync").isEqualTo(99.9);
    }

    @Test
    void whatIsWrittenMeanwhileComesAfterTheExtents() {
        CatchUp catchUp = new CatchUp(3, 0, 100);
        catchUp.asks(ask(100, 0, 0));
        catchUp.measured(0, 900_000);
        catchUp.sent(1, ENTRY);
        catchUp.sent(ask(100, 0, 0), 900_000);
        look(catchUp, 0, 200);
        CatchUpProgress phase = look(catchUp, 100, 200);
        assertThat(phase.percent()).isEqualTo(90);
        assertThat(phase.doneBytes()).isEqualTo(900_000);
        assertThat(look(catchUp, 150, 200).percent()).isEqualTo(95);
    }

    @Test
    void aMeasureOfAnEarlierCatchUpIsIgnored() {
        CatchUp catchUp = new CatchUp(3, 0, 100);
        catchUp.asks(ask(100, 5, 0));
        catchUp.measured(4, 1);
        assertThat(look(catchUp, 5, 100).totalBytes()).isEmpty();
    }

    @Test
    void anInterruptedOneCountsWhatIsToBeSentOnceMore() {
        CatchUp catchUp = new CatchUp(3, 0, 100);
        catchUp.asks(ask(100, 0, 0));
        catchUp.measured(0, 1_000_000);
        catchUp.sent(ask(100, 0, 0), 600_000);
        catchUp.asks(ask(100, 0, 64));
        assertThat(look(catchUp, 0, 100).percent()).isEqualTo(60);
        // The follower was restarted.
        assertThat(catchUp.asks(ask(100, 0, 0))).isFalse();
        CatchUpProgress again = look(catchUp, 0, 100);
        assertThat(again.percent()).isEqualTo(60);
        assertThat(again.totalBytes()).hasValue(1_600_000);
        catchUp.sent(ask(100, 0, 0), 600_000);
        catchUp.asks(ask(100, 0, 64));
        assertThat(look(catchUp, 0, 100).percent()).isCloseTo(75, within(0.1));
    }

    @Test
    void percentNeverFallsAndStaysBelowHundredWhateverHappens() {
        for (int seed = 0; seed < 300; seed++) {
            Random random = new Random(seed);
            long last = 1000 + random.nextLong(1000);
            long has = random.nextInt(1000);
            CatchUp catchUp = new CatchUp(3, has, last);
            double shown = 0;
            long base = 0;
            long since = 0;
            long block = 0;
            for (int step = 0; step < 500; step++) {
                switch (random.nextInt(8)) {
                    case 0 -> last += random.nextInt(500);
                    case 1 -> has = Math.min(last, has + random.nextInt(300));
                    case 2 -> has = Math.max(0, has - random.nextInt(50));
                    case 3 -> catchUp.sent(1 + random.nextInt(5), random.nextInt(20_000));
                    case 4 -> {
                        base = last;
                        since = has;
                        block = 0;
                    }
                    case 5 -> block = random.nextInt(20) == 0 ? 0 : block + 64;
                    case 6 -> catchUp.measured(since, random.nextInt(3_000_000));
                    default -> {
                        if (base > has) {
                            catchUp.asks(ask(base, since, block));
                            catchUp.sent(ask(base, since, block), random.nextInt(1_000_000));
                        }
                    }
                }
                CatchUpProgress progress = look(catchUp, has, last);
                assertThat(progress.percent())
                        .as("seed %d step %d", seed, step)
                        .isBetween(shown, 99.9);
                shown = progress.percent();
                assertThat(progress.bytesPerSecond()).isNotNegative();
                progress.secondsLeft().ifPresent(left -> assertThat(left).isNotNegative());
                long done = progress.doneBytes();
                progress.totalBytes()
                        .ifPresent(total -> assertThat(total).isGreaterThanOrEqualTo(done));
            }
        }
    }
}
