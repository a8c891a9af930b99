package io.holdfast.integration;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/**
 * A client that notes what was acknowledged, written in Python over libnbd: block i gets content
 * that only i has, and i goes into a file once the server has answered.
 */
final class NbdWriter implements AutoCloseable {
    private static final String CONTENT =
            """
            def content(i):
                return ((b"block %012d " % i) * 256)[:4096]
            """;

    private static final String WRITE =
            """
            import os, sys
            h.connect_uri(os.environ["URI"])
            acked = open(os.environ["ACKED"], "a", buffering=1)
            first, count = int(os.environ["FIRST"]), int(os.environ["COUNT"])
            for i in range(first, first + count):
                try:
                    h.pwrite(content(i), i * 4096)
                except nbd.Error as e:
                    print("stopped at block %d: %s" % (i, e))
                    sys.exit(3)
                acked.write("%d\\n" % i)
            """;

    private static final String VERIFY =
            """
            import os, sys
            h.connect_uri(os.environ["URI"])
            wrong = 0
            lines = [int(l) for l in open(os.environ["ACKED"])]
            for i in lines:
                got = h.pread(4096, i * 4096)
                if bytes(got) != content(i):
                    wrong += 1
                    print("block %d lost: %r" % (i, bytes(got[:20])))
            print("verified %d acknowledged blocks, %d wrong" % (len(lines), wrong))
            sys.exit(1 if wrong else 0)
            """;

    private final Path acked;
    private final Tool tool;

    private NbdWriter(Path acked, Tool tool) {
        this.acked = acked;
        this.tool = tool;
    }

    /** Writes blocks {@code first} to {@code first + count - 1} one after the other. */
    static NbdWriter start(String uri, Path acked, int first, int count) {
        return new NbdWriter(
                acked,
                Tool.start(
                        Map.of(
                                "URI", uri,
                                "ACKED", acked.toString(),
                                "FIRST", Integer.toString(first),
                                "COUNT", Integer.toString(count)),
                        Tool.nbdsh("-c", CONTENT + WRITE)));
    }

    /** How many writes have been answered. */
    int acknowledged() {
        try {
            return Files.exists(acked) ? Files.readAllLines(acked).size() : 0;
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    Tool.Result await(Duration limit) {
        return tool.await(limit);
    }

    /** Fails, with what it said, when the writer has ended. */
    void assertRunning() {
        assertThat(tool.isRunning()).as(() -> "the writer ended: " + tool.output()).isTrue();
    }

    /** Fails unless every acknowledged block has its content. */
    static void assertAllThere(String uri, Path acked) throws IOException {
        List<String> lines = Files.readAllLines(acked);
        assertThat(lines).isNotEmpty();
        Tool.Result result =
                Tool.run(
                        Duration.ofMinutes(2),
                        Map.of("URI", uri, "ACKED", acked.toString()),
                        List.of(Tool.nbdsh("-c", CONTENT + VERIFY)));
        System.out.println(result.output().strip());
        result.succeeds();
    }

    @Override
    public void close() {
        tool.close();
    }
}
