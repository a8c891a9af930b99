package io.holdfast.nemesis;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.nemesis.Operation.Kind;
import io.holdfast.nemesis.Operation.State;
import org.junit.jupiter.api.Test;

/** What the history of a volume finds wrong, and what it lets pass. */
class VolumeHistoryTest {
    private static final int REGISTER = 5;

    private final VolumeHistory history = new VolumeHistory("data", 0);

    private Operation operation(Kind kind, long value, long began, long ended, State state) {
        Operation operation = new Operation(kind, "client", 1, 1, REGISTER, 1, value, began);
        operation.endedNanos = ended;
        operation.state = state;
        history.add(operation);
        return operation;
    }

    private Operation write(long value, long began, long ended, State state) {
        return operation(Kind.WRITE, value, began, ended, state);
    }

    private void read(long saw, long began, long ended) {
        operation(Kind.READ, 0, began, ended, State.DONE).seen = new long[] {saw};
    }

    private boolean isGood() {
        return history.check().isEmpty();
    }

    private static long[] holding(long value) {
        long[] values = new long[VolumeHistory.REGISTERS];
        values[REGISTER] = value;
        return values;
    }

    @Test
    void acknowledgedWriteMustNotBeLost() {
        write(1, 0, 1, State.DONE);
        read(1, 2, 3);
        assertThat(isGood()).isTrue();
        read(0, 4, 5);
        assertThat(isGood()).isFalse();
        assertThat(history.check().orElseThrow().history()).hasSize(4);
    }

    @Test
    void writeInDoubtMayTakeEffectLateOrNever() {
        write(1, 0, 1, State.DONE);
        write(2, 2, 3, State.UNKNOWN);
        write(3, 2, 3, State.FAILED);
        read(1, 4, 5);
        read(2, 6, 7);
        assertThat(isGood()).isTrue();
    }

    @Test
    void writeInDoubtMustNotRunTwice() {
        write(1, 0, 9, State.UNKNOWN);
        write(2, 10, 11, State.DONE);
        read(1, 12, 13);
        write(3, 14, 15, State.DONE);
        assertThat(isGood()).isTrue();
        read(1, 16, 17);
        assertThat(isGood()).isFalse();
    }

    @Test
    void settledWriteMustNotTakeEffectAnyMore() {
        write(1, 0, 1, State.UNKNOWN).settledNanos = 5;
        write(2, 4, 5, State.DONE);
        read(2, 6, 7);
        assertThat(isGood()).isTrue();
        read(1, 8, 9);
        assertThat(isGood()).isFalse();
    }

    @Test
    void newPartBeginsWithWhatWasReadAndKeepsUnseenDoubts() {
        write(1, 0, 1, State.DONE);
        write(2, 2, 3, State.UNKNOWN);
        write(3, 2, 3, State.UNKNOWN);
        write(4, 2, 3, State.UNKNOWN).settledNanos = 4;
        read(2, 5, 6);
        history.cut(holding(2));
        read(2, 7, 8);
        read(3, 9, 10);
        assertThat(isGood()).isTrue();
        read(4, 11, 12);
        assertThat(isGood()).isFalse();
    }

    @Test
    void newPartKnowsNothingOfValuesOverwrittenBefore() {
        write(1, 0, 1, State.DONE);
        write(2, 2, 3, State.DONE);
        read(2, 4, 5);
        history.cut(holding(2));
        read(1, 6, 7);
        assertThat(history.check().orElseThrow().what()).contains("nobody wrote");
    }
}
