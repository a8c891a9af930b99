package io.holdfast.simulation;

import io.holdfast.node.store.Threads;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.AbstractExecutorService;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.ToLongFunction;

/**
 * The threads of one process's store, without threads: a task runs a while after it was handed
 * over, at a time of the simulator's choosing, or at once when somebody waits for it.
 */
final class SimThreads implements Threads {
    private final SimNode node;
    private final SimQueue queue;
    private final SimRandom random;

    /** Handed over and not done, in that order. */
    private final ArrayDeque<Task> waiting = new ArrayDeque<>();

    private boolean ended;

    SimThreads(SimNode node, SimQueue queue, SimRandom random) {
        this.node = node;
        this.queue = queue;
        this.random = random;
    }

    private record Task(Executor on, Runnable work) {}

    /** The process is gone, and its threads. */
    void end() {
        ended = true;
        waiting.clear();
    }

    @Override
    public ExecutorService one(String name) {
        ToLongFunction<SimOptions.Disk> most =
                switch (name) {
                    case "store-sync" -> SimOptions.Disk::syncMaxNanos;
                    case "store-checkpoint", "store-prepare" -> disk -> 4 * disk.syncMaxNanos();
                    default -> disk -> 4 * disk.readMaxNanos();
                };
        return new Executor(true, Integer.MAX_VALUE, most);
    }

    @Override
    public ExecutorService pool(String name, int threads, int mostWaiting) {
        return new Executor(false, threads + mostWaiting, SimOptions.Disk::readMaxNanos);
    }

    @Override
    public <T> T await(Future<T> future) throws ExecutionException, InterruptedException {
        while (!future.isDone()) {
            Task next = waiting.peek();
            if (next == null) {
                throw new ExecutionException(new IOException("nobody will do this any more"));
            }
            run(next);
        }
        return future.get();
    }

    /** Does everything that waits. */
    void runAll() {
        while (!waiting.isEmpty()) {
            run(waiting.element());
        }
    }

    @Override
    public long nanoTime() {
        return node.nanos();
    }

    private void run(Task task) {
        waiting.remove(task);
        task.on.own.remove(task);
        task.work.run();
        task.on.planNext();
    }

    /** An executor that runs tasks in their order, or in any. */
    private final class Executor extends AbstractExecutorService {
        private final boolean inOrder;
        private final int mostTasks;
        private final ToLongFunction<SimOptions.Disk> mostNanos;
        private final List<Task> own = new ArrayList<>();
        private boolean planned;
        private boolean shut;

        /**
         * An executor.
         *
         * @param mostTasks that run or wait; whoever brings one more does it at once
         * @param mostNanos that a task takes
         */
        Executor(boolean inOrder, int mostTasks, ToLongFunction<SimOptions.Disk> mostNanos) {
            this.inOrder = inOrder;
            this.mostTasks = mostTasks;
            this.mostNanos = mostNanos;
        }

        @Override
        public void execute(Runnable work) {
            if (ended) {
                return; // the process has died, and its threads with it
            }
            if (shut) {
                throw new RejectedExecutionException("shut down");
            }
            if (own.size() >= mostTasks) {
                work.run();
                return;
            }
            Task task = new Task(this, work);
            waiting.add(task);
            own.add(task);
            planNext();
        }

        private void planNext() {
            if (!planned && !own.isEmpty() && !ended) {
                planned = true;
                queue.after(random.between(0, mostNanos()), this::due);
            }
        }

        private long mostNanos() {
            return mostNanos.applyAsLong(node.disk());
        }

        private void due() {
            planned = false;
            if (ended || own.isEmpty()) {
                return;
            }
            if (node.isPaused()) {
                // Threads stand still, too.
                planned = true;
                queue.after(SimOptions.MILLIS + mostNanos(), this::due);
                return;
            }
            SimThreads.this.run(inOrder ? own.getFirst() : random.pick(own));
        }

        @Override
        public void shutdown() {
            shut = true;
        }

        @Override
        public List<Runnable> shutdownNow() {
            throw new UnsupportedOperationException();
        }

        @Override
        public boolean isShutdown() {
            return shut;
        }

        @Override
        public boolean isTerminated() {
            return shut && own.isEmpty();
        }

        @Override
        public boolean awaitTermination(long time, TimeUnit unit) {
            while (!ended && !own.isEmpty()) {
                SimThreads.this.run(own.getFirst());
            }
            own.clear();
            return true;
        }
    }
}
