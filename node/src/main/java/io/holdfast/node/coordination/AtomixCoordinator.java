package io.holdfast.node.coordination;

import io.atomix.primitive.PrimitiveState;
import io.atomix.primitive.operation.OperationId;
import io.atomix.primitive.operation.PrimitiveOperation;
import io.atomix.primitive.session.SessionClient;
import io.holdfast.config.NodeConfig;
import io.holdfast.node.coordination.CatalogueCodec.MalformedValueException;
import io.holdfast.node.port.Coordinator;
import io.holdfast.proto.catalogue.Catalogue;
import io.holdfast.proto.catalogue.Change;
import io.holdfast.proto.catalogue.Volume;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * {@link Coordinator} on Atomix.
 *
 * <p>Keeps a session with the catalogue's service, reads when an event says that there is something
 * new and every 500 ms in case none came, and saves what it has read. Nothing Atomix promises to
 * answer is waited for without a time-out; a session that stops answering is replaced.
 *
 * <p>Versions only rise here. A cluster whose catalogue is older than the one saved on this node
 * has lost the end of its log (D3); it is given back what is missing before anything else.
 *
 * <p>All state belongs to one thread of its own; the public methods may be called by any.
 */
public final class AtomixCoordinator implements Coordinator {
    private static final Logger LOG = LoggerFactory.getLogger(AtomixCoordinator.class);

    /** How long a call may take before it is given up as in doubt. */
    static final Duration CALL_TIMEOUT = Duration.ofSeconds(5);

    /** Segment of Atomix' log; it compacts by the segment. */
    static final int SEGMENT_BYTES = 8 << 20;

    /** Most changes under way at once; more are refused. */
    static final int MAX_CHANGES = 1024;

    private static final Duration POLL_INTERVAL = Duration.ofMillis(500);

    /** How often a start that waits for others says so. */
    private static final Duration PROGRESS_INTERVAL = Duration.ofSeconds(30);

    /** Opening a session covers an election, so it may take longer than a call. */
    private static final Duration OPEN_TIMEOUT = Duration.ofSeconds(10);

    /** Reads in a row without an answer after which the session is replaced. */
    private static final int MAX_SILENT_READS = 2;

    /** Most {@code restore}s in a row that may leave the cluster behind this node. */
    private static final int MAX_RESTORES = 5;

    private static final long NOTHING_KNOWN = -1;

    private final NodeConfig config;
    private final Duration callTimeout;
    private final int segmentBytes;
    private final String incarnation;
    private final SavedCatalogue saved;
    private final ScheduledExecutorService thread;
    private final Semaphore changes = new Semaphore(MAX_CHANGES);
    private final AtomicBoolean startCalled = new AtomicBoolean();
    private final AtomicBoolean closeCalled = new AtomicBoolean();
    private final CompletableFuture<Void> started = new CompletableFuture<>();
    private final List<Consumer<Catalogue>> watchers = new ArrayList<>();
    private final ArrayDeque<Pending> toSend = new ArrayDeque<>();
    private final ArrayDeque<Pending> toSee = new ArrayDeque<>();
    private volatile Catalogue catalogue;
    private volatile @Nullable CatalogueGroup group;
    private @Nullable Link link;
    private int links;
    private boolean opening;
    private boolean reading;
    private boolean readAgain;
    private boolean reconciled;
    private int silentReads;
    private int restores;
    private long nextProgressNanos;

    /** A session, numbered to tell late answers of an earlier one. */
    private record Link(int number, SessionClient client) {}

    /** A change on its way; {@code result} is there when only this node's catalogue is behind. */
    private record Pending(
            byte[] bytes,
            CompletableFuture<Change.Result> answer,
            Change.@Nullable Result result) {}

    /**
     * Loads the saved catalogue; starts nothing.
     *
     * @throws IOException the saved catalogue cannot be read
     */
    public AtomixCoordinator(NodeConfig config) throws IOException {
        this(config, CALL_TIMEOUT, SEGMENT_BYTES);
    }

    AtomixCoordinator(NodeConfig config, Duration callTimeout, int segmentBytes)
            throws IOException {
        this.config = config;
        this.callTimeout = callTimeout;
        this.segmentBytes = segmentBytes;
        byte[] random = new byte[8];
        new SecureRandom().nextBytes(random);
        incarnation = config.self().id() + "#" + HexFormat.of().formatHex(random);
        saved = new SavedCatalogue(config.dataDirectory());
        catalogue = saved.load();
        thread =
                Executors.newSingleThreadScheduledExecutor(
                        Thread.ofPlatform().name("coordinator").daemon(true).factory());
    }

