package io.holdfast.node.peer;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;

/**
 * Warnings about peers, at most one a minute per peer and kind: whatever a hostile or misconfigured
 * peer does, it does not fill the log. Data loop only.
 */
final class RateLimitedLog {
    /** Key for peers that have no configured number; they share their minute. */
    static final int STRANGER = 0;

    private static final long INTERVAL_NANOS = TimeUnit.MINUTES.toNanos(1);

    private final Logger log;
    private final Map<String, Last> last = new HashMap<>();

    RateLimitedLog(Logger log) {
        this.log = log;
    }

    /**
     * Logs, or counts for the next line.
     *
     * @param kind one of a few fixed words
     * @param peer a configured node's number or {@link #STRANGER}, so that the map stays small
     */
    void warn(String kind, int peer, String text, long nowNanos) {
        Last before = last.computeIfAbsent(kind + peer, _ -> new Last());
        if (before.logged && nowNanos - before.atNanos < INTERVAL_NANOS) {
            before.suppressed++;
            return;
        }
        if (before.suppressed > 0) {
            log.warn("{} ({} more such lines were left out)", text, before.suppressed);
        } else {
            log.warn("{}", text);
        }
        before.logged = true;
        before.atNanos = nowNanos;
        before.suppressed = 0;
    }

    private static final class Last {
        boolean logged;
        long atNanos;
        long suppressed;
    }
}
