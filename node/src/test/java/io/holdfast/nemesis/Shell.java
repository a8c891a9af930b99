package io.holdfast.nemesis;

import io.holdfast.integration.Tool;
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

    static String[] words(List<String> prefix, String... more) {
        List<String> all = new ArrayList<>(prefix);
        all.addAll(Arrays.asList(more));
        return all.toArray(String[]::new);
    }
}
