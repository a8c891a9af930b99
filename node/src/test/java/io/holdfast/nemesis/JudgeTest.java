package io.holdfast.nemesis;

import static io.holdfast.proto.nbd.NbdProtocol.*;
import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.nemesis.Operation.Kind;
import io.holdfast.nemesis.Operation.State;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Which ends of a request are called a broken promise, and which must pass. */
class JudgeTest {
    private static final long SECOND = 1_000_000_000;
    private static final boolean SHARED = false;
    private static final boolean EXCLUSIVE = true;

    private final Weather weather = new Weather(3);
    private final Judge judge = new Judge(weather);

    JudgeTest() {
        for (int node = 1; node <= 3; node++) {
            weather.running(node, true);
        }
    }

    /** A moment after all that happened to the weather so far, and before what will. */
    private static long now() {
        long last = System.nanoTime();
        long now = System.nanoTime();
        while (now == last) {
            now = System.nanoTime();
        }
        return now;
    }

    private static Operation ended(State state, int error, long began, long ended) {
        Operation operation = new Operation(Kind.WRITE, "client", 1, 1, 0, 1, 7, began);
        operation.state = state;
        operation.error = error;
        operation.endedNanos = ended;
        return operation;
    }

    private boolean isBroken(boolean exclusive, Operation operation, long connected, long proven) {
        return judge.broken(operation, exclusive, connected, proven).isPresent();
    }

    private boolean isBroken(boolean exclusive, int error, long began, long ended) {
        return isBroken(exclusive, ended(State.FAILED, error, began, ended), began, began);
    }

    @ParameterizedTest
    @ValueSource(ints = {NBD_EIO, NBD_ESHUTDOWN, NBD_ENOSPC, NBD_ENOMEM, NBD_EINVAL, NBD_EPERM})
    void noRequestInFairWeatherMayFail(int error) {
        long began = now();
        assertThat(isBroken(SHARED, error, began, began + 1)).isTrue();
        assertThat(isBroken(EXCLUSIVE, error, began, began + 1)).isTrue();
    }

    @ParameterizedTest
    @ValueSource(ints = {NBD_EIO, NBD_ESHUTDOWN, NBD_ENOSPC})
    void requestsFailWithoutAMajority(int error) {
        weather.running(2, false);
        assertThat(isBroken(SHARED, error, now(), now())).isTrue();
        weather.running(3, false);
        assertThat(isBroken(SHARED, error, now(), now())).isFalse();
        weather.running(2, true);
        assertThat(isBroken(SHARED, error, now(), now())).isTrue();
    }

    @Test
    void aBreakOfFairWeatherWithinARequestExcusesItsFailure() {
        long began = now();
        weather.running(1, false);
        weather.running(1, true);
        assertThat(isBroken(SHARED, NBD_EIO, began, now())).isFalse();
        began = now();
        weather.hidden(1, true);
        weather.hidden(1, false);
        assertThat(isBroken(SHARED, NBD_EIO, began, now())).isFalse();
    }

    @Test
    void whatIsNotAllowedIsRefusedInAnyWeather() {
        weather.running(1, false);
        assertThat(isBroken(SHARED, NBD_EINVAL, now(), now())).isTrue();
        assertThat(isBroken(SHARED, NBD_EPERM, now(), now())).isTrue();
        assertThat(isBroken(EXCLUSIVE, NBD_EINVAL, now(), now())).isTrue();
        assertThat(isBroken(EXCLUSIVE, NBD_EPERM, now(), now())).isFalse();
    }

    @Test
    void fencingExcusesUntilTheConnectionHasHadTheClaim() {
        long connected = now();
        Operation failed = ended(State.FAILED, NBD_EIO, now(), now());
        assertThat(isBroken(EXCLUSIVE, failed, connected, Judge.NO_PROOF)).isFalse();
        assertThat(isBroken(EXCLUSIVE, failed, connected, connected)).isTrue();
        assertThat(isBroken(SHARED, failed, connected, Judge.NO_PROOF)).isTrue();
    }

