package io.holdfast.client.cli;

import io.holdfast.client.admin.AdminClient;
import io.holdfast.client.admin.AdminError;
import io.holdfast.client.admin.AdminException;
import io.holdfast.client.admin.AdminJson;
import io.holdfast.client.admin.CreateVolume;
import io.holdfast.client.admin.StatusDocument.AttachMode;
import io.holdfast.client.admin.StatusDocument.DurabilityMode;
import io.holdfast.client.admin.StatusDocument.VolumeLine;
import io.holdfast.config.ByteSize;
import io.holdfast.proto.catalogue.Volume;
import java.io.Console;
import java.io.PrintWriter;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;
import picocli.CommandLine.TypeConversionException;

/** {@code volume create|list|show|delete}. */
@Command(
        name = "volume",
        description = "Create, list, show and delete volumes.",
        mixinStandardHelpOptions = true,
        subcommands = {
            VolumeCommand.Create.class,
            VolumeCommand.ListAll.class,
            VolumeCommand.Show.class,
            VolumeCommand.Delete.class
        })
final class VolumeCommand implements Runnable {
    @Spec private CommandSpec spec = CommandSpec.create();

    @Override
    public void run() {
        throw new ParameterException(
                spec.commandLine(), "which one: volume create, list, show or delete?");
    }

    /** Refuses what cannot be a volume's name before anyone is asked. */
    private static String checkName(String name) {
        if (!name.matches(Volume.NAME_PATTERN)) {
            AdminError error = CreateVolume.nameError(name);
            throw new CliException(ExitCode.USAGE, error.error(), error.remedy());
        }
        return name;
    }

    private static void print(PrintWriter out, List<VolumeLine> volumes) {
        if (volumes.isEmpty()) {
            out.println("no volumes (make one: holdfast volume create NAME --size 10G)");
        } else {
            out.print(StatusTables.volumes(volumes));
        }
        out.flush();
    }

    @Command(
            name = "create",
            description = "Make a volume; returns when it is served.",
            mixinStandardHelpOptions = true,
            footerHeading = "%nExamples:%n",
            footer = {
                "  holdfast volume create data --size 10G",
                "  holdfast volume create journal --size 512M --durability sync --timeout 10s",
                "  holdfast volume create shared --size 1T --attach shared --shards 4"
            })
    static final class Create implements Callable<Integer> {
        @Spec private CommandSpec spec = CommandSpec.create();

        @Mixin private ClusterOptions cluster = new ClusterOptions();

        @Parameters(paramLabel = "NAME", description = "1 to 64 letters, digits, '.', '_' or '-'.")
        private String name = "";

        @Option(
                names = "--size",
                required = true,
                converter = SizeConverter.class,
                paramLabel = "SIZE",
                description = "For instance 512M, 10G or 1T (powers of 1024).")
        private TypedSize size = new TypedSize("", 0);

        @Option(
                names = "--durability",
                converter = DurabilityConverter.class,
                paramLabel = "flush|sync",
                description =
                        "When a write is answered: 'flush' (default) when a majority has it in its"
                                + " journal, and a flush makes it survive power loss of all nodes;"
                                + " 'sync' when a majority has synced it.")
        private @Nullable DurabilityMode durability;

        @Option(
                names = "--replicas",
                converter = NumberConverter.class,
                paramLabel = "N",
                description = "Copies: odd, at most the number of nodes (default: 3, or 1).")
        private @Nullable Integer replicas;

        @Option(
                names = "--shards",
                converter = NumberConverter.class,
                paramLabel = "N",
                description = "Parts with leaders of their own (default: 1).")
        private @Nullable Integer shards;

        @Option(
                names = "--attach",
                converter = AttachConverter.class,
                paramLabel = "exclusive|shared",
                description =
                        "Who may write: 'exclusive' (default) one client at a time; 'shared' all,"
                                + " for cluster file systems.")
        private @Nullable AttachMode attach;

        @Option(
                names = "--timeout",
                converter = SecondsConverter.class,
                paramLabel = "TIME",
                description =
                        "How long a request waits for a majority of copies before it fails, for"
                                + " instance 30s (default), 2m or 1h.")
        private @Nullable Integer timeout;

