package io.holdfast.node.scrub;

import io.holdfast.proto.peer.ShardId;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Map;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.concurrent.Executor;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * When each shard here was last scrubbed to its end, kept in a small file so that a restart does
 * not start the schedule anew. A line per shard: {@code VOLUME INDEX MILLISECONDS KIND}, the time
 * since 1970, the kind {@code done}, or {@code new} for a time that was drawn when the shard was
 * first seen. A file that is lost or cannot be read costs a scrub that comes early or late: what
 * cannot be read is left out.
 *
 * <p>Used on the data loop; the file is written by {@code writer}, one at a time.
 */
public final class ScrubTimes {
    private static final Logger LOG = LoggerFactory.getLogger(ScrubTimes.class);
    private static final Pattern LINE =
            Pattern.compile("([0-9]{1,9}) ([0-9]{1,4}) ([0-9]{1,18}) (done|new)");

    private record Time(long millis, boolean done) {}

    private final Path file;
    private final Executor writer;
    private final Map<ShardId, Time> times = new TreeMap<>();

    /**
     * Reads the file, if there is one; waits for it.
     *
     * @param writer runs its tasks one by one, may wait for the disk
     */
    public ScrubTimes(Path file, Executor writer) {
        this.file = file;
        this.writer = writer;
        if (!Files.exists(file)) {
            return;
        }
        try {
            for (String line : Files.readAllLines(file)) {
                Matcher parts = LINE.matcher(line);
                if (parts.matches()) {
                    int index = Integer.parseInt(parts.group(2));
                    int volume = Integer.parseInt(parts.group(1));
                    if (volume > 0 && index <= ShardId.MAX_INDEX) {
                        times.put(
                                new ShardId(volume, index),
                                new Time(
                                        Long.parseLong(parts.group(3)),
                                        parts.group(4).equals("done")));
                    }
                }
            }
        } catch (IOException e) {
            LOG.warn("Cannot read {}: scheduled scrubs may come early", file, e);
        }
    }

    /** The time to count from; empty: the shard was never seen. */
    OptionalLong last(ShardId shard) {
        Time time = times.get(shard);
        return time == null ? OptionalLong.empty() : OptionalLong.of(time.millis);
    }

    /** End of the last complete scrub; empty: there was none. */
    OptionalLong completed(ShardId shard) {
        Time time = times.get(shard);
        return time == null || !time.done ? OptionalLong.empty() : OptionalLong.of(time.millis);
    }

    void put(ShardId shard, long millis, boolean done) {
        times.put(shard, new Time(millis, done));
        save();
    }

    /** Forgets shards that are gone for good. */
    void removeIf(Predicate<ShardId> gone) {
        if (times.keySet().removeIf(gone)) {
            save();
        }
    }

    private void save() {
        StringBuilder text = new StringBuilder();
        times.forEach((shard, time) ->
                text.append(shard.volume())
                        .append(' ')
                        .append(shard.index())
                        .append(' ')
                        .append(time.millis)
                        .append(time.done ? " done\n" : " new\n"));
        String lines = text.toString();
        writer.execute(() -> write(lines));
    }

    /** The old file or the new one is there after a crash. */
    private void write(String lines) {
        Path made = file.resolveSibling(file.getFileName() + ".new");
        try {
            Files.writeString(made, lines);
            try (FileChannel channel = FileChannel.open(made, StandardOpenOption.WRITE)) {
                channel.force(true);
            }
            Files.move(made, file, StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException e) {
            LOG.warn("Cannot write {}: scheduled scrubs may come early after a restart", file, e);
        }
    }
}
