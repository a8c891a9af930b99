package io.holdfast.client.cli;

import io.holdfast.client.admin.AdminClient;
import io.holdfast.client.admin.AdminException;
import io.holdfast.client.admin.AdminJson;
import io.holdfast.client.admin.PlainHttp;
import io.holdfast.client.admin.StatusDocument;
import io.holdfast.client.bench.AgingMinute;
import io.holdfast.client.bench.CpuMeter;
import io.holdfast.client.bench.Fio;
import io.holdfast.client.bench.Job;
import io.holdfast.client.bench.Measurement;
import io.holdfast.client.bench.StoreCounters;
import io.holdfast.config.ByteSize;
import java.io.IOException;
import java.io.PrintWriter;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code bench aging}. */
@Command(
        name = "aging",
        description = {
            "Fill 70 %% of a small store and overwrite it at random, 4 KiB at a time: does it stay"
                    + " as fast as it was, and what does it write to the disk per byte?",
            "The nodes must have been started with node.limits.store-size of the size given here."
        },
        mixinStandardHelpOptions = true,
        footerHeading = "%nExamples:%n",
        footer = {"  holdfast bench aging", "  holdfast bench aging --store 1G --minutes 5 --json"})
final class AgingCommand implements Callable<Integer> {
    private static final String VOLUME = "bench-aging";
    private static final int MINUTE_SECONDS = 60;
    private static final int MAX_MINUTES = 1440;
    private static final int PERCENT_FULL = 70;
    private static final long MIB = 1L << 20;

    /** Store sizes may differ by this much from what was asked for: the file being written. */
    private static final double TOLERANCE = 1.1;

    /** The cleaner has nothing to do before the store is full for the first time. */
    private static final int WARM_UP_MINUTES = 1;

    @Spec private CommandSpec spec = CommandSpec.create();

    @Mixin private ClusterOptions cluster = new ClusterOptions();

    @Option(
            names = "--store",
            paramLabel = "SIZE",
            defaultValue = "4G",
            converter = VolumeCommand.SizeConverter.class,
            description = "Size of each node's store (default: ${DEFAULT-VALUE}).")
    private VolumeCommand.TypedSize store = new VolumeCommand.TypedSize("", 0);

    @Option(
            names = "--minutes",
            paramLabel = "N",
            defaultValue = "15",
            converter = VolumeCommand.NumberConverter.class,
            description =
                    "How long to overwrite, 1 to " + MAX_MINUTES + " (default: ${DEFAULT-VALUE}).")
    private int minutes;

    @Override
    public Integer call() throws AdminException, InterruptedException {
        BenchCommand.range("--minutes", minutes, MAX_MINUTES);
        PrintWriter err = spec.commandLine().getErr();
        try (AdminClient admin = cluster.connect();
                HttpClient http = PlainHttp.client(AdminClient.CONNECT_TIMEOUT)) {
            BenchVolume.refuseLeftover(VOLUME, admin, cluster);
            StatusDocument nodes = admin.status();
            checkStores(counters(http, nodes));
            long size = store.bytes() / 100 * PERCENT_FULL / MIB * MIB;
            Fio fio = new Fio(MINUTE_SECONDS, 1, new CpuMeter(List.of()));
            try (var _ = BenchVolume.create(VOLUME, size, admin, cluster, fio, err)) {
                String uri = BenchCommand.uri(admin.status(), VOLUME);
                err.println("filling " + ByteSize.format(size));
                err.flush();
                fio.fill(uri);
                List<AgingMinute> all = new ArrayList<>();
                for (int minute = 1; minute <= minutes; minute++) {
                    all.add(minute(http, nodes, fio, uri, minute));
                    err.println(line(all.getLast()));
                    err.flush();
                }
                print(all);
                return ExitCode.OK;
            }
        } catch (IOException e) {
            throw new CliException(ExitCode.FAILED, String.valueOf(e.getMessage()), "");
        }
    }

