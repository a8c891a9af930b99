package io.holdfast.node.admin;

import static java.util.Objects.requireNonNull;

import io.holdfast.client.ClientEvents;
import io.holdfast.client.nbd.NbdEvents;
import io.holdfast.node.port.Store;
import io.holdfast.node.port.Store.Usage;
import io.holdfast.node.replica.Branch;
import io.holdfast.node.replica.Effect;
import io.holdfast.node.replica.ReplicaStatus;
import io.holdfast.node.replica.ReplicaStatus.Follower;
import io.holdfast.node.runtime.CatchUpProgress;
import io.holdfast.node.runtime.CatchUpProgress.By;
import io.holdfast.node.runtime.DataLoop;
import io.holdfast.node.runtime.DataLoop.ReplicaView;
import io.holdfast.node.runtime.RuntimeObserver;
import io.holdfast.node.scrub.Counts;
import io.holdfast.node.scrub.Scrubber;
import io.holdfast.proto.peer.ShardId;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.MultiGauge;
import io.micrometer.core.instrument.MultiGauge.Row;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.binder.jvm.JvmGcMetrics;
import io.micrometer.core.instrument.binder.jvm.JvmMemoryMetrics;
import io.micrometer.core.instrument.binder.jvm.JvmThreadMetrics;
import io.micrometer.core.instrument.binder.system.FileDescriptorMetrics;
import io.micrometer.core.instrument.binder.system.ProcessorMetrics;
import io.micrometer.core.instrument.binder.system.UptimeMetrics;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.net.SocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.ToLongFunction;

/**
 * The node's metrics: owns the registry, hands out the observers that the parts report to, and
 * writes the text of {@code /metrics}. Counting on the data loop allocates nothing.
 *
 * <p>State of replicas is not pushed: a scrape asks the data loop for it.
 */
public final class Metrics implements AutoCloseable {
    /** Upper ends of the latency histograms' buckets. */
    private static final Duration[] BUCKETS = {
        Duration.ofNanos(50_000),
        Duration.ofNanos(100_000),
        Duration.ofNanos(250_000),
        Duration.ofNanos(500_000),
        Duration.ofMillis(1),
        Duration.ofNanos(2_500_000),
        Duration.ofMillis(5),
        Duration.ofMillis(10),
        Duration.ofMillis(25),
        Duration.ofMillis(50),
        Duration.ofMillis(100),
        Duration.ofMillis(250),
        Duration.ofMillis(500),
        Duration.ofSeconds(1),
        Duration.ofMillis(2_500),
        Duration.ofSeconds(10),
    };

    private final PrometheusMeterRegistry registry =
            new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
    private final JvmGcMetrics gc = new JvmGcMetrics();
    private final MultiGauge applied = multi("holdfast.replica.applied", "Applied sequence");
    private final MultiGauge commit = multi("holdfast.replica.commit", "Commit point");
    private final MultiGauge durable = multi("holdfast.replica.durable", "Synced sequence");
    private final MultiGauge lag =
            multi("holdfast.replica.commit.lag", "Entries appended here and not yet committed");
    private final MultiGauge leading = multi("holdfast.replica.leads", "1: this replica leads");
    private final MultiGauge epoch = multi("holdfast.replica.epoch", "Newest epoch followed");
    private final MultiGauge behind =
            multi("holdfast.follower.lag", "Entries a follower lacks, as its leader sees it");
    private final MultiGauge caughtUp =
            multi("holdfast.follower.catchup.percent", "How far a follower that is behind is");
    private final MultiGauge catchUpRate =
            multi(
                    "holdfast.follower.catchup.rate",
                    "Bytes per second that bring a follower forward");

    /** An empty registry with what the JVM tells of itself. */
    public Metrics() {
        gc.bindTo(registry);
        new JvmMemoryMetrics().bindTo(registry);
        new JvmThreadMetrics().bindTo(registry);
        new ProcessorMetrics().bindTo(registry);
        new FileDescriptorMetrics().bindTo(registry);
        new UptimeMetrics().bindTo(registry);
    }

    /** For meters of parts that this class does not know. */
    public MeterRegistry registry() {
        return registry;
    }

    private MultiGauge multi(String name, String description) {
        return MultiGauge.builder(name).description(description).register(registry);
    }

    private Counter counter(String name, String description, String... tags) {
        return Counter.builder(name).description(description).tags(tags).register(registry);
    }

