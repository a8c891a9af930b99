package io.holdfast.nemesis;

import io.holdfast.integration.Tool;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Short commands of the system: ip, iptables, mount. */
final class Shell {
    private static final Duration LIMIT = Duration.ofSeconds(30);

    private Shell() {}

    /** Runs a command given as words, and returns what it said; fails when it fails. */
    static String run(String... words) {
        Tool.Result result = Tool.run(LIMIT, words);
        if (result.exit() != 0) {
            throw new IllegalStateException(
                    String.join(" ", words) + ": exit " + result.exit() + ": " + result.output());
        }
        return result.output();
    }

    /** Runs a command, whatever becomes of it. */
    static boolean tries(String... words) {
        try {
            return Tool.run(LIMIT, words).exit() == 0;
        } catch (AssertionError missing) {
            return false;
        }
    }

    /** Id of the commit of a working tree, marked when files differ from it. */
    static String commit(Path tree) {
        String[] git = {"git", "-C", tree.toString()};
        try {
            Tool.Result id = Tool.run(LIMIT, words(List.of(git), "rev-parse", "HEAD"));
            if (id.exit() != 0) {
                return "unknown: " + id.output().strip();
            }
            boolean clean =
                    Tool.run(LIMIT, words(List.of(git), "status", "--porcelain"))
                            .output()
                            .isBlank();
            return id.output().strip() + (clean ? "" : " and uncommitted changes");
        } catch (AssertionError missing) {
            return "unknown: git cannot be started";
        }
    }

    static String[] words(List<String> prefix, String... more) {
        List<String> all = new ArrayList<>(prefix);
        all.addAll(Arrays.asList(more));
        return all.toArray(String[]::new);
    }
}
