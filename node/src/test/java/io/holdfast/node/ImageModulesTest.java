package io.holdfast.node;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.spi.ToolProvider;
import org.junit.jupiter.api.Test;

/** The container image's Java runtime has only the modules that its script names. */
class ImageModulesTest {
    private static final Pattern MODULE = Pattern.compile("\\b(?:java|jdk)\\.[a-z.]+[a-z]");

    @Test
    void runtimeOfTheImageHasEveryModuleThatOurCodeUses() throws IOException {
        Set<String> inImage = new TreeSet<>();
        for (String line : Files.readAllLines(Path.of("src/main/docker/assemble"))) {
            if (line.startsWith("MODULES=")) {
                inImage.addAll(modulesIn(line));
            }
        }
        assertThat(inImage).contains("java.base");

        List<String> command =
                new ArrayList<>(
                        List.of("-summary", "--multi-release", "25", "--ignore-missing-deps"));
        Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
                .filter(entry ->
                        entry.endsWith("/target/classes")
                                || entry.matches(".*/holdfast-[^/]*\\.jar"))
                .forEach(command::add);
        StringWriter out = new StringWriter();
        StringWriter errors = new StringWriter();
        int exit =
                ToolProvider.findFirst("jdeps")
                        .orElseThrow()
                        .run(
                                new PrintWriter(out),
                                new PrintWriter(errors),
                                command.toArray(String[]::new));
        assertThat(exit).as(errors.toString()).isZero();
        Set<String> used = modulesIn(out.toString());
        assertThat(used).contains("java.base", "jdk.httpserver");
        assertThat(inImage).containsAll(used);
    }

    private static Set<String> modulesIn(String text) {
        Set<String> found = new TreeSet<>();
        Matcher matcher = MODULE.matcher(text);
        while (matcher.find()) {
            found.add(matcher.group());
        }
        return found;
    }
}
