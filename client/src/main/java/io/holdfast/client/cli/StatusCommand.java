package io.holdfast.client.cli;

import io.holdfast.client.admin.AdminClient;
import io.holdfast.client.admin.AdminException;
import io.holdfast.client.admin.AdminJson;
import io.holdfast.client.admin.StatusDocument;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code status}. */
@Command(
        name = "status",
        description = "Show nodes, volumes, leaders and replicas.",
        mixinStandardHelpOptions = true,
        footerHeading = "%nExamples:%n",
        footer = {
            "  holdfast status",
            "  holdfast status --watch",
            "  holdfast status --json | jq '.volumes[].shards[].leader'"
        })
final class StatusCommand implements Callable<Integer> {
    private static final Duration PERIOD = Duration.ofSeconds(1);

    /** Cursor to the top left, clear the screen. */
    private static final String CLEAR = "\033[H\033[2J";

    @Spec private CommandSpec spec = CommandSpec.create();

    @Mixin private ClusterOptions cluster = new ClusterOptions();

    @Option(
            names = "--watch",
            description =
                    "Show it again every second, until interrupted (with --json: a line each).")
    private boolean watch;

    @Override
    public Integer call() throws AdminException {
        try (AdminClient client = cluster.connect()) {
            if (watch) {
                return watch(client);
            }
            StatusDocument status = client.status();
            PrintWriter out = spec.commandLine().getOut();
            if (cluster.json()) {
                out.println(AdminJson.writePretty(status));
            } else {
                out.print(StatusTables.all(status));
            }
            out.flush();
            return ExitCode.OK;
        }
    }

    /** A cluster that cannot be reached for a while is what one watches for: no reason to end. */
    private int watch(AdminClient client) {
        PrintWriter out = spec.commandLine().getOut();
        boolean terminal = Terminal.get().isPresent();
        while (!out.checkError()) {
            String text;
            try {
                StatusDocument status = client.status();
                text = cluster.json() ? AdminJson.write(status) + "\n" : StatusTables.all(status);
            } catch (AdminException e) {
                String problem = CliException.of(e).text() + "\n";
                if (cluster.json()) {
                    spec.commandLine().getErr().print(problem);
                    spec.commandLine().getErr().flush();
                    text = "";
                } else {
                    text = problem;
                }
            }
            if (terminal && !cluster.json()) {
                out.print(CLEAR + text);
            } else {
                out.print(text + (cluster.json() ? "" : "\n"));
            }
            out.flush();
            try {
                // The pause between two pictures for a person; nothing is waited for.
                Thread.sleep(PERIOD);
            } catch (InterruptedException _) {
                Thread.currentThread().interrupt();
                break;
            }
        }
        return ExitCode.OK;
    }
}