    private Timer timer(String name, String description, String... tags) {
        return Timer.builder(name)
                .description(description)
                .serviceLevelObjectives(BUCKETS)
                .tags(tags)
                .register(registry);
    }

    /** Observer of the data loop. */
    public RuntimeObserver runtime() {
        Timer written = timer("holdfast.journal.write", "Time of a gathered write of the journal");
        Timer synced = timer("holdfast.journal.sync", "Time of a sync of the journal");
        Counter changes = counter("holdfast.leader.changes", "Changes of leader seen");
        Counter dropped =
                counter("holdfast.local.dropped", "Messages of the node to itself dropped");
        Map<Branch, Counter> branches = new EnumMap<>(Branch.class);
        for (Branch branch : Branch.values()) {
            branches.put(
                    branch,
                    Counter.builder("holdfast.replica.branches")
                            .description("Rare branches taken by replicas")
                            .tag("branch", branch.name().toLowerCase(Locale.ROOT))
                            .register(registry));
        }
        Map<By, Counter> catchUpSent =
                byKind(
                        "holdfast.catchup.sent.bytes",
                        "Bytes sent to followers that are behind: extents, and entries that a"
                                + " majority held already");
        Map<By, Counter> catchUpReceived =
                byKind(
                        "holdfast.catchup.received.bytes",
                        "Bytes of extents, and of entries that a majority held already, received"
                                + " from leaders");
        return new RuntimeObserver() {
            @Override
            public void catchUpSent(By by, long bytes) {
                requireNonNull(catchUpSent.get(by)).increment((double) bytes);
            }

            @Override
            public void catchUpReceived(By by, long bytes) {
                requireNonNull(catchUpReceived.get(by)).increment((double) bytes);
            }

            @Override
            public void journalWritten(long nanos) {
                written.record(nanos, TimeUnit.NANOSECONDS);
            }

            @Override
            public void journalSynced(long nanos) {
                synced.record(nanos, TimeUnit.NANOSECONDS);
            }

            @Override
            public void leadershipChanged(ShardId shard, Effect.Announce announce) {
                if (announce.leader() != 0) {
                    changes.increment();
                }
            }

            @Override
            public void localMessageDropped() {
                dropped.increment();
            }

            @Override
            public void branchTaken(Branch branch) {
                requireNonNull(branches.get(branch)).increment();
            }
        };
    }

    private Map<By, Counter> byKind(String name, String description) {
        Map<By, Counter> counters = new EnumMap<>(By.class);
        for (By by : By.values()) {
            counters.put(by, counter(name, description, "by", by.name().toLowerCase(Locale.ROOT)));
        }
        return counters;
    }

    /** Observer of the NBD server. */
    public NbdEvents nbd() {
        return new NbdMeters();
    }

    private final class NbdMeters implements NbdEvents {
        private final Map<Kind, Timer> times = new EnumMap<>(Kind.class);
        private final Map<Kind, Counter> bytes = new EnumMap<>(Kind.class);
        private final Map<Kind, Counter> errors = new EnumMap<>(Kind.class);
        private final Counter opened = counter("holdfast.nbd.connections.opened", "Accepted");
        private final Counter closed = counter("holdfast.nbd.connections.closed", "Ended");
        private final Counter refused =
                counter("holdfast.nbd.connections.refused", "Turned away, too many");
        private final Counter aborted =
                counter("holdfast.nbd.connections.aborted", "Closed for breaking the protocol");
        private final Counter evicted =
                counter("holdfast.nbd.connections.evicted", "Closed for being slow with data");
        private final Timer waited =
                timer("holdfast.nbd.payload.waits", "Waits for memory for the data of a request");

        NbdMeters() {
            for (Kind kind : Kind.values()) {
                String tag = jsonName(kind);
                times.put(kind, timer("holdfast.nbd.requests", "NBD requests", "kind", tag));
                bytes.put(kind, counter("holdfast.nbd.bytes", "Bytes asked for", "kind", tag));
                errors.put(kind, counter("holdfast.nbd.errors", "Error replies", "kind", tag));
            }
        }

        private static String jsonName(Kind kind) {
            return kind.name().toLowerCase(Locale.ROOT);
        }

        @Override
        public void connectionOpened(SocketAddress remote) {
            opened.increment();
        }

        @Override
        public void connectionClosed(SocketAddress remote) {
            closed.increment();
        }

        @Override
        public void connectionRefused(SocketAddress remote) {
            refused.increment();
        }

