package io.holdfast.integration;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/**
 * A client that overwrites the same blocks again and again, several requests at a time, and knows
 * of each block what it may hold after a failure: the newest value that is promised to last, or a
 * later one that was written. Python over libnbd; what it knows is kept in a file from one run to
 * the next.
 *
 * <p>A value is a version number, which no two writes share, all over the block; or zeroes. What is
 * promised to last:
 *
 * <ul>
 *   <li>{@link Promise#FLUSHED}: a write that was answered before a FLUSH was sent that was
 *       answered; and a write with FUA that was answered;
 *   <li>{@link Promise#ACKNOWLEDGED}: a write that was answered.
 * </ul>
 */
final class CheckedWriter implements AutoCloseable {
    /** What makes a value last. */
    enum Promise {
        FLUSHED,
        ACKNOWLEDGED
    }

    /** Exit code of a writer whose connection broke. */
    static final int BROKEN = 3;

    /** Most requests at once: so many may be answered of those that were sent before a failure. */
    static final int DEPTH = 8;

    private static final Duration LIMIT = Duration.ofMinutes(2);

    private static final String COMMON =
            """
            import collections, json, os, random, sys
            BLOCK, BLOCKS = 4096, 2048
            ZEROES = bytes(BLOCK)

            def content(version, block):
                # 20 bytes, which no sector's border divides: a torn block holds two versions.
                return ((b"%08d %010d\\n" % (block, version)) * 205)[:BLOCK]

            # By block: [version, whether zeroes] from the newest that must last on, oldest first.
            if os.path.exists(os.environ["STATE"]):
                with open(os.environ["STATE"]) as saved:
                    state = json.load(saved)
            else:
                state = {"version": 0, "possible": [[[0, True]] for _ in range(BLOCKS)]}
            possible = state["possible"]

            def save():
                new = os.environ["STATE"] + ".new"
                with open(new, "w") as out:
                    json.dump(state, out)
                os.rename(new, os.environ["STATE"])
            """;

    private static final String WRITE =
            """
            DEPTH, LONGEST = int(os.environ["DEPTH"]), 8
            rng = random.Random(int(os.environ["SEED"]))
            FLUSH = float(os.environ["FLUSHES"])
            FUA, ZERO = FLUSH / 2, 0.06
            acknowledged_lasts = os.environ["PROMISE"] == "ACKNOWLEDGED"
            flying, busy, acknowledged, told = {}, set(), {}, []
            done = collections.Counter()
            count = os.open(os.environ["COUNT"], os.O_CREAT | os.O_WRONLY)

            def lasts(block, version):
                possible[block] = [p for p in possible[block] if p[0] >= version]

            def issue():
                kind = rng.random()
                if kind < FLUSH:
                    flying[h.aio_flush()] = ("flush", dict(acknowledged))
                    return
                first, count = rng.randrange(BLOCKS), rng.randint(1, LONGEST)
                blocks = range(first, min(first + count, BLOCKS))
                if any(b in busy for b in blocks):
                    return
                fua = kind < FLUSH + FUA
                zero = not fua and kind < FLUSH + FUA + ZERO
                state["version"] += 1
                version = state["version"]
                # Before it is sent: from here on it may be there.
                for b in blocks:
                    possible[b].append([version, zero])
                busy.update(blocks)
                at, length = first * BLOCK, len(blocks) * BLOCK
                if zero:
                    cookie = h.aio_zero(length, at)
                else:
                    data = bytearray(b"".join(content(version, b) for b in blocks))
                    flags = nbd.CMD_FLAG_FUA if fua else 0
                    cookie = h.aio_pwrite(nbd.Buffer.from_bytearray(data), at, flags=flags)
                flying[cookie] = ("fua" if fua else "write", (blocks, version))

            def answered(kind, what):
                done[kind] += 1
                if kind == "flush":
                    if what and not told:
                        told.append(True)
                        print("flushed", flush=True)
                    for b, version in what.items():
                        lasts(b, version)
                        if acknowledged.get(b) == version:
                            del acknowledged[b]
                    return
                os.pwrite(count, b"%9d" % (done["write"] + done["fua"]), 0)
                blocks, version = what
                busy.difference_update(blocks)
                for b in blocks:
                    if kind == "fua" or acknowledged_lasts:
                        lasts(b, version)
                    else:
                        acknowledged[b] = version

            def reap():
                error = None
                for cookie in list(flying):
                    try:
                        if h.aio_command_completed(cookie):
                            answered(*flying.pop(cookie))
                    except nbd.Error as e:
                        error = e
                if error:
                    raise error

            broken = None
            try:
                h.connect_uri(os.environ["URI"])
                print("connected", flush=True)
                while flying or not os.path.exists(os.environ["STOP"]):
                    while len(flying) < DEPTH and not os.path.exists(os.environ["STOP"]):
                        issue()
                    h.poll(100)
                    reap()
            except nbd.Error as e:
                broken = e
                try:
                    reap()
                except nbd.Error:
                    pass  # the others have no answer
            save()
            open_values = sum(len(p) - 1 for p in possible)
            print("%d writes and zeroes, %d with FUA, %d flushes answered; %d later values possible; %s"
                  % (done["write"], done["fua"], done["flush"], open_values, broken or "stopped"))
            sys.exit(3 if broken else 0)
            """;

