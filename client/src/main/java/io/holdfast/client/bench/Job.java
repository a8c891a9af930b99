package io.holdfast.client.bench;

import java.util.List;

/** The seven jobs, the same for every server that is measured. */
public enum Job {
    RANDOM_WRITE_1("4k random write, depth 1", "randwrite", "4k", 1),
    RANDOM_WRITE_32("4k random write, depth 32", "randwrite", "4k", 32),
    RANDOM_READ_32("4k random read, depth 32", "randread", "4k", 32),
    MIXED_32("4k 70/30 mix, depth 32", "randrw", "4k", 32, "--rwmixread=70"),
    SEQUENTIAL_WRITE("1M sequential write, depth 8", "write", "1m", 8),
    SEQUENTIAL_READ("1M sequential read, depth 8", "read", "1m", 8),
    SYNCED_WRITE("4k random write, fsync each", "randwrite", "4k", 1, "--fsync=1");

    private final String title;

    /** Options of fio that all jobs of this kind share. */
    private final String options;

    Job(String title, String pattern, String blockSize, int depth, String... more) {
        this.title = title;
        options =
                String.join(
                        " ",
                        "--rw=" + pattern,
                        "--bs=" + blockSize,
                        "--iodepth=" + depth,
                        String.join(" ", more));
    }

    /** For people. */
    public String title() {
        return title;
    }

    List<String> options() {
        return List.of(options.strip().split(" "));
    }
}