    /** This process' name for claims: the node's id and a number drawn at each start. */
    public String incarnation() {
        return incarnation;
    }

    @Override
    public CompletableFuture<Void> start() {
        if (startCalled.compareAndSet(false, true)) {
            run(this::startGroup);
        }
        return started.copy();
    }

    @Override
    public Catalogue catalogue() {
        return catalogue;
    }

    @Override
    public void watch(Consumer<Catalogue> listener) {
        run(() -> {
            watchers.add(listener);
            notify(listener, catalogue);
        });
    }

    /**
     * {@inheritDoc}
     *
     * <p>An answer that it was applied comes when this node has saved a catalogue that contains it.
     * Waits, within the time-out, for a start to complete.
     */
    @Override
    public CompletableFuture<Change.Result> change(Change change) {
        byte[] bytes = CatalogueCodec.encode(change);
        if (bytes.length > CatalogueCodec.MAX_VALUE_BYTES) {
            return CompletableFuture.completedFuture(
                    new Change.Result(
                            false,
                            catalogue.version(),
                            0,
                            bytes.length
                                    + " bytes are more than "
                                    + CatalogueCodec.MAX_VALUE_BYTES));
        }
        if (!changes.tryAcquire()) {
            return CompletableFuture.failedFuture(
                    new RejectedExecutionException(MAX_CHANGES + " changes are under way"));
        }
        CompletableFuture<Change.Result> answer = new CompletableFuture<>();
        CompletableFuture<Change.Result> released =
                answer.orTimeout(callTimeout.toMillis(), TimeUnit.MILLISECONDS)
                        .whenComplete((result, error) -> changes.release());
        if (!run(() -> submit(new Pending(bytes, answer, null)))) {
            answer.completeExceptionally(closed());
        }
        return released.copy();
    }

    @Override
    public Map<Integer, NodeState> members() {
        CatalogueGroup running = group;
        if (running != null) {
            return running.members();
        }
        Map<Integer, NodeState> states = new LinkedHashMap<>();
        for (NodeConfig.Member node : config.nodes()) {
            boolean self = node.number() == config.self().number();
            states.put(node.number(), self ? NodeState.ALIVE : NodeState.DEAD);
        }
        return states;
    }

    /** Waits a few seconds at most. Changes under way are in doubt. */
    @Override
    public void close() {
        if (!closeCalled.compareAndSet(false, true)) {
            return;
        }
        started.completeExceptionally(closed());
        thread.execute(() -> {
            toSend.forEach(pending -> pending.answer.completeExceptionally(closed()));
            toSee.forEach(pending -> pending.answer.completeExceptionally(closed()));
        });
        thread.shutdown();
        try {
            // Whoever is in startGroup() comes out of it within Atomix' own time-outs.
            if (!thread.awaitTermination(callTimeout.toMillis(), TimeUnit.MILLISECONDS)) {
                thread.shutdownNow();
            }
        } catch (InterruptedException e) {
            thread.shutdownNow();
            Thread.currentThread().interrupt();
        }
        CatalogueGroup running = group;
        if (running != null) {
            running.close();
        }
    }

    private static IllegalStateException closed() {
        return new IllegalStateException("the coordinator is closed");
    }

    private boolean run(Runnable task) {
        try {
            thread.execute(() -> guarded(task));
            return true;
        } catch (RejectedExecutionException e) {
            return false;
        }
    }

    /** For Atomix' call-backs: late ones find the thread gone. */
    private Executor onThread() {
        return this::run;
    }

    private void guarded(Runnable task) {
        try {
            task.run();
        } catch (RuntimeException e) {
            if (closeCalled.get()) {
                // What is taken apart fails whoever is in the middle of using it.
                LOG.debug("broken off by the stop", e);
            } else {
                LOG.error("coordination goes on after an unexpected failure", e);
            }
        }
    }

