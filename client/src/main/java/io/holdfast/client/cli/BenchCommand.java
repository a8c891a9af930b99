package io.holdfast.client.cli;

import io.holdfast.client.admin.AdminClient;
import io.holdfast.client.admin.AdminException;
import io.holdfast.client.admin.AdminJson;
import io.holdfast.client.admin.CreateVolume;
import io.holdfast.client.admin.StatusDocument;
import io.holdfast.client.bench.CpuMeter;
import io.holdfast.client.bench.Fio;
import io.holdfast.client.bench.Job;
import io.holdfast.client.bench.Measurement;
import io.holdfast.config.ByteSize;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code bench}. */
@Command(
        name = "bench",
        description = {
            "Measure the cluster with fio: seven jobs on a fully written volume of its own, through"
                    + " the leader's node and through another.",
            "The volume '"
                    + BenchCommand.VOLUME
                    + "' is made for the run and deleted afterwards,"
                    + " also when the run fails or is interrupted."
        },
        mixinStandardHelpOptions = true,
        subcommands = AgingCommand.class,
        footerHeading = "%nExamples:%n",
        footer = {"  holdfast bench", "  holdfast bench --size 512M --seconds 5 --json"})
final class BenchCommand implements Callable<Integer> {
    static final String VOLUME = "bench-run";

    /** Of a volume that is made without saying how many. */
    private static final int USUAL_REPLICAS = 3;

    private static final int MAX_SECONDS = 3600;
    private static final int MAX_CONNECTIONS = 64;
    private static final String MAX_SIZE = "1T";

    @Spec private CommandSpec spec = CommandSpec.create();

    @Mixin private ClusterOptions cluster = new ClusterOptions();

    @Option(
            names = "--size",
            paramLabel = "SIZE",
            defaultValue = "2G",
            converter = VolumeCommand.SizeConverter.class,
            description =
                    "Size of the volume, 1M to "
                            + MAX_SIZE
                            + " (default: ${DEFAULT-VALUE}). Each"
                            + " node needs room for it, and more for what the jobs write.")
    private VolumeCommand.TypedSize size = new VolumeCommand.TypedSize("", 0);

    @Option(
            names = "--seconds",
            paramLabel = "S",
            defaultValue = "20",
            converter = VolumeCommand.NumberConverter.class,
            description =
                    "Length of each job, 1 to " + MAX_SECONDS + " (default: ${DEFAULT-VALUE}).")
    private int seconds;

    @Option(
            names = "--connections",
            paramLabel = "N",
            defaultValue = "1",
            converter = VolumeCommand.NumberConverter.class,
            description =
                    "NBD connections per job, 1 to "
                            + MAX_CONNECTIONS
                            + " (default: ${DEFAULT-VALUE}).")
    private int connections;

    @Override
    public Integer call() throws AdminException, InterruptedException {
        check();
        Fio fio = new Fio(seconds, connections, new CpuMeter(cluster.nodePids()));
        try (AdminClient admin = cluster.connect()) {
            BenchVolume.refuseLeftover(VOLUME, admin, cluster);
            refuseWithoutRoom(admin.status());
            try (var _ =
                    BenchVolume.create(
                            VOLUME,
                            size.bytes(),
                            admin,
                            cluster,
                            fio,
                            spec.commandLine().getErr())) {
                print(measure(admin, fio));
                return ExitCode.OK;
            }
        } catch (IOException e) {
            throw new CliException(ExitCode.FAILED, String.valueOf(e.getMessage()), "");
        }
    }

    /** Everything that can be wrong with the options themselves, before anything is made. */
    private void check() {
        range("--seconds", seconds, MAX_SECONDS);
        range("--connections", connections, MAX_CONNECTIONS);
        CreateVolume.sizeProblem(size.bytes(), size.text())
                .ifPresent(problem -> {
                    throw new CliException(ExitCode.USAGE, problem.error(), problem.remedy());
                });
        if (size.bytes() > ByteSize.parse(MAX_SIZE)) {
            throw new CliException(
                    ExitCode.USAGE,
                    "--size " + size.text() + " is not valid",
                    "The size needs to be at most " + MAX_SIZE + ": all of it is written.");
        }
    }

