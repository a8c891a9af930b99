package io.holdfast.node.tool;

import io.holdfast.client.admin.AdminJson;
import io.holdfast.config.ConfigLoader;
import io.holdfast.node.store.OfflineStore;
import io.holdfast.node.store.StoreCheck;
import io.holdfast.node.store.StoreException;
import io.holdfast.node.store.StoreProblem;
import io.holdfast.node.store.StoreSummary;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code store inspect} and {@code store verify}. */
@Command(
        name = "store",
        description = "Look at the store of a node that does not run. Never writes anything.",
        mixinStandardHelpOptions = true,
        subcommands = {StoreCommand.Inspect.class, StoreCommand.Verify.class},
        footerHeading = "%nExamples:%n",
        footer = {"  holdfast store inspect run/node-1", "  holdfast store verify run/node-1"})
final class StoreCommand implements Runnable {
    private static final long MIB = 1L << 20;
    private static final String USAGE_CODE =
            "            2 wrong usage, no store there, or one of another format,";
    private static final String IN_USE_CODE = "            6 a process uses the store";

    @Spec private CommandSpec spec = CommandSpec.create();

    @Override
    public void run() {
        throw new ParameterException(
                spec.commandLine(), "which one: store inspect or store verify?");
    }

    /** What both commands are given, and where they print. */
    abstract static class Look implements Callable<Integer> {
        @Spec CommandSpec spec = CommandSpec.create();

        @Parameters(
                paramLabel = "DIR",
                description =
                        "A node's data directory, or the node's folder of a local cluster, such as"
                                + " run/node-1.")
        Path directory = Path.of("");

        @Option(names = "--json", description = "Print JSON.")
        boolean json;

        @Override
        public final Integer call() throws IOException {
            PrintWriter out = spec.commandLine().getOut();
            Path data = dataDirectory(directory);
            OfflineStore opened;
            try {
                opened = OfflineStore.open(data);
            } catch (StoreException e) {
                if (e.kind() != StoreException.Kind.DAMAGED) {
                    throw e;
                }
                return notOpened(data, e, out);
            }
            try (OfflineStore store = opened) {
                return look(store, out, new Progress(spec.commandLine().getErr()));
            }
        }

        /** The store is too damaged to be looked at. */
        int notOpened(Path data, StoreException damage, PrintWriter out) throws IOException {
            throw damage;
        }

        abstract int look(OfflineStore store, PrintWriter out, Progress progress)
                throws IOException;
    }

    /** The directory itself, or the one that the configuration of the node in it names. */
    private static Path dataDirectory(Path directory) {
        Path config = directory.resolve("node.conf");
        if (!OfflineStore.isStore(directory) && Files.isRegularFile(config)) {
            return ConfigLoader.load(config).dataDirectory();
        }
        return directory;
    }

    /** Says on standard error how far it is, when it takes long. */
    static final class Progress implements OfflineStore.Progress {
        private static final long EVERY_NANOS = 2_000_000_000;

        private final PrintWriter err;
        private long told = System.nanoTime();

        Progress(PrintWriter err) {
            this.err = err;
        }

        @Override
        public void read(long bytes, long all) {
            long now = System.nanoTime();
            if (now - told >= EVERY_NANOS) {
                told = now;
                err.println("read " + mib(bytes) + " of " + mib(all));
                err.flush();
            }
        }
    }

    private static String counted(long number, String what) {
        return number + " " + what + (number == 1 ? "" : "s");
    }

    private static String mib(long bytes) {
        return String.format(Locale.ROOT, "%.1f MiB", (double) bytes / MIB);
    }

    @Command(
            name = "inspect",
            description = {
                "Tell what a store is: formats, segments, shards.",
                "Reads the headers of all records, and verifies none: see 'store verify'."
            },
            mixinStandardHelpOptions = true,
            footerHeading = "%nExamples:%n",
            footer = {
                "  holdfast store inspect run/node-1",
                "  holdfast store inspect /var/lib/holdfast --json",
                "",
                "Exit codes: 0 done, 1 the store cannot be read,",
                USAGE_CODE,
                IN_USE_CODE
            })
    static final class Inspect extends Look {
        @Override
        int look(OfflineStore store, PrintWriter out, Progress progress) throws IOException {
            StoreSummary found = store.inspect(progress);
            if (json) {
                out.println(AdminJson.writePretty(found));
            } else {
                print(out, found);
            }
            return Main.OK;
        }