    private void startGroup() {
        if (closeCalled.get()) {
            return;
        }
        LOG.info("joining as {}, catalogue at version {}", incarnation, catalogue.version());
        CatalogueGroup starting = new CatalogueGroup(config, segmentBytes, this::stopUnreadable);
        group = starting;
        try {
            starting.start();
        } catch (IOException e) {
            if (!closeCalled.get()) {
                LOG.error("coordination cannot start: {}", e.getMessage(), e);
            }
            started.completeExceptionally(e);
            return;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            started.completeExceptionally(e);
            return;
        }
        if (closeCalled.get()) {
            return; // close() takes the group down; this thread takes no new tasks any more
        }
        nextProgressNanos = System.nanoTime() + PROGRESS_INTERVAL.toNanos();
        var _ =
                thread.scheduleWithFixedDelay(
                        () -> guarded(this::tick),
                        0,
                        POLL_INTERVAL.toMillis(),
                        TimeUnit.MILLISECONDS);
    }

    private void stopUnreadable(String what) {
        LOG.error(
                "the cluster's catalogue was changed by a newer version ({}): this node must be"
                        + " upgraded; coordination stops, data goes on",
                what);
        Thread.ofPlatform().name("coordinator-stop").start(this::close);
    }

    private void tick() {
        toSend.removeIf(pending -> pending.answer.isDone());
        toSee.removeIf(pending -> pending.answer.isDone());
        if (!reconciled && System.nanoTime() - nextProgressNanos >= 0) {
            nextProgressNanos += PROGRESS_INTERVAL.toNanos();
            LOG.warn(
                    "no catalogue from the cluster yet, still trying: {}",
                    Objects.requireNonNull(group).missing());
        }
        if (link != null) {
            read();
        } else if (!opening) {
            open();
        }
    }

    private void open() {
        opening = true;
        CatalogueGroup running = Objects.requireNonNull(group);
        var _ =
                running.open()
                        .copy()
                        .orTimeout(OPEN_TIMEOUT.toMillis(), TimeUnit.MILLISECONDS)
                        .whenCompleteAsync(
                                (client, error) -> {
                                    opening = false;
                                    if (error == null) {
                                        opened(new Link(++links, client));
                                    } else {
                                        LOG.debug("no session: {}", error.toString());
                                        // Off this thread: name servers may take long.
                                        Thread.ofVirtual().start(running::resolve);
                                    }
                                },
                                onThread());
    }

    private void opened(Link opened) {
        link = opened;
        reading = false;
        silentReads = 0;
        opened.client.addEventListener(CatalogueService.CHANGED, event -> run(this::read));
        opened.client.addStateChangeListener(state -> {
            if (state == PrimitiveState.EXPIRED || state == PrimitiveState.CLOSED) {
                run(() -> lost(opened, "it is " + state));
            }
        });
        // The whole catalogue once, also at the version known here: it may differ.
        reconciled = false;
        read();
    }

    private boolean isCurrent(Link asked) {
        Link current = link;
        return current != null && current.number == asked.number;
    }

    private void lost(Link lost, String why) {
        if (isCurrent(lost)) {
            LOG.info("replacing the session with the catalogue: {}", why);
            link = null;
            var _ = lost.client.close();
        }
    }

    private void read() {
        Link current = link;
        if (current == null) {
            return;
        }
        if (reading) {
            readAgain = true;
            return;
        }
        reading = true;
        readAgain = false;
        long known = reconciled ? catalogue.version() : NOTHING_KNOWN;
        byte[] value = ByteBuffer.allocate(Long.BYTES).putLong(known).array();
        var _ =
                call(current, CatalogueService.READ, value)
                        .whenCompleteAsync(
                                (bytes, error) -> onRead(current, bytes, error), onThread());
    }

    private CompletableFuture<byte[]> call(Link to, OperationId operation, byte[] value) {
        // A copy: a call that Atomix never completes (no majority) is given up here.
        return to.client
                .execute(new PrimitiveOperation(operation, value))
                .copy()
                .orTimeout(callTimeout.toMillis(), TimeUnit.MILLISECONDS);
    }

    private void onRead(Link from, byte @Nullable [] bytes, @Nullable Throwable error) {
        if (!isCurrent(from)) {
            return;
        }
        reading = false;
        if (bytes == null) {
            silentReads++;
            LOG.debug("catalogue not read: {}", String.valueOf(error));
            if (silentReads >= MAX_SILENT_READS) {
                lost(from, silentReads + " reads without an answer, the last: " + error);
            }
            return;
        }
        silentReads = 0;
        if (bytes.length > 0) {
            try {
                onCatalogue(from, CatalogueCodec.decodeCatalogue(bytes));
            } catch (MalformedValueException e) {
                LOG.error("the cluster's catalogue is not readable here: {}", e.getMessage());
                return;
            }
        }
        if (readAgain) {
            read();
        }
    }