        @Override
        public Integer call() throws AdminException {
            CreateVolume wanted =
                    new CreateVolume(
                            name, size.bytes(), replicas, shards, durability, attach, timeout);
            CreateVolume.sizeProblem(size.bytes(), size.text())
                    .or(wanted::problem)
                    .ifPresent(problem -> {
                        throw new CliException(ExitCode.USAGE, problem.error(), problem.remedy());
                    });
            PrintWriter out = spec.commandLine().getOut();
            try (AdminClient client = cluster.connect()) {
                VolumeLine made = client.create(wanted);
                Risks.of(made, client.status())
                        .forEach(risk -> spec.commandLine().getErr().println("warning: " + risk));
                spec.commandLine().getErr().flush();
                if (cluster.json()) {
                    out.println(AdminJson.writePretty(made));
                } else {
                    out.println(
                            "volume %s is ready: %s, %s, durability %s, on %s"
                                    .formatted(
                                            made.name(),
                                            ByteSize.format(made.sizeBytes()),
                                            made.attach(),
                                            made.durability(),
                                            StatusTables.nodesOf(made)));
                }
                return ExitCode.OK;
            }
        }
    }

    @Command(
            name = "list",
            aliases = "ls",
            description = "List all volumes.",
            mixinStandardHelpOptions = true,
            footerHeading = "%nExamples:%n",
            footer = {
                "  holdfast volume list",
                "  holdfast volume list --json --admin 127.0.0.1:8801,127.0.0.1:8802"
            })
    static final class ListAll implements Callable<Integer> {
        @Spec private CommandSpec spec = CommandSpec.create();

        @Mixin private ClusterOptions cluster = new ClusterOptions();

        @Override
        public Integer call() throws AdminException {
            PrintWriter out = spec.commandLine().getOut();
            try (AdminClient client = cluster.connect()) {
                List<VolumeLine> volumes = client.volumes();
                if (cluster.json()) {
                    out.println(AdminJson.writePretty(volumes));
                } else {
                    print(out, volumes);
                }
                return ExitCode.OK;
            }
        }
    }

    @Command(
            name = "show",
            description = "Show one volume with its shards and replicas.",
            mixinStandardHelpOptions = true,
            footerHeading = "%nExamples:%n",
            footer = {"  holdfast volume show data", "  holdfast volume show data --json"})
    static final class Show implements Callable<Integer> {
        @Spec private CommandSpec spec = CommandSpec.create();

        @Mixin private ClusterOptions cluster = new ClusterOptions();

        @Parameters(paramLabel = "NAME", description = "The volume.")
        private String name = "";

        @Override
        public Integer call() throws AdminException {
            PrintWriter out = spec.commandLine().getOut();
            checkName(name);
            try (AdminClient client = cluster.connect()) {
                VolumeLine volume = client.volume(name);
                if (cluster.json()) {
                    out.println(AdminJson.writePretty(volume));
                } else {
                    print(out, List.of(volume));
                    out.println();
                    out.print(StatusTables.replicas(List.of(volume)));
                }
                return ExitCode.OK;
            }
        }
    }

    @Command(
            name = "delete",
            aliases = "rm",
            description = {
                "Destroy a volume and its data, for ever: its key is destroyed first.",
                "Refused while a client holds the volume for writing (exit code 6), unless --force.",
                "Where there is no terminal to ask at, --yes is needed as well, also with --force."
            },
            mixinStandardHelpOptions = true,
            footerHeading = "%nExamples:%n",
            footer = {
                "  holdfast volume delete scratch                # asks for the name again",
                "  holdfast volume delete scratch --yes          # for scripts",
                "  holdfast volume delete scratch --force        # although a client writes to it",
                "  holdfast volume delete scratch --yes --force  # the same, for scripts"
            })
    static final class Delete implements Callable<Integer> {
        @Spec private CommandSpec spec = CommandSpec.create();

        @Mixin private ClusterOptions cluster = new ClusterOptions();

        @Parameters(paramLabel = "NAME", description = "The volume.")
        private String name = "";

        @Option(names = "--yes", description = "Do not ask; needed where there is no terminal.")
        private boolean yes;

