package io.holdfast.config;

import com.typesafe.config.ConfigRenderOptions;
import com.typesafe.config.ConfigValue;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** Collects what is wrong with a file. */
final class Problems {
    /** Longer values are cut in messages. */
    private static final int MAX_VALUE_CHARS = 60;

    private final Path file;
    private final List<String> lines = new ArrayList<>();

    Problems(Path file) {
        this.file = file;
    }

    void add(String key, Optional<ConfigValue> value, String what) {
        StringBuilder line = new StringBuilder(key);
        value.ifPresent(given -> line.append(" = ").append(render(given)));
        line.append(": ").append(what);
        value.flatMap(Problems::place).ifPresent(at -> line.append(" (").append(at).append(')'));
        lines.add(line.toString());
    }

    void throwIfAny() {
        if (lines.isEmpty()) {
            return;
        }
        throw new ConfigException(
                "the configuration %s has %d %s:%n  %s"
                        .formatted(
                                file,
                                lines.size(),
                                lines.size() == 1 ? "error" : "errors",
                                String.join(System.lineSeparator() + "  ", lines)));
    }

    private static String render(ConfigValue value) {
        String text = value.render(ConfigRenderOptions.concise());
        if (text.length() <= MAX_VALUE_CHARS) {
            return text;
        }
        return switch (value.valueType()) {
            case OBJECT -> "{...}";
            case LIST -> "[...]";
            case NUMBER, BOOLEAN, NULL, STRING -> text.substring(0, MAX_VALUE_CHARS) + "...";
        };
    }

    /** File and line; empty for what comes from the environment. */
    private static Optional<String> place(ConfigValue value) {
        String name = value.origin().filename();
        if (name == null) {
            return Optional.empty();
        }
        int line = value.origin().lineNumber();
        return Optional.of(Path.of(name).getFileName() + (line > 0 ? " line " + line : ""));
    }
}