    private void onCatalogue(Link from, Catalogue read) {
        Catalogue known = catalogue;
        if (read.version() < known.version()
                || (read.version() == known.version() && !read.equals(known))) {
            restore(from, read);
            return;
        }
        restores = 0;
        if (read.version() > known.version()) {
            adopt(read);
        }
        if (!reconciled) {
            reconciled = true;
            LOG.info("catalogue at version {} is the cluster's", read.version());
            started.complete(null);
            while (!toSend.isEmpty()) {
                submit(toSend.remove());
            }
        }
    }

    /**
     * The cluster knows less than this node: Atomix does not sync its log (D3), so a power loss
     * took its end. A read from a leader that was deposed looks the same; then the command changes
     * nothing.
     */
    private void restore(Link to, Catalogue read) {
        reconciled = false;
        if (restores == 0) {
            LOG.error(
                    "the cluster's catalogue is at version {}, this node saved version {}: giving"
                            + " back what the cluster has lost",
                    read.version(),
                    catalogue.version());
        }
        restores++;
        if (restores > MAX_RESTORES) {
            lost(to, "the cluster stays behind this node");
            restores = 1;
            return;
        }
        reading = true;
        var _ =
                call(to, CatalogueService.RESTORE, CatalogueCodec.encode(catalogue))
                        .whenCompleteAsync(
                                (bytes, error) -> {
                                    if (isCurrent(to)) {
                                        reading = false;
                                        logRestore(bytes, error);
                                        read();
                                    }
                                },
                                onThread());
    }

    private static void logRestore(byte @Nullable [] bytes, @Nullable Throwable error) {
        try {
            Change.@Nullable Result result =
                    bytes == null ? null : CatalogueCodec.decodeResult(bytes);
            if (result != null && result.applied()) {
                LOG.warn("the cluster took it in: version {}", result.version());
            } else {
                LOG.error(
                        "the cluster did not take it in: {}",
                        result == null ? String.valueOf(error) : result.reason());
            }
        } catch (MalformedValueException e) {
            LOG.error("the cluster's answer is not readable here: {}", e.getMessage());
        }
    }

    private void adopt(Catalogue newer) {
        for (Volume volume : catalogue.volumes()) {
            if (newer.volume(volume.number()).isEmpty()) {
                LOG.info("volume {} ({}) is gone", volume.number(), volume.name());
            }
        }
        try {
            saved.save(newer);
        } catch (IOException e) {
            LOG.error("catalogue version {} is not saved here", newer.version(), e);
        }
        catalogue = newer;
        watchers.forEach(watcher -> notify(watcher, newer));
        for (Iterator<Pending> all = toSee.iterator(); all.hasNext(); ) {
            Pending pending = all.next();
            Change.Result result = Objects.requireNonNull(pending.result);
            if (result.version() <= newer.version()) {
                all.remove();
                pending.answer.complete(result);
            }
        }
    }

    private void notify(Consumer<Catalogue> watcher, Catalogue catalogue) {
        guarded(() -> watcher.accept(catalogue));
    }

    private void submit(Pending pending) {
        Link current = link;
        if (pending.answer.isDone()) {
            return; // timed out while it waited; it must not happen any more
        }
        if (current == null || !reconciled) {
            toSend.add(pending);
            return;
        }
        var _ =
                call(current, CatalogueService.CHANGE, pending.bytes)
                        .whenCompleteAsync(
                                (bytes, error) -> onResult(pending, bytes, error), onThread());
    }

    private void onResult(Pending pending, byte @Nullable [] bytes, @Nullable Throwable error) {
        Change.Result result;
        try {
            if (bytes == null) {
                // Sent: whatever went wrong, it may have been applied or be applied later.
                throw new TimeoutException("no answer, the change may have happened: " + error);
            }
            result = CatalogueCodec.decodeResult(bytes);
        } catch (TimeoutException | MalformedValueException e) {
            pending.answer.completeExceptionally(e);
            return;
        }
        if (!result.applied() || result.version() <= catalogue.version()) {
            pending.answer.complete(result);
        } else {
            toSee.add(new Pending(pending.bytes, pending.answer, result));
            read();
        }
    }
}
