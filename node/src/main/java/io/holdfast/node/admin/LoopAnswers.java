package io.holdfast.node.admin;

import io.holdfast.node.runtime.DataLoop;
import io.holdfast.node.runtime.DataLoop.ReplicaView;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/** Waits for answers of the data loop and of the coordinator, never for long. */
final class LoopAnswers {
    /** The data loop turns in microseconds; when it does not in this time, it is stuck. */
    static final Duration LOOP_TIMEOUT = Duration.ofSeconds(1);

    private LoopAnswers() {}

    /**
     * The answer to a question put to the data loop.
     *
     * @throws AdminRefusal 503 when it does not come in time
     */
    static <T> T get(CompletableFuture<T> answer) {
        return get(answer, LOOP_TIMEOUT, "the data loop");
    }

    /** The replicas of this node, and why its store has failed; null: it has not. */
    record Seen(List<ReplicaView> replicas, @Nullable Exception storeFailure) {}

    /**
     * What the data loop sees at one moment.
     *
     * @throws AdminRefusal 503 when it gives no answer
     */
    static Seen seen(DataLoop loop) {
        return get(loop.thread().submit(() -> new Seen(loop.replicas(), loop.storeFailure())));
    }

    /**
     * The answer of {@code who}.
     *
     * @throws AdminRefusal 503 when it does not come in time or is a failure
     */
    static <T> T get(CompletableFuture<T> answer, Duration timeout, String who) {
        try {
            return answer.get(timeout.toMillis(), TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            throw unavailable(who + " gave no answer within " + timeout.toMillis() + " ms");
        } catch (ExecutionException e) {
            throw unavailable(who + " failed: " + e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw unavailable("interrupted while waiting for " + who);
        }
    }

    private static AdminRefusal unavailable(String error) {
        return new AdminRefusal(
                AdminRefusal.UNAVAILABLE,
                error,
                "ask again, or ask another node; see the node's log");
    }
}