        private static void print(PrintWriter out, StoreSummary found) {
            out.println("store      " + found.store() + " in " + found.directory());
            out.println(
                    "formats    journal " + found.journalFormat() + ", map " + found.mapFormat());
            out.println(
                    "closed     "
                            + (found.clean() ? "cleanly" : "not: the next start reads the journal")
                            + ", in boot "
                            + found.boot());
            out.println(
                    "journal    covered "
                            + found.covered()
                            + ", synced "
                            + found.synced()
                            + ", end "
                            + found.end());
            out.println(
                    "size       "
                            + mib(found.journalBytes())
                            + ", live "
                            + mib(found.liveBytes())
                            + ", "
                            + counted(found.records(), "record")
                            + ", "
                            + counted(found.extents(), "extent"));
            if (found.damages() > 0) {
                out.println(
                        "damaged    "
                                + counted(found.damages(), "place")
                                + ": see 'holdfast store verify'");
            }
            out.println();
            String segment = "%-10s %12s %12s %9s  %-18s %-18s%n";
            out.printf(segment, "SEGMENT", "BYTES", "LIVE", "RECORDS", "FIRST", "LAST");
            for (StoreSummary.SegmentLine line : found.segments()) {
                out.printf(
                        segment,
                        line.number(),
                        line.bytes(),
                        line.liveBytes(),
                        line.records(),
                        line.spare() ? "spare" : dash(line.first()),
                        dash(line.last()));
            }
            out.println();
            String shard = "%-10s %8s %4s  %-12s %12s %12s %12s %10s%n";
            out.printf(
                    shard,
                    "SHARD",
                    "PROMISED",
                    "TO",
                    "STANDING",
                    "APPLIED",
                    "LOG FROM",
                    "LOG LAST",
                    "EXTENTS");
            for (StoreSummary.ShardLine line : found.shards()) {
                boolean empty = line.logFirst() > line.logLast();
                out.printf(
                        shard,
                        line.volume() + "/" + line.shard(),
                        line.promised(),
                        line.promisedTo() == 0 ? "-" : line.promisedTo(),
                        line.standing(),
                        line.applied(),
                        empty ? "-" : line.logFirst(),
                        empty ? "-" : line.logLast(),
                        line.extents());
            }
        }

        private static String dash(@Nullable String place) {
            return place == null ? "-" : place;
        }
    }

    @Command(
            name = "verify",
            description = {
                "Read every record of a store, verify its checksum, and hold the map against the"
                        + " journal: every extent must point to a valid record of its blocks.",
                "Tells the place and kind of each damage. Reads the whole journal."
            },
            mixinStandardHelpOptions = true,
            footerHeading = "%nExamples:%n",
            footer = {
                "  holdfast store verify run/node-1",
                "  holdfast store verify /var/lib/holdfast --json",
                "",
                "Exit codes: 0 the store is sound, 1 it is damaged,",
                USAGE_CODE,
                IN_USE_CODE
            })
    static final class Verify extends Look {
        @Override
        int look(OfflineStore store, PrintWriter out, Progress progress) throws IOException {
            return tell(store.verify(progress), out);
        }

        @Override
        int notOpened(Path data, StoreException damage, PrintWriter out) {
            return tell(StoreCheck.notOpened(data, damage), out);
        }

        private int tell(StoreCheck check, PrintWriter out) {
            if (json) {
                out.println(AdminJson.writePretty(check));
            } else {
                print(out, check);
            }
            return check.sound() ? Main.OK : Main.DAMAGED;
        }

        private static void print(PrintWriter out, StoreCheck check) {
            for (StoreProblem problem : check.listed()) {
                out.println("damaged: " + problem.text());
            }
            if (check.problems() > check.listed().size()) {
                out.println("and " + (check.problems() - check.listed().size()) + " more");
            }
            check.notes().forEach(note -> out.println("note: " + note));
            if (check.store() == null) {
                out.println("nothing was read: the store cannot be opened");
            } else {
                out.printf(
                        "read %s in %s (%s), %s of %s in %s%n",
                        counted(check.records(), "record"),
                        counted(check.segments(), "segment"),
                        mib(check.bytes()),
                        counted(check.extents(), "extent"),
                        counted(check.blocks(), "block"),
                        counted(check.shards(), "shard"));
            }
            if (check.sound()) {
                out.println("the store in " + check.directory() + " is sound");
            } else {
                out.println(
                        "the store in "
                                + check.directory()
                                + " is DAMAGED in "
                                + counted(check.problems(), "place"));
                out.println("  " + OfflineStore.REMEDY);
            }
        }
    }
}
