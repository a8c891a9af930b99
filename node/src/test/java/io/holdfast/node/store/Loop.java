package io.holdfast.node.store;

import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/** The data loop of a test: the test's own thread runs what other threads hand over. */
final class Loop implements Executor {
    private static final long LIMIT_NANOS = TimeUnit.SECONDS.toNanos(60);

    private final LinkedBlockingQueue<Runnable> tasks = new LinkedBlockingQueue<>();

    @Override
    public void execute(Runnable task) {
        tasks.add(task);
    }

    /** Runs tasks until the condition holds. */
    void until(BooleanSupplier condition) {
        long end = System.nanoTime() + LIMIT_NANOS;
        while (!condition.getAsBoolean()) {
            try {
                Runnable task = tasks.poll(end - System.nanoTime(), TimeUnit.NANOSECONDS);
                if (task == null || System.nanoTime() > end) {
                    throw new AssertionError("nothing happened for too long");
                }
                task.run();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        }
    }

    /** Runs what waits now. */
    void drain() {
        for (Runnable task = tasks.poll(); task != null; task = tasks.poll()) {
            task.run();
        }
    }
}
