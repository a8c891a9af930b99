package io.holdfast.client.cli;

import io.holdfast.client.admin.AdminException;
import io.holdfast.client.admin.ProgramVersion;
import java.io.PrintWriter;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** Entry point of the command line. */
@Command(
        name = "holdfast",
        description = "Volumes and state of a Holdfast cluster.",
        mixinStandardHelpOptions = true,
        versionProvider = Main.Version.class,
        subcommands = {
            VolumeCommand.class,
            StatusCommand.class,
            DebugCommand.class,
            BenchCommand.class,
            VersionCommand.class
        })
public final class Main implements Runnable {
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

    /** The parser with all commands, output to {@code System.out} and {@code System.err}. */
    static CommandLine commandLine() {
        return new CommandLine(new Main())
                .setCaseInsensitiveEnumValuesAllowed(true)
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
        String message = String.valueOf(e.getMessage()).lines().findFirst().orElse("");
        err.println("holdfast: " + message);
        err.println("  see: " + command.getCommandSpec().qualifiedName() + " --help");
        return ExitCode.USAGE;
    }

    private static int failed(Exception e, CommandLine command, CommandLine.ParseResult parsed) {
        CliException known =
                switch (e) {
                    case CliException cli -> cli;
                    case AdminException admin -> CliException.of(admin);
                    // A defect of this program; its class is all that helps to report it.
                    default -> new CliException(ExitCode.FAILED, "internal error: " + e, "");
                };
        command.getErr().println(known.text());
        return known.exitCode();
    }

    /** For {@code --version}. */
    static final class Version implements CommandLine.IVersionProvider {
        @Override
        public String[] getVersion() {
            return new String[] {"holdfast " + ProgramVersion.get()};
        }
    }
}
