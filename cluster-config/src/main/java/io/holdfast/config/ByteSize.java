package io.holdfast.config;

import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Sizes as people write them: {@code 4096}, {@code 512M}, {@code 10 GiB}; powers of 1024. */
public final class ByteSize {
    private static final Pattern FORM = Pattern.compile("([0-9]{1,19}) *([A-Za-z]{0,8})");
    private static final String UNITS = "KMGT";

    private ByteSize() {}

    /**
     * Reads a size.
     *
     * @return bytes, 0 to {@code Long.MAX_VALUE}
     * @throws IllegalArgumentException saying what would be right
     */
    public static long parse(String text) {
        Matcher form = FORM.matcher(text.strip());
        if (!form.matches()) {
            throw new IllegalArgumentException(
                    "needs a whole number with K, M, G or T, for instance 64M or 10G");
        }
        String unit = form.group(2).toUpperCase(Locale.ROOT);
        if (unit.matches("[KMGT]B")) {
            // Some read 10GB as 10^10, some as 10 * 2^30. Neither gets a disk of the wrong size.
            throw new IllegalArgumentException(
                    "the unit "
                            + form.group(2)
                            + " is ambiguous: write "
                            + form.group(1)
                            + unit.charAt(0)
                            + " for powers of 1024");
        }
        int shift;
        if (unit.isEmpty() || unit.equals("B")) {
            shift = 0;
        } else if (unit.matches("[KMGT](IB)?")) {
            shift = 10 * (UNITS.indexOf(unit.charAt(0)) + 1);
        } else {
            throw new IllegalArgumentException(
                    "the unit " + form.group(2) + " is not known: K, M, G or T");
        }
        try {
            return Math.multiplyExact(Long.parseLong(form.group(1)), 1L << shift);
        } catch (ArithmeticException | NumberFormatException _) {
            throw new IllegalArgumentException("larger than " + format(Long.MAX_VALUE));
        }
    }

    /**
     * Writes a size so that {@link #parse} reads the same when it is a whole number of its unit,
     * else rounded down to one decimal.
     */
    public static String format(long bytes) {
        int power = 0;
        while (power < UNITS.length() && bytes >>> (10 * (power + 1)) > 0) {
            power++;
        }
        if (power == 0) {
            return bytes + "B";
        }
        long unit = 1L << (10 * power);
        long tenths = (bytes % unit) * 10 / unit;
        return bytes / unit + (tenths == 0 ? "" : "." + tenths) + UNITS.charAt(power - 1);
    }
}
