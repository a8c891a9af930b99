package io.holdfast.client.cli;

import io.holdfast.client.admin.AdminException;
import io.holdfast.client.admin.ProgramVersion;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.MissingParameterException;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;
import picocli.CommandLine.UnmatchedArgumentException;

/** Entry point of the command line. */
@Command(
        name = "holdfast",
        description = "Volumes and state of a Holdfast cluster.",
        mixinStandardHelpOptions = true,
        versionProvider = Main.Version.class,
        subcommands = {
            VolumeCommand.class,
            StatusCommand.class,
            ScrubCommand.class,
            DebugCommand.class,
            BenchCommand.class,
            VersionCommand.class
        })
public final class Main implements Runnable {
    /** Letters that a mistyped word may differ in from the one that was meant. */
    private static final int MAX_SLIPS = 2;

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
        err.println("holdfast: " + message(e, command, args));
        err.println("  see: " + command.getCommandSpec().qualifiedName() + " --help");
        return ExitCode.USAGE;
    }

    private static String message(ParameterException e, CommandLine command, String[] args) {
        String message = String.valueOf(e.getMessage()).lines().findFirst().orElse("");
        if (e instanceof MissingParameterException) {
            // What is mistyped is the likely reason why something is missing.
            Optional<String> unknown = unknownOption(command.getCommandSpec(), args);
            if (unknown.isPresent()) {
                return "Unknown option: '"
                        + unknown.get()
                        + "'"
                        + meant(command.getCommandSpec(), unknown.get());
            }
        }
        if (e instanceof UnmatchedArgumentException unmatched
                && !unmatched.getUnmatched().isEmpty()) {
            return message + meant(command.getCommandSpec(), unmatched.getUnmatched().getFirst());
        }
        return message;
    }

    /** The first argument that looks like an option and is none, nor an option's value. */
    private static Optional<String> unknownOption(CommandSpec command, String[] args) {
        Map<String, OptionSpec> known = command.optionsMap();
        boolean value = false;
        for (String argument : args) {
            String name =
                    argument.contains("=")
                            ? argument.substring(0, argument.indexOf('='))
                            : argument;
            OptionSpec option = known.get(name);
            if (!value && argument.startsWith("-") && argument.length() > 1 && option == null) {
                return Optional.of(argument);
            }
            value = option != null && option.arity().min() > 0 && name.equals(argument);
        }
        return Optional.empty();
    }

    /** The option or command that was probably meant, as a question; empty: none is near. */
    private static String meant(CommandSpec command, String typed) {
        List<String> known = new ArrayList<>();
        if (typed.startsWith("-")) {
            known.addAll(command.optionsMap().keySet());
        } else {
            known.addAll(command.subcommands().keySet());
        }
        return known.stream()
                .filter(word -> word.startsWith(typed) || distance(word, typed) <= MAX_SLIPS)
                .min(Comparator.comparingInt(word -> distance(word, typed)))
                .map(word -> "; did you mean '" + word + "'?")
                .orElse("");
    }

    /** How many letters to change, add or remove to make one word the other. */
    private static int distance(String a, String b) {
        int[] previous = IntStream.rangeClosed(0, b.length()).toArray();
        for (int i = 1; i <= a.length(); i++) {
            int[] row = new int[b.length() + 1];
            row[0] = i;
            for (int j = 1; j <= b.length(); j++) {
                int change = previous[j - 1] + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
                row[j] = Math.min(change, 1 + Math.min(previous[j], row[j - 1]));
            }
            previous = row;
        }
        return previous[b.length()];
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
