package io.holdfast.simulation;

import static io.holdfast.simulation.RegisterChecker.NEVER;
import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.simulation.RegisterChecker.Operation;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** The checker itself: hand-made histories, and random ones against trying every order. */
final class RegisterCheckerTest {
    private static Operation write(long value, long began, long ended) {
        return new Operation(true, value, began, ended, true);
    }

    private static Operation inDoubt(long value, long began) {
        return new Operation(true, value, began, NEVER, false);
    }

    private static Operation read(long value, long began, long ended) {
        return new Operation(false, value, began, ended, true);
    }

    private static boolean isGood(Operation... history) {
        return RegisterChecker.check(0, List.of(history)).isEmpty();
    }

    @Test
    void acceptsReadsOfTheNewestValue() {
        assertThat(isGood(read(0, 0, 1), write(1, 2, 3), read(1, 4, 5), write(2, 6, 7))).isTrue();
    }

    @Test
    void rejectsReadOfAnOlderValue() {
        assertThat(isGood(write(1, 0, 1), write(2, 2, 3), read(1, 4, 5))).isFalse();
    }

    @Test
    void rejectsReadOfTheInitialValueAfterAWrite() {
        assertThat(isGood(write(1, 0, 1), read(0, 2, 3))).isFalse();
    }

    @Test
    void acceptsEitherOrderOfOverlappingWrites() {
        assertThat(isGood(write(1, 0, 10), write(2, 0, 10), read(1, 11, 12))).isTrue();
        assertThat(isGood(write(1, 0, 10), write(2, 0, 10), read(2, 11, 12))).isTrue();
    }

    @Test
    void rejectsReadsThatSeeOverlappingWritesInBothOrders() {
        assertThat(
                        isGood(
                                write(1, 0, 10),
                                write(2, 0, 10),
                                read(1, 11, 12),
                                read(2, 13, 14),
                                read(1, 15, 16)))
                .isFalse();
    }

    @Test
    void acceptsWriteInDoubtThatTookEffectLate() {
        assertThat(isGood(inDoubt(1, 0), write(2, 1, 2), read(2, 3, 4), read(1, 5, 6))).isTrue();
    }

    @Test
    void acceptsWriteInDoubtThatNeverTookEffect() {
        assertThat(isGood(inDoubt(1, 0), write(2, 1, 2), read(2, 3, 4))).isTrue();
    }

    @Test
    void rejectsWriteInDoubtThatComesBack() {
        assertThat(
                        isGood(
                                inDoubt(1, 0),
                                read(1, 1, 2),
                                write(2, 3, 4),
                                read(2, 5, 6),
                                read(1, 7, 8)))
                .isFalse();
    }

    @Test
    void rejectsFencedWriteThatTakesEffectAfterItsEnd() {
        Operation fenced = new Operation(true, 1, 0, 5, false);
        assertThat(isGood(fenced, write(2, 6, 7), read(1, 8, 9))).isFalse();
        assertThat(isGood(fenced, read(1, 8, 9))).isTrue();
    }

    @Test
    void rejectsValueThatNobodyWrote() {
        assertThat(isGood(read(7, 0, 1))).isFalse();
    }

    @Test
    void rejectsReadThatEndsBeforeItsWriteBegins() {
        assertThat(isGood(read(1, 0, 1), write(1, 2, 3))).isFalse();
    }

    @Test
    void agreesWithTryingEveryOrder() {
        Random random = new Random(20261130);
        int good = 0;
        for (int round = 0; round < 20_000; round++) {
            List<Operation> history = randomHistory(random);
            boolean expected = isLinearizable(history, new boolean[history.size()], 0);
            assertThat(RegisterChecker.check(0, history).isEmpty())
                    .as("history %s", history)
                    .isEqualTo(expected);
            good += expected ? 1 : 0;
        }
        assertThat(good).isBetween(2_000, 18_000);
    }

    private static List<Operation> randomHistory(Random random) {
        List<Operation> history = new ArrayList<>();
        int writes = 1 + random.nextInt(3);
        for (long value = 1; value <= writes; value++) {
            long began = random.nextInt(12);
            long ended = began + random.nextInt(6);
            history.add(
                    random.nextInt(4) == 0 ? inDoubt(value, began) : write(value, began, ended));
        }
        for (int i = random.nextInt(4); i > 0; i--) {
            long began = random.nextInt(14);
            history.add(read(random.nextInt(writes + 1), began, began + random.nextInt(5)));
        }
        return history;
    }

    /** Tries whatever may come next; what is in doubt may also stay out for ever. */
    private static boolean isLinearizable(List<Operation> history, boolean[] taken, long value) {
        long firstEnd = NEVER;
        boolean owed = false;
        for (int i = 0; i < taken.length; i++) {
            if (!taken[i]) {
                firstEnd = Math.min(firstEnd, history.get(i).ended());
                owed |= history.get(i).certain();
            }
        }
        if (!owed) {
            return true;
        }
        for (int i = 0; i < taken.length; i++) {
            Operation next = history.get(i);
            boolean fits = next.write() || next.value() == value;
            if (!taken[i] && next.began() <= firstEnd && fits) {
                taken[i] = true;
                boolean good = isLinearizable(history, taken, next.value());
                taken[i] = false;
                if (good) {
                    return true;
                }
            }
        }
        return false;
    }
}
