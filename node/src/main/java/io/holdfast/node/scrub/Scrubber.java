package io.holdfast.node.scrub;

import io.holdfast.client.Timers;
import io.holdfast.node.port.Store;
import io.holdfast.node.runtime.DataLoop;
import io.holdfast.node.runtime.LogPace;
import io.holdfast.proto.catalogue.Catalogue;
import io.holdfast.proto.catalogue.Volume;
import io.holdfast.proto.peer.ReplicaMessage.FetchedBlock;
import io.holdfast.proto.peer.ScrubMessage;
import io.holdfast.proto.peer.ScrubMessage.AskVersions;
import io.holdfast.proto.peer.ScrubMessage.Versions;
import io.holdfast.proto.peer.ShardId;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.function.DoubleSupplier;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Scrubs this node's replicas, shard by shard: on a schedule, and when asked. One run at a time;
 * who asks while one is under way joins it, and shards that are not in it come next.
 *
 * <p>A run is forgotten when the process ends; shards that it had finished keep their time ({@link
 * ScrubTimes}), so the schedule goes on with the others.
 *
 * <p>All methods on the data loop, except where they say otherwise.
 */
public final class Scrubber implements DataLoop.ScrubReceiver {
    private static final Logger LOG = LoggerFactory.getLogger(Scrubber.class);

    /** How often it is looked whether a shard is due. */
    static final long LOOK_NANOS = 60_000_000_000L;

    /** While clients use replicas here, only one part in this many of the rate is taken. */
    static final int YIELD = 4;

    /**
     * How a scrub goes.
     *
     * @param bytesPerSecond read at most; a part may be read at once, so it is an average
     * @param everyMillis time between two scheduled ones of a shard; 0: none is scheduled
     */
    public record Options(long bytesPerSecond, long everyMillis) {
        public Options {
            if (bytesPerSecond < 1 || everyMillis < 0) {
                throw new IllegalArgumentException(bytesPerSecond + " " + everyMillis);
            }
        }
    }

    /** How a run, or a volume's part in it, is. */
    public enum State {
        /** Nothing was scrubbed since the process started. */
        NEVER,
        RUNNING,
        DONE,
        /** A replica went away, or the store has failed. */
        STOPPED
    }

    /**
     * A volume's part of a run.
     *
     * @param name as it was when the run came to it
     * @param completedMillis when the least recently scrubbed of its shards here was last scrubbed
     *     to the end, since 1970; empty: one never was
     */
    public record VolumeReport(
            int volume, String name, State state, Counts counts, OptionalLong completedMillis) {}

    /**
     * The run under way, or the last one.
     *
     * @param scheduled nobody asked for it
     * @param startedMillis since 1970; 0: never
     * @param endedMillis since 1970; 0: not yet
     * @param runningNanos for how long it has run, or did
     * @param totalBytes to be verified, an estimate while it runs
     * @param volumes by number
     */
    public record Report(
            State state,
            boolean scheduled,
            long startedMillis,
            long endedMillis,
            long runningNanos,
            long totalBytes,
            Counts counts,
            List<VolumeReport> volumes) {
        public Report {
            volumes = List.copyOf(volumes);
        }
    }

    private final DataLoop loop;
    private final Store store;
    private final int self;
    private final Supplier<Catalogue> catalogue;
    private final Options options;
    private final ScrubTimes times;
    private final LongSupplier wallMillis;
    private final DoubleSupplier chance;
    private final VersionAnswers answers;
    private final LogPace lines = new LogPace();
    private final ArrayDeque<ShardId> left = new ArrayDeque<>();

    private @Nullable Run run;
    private @Nullable ShardScrub current;
    private Timers.@Nullable Handle look;
    private Timers.@Nullable Handle pause;
    private long newest;
    private long requestsSeen;
    private boolean stopped;

    /** Since the process started. Any thread. */
    private volatile Counts total = Counts.NONE;

    private volatile boolean running;

    /** What one run has done so far. */
    private static final class Run {
        final boolean scheduled;
        final long startedMillis;
        final long startNanos;
        long endedMillis;
        long endNanos;
        boolean incomplete;
        final Map<Integer, Part> volumes = new TreeMap<>();

        Run(boolean scheduled, long startedMillis, long startNanos) {
            this.scheduled = scheduled;
            this.startedMillis = startedMillis;
            this.startNanos = startNanos;
        }
    }

    private static final class Part {
        final String name;
        final List<ShardId> shards = new ArrayList<>();
        int open;
        boolean incomplete;
        Counts counts = Counts.NONE;

        Part(String name) {
            this.name = name;
        }

