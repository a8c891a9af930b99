package io.holdfast.client.cli;

import io.holdfast.client.admin.AdminClient;
import io.holdfast.client.admin.AdminException;
import io.holdfast.client.admin.AdminJson;
import io.holdfast.client.admin.VolumeHash;
import io.holdfast.client.admin.VolumeHash.ShardHash;
import io.holdfast.config.NodeConfig.Endpoint;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code debug hash}. */
@Command(
        name = "debug",
        description = "Look inside.",
        mixinStandardHelpOptions = true,
        subcommands = DebugCommand.Hash.class)
final class DebugCommand implements Runnable {
    @Spec private CommandSpec spec = CommandSpec.create();

    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "which one: debug hash?");
    }

    @Command(
            name = "hash",
            description = {
                "Hash what each replica of a volume holds.",
                "Exit code 1 when replicas differ (while writes go on, they do) or when some could"
                        + " not be asked."
            },
            mixinStandardHelpOptions = true,
            footerHeading = "%nExamples:%n",
            footer = {"  holdfast debug hash data", "  holdfast debug hash data --node node2"})
    static final class Hash implements Callable<Integer> {
        @Spec private CommandSpec spec = CommandSpec.create();

        @Mixin private ClusterOptions cluster = new ClusterOptions();

        @Parameters(paramLabel = "VOLUME", description = "The volume.")
        private String volume = "";

        @Option(
                names = "--node",
                paramLabel = "ID",
                description = "Only this node's replicas (default: those of all nodes).")
        private @Nullable String node;

        @Override
        public Integer call() throws AdminException {
            PrintWriter out = spec.commandLine().getOut();
            List<VolumeHash> hashes = new ArrayList<>();
            Map<Endpoint, AdminException> failures = new LinkedHashMap<>();
            for (Endpoint endpoint : cluster.endpoints()) {
                try (AdminClient client = new AdminClient(List.of(endpoint))) {
                    if (node == null || client.version().node().equals(node)) {
                        hashes.add(client.hash(volume));
                    }
                } catch (AdminException e) {
                    failures.put(endpoint, e);
                }
            }
            if (hashes.isEmpty()) {
                throw failures.values().stream()
                        // A node that answers knows better than one that does not.
                        .max(Comparator.comparingInt(AdminException::status))
                        .map(CliException::of)
                        .orElseGet(this::noSuchNode);
            }
            print(out, hashes);
            // Who asked for one node and got it does not miss the others.
            if (node == null && !failures.isEmpty()) {
                throw new CliException(
                        ExitCode.FAILED,
                        "not hashed: the replicas of " + describe(failures),
                        "What is above says nothing about them. Start these nodes, then repeat.");
            }
            return checkEqual(hashes);
        }

        /** Nodes by name where the others know them, and why each did not answer. */
        private String describe(Map<Endpoint, AdminException> failures) {
            Map<String, String> names = new HashMap<>();
            try (AdminClient client = cluster.connect()) {
                client.status().nodes().forEach(line -> names.put(line.http(), line.id()));
            } catch (AdminException _) {
                // Then the addresses have to do.
            }
            return failures.entrySet().stream()
                    .map(failed -> {
                        String address = failed.getKey().toString();
                        return names.getOrDefault(address, "the node at " + address)
                                + " ("
                                + failed.getValue().getMessage()
                                + ")";
                    })
                    .collect(Collectors.joining(", "));
        }

        private CliException noSuchNode() {
            return new CliException(
                    ExitCode.USAGE,
                    "no node is called '" + node + "'",
                    "'holdfast status' lists the nodes");
        }

        private void print(PrintWriter out, List<VolumeHash> hashes) {
            if (cluster.json()) {
                out.println(AdminJson.writePretty(hashes));
            } else {
                Table table = new Table("NODE", "SHARD", "APPLIED", "SHA-256");
                for (VolumeHash hash : hashes) {
                    for (ShardHash shard : hash.shards()) {
                        table.row(hash.node(), shard.index(), shard.applied(), shard.sha256());
                    }
                }
                out.print(table.text());
            }
            out.flush();
        }

        private int checkEqual(List<VolumeHash> hashes) {
            Map<Integer, String> first = new HashMap<>();
            for (VolumeHash hash : hashes) {
                for (ShardHash shard : hash.shards()) {
                    String other = first.putIfAbsent(shard.index(), shard.sha256());
                    if (other != null && !other.equals(shard.sha256())) {
                        throw new CliException(
                                ExitCode.FAILED,
                                "replicas of volume '%s', shard %d differ"
                                        .formatted(volume, shard.index()),
                                "");
                    }
                }
            }
            return ExitCode.OK;
        }
    }
}
