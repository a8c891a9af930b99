package io.holdfast.client.cli;

import io.holdfast.client.admin.AdminClient;
import io.holdfast.config.ConfigException;
import io.holdfast.config.ConfigLoader;
import io.holdfast.config.NodeConfig.Endpoint;
import io.holdfast.config.NodeConfig.Member;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** How a command finds its cluster: {@code --admin}, {@code --dir}, HOLDFAST_ADMIN, ./run. */
final class ClusterOptions {
    static final String ADMIN_VARIABLE = "HOLDFAST_ADMIN";

    private static final Path DEFAULT_DIR = Path.of("run");

    @Option(
            names = "--dir",
            paramLabel = "DIR",
            description = "Folder of a local cluster made by 'holdfast up' (default: ./run).")
    private @Nullable Path dir;

    @Option(
            names = "--admin",
            paramLabel = "HOST:PORT[,...]",
            description =
                    "Admin addresses of any of the nodes; the others are tried when one is down."
                            + " Default: the variable HOLDFAST_ADMIN.")
    private @Nullable String admin;

    @Option(names = "--json", description = "Print JSON instead of a table.")
    private boolean json;

    boolean json() {
        return json;
    }

    AdminClient connect() {
        return new AdminClient(endpoints());
    }

    /** The options that lead another command to the same cluster, with a space before them. */
    String sameCluster() {
        return (dir == null ? "" : " --dir " + dir) + (admin == null ? "" : " --admin " + admin);
    }

    /** Whether all nodes are on this machine, as far as the options tell. */
    boolean isLocal() {
        return admin == null && (dir != null || System.getenv(ADMIN_VARIABLE) == null);
    }

    /** Admin addresses of the cluster's nodes. */
    List<Endpoint> endpoints() {
        String variable = System.getenv(ADMIN_VARIABLE);
        if (admin != null) {
            return parse("--admin", admin);
        }
        if (dir == null && variable != null && !variable.isBlank()) {
            return parse(ADMIN_VARIABLE, variable);
        }
        return local(folder());
    }

    /** Processes of a local cluster's nodes; empty when the cluster was named by address. */
    List<Long> nodePids() {
        List<Long> pids = new ArrayList<>();
        Path folder = folder();
        if (admin != null || !Files.isDirectory(folder)) {
            return pids;
        }
        try (DirectoryStream<Path> files = Files.newDirectoryStream(folder, "node-[1-9]")) {
            for (Path node : files) {
                pids.add(Long.parseLong(Files.readString(node.resolve("holdfast.pid")).strip()));
            }
        } catch (IOException | NumberFormatException e) {
            throw new CliException(
                    ExitCode.FAILED,
                    "cannot tell the nodes' processes in " + folder + ": " + e.getMessage(),
                    "start the cluster with 'holdfast up --dir " + folder + "'");
        }
        return pids;
    }

    private Path folder() {
        if (dir == null) {
            return DEFAULT_DIR;
        }
        // It would be the working directory, by accident: mostly of a variable that is not set.
        if (dir.toString().isEmpty()) {
            throw new CliException(
                    ExitCode.USAGE, "--dir '' names no folder", "Leave it out for ./run.");
        }
        return dir;
    }

    private static List<Endpoint> local(Path dir) {
        Path file = dir.resolve("cluster.conf");
        if (!Files.exists(file)) {
            throw new CliException(
                    ExitCode.UNREACHABLE,
                    "there is no cluster in " + dir + " (no " + file + ")",
                    "start one with 'holdfast up', or name a cluster with --dir or --admin");
        }
        try {
            return ConfigLoader.loadCluster(file).nodes().stream().map(Member::http).toList();
        } catch (ConfigException e) {
            throw new CliException(ExitCode.FAILED, String.valueOf(e.getMessage()), "");
        }
    }

    static List<Endpoint> parse(String source, String addresses) {
        List<Endpoint> endpoints = new ArrayList<>();
        for (String address : addresses.split(",", -1)) {
            Optional<Endpoint> endpoint = Endpoint.parse(address.strip());
            if (endpoint.isEmpty()) {
                throw new CliException(
                        ExitCode.USAGE,
                        "%s: '%s' is not an address".formatted(source, address),
                        "An address needs the form HOST:PORT, for instance 127.0.0.1:8801; several"
                                + " go with commas between them.");
            }
            endpoints.add(endpoint.get());
        }
        return endpoints;
    }
}
