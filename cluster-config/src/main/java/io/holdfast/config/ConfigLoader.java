package io.holdfast.config;

import com.typesafe.config.Config;
import com.typesafe.config.ConfigFactory;
import com.typesafe.config.ConfigList;
import com.typesafe.config.ConfigObject;
import com.typesafe.config.ConfigParseOptions;
import com.typesafe.config.ConfigValue;
import com.typesafe.config.ConfigValueType;
import io.holdfast.config.NodeConfig.CatchUp;
import io.holdfast.config.NodeConfig.Endpoint;
import io.holdfast.config.NodeConfig.Limits;
import io.holdfast.config.NodeConfig.Member;
import io.holdfast.config.NodeConfig.Scrub;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Reads a configuration file. {@code holdfast-reference.conf} beside this class says which keys
 * there are and what their defaults are; nothing else does.
 *
 * <p>All errors of a file are found in one go. Each names the key, the value, where it stands and
 * what would be right.
 */
public final class ConfigLoader {
    static final String REFERENCE = "holdfast-reference.conf";

    /** Node and cluster names. */
    static final String NAME_PATTERN = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}";

    static final String NAME_HELP =
            "needs 1 to 64 letters, digits, '.', '_' or '-', starting with a letter or digit";

    static final int MAX_NODES = 7;
    static final int MAX_NODE_NUMBER = 65535;

    private static final long MIB = 1L << 20;
    private static final long GIB = 1L << 30;
    private static final long TIB = 1L << 40;

    /** What the cleaner keeps free, and as many to clean. */
    private static final int MIN_STORE_SEGMENTS = 16;

    private ConfigLoader() {}

    /**
     * Reads a node's configuration.
     *
     * @throws ConfigException when it cannot be used, listing every error
     */
    public static NodeConfig load(Path file) {
        Config given = parse(file);
        Problems problems = new Problems(file);
        new UnknownKeys(problems).check(given.root(), reference().root());
        Values values = new Values(given, file, problems);
        ClusterConfig cluster = cluster(values);
        NodeConfig config = node(values, cluster);
        problems.throwIfAny();
        return config;
    }

    /**
     * Reads the {@code cluster} part only; a file without a {@code node} part will do.
     *
     * @throws ConfigException when it cannot be used, listing every error
     */
    public static ClusterConfig loadCluster(Path file) {
        Config given = parse(file);
        Problems problems = new Problems(file);
        new UnknownKeys(problems).check(given.root(), reference().root());
        ClusterConfig cluster = cluster(new Values(given, file, problems));
        problems.throwIfAny();
        return cluster;
    }

    static Config reference() {
        return ConfigFactory.parseResources(ConfigLoader.class.getClassLoader(), REFERENCE);
    }

    private static Config parse(Path file) {
        try {
            return ConfigFactory.parseFile(
                            file.toFile(), ConfigParseOptions.defaults().setAllowMissing(false))
                    .resolve();
        } catch (com.typesafe.config.ConfigException.IO e) {
            throw new ConfigException("cannot read the configuration " + file + ": " + reason(e));
        } catch (com.typesafe.config.ConfigException e) {
            throw new ConfigException(
                    "the configuration " + file + " is not valid HOCON: " + reason(e));
        }
    }

    private static String reason(com.typesafe.config.ConfigException e) {
        String message = String.valueOf(e.getMessage());
        return message.lines().findFirst().orElse(message);
    }

    private static ClusterConfig cluster(Values values) {
        Values cluster = values.section("cluster");
        String name = cluster.name("name");
        List<Member> members = new ArrayList<>();
        List<Values> elements = cluster.elements("nodes");
        for (Values element : elements) {
            members.add(
                    new Member(
                            element.integer("number", 1, MAX_NODE_NUMBER),
                            element.name("id"),
                            element.endpoint("nbd"),
                            element.endpoint("http"),
                            element.endpoint("peer"),
                            element.endpoint("coordination")));
        }
        checkUnique(elements);
        int count = elements.size();
        if (cluster.isList("nodes") && (count == 0 || count > MAX_NODES || count % 2 == 0)) {
            cluster.problem(
                    "nodes",
                    "has %d nodes: needs 1, 3, 5 or %d (an even number survives no more failures"
                                    .formatted(count, MAX_NODES)
                            + " than one node fewer)");
        }
        members.sort(Comparator.comparingInt(Member::number));
        return new ClusterConfig(name, members);
    }

    /** Numbers, ids and addresses belong to one node each; an address to one use. */
    private static void checkUnique(List<Values> elements) {
        Map<String, String> firstUse = new HashMap<>();
        for (Values element : elements) {
            for (String key : List.of("number", "id", "nbd", "http", "peer", "coordination")) {
                Optional<String> text = element.plainText(key);
                if (text.isEmpty()) {
                    continue;
                }
                boolean address = !key.equals("number") && !key.equals("id");
                String first =
                        firstUse.putIfAbsent(
                                (address ? "address" : key) + " " + text.get(), element.path(key));
                if (first != null) {
                    element.problem(key, "is the same as " + first + ": must be unique");
                }
            }
        }
    }

    private static NodeConfig node(Values values, ClusterConfig cluster) {
        Values node = values.section("node");
        String id = node.name("id");
        Optional<Member> self =
                cluster.nodes().stream().filter(member -> member.id().equals(id)).findFirst();
        if (self.isEmpty() && !id.isEmpty() && !cluster.nodes().isEmpty()) {
            List<String> ids = cluster.nodes().stream().map(Member::id).toList();
            node.problem("id", "is not in cluster.nodes: needs one of " + String.join(", ", ids));
        }
        Values scrub = node.section("scrub");
        Values catchUp = node.section("catch-up");
        Values limits = node.section("limits");
        long segmentBytes = limits.size("segment-size", 16 * MIB, GIB);
        return new NodeConfig(
                cluster.name(),
                self.orElse(Values.NOBODY),
                cluster.nodes(),
                node.filePath("data-directory"),
                node.filePath("cluster-key-file"),
                new Scrub(
                        scrub.size("rate", MIB, 16 * GIB),
                        scrub.periodOrNever("every", Duration.ofHours(1), Duration.ofDays(365))),
                new CatchUp(
                        catchUp.size("rate", MIB, 16 * GIB),
                        catchUp.size("rate-with-clients", MIB, 16 * GIB)),
                new Limits(
                        segmentBytes,
                        limits.size("checkpoint-size", 16 * MIB, 64 * GIB),
                        limits.size("cache-size", 16 * MIB, 64 * GIB),
                        limits.integer("nbd-connections", 1, 65535),
                        limits.size("in-flight-size", 32 * MIB, GIB),
                        storeBytes(limits, segmentBytes)));
    }

    /** The size of a store, 0 for the whole file system. */
    private static long storeBytes(Values limits, long segmentBytes) {
        long size = limits.sizeOrNone("store-size", 256 * MIB, 1024 * TIB);
        if (size != 0 && size < MIN_STORE_SEGMENTS * segmentBytes) {
            limits.problem(
                    "store-size",
                    "needs room for at least %d journal files of %s"
                            .formatted(MIN_STORE_SEGMENTS, ByteSize.format(segmentBytes)));
        }
        return size;
    }

    /**
     * One object of the file. A reader that meets an error notes it and returns a value of no
     * meaning, so that the rest is checked too; {@link Problems#throwIfAny} ends it before anyone
     * sees such a value.
     */
    private static final class Values {
        static final Endpoint NOWHERE = new Endpoint("", 0);
        static final Member NOBODY = new Member(0, "", NOWHERE, NOWHERE, NOWHERE, NOWHERE);

        private static final Pattern PERIOD = Pattern.compile("([0-9]{1,6}) *([hd])");

        private final String prefix;
        private final Map<String, ConfigValue> given;
        private final Map<String, ConfigValue> defaults;
        private final Path file;
        private final Problems problems;

        Values(Config given, Path file, Problems problems) {
            this("", given.root(), reference().root(), file, problems);
        }

        private Values(
                String prefix,
                Map<String, ConfigValue> given,
                Map<String, ConfigValue> defaults,
                Path file,
                Problems problems) {
            this.prefix = prefix;
            this.given = given;
            this.defaults = defaults;
            this.file = file;
            this.problems = problems;
        }

        String path(String key) {
            return prefix + key;
        }

        void problem(String key, String what) {
            problems.add(path(key), Optional.ofNullable(given.get(key)), what);
        }

        Values section(String key) {
            return child(path(key) + ".", given.get(key), defaultOf(key));
        }

        private Values child(
                String childPrefix, @Nullable ConfigValue value, ConfigValue defaultValue) {
            // Where an object is needed and something else stands, UnknownKeys has said so.
            Map<String, ConfigValue> object =
                    value instanceof ConfigObject o ? o : new HashMap<String, ConfigValue>();
            return new Values(childPrefix, object, (ConfigObject) defaultValue, file, problems);
        }

        boolean isList(String key) {
            return given.get(key) instanceof ConfigList;
        }

        /** The objects of a list that has no default. */
        List<Values> elements(String key) {
            List<Values> elements = new ArrayList<>();
            if (given.get(key) instanceof ConfigList list) {
                ConfigValue template = ((ConfigList) defaultOf(key)).get(0);
                for (int i = 0; i < list.size(); i++) {
                    elements.add(child("%s[%d].".formatted(path(key), i), list.get(i), template));
                }
            } else if (absent(key)) {
                problem(key, "is missing: needs the list of nodes");
            }
            return elements;
        }

        private boolean absent(String key) {
            ConfigValue value = given.get(key);
            return value == null || value.valueType() == ConfigValueType.NULL;
        }

        /**
         * @throws IllegalStateException when the reference file lacks the key
         */
        private ConfigValue defaultOf(String key) {
            ConfigValue value = defaults.get(key);
            if (value == null) {
                throw new IllegalStateException(REFERENCE + " lacks " + path(key));
            }
            return value;
        }

        /** The value if it is a single one; else empty, and the reason is noted. */
        private Optional<ConfigValue> single(String key, String needs) {
            ConfigValue fallback = defaultOf(key);
            if (absent(key)) {
                if (fallback.valueType() == ConfigValueType.NULL) {
                    problem(key, "is missing: " + needs);
                    return Optional.empty();
                }
                return Optional.of(fallback);
            }
            ConfigValue value = given.get(key);
            if (value instanceof ConfigObject || value instanceof ConfigList) {
                problem(key, needs);
                return Optional.empty();
            }
            return Optional.ofNullable(value);
        }

        Optional<String> plainText(String key) {
            ConfigValue value = given.get(key);
            if (absent(key) || value instanceof ConfigObject || value instanceof ConfigList) {
                return Optional.empty();
            }
            return Optional.ofNullable(value).map(Values::text);
        }

        private static String text(ConfigValue value) {
            return String.valueOf(value.unwrapped());
        }

        String name(String key) {
            Optional<String> name = single(key, NAME_HELP).map(Values::text);
            if (name.isPresent() && !name.get().matches(NAME_PATTERN)) {
                problem(key, NAME_HELP);
                return "";
            }
            return name.orElse("");
        }

        int integer(String key, int min, int max) {
            String needs = "needs a whole number from " + min + " to " + max;
            Optional<String> text = single(key, needs).map(Values::text);
            if (text.isEmpty()) {
                return 0;
            }
            try {
                int value = Integer.parseInt(text.get());
                if (value >= min && value <= max) {
                    return value;
                }
            } catch (NumberFormatException _) {
                // Reported below like a number out of range.
            }
            problem(key, needs);
            return 0;
        }

        long size(String key, long min, long max) {
            String needs =
                    "needs a size from " + ByteSize.format(min) + " to " + ByteSize.format(max);
            Optional<String> text = single(key, needs).map(Values::text);
            if (text.isEmpty()) {
                return 0;
            }
            try {
                long value = ByteSize.parse(text.get());
                if (value >= min && value <= max) {
                    return value;
                }
                problem(key, needs);
            } catch (IllegalArgumentException e) {
                problem(key, e.getMessage() + "; " + needs);
            }
            return 0;
        }

        /** A size, or 0. */
        long sizeOrNone(String key, long min, long max) {
            boolean none =
                    single(key, "needs a size or 0").map(Values::text).orElse("").equals("0");
            return none ? 0 : size(key, min, max);
        }

        /** Hours or days, or {@code never}: zero. */
        Duration periodOrNever(String key, Duration min, Duration max) {
            String needs =
                    "needs hours or days from %dh to %dd, for instance 36h or 7d, or never"
                            .formatted(min.toHours(), max.toDays());
            Optional<String> text = single(key, needs).map(Values::text);
            if (text.isEmpty() || text.get().equals("never")) {
                return Duration.ZERO;
            }
            Matcher form = PERIOD.matcher(text.get());
            if (form.matches()) {
                long count = Long.parseLong(form.group(1));
                Duration value =
                        form.group(2).equals("h")
                                ? Duration.ofHours(count)
                                : Duration.ofDays(count);
                if (value.compareTo(min) >= 0 && value.compareTo(max) <= 0) {
                    return value;
                }
            }
            problem(key, needs);
            return Duration.ZERO;
        }

        /** A path, absolute; a relative one starts at the file it stands in. */
        Path filePath(String key) {
            String needs = "needs a path";
            Optional<ConfigValue> value = single(key, needs);
            Path base = file.toAbsolutePath();
            if (value.isEmpty()) {
                return base;
            }
            if (text(value.get()).isBlank()) {
                problem(key, needs);
                return base;
            }
            String standsIn = value.get().origin().filename();
            if (standsIn != null && !absent(key)) {
                base = Path.of(standsIn).toAbsolutePath();
            }
            try {
                return base.resolveSibling(text(value.get())).normalize();
            } catch (InvalidPathException e) {
                problem(key, needs + ": " + e.getReason());
                return base;
            }
        }

        Endpoint endpoint(String key) {
            String needs =
                    "needs host:port with a port from 1 to 65535, for instance 10.0.0.1:10809";
            Optional<String> text = single(key, needs).map(Values::text);
            if (text.isEmpty()) {
                return NOWHERE;
            }
            Optional<Endpoint> endpoint = Endpoint.parse(text.get());
            if (endpoint.isEmpty()) {
                problem(key, needs);
                return NOWHERE;
            }
            String host = endpoint.get().host();
            if (host.equals("0.0.0.0") || host.equals("::")) {
                problem(key, "needs an address that the other nodes can connect to");
                return NOWHERE;
            }
            return endpoint.get();
        }
    }
}
