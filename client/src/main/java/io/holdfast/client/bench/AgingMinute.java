package io.holdfast.client.bench;

/**
 * One minute of overwriting a store that is mostly full.
 *
 * @param minute from 1
 * @param writesPerSecond of 4 KiB
 * @param writeAmplification bytes of the journal per byte of clients, of the worst node
 * @param journalBytes of segment files, of the largest node
 */
public record AgingMinute(
        int minute,
        double writesPerSecond,
        double p50Micros,
        double p99Micros,
        double writeAmplification,
        double journalBytes) {}