    /** Refuses a number below 1 or above {@code max}. */
    static void range(String option, int value, int max) {
        if (value < 1 || value > max) {
            throw new CliException(
                    ExitCode.USAGE,
                    option + " " + value + " is not valid",
                    "It needs to be a number from 1 to " + max + ".");
        }
    }

    /** All of the volume is written, on each node; nodes of one machine share its disk. */
    private void refuseWithoutRoom(StatusDocument status) {
        boolean oneDisk = cluster.isLocal();
        int copies = oneDisk ? Math.min(status.nodes().size(), USUAL_REPLICAS) : 1;
        long needed = Math.multiplyExact(size.bytes(), copies);
        for (StatusDocument.NodeLine node : status.nodes()) {
            if (node.freeBytes() != null && node.freeBytes() < needed) {
                throw new CliException(
                        ExitCode.FAILED,
                        "%s of space are needed at least%s, %s has %s free"
                                .formatted(
                                        ByteSize.format(needed),
                                        copies == 1
                                                ? ""
                                                : ", for " + copies + " replicas on one disk",
                                        node.id(),
                                        ByteSize.format(node.freeBytes())),
                        "Choose a smaller --size, or make room.");
            }
        }
    }

    private List<Measurement> measure(AdminClient admin, Fio fio)
            throws AdminException, IOException, InterruptedException {
        PrintWriter err = spec.commandLine().getErr();
        StatusDocument status = admin.status();
        String leader = leader(status, VOLUME);
        String other =
                status.nodes().stream()
                        .map(StatusDocument.NodeLine::id)
                        .filter(id -> !id.equals(leader))
                        .findFirst()
                        .orElse(leader);
        err.println("filling " + ByteSize.format(size.bytes()) + " through " + leader);
        err.flush();
        fio.fill(uri(status, leader, VOLUME));
        List<Measurement> all = new ArrayList<>();
        List<String> nodes = other.equals(leader) ? List.of(leader) : List.of(leader, other);
        for (String node : nodes) {
            String through = node.equals(leader) ? "leader" : "other";
            for (Job job : Job.values()) {
                err.println(job.title() + ", through the " + through + " (" + node + ")");
                err.flush();
                all.add(fio.run(job, uri(status, node, VOLUME), through));
            }
        }
        return all;
    }

    private static String leader(StatusDocument status, String name) {
        return status.volumes().stream()
                .filter(volume -> volume.name().equals(name))
                .map(volume -> volume.shards().getFirst().leader())
                .filter(Objects::nonNull)
                .findFirst()
                .orElseThrow(() ->
                        new CliException(
                                ExitCode.FAILED,
                                "volume " + name + " has no leader",
                                "see 'holdfast status'"));
    }

    /** Where the volume's leader serves it. */
    static String uri(StatusDocument status, String volume) {
        return uri(status, leader(status, volume), volume);
    }

    private static String uri(StatusDocument status, String id, String volume) {
        return status.nodes().stream()
                .filter(node -> node.id().equals(id))
                .map(node -> "nbd://" + node.nbd() + "/" + volume)
                .findFirst()
                .orElseThrow();
    }

    private void print(List<Measurement> all) {
        PrintWriter out = spec.commandLine().getOut();
        if (cluster.json()) {
            out.println(AdminJson.write(all));
            return;
        }
        Table table =
                new Table(
                        "job",
                        "through",
                        "per second",
                        "MiB/s",
                        "p50",
                        "p99",
                        "p99.9",
                        "CPU per op");
        for (Measurement one : all) {
            table.row(
                    one.job(),
                    one.through(),
                    String.format(Locale.ROOT, "%.0f", one.perSecond()),
                    String.format(Locale.ROOT, "%.1f", one.bytesPerSecond() / (1 << 20)),
                    micros(one.p50Micros()),
                    micros(one.p99Micros()),
                    micros(one.p999Micros()),
                    one.cpuMicrosPerOperation() == 0
                            ? "-"
                            : String.format(Locale.ROOT, "%.1f us", one.cpuMicrosPerOperation()));
        }
        out.print(table.text());
    }

    static String micros(double micros) {
        return micros < 10_000
                ? String.format(Locale.ROOT, "%.0f us", micros)
                : String.format(Locale.ROOT, "%.1f ms", micros / 1000);
    }
}
