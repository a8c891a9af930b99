package io.holdfast.client.cli;

import io.holdfast.client.admin.StatusDocument.CatchUpLine;
import java.util.Locale;

/** A catch-up's progress on one line, as people know it from {@code /proc/mdstat}. */
final class CatchUpText {
    private static final int BAR = 20;
    private static final String[] UNITS = {"B", "KiB", "MiB", "GiB", "TiB"};
    private static final long MINUTE = 60;
    private static final long HOUR = 60 * MINUTE;
    private static final long DAY = 24 * HOUR;

    private CatchUpText() {}

    static String of(CatchUpLine line) {
        Long total = line.totalBytes();
        String text =
                bar(line.percent())
                        + String.format(Locale.ROOT, " %.1f%%", line.percent())
                        + (total == null
                                ? " (" + size(line.doneBytes()) + " of a total not yet known)"
                                : " (" + ratio(line.doneBytes(), total) + ")")
                        + " "
                        + size(line.bytesPerSecond())
                        + "/s";
        Long left = line.secondsLeft();
        return text + (left == null ? "" : ", " + time(left) + " left");
    }

    private static String bar(double percent) {
        int done = Math.clamp((int) (percent * BAR / 100), 0, BAR - 1);
        return "[" + "=".repeat(done) + ">" + ".".repeat(BAR - 1 - done) + "]";
    }

    private static int unitOf(long bytes) {
        int unit = 0;
        while (unit < UNITS.length - 1 && bytes >= 1L << (10 * (unit + 1))) {
            unit++;
        }
        return unit;
    }

    private static String number(long bytes, int unit) {
        return unit == 0
                ? Long.toString(bytes)
                : String.format(Locale.ROOT, "%.1f", bytes / (double) (1L << (10 * unit)));
    }

    private static String size(long bytes) {
        int unit = unitOf(bytes);
        return number(bytes, unit) + " " + UNITS[unit];
    }

    private static String ratio(long done, long total) {
        int unit = unitOf(total);
        return number(done, unit) + "/" + number(total, unit) + " " + UNITS[unit];
    }

    private static String time(long seconds) {
        if (seconds < 2 * MINUTE) {
            return seconds + " s";
        }
        if (seconds < 2 * HOUR) {
            return Math.ceilDiv(seconds, MINUTE) + " min";
        }
        return seconds < 2 * DAY
                ? Math.ceilDiv(seconds, HOUR) + " h"
                : Math.ceilDiv(seconds, DAY) + " days";
    }
}
