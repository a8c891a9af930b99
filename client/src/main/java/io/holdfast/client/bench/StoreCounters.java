package io.holdfast.client.bench;

import java.util.Optional;

/**
 * What a node's metrics say of its store.
 *
 * @param appendedBytes to the journal since the node's start
 * @param clientBytes that clients wrote, of those
 * @param journalBytes of segment files
 * @param freeBytes for which more can be made
 */
public record StoreCounters(
        double appendedBytes, double clientBytes, double journalBytes, double freeBytes) {

    /**
     * Reads them from the text of {@code /metrics}.
     *
     * @return empty when one is missing: an older node
     */
    public static Optional<StoreCounters> parse(String metrics) {
        double appended = value(metrics, "holdfast_journal_appended_bytes_total");
        double client = value(metrics, "holdfast_journal_client_bytes_total");
        double journal = value(metrics, "holdfast_journal_bytes");
        double free = value(metrics, "holdfast_disk_free_bytes");
        return Double.isNaN(appended + client + journal + free)
                ? Optional.empty()
                : Optional.of(new StoreCounters(appended, client, journal, free));
    }

    private static double value(String metrics, String name) {
        return metrics.lines()
                .filter(line -> line.startsWith(name + " ") || line.startsWith(name + "{"))
                .map(line -> line.substring(line.lastIndexOf(' ') + 1))
                .mapToDouble(Double::parseDouble)
                .findFirst()
                .orElse(Double.NaN);
    }

    /** Bytes of the store when it is as large as it may get. */
    public double capacityBytes() {
        return journalBytes + freeBytes;
    }

    /** Bytes of the journal per byte of clients since {@code before}; 0: nothing was written. */
    public double amplificationSince(StoreCounters before) {
        double client = clientBytes - before.clientBytes;
        return client <= 0 ? 0 : (appendedBytes - before.appendedBytes) / client;
    }
}
