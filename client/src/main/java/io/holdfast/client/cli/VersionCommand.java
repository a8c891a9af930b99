package io.holdfast.client.cli;

import io.holdfast.client.admin.AdminClient;
import io.holdfast.client.admin.AdminException;
import io.holdfast.client.admin.AdminJson;
import io.holdfast.client.admin.NodeVersion;
import io.holdfast.client.admin.ProgramVersion;
import io.holdfast.config.NodeConfig.Endpoint;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** {@code version}. Says its own version even when there is no cluster. */
@Command(
        name = "version",
        description = "Print the version of this program and of the nodes that answer.",
        mixinStandardHelpOptions = true,
        footerHeading = "%nExamples:%n",
        footer = {"  holdfast version", "  holdfast version --admin 127.0.0.1:8801"})
final class VersionCommand implements Callable<Integer> {
    @Spec private CommandSpec spec = CommandSpec.create();

    @Mixin private ClusterOptions cluster = new ClusterOptions();

    @Override
    public Integer call() {
        PrintWriter out = spec.commandLine().getOut();
        List<NodeVersion> nodes = new ArrayList<>();
        for (Endpoint endpoint : endpoints()) {
            try (AdminClient client = new AdminClient(List.of(endpoint))) {
                nodes.add(client.version());
            } catch (AdminException _) {
                // Which nodes are down is what `status` says.
            }
        }
        if (cluster.json()) {
            out.println(AdminJson.writePretty(new Versions(ProgramVersion.get(), nodes)));
        } else {
            out.println("holdfast " + ProgramVersion.get());
            nodes.forEach(node -> out.println(node.node() + " " + node.version()));
        }
        out.flush();
        return ExitCode.OK;
    }

    private List<Endpoint> endpoints() {
        try {
            return cluster.endpoints();
        } catch (CliException e) {
            if (e.exitCode() == ExitCode.USAGE) {
                throw e;
            }
            return List.of();
        }
    }

    record Versions(String version, List<NodeVersion> nodes) {}
}
