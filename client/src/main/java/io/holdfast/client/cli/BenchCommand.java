package io.holdfast.client.cli;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.holdfast.client.admin.AdminClient;
import io.holdfast.client.admin.AdminException;
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
            "The volume is made for the run and deleted afterwards."
        },
        mixinStandardHelpOptions = true,
        subcommands = AgingCommand.class,
        footerHeading = "%nExamples:%n",
        footer = {"  holdfast bench", "  holdfast bench --size 512M --seconds 5 --json"})
final class BenchCommand implements Callable<Integer> {
    private static final String VOLUME = "bench-run";

    @Spec private CommandSpec spec = CommandSpec.create();

    @Mixin private ClusterOptions cluster = new ClusterOptions();

    @Option(
            names = "--size",
            paramLabel = "SIZE",
            defaultValue = "2G",
            converter = VolumeCommand.SizeConverter.class,
            description = "Size of the volume (default: ${DEFAULT-VALUE}).")
    private long size;

    @Option(
            names = "--seconds",
            paramLabel = "S",
            defaultValue = "20",
            description = "Length of each job (default: ${DEFAULT-VALUE}).")
    private int seconds;

    @Option(
            names = "--connections",
            paramLabel = "N",
            defaultValue = "1",
            description = "NBD connections per job (default: ${DEFAULT-VALUE}).")
    private int connections;

    @Override
    public Integer call() throws AdminException, InterruptedException {
        PrintWriter err = spec.commandLine().getErr();
        try (AdminClient admin = cluster.connect()) {
            admin.create(new CreateVolume(VOLUME, size, null, null, null, null, null));
            try {
                List<Measurement> all = measure(admin, err);
                print(all);
                return ExitCode.OK;
            } catch (IOException e) {
                throw new CliException(ExitCode.FAILED, String.valueOf(e.getMessage()), "");
            } finally {
                admin.delete(VOLUME);
            }
        }
    }

    private List<Measurement> measure(AdminClient admin, PrintWriter err)
            throws AdminException, IOException, InterruptedException {
        StatusDocument status = admin.status();
        String leader = leader(status, VOLUME);
        String other =
                status.nodes().stream()
                        .map(StatusDocument.NodeLine::id)
                        .filter(id -> !id.equals(leader))
                        .findFirst()
                        .orElse(leader);
        Fio fio = new Fio(seconds, connections, new CpuMeter(cluster.nodePids()));
        err.println("filling " + ByteSize.format(size) + " through " + leader);
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
            try {
                out.println(new ObjectMapper().writeValueAsString(all));
            } catch (JsonProcessingException e) {
                throw new CliException(ExitCode.FAILED, "cannot print: " + e.getMessage(), "");
            }
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
