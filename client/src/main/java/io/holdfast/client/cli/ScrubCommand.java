package io.holdfast.client.cli;

import io.holdfast.client.admin.AdminClient;
import io.holdfast.client.admin.AdminException;
import io.holdfast.client.admin.AdminJson;
import io.holdfast.client.admin.ScrubDocument;
import io.holdfast.client.admin.ScrubDocument.Counts;
import io.holdfast.client.admin.ScrubDocument.State;
import io.holdfast.client.admin.ScrubDocument.VolumeScrub;
import io.holdfast.config.ByteSize;
import io.holdfast.config.NodeConfig.Endpoint;
import java.io.PrintWriter;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code scrub}. */
@Command(
        name = "scrub",
        description = {
            "Verify what every node has stored, compare replicas, repair what differs.",
            "Clients go on meanwhile. When a scrub runs already, it is joined. Interrupting this"
                    + " command does not end the scrub.",
            "Exit code 1 when something is left unrepaired or uncompared, when a scrub was broken"
                    + " off, and when a node could not be asked."
        },
        mixinStandardHelpOptions = true,
        footerHeading = "%nExamples:%n",
        footer = {
            "  holdfast scrub",
            "  holdfast scrub data",
            "  holdfast scrub --no-wait",
            "  holdfast scrub --show --json | jq '.[].counts'"
        })
final class ScrubCommand implements Callable<Integer> {
    private static final Duration PERIOD = Duration.ofMillis(500);

    /** Where nobody sits at a terminal, lines come less often. */
    private static final Duration LINES_PERIOD = Duration.ofSeconds(10);

    private static final DateTimeFormatter CLOCK =
            DateTimeFormatter.ofPattern("HH:mm:ss").withZone(ZoneId.systemDefault());
    private static final DateTimeFormatter DAY =
            DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm").withZone(ZoneId.systemDefault());

    @Spec private CommandSpec spec = CommandSpec.create();

    @Mixin private ClusterOptions cluster = new ClusterOptions();

    @Parameters(
            paramLabel = "VOLUME",
            arity = "0..1",
            description = "Only this volume's replicas (default: those of all volumes).")
    private @Nullable String volume;

    @Option(names = "--no-wait", description = "Start it, and return at once.")
    private boolean noWait;

    @Option(
            names = "--show",
            description = "Start nothing: show the scrub that runs, or how the last one ended.")
    private boolean show;

    /** What each node said last, and why one could not be asked. */
    private final Map<Endpoint, ScrubDocument> said = new LinkedHashMap<>();

    private final Map<Endpoint, AdminException> failures = new LinkedHashMap<>();

    @Override
    public Integer call() throws AdminException {
        if (show && (noWait || volume != null)) {
            throw new ParameterException(
                    spec.commandLine(), "--show goes with neither VOLUME nor --no-wait");
        }
        for (Endpoint node : cluster.endpoints()) {
            ask(node, !show);
        }
        if (said.isEmpty()) {
            throw failures.values().stream()
                    // A node that answers knows better than one that does not.
                    .max(Comparator.comparingInt(AdminException::status))
                    .map(CliException::of)
                    .orElseThrow();
        }
        if (!show && !noWait) {
            watch();
        }
        print();
        return noWait ? onlyStarted() : verdict();
    }

    private void ask(Endpoint node, boolean start) {
        try (AdminClient client = new AdminClient(List.of(node))) {
            said.put(node, start ? client.startScrub(volume) : client.scrub());
            failures.remove(node);
        } catch (AdminException e) {
            failures.put(node, e);
        }
    }

    // ---- progress

    private boolean isRunning() {
        return said.entrySet().stream()
                .anyMatch(each ->
                        each.getValue().state() == State.RUNNING
                                && !failures.containsKey(each.getKey()));
    }

    private void watch() {
        PrintWriter out = spec.commandLine().getOut();
        boolean terminal = Terminal.get().isPresent();
        Instant nextLines = Instant.now().plus(LINES_PERIOD);
        int drawn = 0;
        while (isRunning() && !out.checkError()) {
            if (!cluster.json() && (terminal || !Instant.now().isBefore(nextLines))) {
                out.print("\033[F\033[K".repeat(terminal ? drawn : 0));
                drawn = progress(out);
                out.flush();
                nextLines = Instant.now().plus(LINES_PERIOD);
            }
            try {
                // The pause between two looks of a person.
                Thread.sleep(PERIOD);
            } catch (InterruptedException _) {
                Thread.currentThread().interrupt();
                return;
            }
            for (Map.Entry<Endpoint, ScrubDocument> each : List.copyOf(said.entrySet())) {
                if (each.getValue().state() == State.RUNNING
                        && !failures.containsKey(each.getKey())) {
                    ask(each.getKey(), false);
                }
            }
        }
        if (terminal && !cluster.json()) {
            out.print("\033[F\033[K".repeat(drawn));
        }
    }

