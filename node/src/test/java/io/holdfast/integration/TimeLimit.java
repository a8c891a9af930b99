package io.holdfast.integration;

import java.lang.reflect.Method;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.InvocationInterceptor;
import org.junit.jupiter.api.extension.ReflectiveInvocationContext;

/**
 * What {@code @Timeout} does for tests of a fixed length, for those that go on for as many rounds
 * as are asked for: interrupts each test whose time is up, and fails it.
 */
public final class TimeLimit implements InvocationInterceptor {
    private final Duration limit;

    private TimeLimit(Duration limit) {
        this.limit = limit;
    }

    /**
     * A limit for tests of {@code rounds} rounds of a limit {@code each}, besides start and end.
     */
    public static TimeLimit of(Duration startAndEnd, int rounds, Duration each) {
        return new TimeLimit(startAndEnd.plus(each.multipliedBy(rounds)));
    }

    @Override
    public void interceptTestMethod(
            Invocation<@Nullable Void> invocation,
            ReflectiveInvocationContext<Method> method,
            ExtensionContext context)
            throws Throwable {
        Thread test = Thread.currentThread();
        CountDownLatch done = new CountDownLatch(1);
        AtomicBoolean late = new AtomicBoolean();
        Thread guard =
                Thread.ofVirtual()
                        .start(() -> {
                            try {
                                if (!done.await(limit.toMillis(), TimeUnit.MILLISECONDS)) {
                                    late.set(true);
                                    test.interrupt();
                                }
                            } catch (InterruptedException e) {
                                throw new AssertionError("nobody interrupts it", e);
                            }
                        });
        Throwable failure = null;
        try {
            invocation.proceed();
        } catch (Throwable e) {
            failure = e;
        }
        done.countDown();
        boolean interrupted = false;
        try {
            guard.join();
        } catch (InterruptedException e) {
            interrupted = true;
        }
        if (late.get()) {
            // The interrupt was for the test, and comes no later than here.
            Thread.interrupted();
            TimeoutException timeout =
                    new TimeoutException(context.getDisplayName() + " took longer than " + limit);
            if (failure != null) {
                timeout.addSuppressed(failure);
            }
            throw timeout;
        }
        if (interrupted) {
            test.interrupt();
        }
        if (failure != null) {
            throw failure;
        }
    }
}
