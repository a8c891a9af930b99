package io.holdfast.config;

import com.typesafe.config.ConfigList;
import com.typesafe.config.ConfigObject;
import com.typesafe.config.ConfigValue;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * Finds keys that the reference file does not have, and objects or lists where it has something
 * else. A mistyped key must not silently leave a default in force.
 */
final class UnknownKeys {
    private final Problems problems;
    private final List<String> known = new ArrayList<>();

    UnknownKeys(Problems problems) {
        this.problems = problems;
    }

    void check(ConfigObject given, ConfigObject reference) {
        known.addAll(keys(reference));
        check("", given, reference);
    }

    /** All keys of the reference, list elements as {@code key[].inner}, sorted. */
    static List<String> keys(ConfigObject reference) {
        List<String> keys = new ArrayList<>();
        collect("", reference, keys);
        keys.sort(Comparator.naturalOrder());
        return keys;
    }

    private static void collect(String prefix, ConfigObject object, List<String> keys) {
        object.forEach((key, value) -> {
            if (value instanceof ConfigObject inner) {
                collect(prefix + key + ".", inner, keys);
            } else if (value instanceof ConfigList list) {
                collect(prefix + key + "[].", (ConfigObject) list.get(0), keys);
            } else {
                keys.add(prefix + key);
            }
        });
    }

    private void check(String prefix, ConfigObject given, ConfigObject reference) {
        for (String key : new TreeSet<>(given.keySet())) {
            ConfigValue value = given.get(key);
            ConfigValue model = reference.get(key);
            String path = prefix + key;
            if (model == null) {
                unknown(path, value);
            } else if (model instanceof ConfigObject object) {
                if (value instanceof ConfigObject inner) {
                    check(path + ".", inner, object);
                } else {
                    problems.add(path, Optional.ofNullable(value), "needs { ... }");
                }
            } else if (model instanceof ConfigList list) {
                if (value instanceof ConfigList elements) {
                    checkElements(path, elements, (ConfigObject) list.get(0));
                } else {
                    problems.add(path, Optional.ofNullable(value), "needs a list: [ { ... } ]");
                }
            }
        }
    }

    private void checkElements(String path, ConfigList elements, ConfigObject model) {
        for (int i = 0; i < elements.size(); i++) {
            String element = path + "[" + i + "]";
            if (elements.get(i) instanceof ConfigObject object) {
                check(element + ".", object, model);
            } else {
                problems.add(element, Optional.of(elements.get(i)), "needs { ... }");
            }
        }
    }

    private void unknown(String path, @Nullable ConfigValue value) {
        if (value instanceof ConfigObject object && !object.isEmpty()) {
            // Each key inside may be a known one in the wrong place.
            object.forEach((key, inner) -> unknown(path + "." + key, inner));
        } else {
            problems.add(path, Optional.ofNullable(value), "is not a known key" + hint(path));
        }
    }

    /** The known key that was probably meant: the nearest in spelling, whole path counted. */
    private String hint(String path) {
        String wanted = path.replaceAll("\\[[0-9]+]", "[]");
        return known.stream()
                .min(Comparator.comparingInt(candidate -> distance(wanted, candidate)))
                .filter(candidate -> near(wanted, candidate))
                .map(candidate -> ": did you mean " + candidate + "?")
                .orElse("");
    }

    private static int distance(String wanted, String candidate) {
        // The right key in the wrong section is a better guess than a wrong key in the right one.
        return Math.min(
                edits(plain(wanted), plain(candidate)),
                nameDistance(plain(last(wanted)), plain(last(candidate))) + 1);
    }

    private static int nameDistance(String wanted, String candidate) {
        boolean shortened = wanted.length() >= 3 && candidate.startsWith(wanted);
        return shortened ? Math.min(1, edits(wanted, candidate)) : edits(wanted, candidate);
    }

    private static boolean near(String wanted, String candidate) {
        return distance(wanted, candidate) <= Math.max(2, last(wanted).length() / 3);
    }

    private static String last(String path) {
        return path.substring(path.lastIndexOf('.') + 1);
    }

    /** Spelling without what people vary: dataDirectory, data_directory, data-directory. */
    private static String plain(String key) {
        return key.replaceAll("[-_]", "").toLowerCase(Locale.ROOT);
    }

    /** Levenshtein distance. */
    static int edits(String a, String b) {
        int[] previous = new int[b.length() + 1];
        for (int j = 0; j <= b.length(); j++) {
            previous[j] = j;
        }
        for (int i = 1; i <= a.length(); i++) {
            int[] current = new int[b.length() + 1];
            current[0] = i;
            for (int j = 1; j <= b.length(); j++) {
                int replaced = previous[j - 1] + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
                current[j] = Math.min(replaced, Math.min(previous[j], current[j - 1]) + 1);
            }
            previous = current;
        }
        return previous[b.length()];
    }
}