    private static final String CHECK =
            """
            RUN = 64
            h.connect_uri(os.environ["URI"])
            lost = newest = 0
            for first in range(0, BLOCKS, RUN):
                data = bytes(h.pread(RUN * BLOCK, first * BLOCK))
                for i in range(RUN):
                    b, got = first + i, data[i * BLOCK:(i + 1) * BLOCK]
                    held = [p for p in possible[b]
                            if got == (ZEROES if p[1] else content(p[0], b))]
                    if held:
                        newest += held[-1] == possible[b][-1]
                        possible[b] = [held[-1]]
                        continue
                    lost += 1
                    if lost <= 20:
                        print("block %d lost: it holds %r, %r; it may hold %r"
                              % (b, got[:19], got[-20:], possible[b]))
            if lost:
                print("%d blocks lost" % lost)
                sys.exit(1)
            # What was read now lasts as well, whatever comes next.
            h.flush()
            save()
            print("checked %d blocks, %d hold the newest value written" % (BLOCKS, newest))
            """;

    private final Path stop;
    private final Path count;
    private final Tool tool;

    private CheckedWriter(Path stop, Path count, Tool tool) {
        this.stop = stop;
        this.count = count;
        this.tool = tool;
    }

    /**
     * Starts writing; ends when {@link #stop} is called or the connection breaks.
     *
     * @param flushes part of its requests, 0 to 1
     */
    static CheckedWriter start(String uri, Path state, long seed, Promise promise, double flushes)
            throws IOException {
        Path stop = state.resolveSibling(state.getFileName() + ".stop");
        Path count = state.resolveSibling(state.getFileName() + ".count");
        Files.deleteIfExists(stop);
        Files.deleteIfExists(count);
        return new CheckedWriter(
                stop,
                count,
                Tool.start(
                        Map.of(
                                "URI", uri,
                                "STATE", state.toString(),
                                "STOP", stop.toString(),
                                "COUNT", count.toString(),
                                "DEPTH", Integer.toString(DEPTH),
                                "SEED", Long.toString(seed),
                                "FLUSHES", Double.toString(flushes),
                                "PROMISE", promise.name()),
                        Tool.nbdsh("-c", COMMON + WRITE)));
    }

    /** Waits until it has a connection, so that it is under way. */
    void awaitConnected() {
        awaitSaid("connected");
    }

    /** Waits until there is something that was flushed. */
    void awaitFlushed() {
        awaitSaid("flushed");
    }

    private void awaitSaid(String word) {
        TestCluster.await(
                "the checked writer to be " + word,
                LIMIT,
                () -> {
                    assertRunning();
                    return tool.output().lines().anyMatch(word::equals);
                });
    }

    /** How many writes and zeroes have been answered. */
    int acknowledged() {
        try {
            String number = Files.exists(count) ? Files.readString(count).strip() : "";
            return number.isEmpty() ? 0 : Integer.parseInt(number);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Waits until that many writes and zeroes have been answered. */
    void awaitAcknowledged(int least, Duration limit) {
        TestCluster.await(
                least + " writes to be acknowledged",
                limit,
                () -> {
                    assertRunning();
                    return acknowledged() >= least;
                });
    }

    /** Fails, with what it said, when it has ended. */
    void assertRunning() {
        assertThat(tool.isRunning()).as(() -> "the writer ended: " + tool.output()).isTrue();
    }

    /** Waits for the end that a broken connection makes; what it did, for people. */
    String awaitBroken() {
        Tool.Result result = tool.await(LIMIT);
        assertThat(result.exit()).as(result.output()).isEqualTo(BROKEN);
        return summary(result);
    }

    /** Lets it wait for what is under way, and end; what it did, for people. */
    String stop() throws IOException {
        assertRunning();
        Files.createFile(stop);
        return summary(tool.await(LIMIT).succeeds());
    }

    private static String summary(Tool.Result result) {
        return result.output().lines().reduce("", (before, line) -> line);
    }

    /**
     * Reads every block and compares it with what it may hold. What it holds must last from now on.
     *
     * @return exit code 0, or 1 and the lost blocks
     */
    static Tool.Result check(String uri, Path state) {
        return Tool.run(
                LIMIT,
                Map.of("URI", uri, "STATE", state.toString()),
                List.of(Tool.nbdsh("-c", COMMON + CHECK)));
    }

    @Override
    public void close() {
        tool.close();
    }
}
