package io.holdfast.client.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.function.LongSupplier;

/** Processor time of some processes of this machine, from {@code /proc/PID/stat}. */
public final class CpuMeter implements LongSupplier {
    /** The kernel counts in units of 1/100 s, whatever its own timer does (proc(5), USER_HZ). */
    private static final long MICROS_PER_TICK = 10_000;

    /** Position of utime after the command name's closing parenthesis (fields 14 and 15). */
    private static final int USER_FIELD = 11;

    private final List<Long> pids;

    /** Measures these processes together; one that is gone counts nothing. */
    public CpuMeter(List<Long> pids) {
        this.pids = List.copyOf(pids);
    }

    /** User and system time so far, in microseconds. */
    @Override
    public long getAsLong() {
        long ticks = 0;
        for (long pid : pids) {
            try {
                String stat = Files.readString(Path.of("/proc/" + pid + "/stat"));
                String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ", -1);
                ticks +=
                        Long.parseLong(fields[USER_FIELD]) + Long.parseLong(fields[USER_FIELD + 1]);
            } catch (IOException gone) {
                // The process has ended; the others still count.
            }
        }
        return ticks * MICROS_PER_TICK;
    }
}