    @Test
    void fencingExcusesWhenTheNodeWasCutOffSinceItHadTheClaim() {
        long proven = now();
        weather.running(1, false);
        weather.running(1, true);
        for (int error : new int[] {NBD_EIO, NBD_EPERM}) {
            Operation failed = ended(State.FAILED, error, now(), now());
            assertThat(isBroken(EXCLUSIVE, failed, proven, proven)).isFalse();
            assertThat(isBroken(EXCLUSIVE, failed, proven, now())).isTrue();
        }
        Operation down = ended(State.FAILED, NBD_ESHUTDOWN, now(), now());
        assertThat(isBroken(EXCLUSIVE, down, proven, proven)).as("no fencing").isTrue();
    }

    @Test
    void fullDiskAnywhereExcusesEnospcAndNothingElse() {
        long began = now();
        weather.running(3, false);
        weather.full(3, true);
        assertThat(isBroken(SHARED, NBD_ENOSPC, now(), now())).isFalse();
        assertThat(isBroken(SHARED, NBD_EIO, now(), now())).isTrue();
        weather.full(3, false);
        weather.running(3, true);
        assertThat(isBroken(SHARED, NBD_ENOSPC, began, now())).isFalse();
        long soon = now();
        assertThat(isBroken(SHARED, NBD_ENOSPC, soon, soon + 1)).isFalse();
        long later = soon + Judge.ROOM_NANOS + 1;
        assertThat(isBroken(SHARED, NBD_ENOSPC, later, later + 1)).isTrue();
    }

    @Test
    void noNodeHangsUpInFairWeather() {
        long connected = now();
        Operation hungUp = ended(State.HUNG_UP, 0, now(), now());
        assertThat(isBroken(SHARED, hungUp, connected, Judge.NO_PROOF)).isTrue();
        assertThat(isBroken(EXCLUSIVE, hungUp, connected, connected)).isTrue();
        assertThat(isBroken(EXCLUSIVE, hungUp, connected, Judge.NO_PROOF)).isFalse();
    }

    @Test
    void connectionThatHasBeenThroughFoulWeatherMayBreak() {
        long connected = now();
        weather.hidden(1, true);
        weather.hidden(1, false);
        Operation hungUp = ended(State.HUNG_UP, 0, now(), now());
        assertThat(isBroken(SHARED, hungUp, connected, Judge.NO_PROOF)).isFalse();
        assertThat(isBroken(SHARED, hungUp, now(), Judge.NO_PROOF)).isTrue();
    }

    @Test
    void whatTakesTooLongIsBrokenHoweverItEnds() {
        long began = now();
        for (State state : List.of(State.DONE, State.FAILED, State.HUNG_UP, State.UNKNOWN)) {
            Operation late = ended(state, 0, began, began + Judge.BOUND_NANOS + SECOND);
            assertThat(isBroken(SHARED, late, began, began)).as(state.name()).isTrue();
        }
        Operation inTime = ended(State.DONE, 0, began, began + Judge.BOUND_NANOS - SECOND);
        assertThat(isBroken(SHARED, inTime, began, began)).isFalse();
        Operation left = ended(State.UNKNOWN, 0, began, began + SECOND);
        assertThat(isBroken(SHARED, left, began, began)).isFalse();
    }

    @Test
    void clientsWithoutAWriteDoneAreFound() {
        Verdict verdict = new Verdict();
        List<String> all = List.of("client", "other");
        for (State state : List.of(State.FAILED, State.HUNG_UP, State.UNKNOWN)) {
            verdict.operation(ended(state, NBD_EIO, 0, 1));
        }
        Operation readBack = new Operation(Kind.READ, "client", 0, 1, 0, 1, 0, 0);
        readBack.state = State.DONE;
        verdict.operation(readBack);
        assertThat(verdict.withoutWrite(all, verdict.writesDone())).isEqualTo(all);
        var before = verdict.writesDone();
        verdict.operation(ended(State.DONE, 0, 0, 1));
        assertThat(verdict.withoutWrite(all, before)).containsExactly("other");
        assertThat(verdict.withoutWrite(all, verdict.writesDone())).isEqualTo(all);
    }
}
