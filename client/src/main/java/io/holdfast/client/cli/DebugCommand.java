package io.holdfast.client.cli;

import io.holdfast.client.admin.AdminClient;
import io.holdfast.client.admin.AdminException;
import io.holdfast.client.admin.AdminJson;
import io.holdfast.client.admin.VolumeHash;
import io.holdfast.client.admin.VolumeHash.ShardHash;
import io.holdfast.config.NodeConfig.Endpoint;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
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
                "Exit code 1 when replicas differ: while writes go on, they do."
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
            Optional<AdminException> failure = Optional.empty();
            for (Endpoint endpoint : cluster.endpoints()) {
                try (AdminClient client = new AdminClient(List.of(endpoint))) {
                    if (node == null || client.version().node().equals(node)) {
                        hashes.add(client.hash(volume));
                    }
                } catch (AdminException e) {
                    failure = failure.or(() -> Optional.of(e));
                }
            }
            if (hashes.isEmpty()) {
                throw failure.map(CliException::of).orElseGet(this::noSuchNode);
            }
            print(out, hashes);
            if (failure.isPresent()) {
                throw CliException.of(failure.get());
            }
            return checkEqual(hashes);
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