    private int progress(PrintWriter out) {
        Table table = new Table("NODE", "SCRUBBED", "OF", "PERCENT", "RATE", "ENDS AT");
        for (ScrubDocument each : said.values()) {
            table.row(
                    each.node(),
                    ByteSize.format(each.verifiedBytes()),
                    ByteSize.format(each.totalBytes()),
                    percent(each) + "%",
                    ByteSize.format(each.bytesPerSecond()) + "/s",
                    endsAt(each));
        }
        String text = table.text();
        out.print(text);
        return (int) text.lines().count();
    }

    private static long percent(ScrubDocument document) {
        if (document.state() != State.RUNNING) {
            return 100;
        }
        // Never 100 before the end.
        return Math.min(99, document.verifiedBytes() * 100 / Math.max(1, document.totalBytes()));
    }

    private static String endsAt(ScrubDocument document) {
        if (document.state() != State.RUNNING) {
            return document.state().toString();
        }
        Long left = document.secondsLeft();
        if (left == null) {
            return "-";
        }
        Instant end = Instant.now().plusSeconds(left);
        return (left < ChronoUnit.DAYS.getDuration().toSeconds() ? CLOCK : DAY).format(end);
    }

    // ---- result

    private void print() {
        PrintWriter out = spec.commandLine().getOut();
        if (cluster.json()) {
            out.println(AdminJson.writePretty(List.copyOf(said.values())));
        } else if (noWait) {
            progress(out);
        } else {
            Table table =
                    new Table(
                            "NODE",
                            "VOLUME",
                            "STATE",
                            "BLOCKS",
                            "DAMAGED",
                            "DIFFERING",
                            "REPAIRED",
                            "UNREPAIRABLE",
                            "UNCOMPARED",
                            "COMPLETED");
            for (ScrubDocument node : said.values()) {
                for (VolumeScrub each : volumesOf(node)) {
                    Counts counts = each.counts();
                    table.row(
                            node.node(),
                            each.volume(),
                            each.state(),
                            counts.blocks(),
                            counts.damaged(),
                            counts.differing(),
                            counts.repaired(),
                            counts.unrepairable(),
                            counts.notCompared(),
                            each.lastCompleted() == null
                                    ? "-"
                                    : DAY.format(Instant.parse(each.lastCompleted())));
                }
                if (volumesOf(node).isEmpty()) {
                    table.row(node.node(), "-", node.state(), 0, 0, 0, 0, 0, 0, "-");
                }
            }
            out.print(table.text());
        }
        out.flush();
    }

    /** Of the volume asked for, or all. */
    private List<VolumeScrub> volumesOf(ScrubDocument node) {
        return node.volumes().stream()
                .filter(each -> volume == null || each.volume().equals(volume))
                .toList();
    }

    private int onlyStarted() {
        checkAnswers();
        return ExitCode.OK;
    }

    private int verdict() {
        checkAnswers();
        List<String> problems = new ArrayList<>();
        for (ScrubDocument node : said.values()) {
            long unrepairable = 0;
            long notCompared = 0;
            boolean stopped = !show && node.state() == State.NEVER;
            for (VolumeScrub each : volumesOf(node)) {
                unrepairable += each.counts().unrepairable();
                notCompared += each.counts().notCompared();
                stopped |= each.state() == State.STOPPED;
            }
            if (unrepairable > 0) {
                problems.add(unrepairable + " blocks of " + node.node() + " cannot be repaired");
            }
            if (notCompared > 0) {
                problems.add(notCompared + " blocks of " + node.node() + " were not compared");
            }
            if (stopped) {
                problems.add("the scrub of " + node.node() + " was broken off");
            }
        }
        if (!problems.isEmpty()) {
            throw new CliException(
                    ExitCode.FAILED,
                    String.join("; ", problems),
                    "The nodes' logs name the blocks. Repeat it when all nodes are up; what is"
                            + " lost comes back by being written.");
        }
        return ExitCode.OK;
    }

    private void checkAnswers() {
        if (!failures.isEmpty()) {
            List<String> nodes = new ArrayList<>();
            failures.forEach((node, why) -> {
                ScrubDocument last = said.get(node);
                nodes.add(
                        (last == null ? "the node at " + node : last.node())
                                + " ("
                                + why.getMessage()
                                + ")");
            });
            throw new CliException(
                    ExitCode.FAILED,
                    "not known of " + String.join(", ", nodes),
                    "What is above says nothing about them. Start these nodes, then repeat.");
        }
    }
}
