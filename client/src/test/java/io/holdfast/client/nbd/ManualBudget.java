package io.holdfast.client.nbd;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/** A budget, for any number of embedded connections, whose clock a test moves. */
final class ManualBudget {
    final PayloadBudget budget;
    private final long periodNanos;
    private long nowNanos;
    private long checkNanos;
    private @Nullable Runnable check;

    ManualBudget(NbdLimits limits) {
        periodNanos = limits.payloads().checkPeriod().toNanos();
        budget =
                new PayloadBudget(
                        limits.payloads(),
                        this::nanoTime,
                        task -> {
                            check = task;
                            checkNanos = nowNanos + periodNanos;
                        });
    }

    long nanoTime() {
        return nowNanos;
    }

    boolean checkScheduled() {
        return check != null;
    }

    /** Lets time pass in which the loop does nothing; the check that became due follows. */
    void standStill(Duration time) {
        nowNanos += time.toNanos();
        checkNanos = nowNanos;
        advance(Duration.ZERO);
    }

    /** Lets time pass, with the checks that are due in it. */
    void advance(Duration time) {
        long end = nowNanos + time.toNanos();
        while (check != null && checkNanos <= end) {
            Runnable due = check;
            check = null;
            nowNanos = checkNanos;
            due.run();
        }
        nowNanos = end;
    }
}
