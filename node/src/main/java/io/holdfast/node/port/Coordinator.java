package io.holdfast.node.port;

import io.holdfast.proto.catalogue.Catalogue;
import io.holdfast.proto.catalogue.Change;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;

/**
 * The cluster's agreed catalogue and a hint of who is there. Nothing that keeps data safe hangs on
 * it: replicas decide who may lead, this records and steers it.
 *
 * <p>Thread-safe. Never blocks a caller.
 */
public interface Coordinator extends AutoCloseable {
    /**
     * Begins to join. Completes when the catalogue can be changed from here; may take 20 s, or for
     * ever without a majority. Nobody needs to wait for it.
     */
    CompletableFuture<Void> start();

    /** Newest catalogue known here; right after a start the one saved by the last run. */
    Catalogue catalogue();

    /**
     * Calls {@code listener} with each newer catalogue, versions rising, some perhaps left out;
     * first with the present one. On a thread of the coordinator's.
     */
    void watch(Consumer<Catalogue> listener);

    /**
     * Changes the catalogue. Fails with {@link java.util.concurrent.TimeoutException} when no
     * answer came in time: the change may have happened or happen yet; read before repeating.
     */
    CompletableFuture<Change.Result> change(Change change);

    /**
     * What membership gossip says of each configured node. A hint: for display and dialling only.
     */
    Map<Integer, NodeState> members();

    @Override
    void close();

    /** A node as gossip sees it. */
    enum NodeState {
        ALIVE,
        SUSPECT,
        DEAD
    }
}
