package io.holdfast.node.runtime;

import io.holdfast.client.Timers;
import io.netty.channel.EventLoop;
import io.netty.util.concurrent.ScheduledFuture;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * The node's one data thread, and its clock. What is thrown on it means that an invariant is
 * broken: the handler for fatal errors is called and must end the process, since a replica that
 * went on would be half alive.
 *
 * <p>Any thread may call.
 */
public final class DataThread implements Executor, Timers {
    private final EventLoop eventLoop;
    private final Consumer<Throwable> fatal;

    /**
     * @param fatal must end the process
     */
    public DataThread(EventLoop eventLoop, Consumer<Throwable> fatal) {
        this.eventLoop = eventLoop;
        this.fatal = fatal;
    }

    @Override
    public void execute(Runnable task) {
        eventLoop.execute(() -> guard(task));
    }

    @Override
    public long nanoTime() {
        return System.nanoTime();
    }

    @Override
    public Handle schedule(long delayNanos, Runnable task) {
        ScheduledFuture<?> future =
                eventLoop.schedule(() -> guard(task), delayNanos, TimeUnit.NANOSECONDS);
        return () -> future.cancel(false);
    }

    /**
     * Runs a task again and again, {@code nanos} after its last end: after a long sleep of the
     * process it runs once, not once for each time missed.
     */
    Handle every(long nanos, Runnable task) {
        ScheduledFuture<?> future =
                eventLoop.scheduleWithFixedDelay(
                        () -> guard(task), nanos, nanos, TimeUnit.NANOSECONDS);
        return () -> future.cancel(false);
    }

    /**
     * Asks for something. What {@code question} throws goes to the future and is not fatal; the
     * caller waits with a time-out.
     */
    public <T> CompletableFuture<T> submit(Callable<T> question) {
        CompletableFuture<T> answer = new CompletableFuture<>();
        eventLoop.execute(() -> {
            try {
                answer.complete(question.call());
            } catch (Exception e) {
                answer.completeExceptionally(e);
            }
        });
        return answer;
    }

    /** Runs a task here and now; what it throws is fatal. */
    void guard(Runnable task) {
        try {
            task.run();
        } catch (Throwable broken) {
            fatal.accept(broken);
            throw broken;
        }
    }
}
