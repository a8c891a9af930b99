package io.holdfast.node.tool;

import io.holdfast.client.admin.ProgramVersion;
import io.holdfast.config.ConfigException;
import io.holdfast.node.store.OfflineStore;
import io.holdfast.node.store.StoreException;
import java.io.IOException;
import java.io.PrintWriter;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/**
 * Entry point: {@code Main store inspect|verify DIR}.
 *
 * <table>
 * <caption>Exit codes</caption>
 * <tr><td>0</td><td>done; of {@code verify}: the store is sound</td></tr>
 * <tr><td>1</td><td>the store is damaged, or cannot be read</td></tr>
 * <tr><td>2</td><td>wrong usage, no store there, or one of another format</td></tr>
 * <tr><td>6</td><td>a process, most likely the node, uses the store</td></tr>
 * </table>
 */
@Command(
        name = "holdfast",
        description = "Tools for a node's data.",
        mixinStandardHelpOptions = true,
        versionProvider = Main.Version.class,
        subcommands = StoreCommand.class)
public final class Main implements Runnable {
    static final int OK = 0;
    static final int DAMAGED = 1;
    static final int USAGE = 2;
    static final int IN_USE = 6;

    @Spec private CommandSpec spec = CommandSpec.create();

    private Main() {}

    /** Runs a command and ends the process with its exit code. */
    public static void main(String[] args) {
        CommandLine commandLine = commandLine();
        int exitCode = commandLine.execute(args);
        commandLine.getOut().flush();
        commandLine.getErr().flush();
        System.exit(exitCode);
    }

    /** The parser, with output to {@code System.out} and {@code System.err}. */
    static CommandLine commandLine() {
        return new CommandLine(new Main())
                .setUsageHelpAutoWidth(true)
                .setParameterExceptionHandler(Main::wrongUsage)
                .setExecutionExceptionHandler(Main::failed);
    }

    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "which command?");
    }

    private static int wrongUsage(ParameterException e, String[] args) {
        CommandLine command = e.getCommandLine();
        PrintWriter err = command.getErr();
        String text = String.valueOf(e.getMessage());
        err.println("holdfast: " + text.lines().findFirst().orElse(text));
        err.println("  see: " + command.getCommandSpec().qualifiedName() + " --help");
        return USAGE;
    }

    private static int failed(Exception e, CommandLine command, CommandLine.ParseResult parsed) {
        PrintWriter err = command.getErr();
        return switch (e) {
            case StoreException store -> {
                boolean damaged = store.kind() == StoreException.Kind.DAMAGED;
                err.println("holdfast: " + (damaged ? store.what() : store.getMessage()));
                yield switch (store.kind()) {
                    case DAMAGED -> {
                        err.println("  " + OfflineStore.REMEDY);
                        yield DAMAGED;
                    }
                    case IN_USE -> IN_USE;
                    case OTHER_FORMAT, NO_STORE -> USAGE;
                };
            }
            case ConfigException config -> {
                err.println("holdfast: " + config.getMessage());
                err.println("  Name the data directory itself.");
                yield USAGE;
            }
            case IOException io -> {
                err.println("holdfast: the store cannot be read: " + io);
                yield DAMAGED;
            }
            default -> {
                // A defect of this program; its class is all that helps to report it.
                err.println("holdfast: internal error: " + e);
                yield DAMAGED;
            }
        };
    }

    /** For {@code --version}. */
    static final class Version implements CommandLine.IVersionProvider {
        @Override
        public String[] getVersion() {
            return new String[] {"holdfast " + ProgramVersion.get()};
        }
    }
}