        State state() {
            if (open > 0) {
                return State.RUNNING;
            }
            return incomplete ? State.STOPPED : State.DONE;
        }
    }

    /**
     * A scrubber that does nothing yet. Any thread, before the data loop has work for it.
     *
     * @param catalogue as the replicas follow it; asked on the loop
     * @param wallMillis since 1970: for the schedule and for people
     * @param chance from 0 to less than 1, spreads first scrubs over the period
     */
    public Scrubber(
            DataLoop loop,
            Store store,
            int self,
            Supplier<Catalogue> catalogue,
            Options options,
            ScrubTimes times,
            LongSupplier wallMillis,
            DoubleSupplier chance) {
        this.loop = loop;
        this.store = store;
        this.self = self;
        this.catalogue = catalogue;
        this.options = options;
        this.times = times;
        this.wallMillis = wallMillis;
        this.chance = chance;
        this.answers = new VersionAnswers(loop, store);
    }

    /** Begins to answer other nodes, and to look at the schedule. */
    public void start() {
        loop.scrub(this);
        if (options.everyMillis > 0) {
            lookLater();
        }
    }

    /** Breaks off what is under way. */
    public void stop() {
        stopped = true;
        if (look != null) {
            look.cancel();
        }
        if (pause != null) {
            pause.cancel();
        }
        ShardScrub under = current;
        if (under != null) {
            under.close();
            current = null;
        }
        left.clear();
    }

    // ---- schedule

    private void lookLater() {
        look =
                loop.thread()
                        .schedule(
                                LOOK_NANOS,
                                () -> {
                                    look();
                                    lookLater();
                                });
    }

    /** Starts a run of what is due, unless one is under way. */
    void look() {
        if (running || stopped || loop.storeFailure() != null) {
            return;
        }
        long now = wallMillis.getAsLong();
        List<ShardId> due = new ArrayList<>();
        for (ShardId shard : loop.shards()) {
            OptionalLong last = times.last(shard);
            if (last.isEmpty() || last.getAsLong() > now) {
                // New here, or the clock was put back. Anywhere in the period, so that not all
                // nodes and volumes come at the same time.
                long ago = (long) (chance.getAsDouble() * options.everyMillis);
                times.put(shard, now - ago, false);
            } else if (now - last.getAsLong() >= options.everyMillis) {
                due.add(shard);
            }
        }
        if (!due.isEmpty()) {
            begin(due, true);
        }
    }

    // ---- runs

    /**
     * Scrubs a volume's replicas here, or all; joins the run that is under way.
     *
     * @param volume its number, null: all volumes
     */
    public Report request(@Nullable Integer volume) {
        List<ShardId> wanted =
                loop.shards().stream()
                        .filter(shard -> volume == null || shard.volume() == volume)
                        .toList();
        begin(wanted, false);
        return report();
    }

    private void begin(List<ShardId> shards, boolean scheduled) {
        if (stopped) {
            return;
        }
        Run under = run;
        if (under == null || under.endedMillis != 0) {
            under = new Run(scheduled, wallMillis.getAsLong(), loop.thread().nanoTime());
            run = under;
            running = true;
            forgetGone();
            LOG.info("Scrub of {} shards starts{}", shards.size(), scheduled ? ", scheduled" : "");
        }
        for (ShardId shard : shards.reversed()) {
            Part part =
                    under.volumes.computeIfAbsent(
                            shard.volume(), number -> new Part(nameOf(number)));
            if (!part.shards.contains(shard)) {
                part.shards.add(shard);
                part.open++;
                left.addFirst(shard);
            }
        }
        if (current == null) {
            nextShard();
        }
    }

    private String nameOf(int volume) {
        return catalogue.get().volume(volume).map(Volume::name).orElse("volume#" + volume);
    }

    /** Times of shards of deleted volumes; one that is not known yet is not deleted. */
    private void forgetGone() {
        Catalogue now = catalogue.get();
        times.removeIf(
                shard -> shard.volume() < now.nextVolume() && now.volume(shard.volume()).isEmpty());
    }

    private void nextShard() {
        ShardId next = left.poll();
        if (next != null) {
            ShardScrub made = new ShardScrub(next, loop, store, self, new Context());
            current = made;
            made.start();
            return;
        }
        Run done = run;
        current = null;
        running = false;
        if (done != null) {
            done.endedMillis = wallMillis.getAsLong();
            done.endNanos = loop.thread().nanoTime();
            Counts counts = sum(done);
            LOG.info("Scrub {}: {}", done.incomplete ? "was broken off" : "is done", counts);
        }
    }

    private static Counts sum(Run run) {
        return run.volumes.values().stream()
                .map(part -> part.counts)
                .reduce(Counts.NONE, Counts::plus);
    }