    private void checkStores(Map<String, StoreCounters> counters) {
        counters.forEach((node, counted) -> {
            if (counted.capacityBytes() > store.bytes() * TOLERANCE) {
                throw new CliException(
                        ExitCode.FAILED,
                        "the store of "
                                + node
                                + " may grow to "
                                + ByteSize.format((long) counted.capacityBytes() / MIB * MIB),
                        "start the nodes with node.limits.store-size = "
                                + ByteSize.format(store.bytes()));
            }
        });
    }

    private static AgingMinute minute(
            HttpClient http, StatusDocument nodes, Fio fio, String uri, int minute)
            throws IOException, InterruptedException {
        Map<String, StoreCounters> before = counters(http, nodes);
        Measurement measured = fio.run(Job.RANDOM_WRITE_32, uri, "leader");
        double amplification = 0;
        double journal = 0;
        for (var after : counters(http, nodes).entrySet()) {
            StoreCounters then = before.get(after.getKey());
            if (then != null) {
                amplification = Math.max(amplification, after.getValue().amplificationSince(then));
            }
            journal = Math.max(journal, after.getValue().journalBytes());
        }
        return new AgingMinute(
                minute,
                measured.perSecond(),
                measured.p50Micros(),
                measured.p99Micros(),
                amplification,
                journal);
    }

    private static Map<String, StoreCounters> counters(HttpClient http, StatusDocument nodes)
            throws IOException, InterruptedException {
        Map<String, StoreCounters> all = new LinkedHashMap<>();
        for (StatusDocument.NodeLine node : nodes.nodes()) {
            HttpRequest request =
                    HttpRequest.newBuilder(URI.create("http://" + node.http() + "/metrics"))
                            .timeout(AdminClient.ANSWER_TIMEOUT)
                            .build();
            String text = http.send(request, BodyHandlers.ofString()).body();
            StoreCounters.parse(text).ifPresent(counters -> all.put(node.id(), counters));
        }
        return all;
    }

    private static String line(AgingMinute one) {
        return String.format(
                Locale.ROOT,
                "minute %d: %.0f writes/s, p99 %s, %.2f bytes written per byte",
                one.minute(),
                one.writesPerSecond(),
                BenchCommand.micros(one.p99Micros()),
                one.writeAmplification());
    }

    /** The last minute over the first one after the warm-up; 0: there are not two such. */
    private static double lastOverFirst(List<AgingMinute> all) {
        if (all.size() < WARM_UP_MINUTES + 2) {
            return 0;
        }
        double first = all.get(WARM_UP_MINUTES).writesPerSecond();
        return first == 0 ? 0 : all.getLast().writesPerSecond() / first;
    }

    /** What {@code --json} prints. */
    record Report(long storeBytes, List<AgingMinute> minutes, double lastOverFirst) {}

    private void print(List<AgingMinute> all) {
        PrintWriter out = spec.commandLine().getOut();
        double ratio = lastOverFirst(all);
        if (cluster.json()) {
            out.println(AdminJson.write(new Report(store.bytes(), all, ratio)));
            return;
        }
        Table table =
                new Table("minute", "writes/s", "p50", "p99", "written per byte", "journal MiB");
        for (AgingMinute one : all) {
            table.row(
                    String.valueOf(one.minute()),
                    String.format(Locale.ROOT, "%.0f", one.writesPerSecond()),
                    BenchCommand.micros(one.p50Micros()),
                    BenchCommand.micros(one.p99Micros()),
                    String.format(Locale.ROOT, "%.2f", one.writeAmplification()),
                    String.format(Locale.ROOT, "%.0f", one.journalBytes() / MIB));
        }
        out.print(table.text());
        if (ratio > 0) {
            out.println(
                    String.format(
                            Locale.ROOT,
                            "last minute: %.0f %% of the first after the warm-up",
                            ratio * 100));
        }
    }
}
