package io.holdfast.node.admin;

import io.holdfast.client.admin.ScrubDocument;
import io.holdfast.client.admin.ScrubDocument.VolumeScrub;
import io.holdfast.node.runtime.DataLoop;
import io.holdfast.node.scrub.Counts;
import io.holdfast.node.scrub.Scrubber;
import io.holdfast.node.scrub.Scrubber.Report;
import io.holdfast.node.scrub.Scrubber.State;
import java.time.Instant;
import java.util.List;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/** This node's scrub as people see it. Any thread. */
final class ScrubAdmin {
    private static final double NANOS_PER_SECOND = 1e9;

    private final String node;
    private final DataLoop loop;
    private final Scrubber scrubber;

    ScrubAdmin(String node, DataLoop loop, Scrubber scrubber) {
        this.node = node;
        this.loop = loop;
        this.scrubber = scrubber;
    }

    /**
     * The run under way, or the last one.
     *
     * @throws AdminRefusal 503 when the data loop gives no answer
     */
    ScrubDocument document() {
        return document(LoopAnswers.get(loop.thread().submit(scrubber::report)));
    }

    /**
     * Starts a run, or joins the one under way.
     *
     * @param volume number, null: all
     * @throws AdminRefusal 503 when the data loop gives no answer, or the store has failed
     */
    ScrubDocument start(@Nullable Integer volume) {
        if (LoopAnswers.seen(loop).storeFailure() != null) {
            throw new AdminRefusal(
                    AdminRefusal.UNAVAILABLE,
                    "the store of " + node + " has failed: there is nothing to scrub",
                    "see the node's log; restart it when its disk is well");
        }
        return document(LoopAnswers.get(loop.thread().submit(() -> scrubber.request(volume))));
    }

    private ScrubDocument document(Report report) {
        long bytes = report.counts().bytes();
        double seconds = report.runningNanos() / NANOS_PER_SECOND;
        long rate = seconds > 0 ? (long) (bytes / seconds) : 0;
        boolean running = report.state() == State.RUNNING;
        List<VolumeScrub> volumes =
                report.volumes().stream()
                        .map(each ->
                                new VolumeScrub(
                                        each.name(),
                                        state(each.state()),
                                        counts(each.counts()),
                                        time(each.completedMillis())))
                        .toList();
        return new ScrubDocument(
                node,
                state(report.state()),
                report.scheduled(),
                time(report.startedMillis()),
                time(report.endedMillis()),
                bytes,
                report.totalBytes(),
                rate,
                running && rate > 0 ? (report.totalBytes() - bytes) / rate : null,
                counts(report.counts()),
                volumes);
    }

    private static ScrubDocument.State state(State state) {
        return switch (state) {
            case NEVER -> ScrubDocument.State.NEVER;
            case RUNNING -> ScrubDocument.State.RUNNING;
            case DONE -> ScrubDocument.State.DONE;
            case STOPPED -> ScrubDocument.State.STOPPED;
        };
    }

    private static ScrubDocument.Counts counts(Counts counts) {
        return new ScrubDocument.Counts(
                counts.blocks(),
                counts.compared(),
                counts.notCompared(),
                counts.damaged(),
                counts.differing(),
                counts.repaired(),
                counts.unrepairable());
    }

    private static @Nullable String time(long millis) {
        return millis == 0 ? null : Instant.ofEpochMilli(millis).toString();
    }

    private static @Nullable String time(OptionalLong millis) {
        return millis.isEmpty() ? null : Instant.ofEpochMilli(millis.getAsLong()).toString();
    }
}