        @Option(
                names = "--force",
                description =
                        "Delete it even while a client holds it for writing; that client's requests"
                                + " then fail. Asks all the same, unless --yes.")
        private boolean force;

        @Override
        public Integer call() throws AdminException {
            checkName(name);
            Optional<Console> console = Terminal.get();
            if (!yes && console.isEmpty()) {
                throw new CliException(
                        ExitCode.USAGE,
                        "deleting volume '" + name + "' destroys all its data",
                        "Without a terminal it does not ask: repeat with "
                                + (force ? "--yes --force" : "--yes")
                                + " if that is meant.");
            }
            try (AdminClient client = cluster.connect()) {
                if (!yes) {
                    confirm(console.orElseThrow(), client.volume(name));
                }
                client.delete(name, force);
                if (cluster.json()) {
                    spec.commandLine().getOut().println("{}");
                } else {
                    spec.commandLine().getOut().println("volume " + name + " is deleted");
                }
                return ExitCode.OK;
            }
        }

        private void confirm(Console console, VolumeLine volume) {
            if (volume.holder() != null && !force) {
                throw new CliException(
                        ExitCode.IN_USE,
                        "volume %s is in use: %s holds it for writing"
                                .formatted(name, volume.holder()),
                        "Detach it there first, or repeat with --force.");
            }
            String typed =
                    console.readLine(
                            "This destroys all data of volume '%s' (%s%s). Type its name to go on:"
                                    + " ",
                            name,
                            ByteSize.format(volume.sizeBytes()),
                            volume.holder() == null ? "" : ", held by " + volume.holder());
            if (!name.equals(typed)) {
                throw new CliException(
                        ExitCode.FAILED, "that is not '" + name + "': nothing was deleted", "");
            }
        }
    }

    /**
     * A size on the command line.
     *
     * @param text as it was typed
     */
    record TypedSize(String text, long bytes) {}

    /** Reads {@code 10G}. */
    static final class SizeConverter implements ITypeConverter<TypedSize> {
        @Override
        public TypedSize convert(String text) {
            try {
                return new TypedSize(text, ByteSize.parse(text));
            } catch (IllegalArgumentException e) {
                throw new TypeConversionException("'" + text + "': " + e.getMessage());
            }
        }
    }

    /** Reads a whole number. */
    static final class NumberConverter implements ITypeConverter<Integer> {
        @Override
        public Integer convert(String text) {
            try {
                return Integer.valueOf(text);
            } catch (NumberFormatException e) {
                throw new TypeConversionException("'" + text + "' is not a whole number");
            }
        }
    }

    /** Reads {@code flush} or {@code sync}. */
    static final class DurabilityConverter implements ITypeConverter<DurabilityMode> {
        @Override
        public DurabilityMode convert(String text) {
            return oneOf(DurabilityMode.values(), text);
        }
    }

    /** Reads {@code exclusive} or {@code shared}. */
    static final class AttachConverter implements ITypeConverter<AttachMode> {
        @Override
        public AttachMode convert(String text) {
            return oneOf(AttachMode.values(), text);
        }
    }

    private static <T> T oneOf(T[] values, String text) {
        return Arrays.stream(values)
                .filter(value -> value.toString().equalsIgnoreCase(text))
                .findFirst()
                .orElseThrow(() ->
                        new TypeConversionException(
                                "'%s' is not one of %s"
                                        .formatted(
                                                text,
                                                Arrays.stream(values)
                                                        .map(Object::toString)
                                                        .collect(Collectors.joining(", ")))));
    }

    /** Reads {@code 30s}, {@code 2m}, {@code 1h} or plain seconds. */
    static final class SecondsConverter implements ITypeConverter<Integer> {
        private static final Pattern FORM = Pattern.compile("([0-9]{1,5})(s|m|h|)");

        @Override
        public Integer convert(String text) {
            Matcher form = FORM.matcher(text);
            if (!form.matches()) {
                throw new TypeConversionException(
                        "'" + text + "' is not a time as in 30s, 2m or 1h");
            }
            int unit =
                    switch (form.group(2)) {
                        case "h" -> 3600;
                        case "m" -> 60;
                        default -> 1;
                    };
            return Integer.parseInt(form.group(1)) * unit;
        }
    }
}
