package io.holdfast.node.store;

import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Where the store does what may wait for the disk, and the clock it reads. Everything that the
 * store does off the data loop is a task of an executor from here; there are no other threads. So a
 * simulator can run all of it at times of its own choosing, in one thread.
 */
public interface Threads {
    /** Daemon threads and the machine's clock. */
    Threads REAL =
            new Threads() {
                @Override
                public ExecutorService one(String name) {
                    return Executors.newSingleThreadExecutor(daemon(name));
                }

                @Override
                public ExecutorService pool(String name, int threads, int mostWaiting) {
                    return new ThreadPoolExecutor(
                            threads,
                            threads,
                            0,
                            TimeUnit.SECONDS,
                            new ArrayBlockingQueue<>(mostWaiting),
                            daemon(name),
                            new ThreadPoolExecutor.CallerRunsPolicy());
                }

                private ThreadFactory daemon(String name) {
                    return Thread.ofPlatform().daemon().name(name).factory();
                }

                @Override
                public <T> T await(Future<T> future)
                        throws ExecutionException, InterruptedException {
                    return future.get();
                }

                @Override
                public long nanoTime() {
                    return System.nanoTime();
                }
            };

    /** Runs its tasks one by one, in their order. */
    ExecutorService one(String name);

    /** Runs tasks in any order; the caller runs them itself while {@code mostWaiting} wait. */
    ExecutorService pool(String name, int threads, int mostWaiting);

    /** Waits for what a task of an executor from here will complete. */
    <T> T await(Future<T> future) throws ExecutionException, InterruptedException;

    /** See {@link System#nanoTime}. */
    long nanoTime();
}
