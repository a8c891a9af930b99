package io.holdfast.nemesis;

import java.nio.file.Path;
import java.time.Duration;
import java.util.EnumSet;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * What a run is asked for.
 *
 * @param length how long faults go on, unless {@code rounds} says how many there are
 * @param rounds 0: by length; else that many faults, and after each one every block is read back
 * @param dir where the cluster's files are; null: a new folder for temporary files
 * @param keep whether the files stay when nothing was wrong
 */
record Options(
        Duration length,
        int rounds,
        long seed,
        Set<Fault> faults,
        @Nullable Path dir,
        boolean keep,
        boolean json) {

    private static final int SEED_BOUND = 1_000_000_000;
    private static final int MOST_MINUTES = 7 * 24 * 60;
    private static final int MOST_ROUNDS = 1_000_000;

    /** Wrong usage; the message says what would be right. */
    static final class Wrong extends Exception {
        private static final long serialVersionUID = 1;

        Wrong(String message) {
            super(message);
        }
    }

    static Options of(Duration length, int rounds, long seed, Set<Fault> faults) {
        return new Options(length, rounds, seed, faults, null, false, false);
    }

    static long newSeed() {
        return ThreadLocalRandom.current().nextInt(SEED_BOUND);
    }

    static Options parse(String[] args) throws Wrong {
        Duration length = Duration.ofMinutes(5);
        int rounds = 0;
        long seed = newSeed();
        Set<Fault> faults = EnumSet.allOf(Fault.class);
        Path dir = null;
        boolean keep = false;
        boolean json = false;
        boolean minutesGiven = false;
        for (int i = 0; i < args.length; i++) {
            String option = args[i];
            switch (option) {
                case "--keep" -> keep = true;
                case "--json" -> json = true;
                case "--minutes" -> {
                    length = Duration.ofMinutes(number(option, value(args, ++i), 1, MOST_MINUTES));
                    minutesGiven = true;
                }
                case "--rounds" -> rounds = (int) number(option, value(args, ++i), 1, MOST_ROUNDS);
                case "--seed" -> seed = number(option, value(args, ++i), 0, Long.MAX_VALUE);
                case "--faults" -> faults = faults(value(args, ++i));
                case "--dir" -> dir = Path.of(value(args, ++i)).toAbsolutePath().normalize();
                default ->
                        throw new Wrong(
                                "nemesis does not know " + option + " (holdfast nemesis --help)");
            }
        }
        if (rounds > 0 && minutesGiven) {
            throw new Wrong("--rounds and --minutes exclude each other");
        }
        return new Options(length, rounds, seed, faults, dir, keep, json);
    }

    /** The command that asks for the same: which faults, in which order, and for how long. */
    String command() {
        StringBuilder command = new StringBuilder("./holdfast nemesis");
        if (rounds > 0) {
            command.append(" --rounds ").append(rounds);
        } else {
            command.append(" --minutes ").append(length.toMinutes());
        }
        command.append(" --seed ").append(seed);
        if (!faults.equals(EnumSet.allOf(Fault.class))) {
            command.append(" --faults ").append(words(faults));
        }
        return command.toString();
    }

    private static String value(String[] args, int i) throws Wrong {
        if (i >= args.length) {
            throw new Wrong(args[i - 1] + " needs a value (holdfast nemesis --help)");
        }
        return args[i];
    }

    private static long number(String option, String value, long least, long most) throws Wrong {
        try {
            long number = Long.parseLong(value);
            if (number >= least && number <= most) {
                return number;
            }
        } catch (NumberFormatException e) {
            // Refused below, like a number out of bounds.
        }
        throw new Wrong(
                option + " " + value + ": needs a whole number from " + least + " to " + most);
    }

    private static Set<Fault> faults(String list) throws Wrong {
        Set<Fault> faults = EnumSet.noneOf(Fault.class);
        for (String word : list.split(",", -1)) {
            faults.add(
                    Fault.of(word)
                            .orElseThrow(() ->
                                    new Wrong(
                                            "--faults %s: needs a list of %s"
                                                    .formatted(
                                                            word,
                                                            words(EnumSet.allOf(Fault.class))))));
        }
        return faults;
    }

    private static String words(Set<Fault> faults) {
        return faults.stream().map(fault -> fault.word).collect(Collectors.joining(","));
    }
}