        @Override
        public void connectionAborted(SocketAddress remote, String reason) {
            aborted.increment();
        }

        @Override
        public void connectionEvicted(SocketAddress remote, String export, String reason) {
            evicted.increment();
        }

        @Override
        public void payloadWaited(String export, long lengthBytes, long nanos) {
            waited.record(nanos, TimeUnit.NANOSECONDS);
        }

        @Override
        public void requestDone(String export, Kind kind, long lengthBytes, long nanos, int error) {
            meter(times, kind).record(nanos, TimeUnit.NANOSECONDS);
            if (error != 0) {
                meter(errors, kind).increment();
            } else {
                meter(bytes, kind).increment((double) lengthBytes);
            }
        }

        private static <M> M meter(Map<Kind, M> meters, Kind kind) {
            M meter = meters.get(kind);
            if (meter == null) {
                throw new IllegalStateException("no meter for " + kind);
            }
            return meter;
        }
    }

    /** Observer of the volume clients. */
    public ClientEvents client() {
        Counter repeated = counter("holdfast.client.repeated", "Requests sent once more");
        Counter timedOut = counter("holdfast.client.timeouts", "Requests whose time was up");
        Counter conflicts = counter("holdfast.client.conflicts", "Merged writes read again");
        Counter corrupt = counter("holdfast.client.corrupt.blocks", "Blocks with a wrong tag");
        Counter recovered =
                counter("holdfast.client.recovered.blocks", "Bad blocks read from another replica");
        Counter unreadable =
                counter("holdfast.client.unreadable.blocks", "Blocks that no replica has");
        Counter malformed = counter("holdfast.client.malformed.replies", "Replies dropped");
        Counter sessions = counter("holdfast.client.sessions", "Sessions opened");
        Counter claims = counter("holdfast.client.claims", "Claims granted");
        Counter refused = counter("holdfast.client.refused.writes", "Writes of other clients");
        return new ClientEvents() {
            @Override
            public void requestRepeated(int volume) {
                repeated.increment();
            }

            @Override
            public void requestTimedOut(int volume) {
                timedOut.increment();
            }

            @Override
            public void writeConflicted(int volume) {
                conflicts.increment();
            }

            @Override
            public void blockCorrupt(int volume, long block) {
                corrupt.increment();
            }

            @Override
            public void blockRecovered(int volume, long block) {
                recovered.increment();
            }

            @Override
            public void blockUnreadable(int volume, long block) {
                unreadable.increment();
            }

            @Override
            public void replyMalformed(int volume, int node) {
                malformed.increment();
            }

            @Override
            public void sessionOpened(int volume) {
                sessions.increment();
            }

            @Override
            public void claimGranted(int volume, long generation) {
                claims.increment();
            }

            @Override
            public void writeRefused(int volume) {
                refused.increment();
            }
        };
    }

    /** Shows how full the store is. */
    public void watch(Store store) {
        storeGauge("holdfast.journal.bytes", "Bytes in segment files", store, Usage::journalBytes);
        storeGauge(
                "holdfast.disk.free.bytes",
                "Bytes for which journal segments can be made",
                store,
                Usage::freeBytes);
        storeGauge(
                "holdfast.map.extents", "Extents in the map, an estimate", store, Usage::extents);
        storeGauge(
                "holdfast.journal.live.bytes",
                "Bytes of the journal that the map points to",
                store,
                Usage::liveBytes);
        storeGauge(
                "holdfast.journal.dead.bytes",
                "Bytes of segment files that the map does not point to",
                store,
                Usage::deadBytes);
        storeGauge(
                "holdfast.store.space",
                "Room for segments: 0 enough, 1 little, 2 none for clients",
                store,
                usage -> usage.space().level);
        storeCounter(
                "holdfast.journal.appended.bytes",
                "Bytes appended to the journal",
                store,
                Usage::appendedBytes);
        storeCounter(
                "holdfast.store.repaired.blocks",
                "Blocks replaced by another replica's copy",
                store,
                Usage::repairedBlocks);
        storeCounter(
                "holdfast.journal.client.bytes",
                "Bytes of blocks that clients wrote, of those appended",
                store,
                Usage::clientBytes);
        storeCounter(
                "holdfast.cleaner.moved.bytes",
                "Bytes moved by the cleaner, of those appended",
                store,
                Usage::movedBytes);
        storeCounter(
                "holdfast.journal.removed.segments",
                "Segments removed",
                store,
                Usage::removedSegments);
    }