    private final class Context implements ShardScrub.Owner {
        @Override
        public List<Integer> replicas(ShardId shard) {
            return catalogue
                    .get()
                    .volume(shard.volume())
                    .map(Volume::shards)
                    .filter(shards -> shard.index() < shards.size())
                    .map(shards -> shards.get(shard.index()).replicas())
                    .orElse(List.of());
        }

        @Override
        public long newNumber() {
            return ++newest;
        }

        @Override
        public void count(ShardId shard, Counts more) {
            total = total.plus(more);
            Run under = run;
            Part part = under == null ? null : under.volumes.get(shard.volume());
            if (part != null) {
                part.counts = part.counts.plus(more);
            }
        }

        @Override
        public void say(boolean bad, ShardId shard, long block, String what) {
            if (!lines.mayLog(loop.thread().nanoTime())) {
                return;
            }
            String text = "Volume {} shard {} block {}: {}";
            if (bad) {
                LOG.error(text, nameOf(shard.volume()), shard.index(), block, what);
            } else {
                LOG.warn(text, nameOf(shard.volume()), shard.index(), block, what);
            }
        }

        @Override
        public void pace(long bytes, long startNanos, Runnable next) {
            long requests = loop.clientRequests();
            long rate =
                    Math.max(1, options.bytesPerSecond / (requests == requestsSeen ? 1 : YIELD));
            requestsSeen = requests;
            long nanos = (long) (bytes * 1e9 / rate) - (loop.thread().nanoTime() - startNanos);
            // Never at once, so that the loop has its other work done in between.
            pause = loop.thread().schedule(Math.max(0, nanos), next);
        }

        @Override
        public void ended(ShardId shard, boolean complete) {
            Run under = run;
            Part part = under == null ? null : under.volumes.get(shard.volume());
            if (under != null && part != null) {
                part.open--;
                part.incomplete |= !complete;
                under.incomplete |= !complete;
            }
            if (complete) {
                times.put(shard, wallMillis.getAsLong(), true);
            }
            // Not from inside the one that ends.
            loop.thread()
                    .execute(() -> {
                        if (!stopped) {
                            nextShard();
                        }
                    });
        }
    }

    // ---- messages

    @Override
    public void received(int from, ScrubMessage message) {
        switch (message) {
            case AskVersions ask -> answers.asked(from, ask);
            case Versions versions -> {
                if (current != null && current.shard().equals(versions.shard())) {
                    current.received(from, versions);
                }
            }
        }
    }

    @Override
    public void received(int from, FetchedBlock copy) {
        if (current != null && current.shard().equals(copy.shard())) {
            current.received(from, copy);
        }
    }

    // ---- reports

    /** Whether a run is under way. Any thread. */
    public boolean isRunning() {
        return running;
    }

    /** What all runs of this process have done. Any thread. */
    public Counts total() {
        return total;
    }

    /** How this scrubber goes. Any thread. */
    public Options options() {
        return options;
    }

    /** The run under way, or the last one. */
    public Report report() {
        Run last = run;
        if (last == null) {
            return new Report(State.NEVER, false, 0, 0, 0, 0, Counts.NONE, List.of());
        }
        List<VolumeReport> volumes = new ArrayList<>();
        last.volumes.forEach((number, part) ->
                volumes.add(
                        new VolumeReport(
                                number,
                                part.name,
                                part.state(),
                                part.counts,
                                completed(part.shards))));
        boolean over = last.endedMillis != 0;
        Counts counts = sum(last);
        State state = State.RUNNING;
        if (over) {
            state = last.incomplete ? State.STOPPED : State.DONE;
        }
        long until = over ? last.endNanos : loop.thread().nanoTime();
        return new Report(
                state,
                last.scheduled,
                last.startedMillis,
                last.endedMillis,
                until - last.startNanos,
                over ? counts.bytes() : Math.max(counts.bytes(), totalBytes(last)),
                counts,
                volumes);
    }

    /** Clients write meanwhile, so it is what is there now. */
    private long totalBytes(Run of) {
        long bytes = 0;
        for (Part part : of.volumes.values()) {
            for (ShardId shard : part.shards) {
                bytes += store.liveBytes(shard);
            }
        }
        return bytes;
    }

    private OptionalLong completed(Collection<ShardId> shards) {
        long oldest = Long.MAX_VALUE;
        for (ShardId shard : shards) {
            OptionalLong time = times.completed(shard);
            if (time.isEmpty()) {
                return time;
            }
            oldest = Math.min(oldest, time.getAsLong());
        }
        return shards.isEmpty() ? OptionalLong.empty() : OptionalLong.of(oldest);
    }
}