    /** Shows what scrubs have done since the process started. */
    public void watch(Scrubber scrubber) {
        Gauge.builder("holdfast.scrub.running", scrubber, s -> s.isRunning() ? 1 : 0)
                .description("1: a scrub is under way")
                .register(registry);
        scrubCounter("bytes", "Bytes verified by scrubs", scrubber, Counts::bytes);
        scrubCounter(
                "damaged.blocks",
                "Blocks that scrubs found in damaged records",
                scrubber,
                Counts::damaged);
        scrubCounter(
                "differing.blocks",
                "Blocks that scrubs found to differ from the leader's",
                scrubber,
                Counts::differing);
        scrubCounter(
                "repaired.blocks",
                "Blocks that scrubs replaced by another replica's copy",
                scrubber,
                Counts::repaired);
        scrubCounter(
                "unrepairable.blocks",
                "Blocks that scrubs could not repair, each time they were found",
                scrubber,
                Counts::unrepairable);
        scrubCounter(
                "uncompared.blocks",
                "Blocks that scrubs could not compare with the leader's",
                scrubber,
                Counts::notCompared);
    }

    private void scrubCounter(
            String name, String description, Scrubber scrubber, ToLongFunction<Counts> count) {
        FunctionCounter.builder(
                        "holdfast.scrub." + name, scrubber, s -> count.applyAsLong(s.total()))
                .description(description)
                .register(registry);
    }

    private void storeGauge(
            String name, String description, Store store, ToLongFunction<Usage> value) {
        Gauge.builder(name, store, s -> value.applyAsLong(s.usage()))
                .description(description)
                .register(registry);
    }

    private void storeCounter(
            String name, String description, Store store, ToLongFunction<Usage> count) {
        FunctionCounter.builder(name, store, s -> count.applyAsLong(s.usage()))
                .description(description)
                .register(registry);
    }

    /**
     * The text of {@code /metrics}, with the state of {@code loop}'s replicas as it is now; as it
     * was at the last scrape when the loop does not answer.
     */
    public String scrape(DataLoop loop) {
        try {
            refresh(LoopAnswers.get(loop.thread().submit(loop::replicas)));
        } catch (AdminRefusal stuck) {
            // The rest of the metrics is worth most in exactly this case.
            return registry.scrape();
        }
        return registry.scrape();
    }

    private void refresh(List<ReplicaView> replicas) {
        set(applied, replicas, ReplicaStatus::applied);
        set(commit, replicas, ReplicaStatus::commit);
        set(durable, replicas, ReplicaStatus::durable);
        set(lag, replicas, status -> Math.max(0, status.last() - status.commit()));
        set(leading, replicas, status -> status.role() == Effect.Role.LEADER ? 1 : 0);
        set(epoch, replicas, ReplicaStatus::promised);
        List<Row<?>> rows = new ArrayList<>();
        for (ReplicaView view : replicas) {
            for (Follower follower : view.status().followers()) {
                Tags tags = tags(view).and("follower", String.valueOf(follower.node()));
                rows.add(Row.of(tags, (double) (view.status().last() - follower.matched())));
            }
        }
        behind.register(rows, true);
        refreshCatchUps(replicas);
    }

    private void refreshCatchUps(List<ReplicaView> replicas) {
        List<Row<?>> percents = new ArrayList<>();
        List<Row<?>> rates = new ArrayList<>();
        for (ReplicaView view : replicas) {
            for (CatchUpProgress each : view.catchUps()) {
                Tags tags = tags(view).and("follower", String.valueOf(each.node()));
                percents.add(Row.of(tags, each.percent()));
                rates.add(Row.of(tags, (double) each.bytesPerSecond()));
            }
        }
        caughtUp.register(percents, true);
        catchUpRate.register(rates, true);
    }

    private static void set(
            MultiGauge gauge, List<ReplicaView> replicas, ToLongFunction<ReplicaStatus> value) {
        List<Row<?>> rows = new ArrayList<>();
        for (ReplicaView view : replicas) {
            rows.add(Row.of(tags(view), (double) value.applyAsLong(view.status())));
        }
        gauge.register(rows, true);
    }

    private static Tags tags(ReplicaView view) {
        return Tags.of(
                "volume",
                String.valueOf(view.shard().volume()),
                "shard",
                String.valueOf(view.shard().index()));
    }

    @Override
    public void close() {
        gc.close();
        registry.close();
    }
}
