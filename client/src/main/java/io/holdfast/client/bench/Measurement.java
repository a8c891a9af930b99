package io.holdfast.client.bench;

import com.fasterxml.jackson.databind.JsonNode;

/**
 * What one job came to.
 *
 * @param operations reads and writes done
 * @param perSecond operations per second
 * @param bytesPerSecond read and written
 * @param p50Micros median latency, of writes where there are any, else of reads
 * @param cpuMicrosPerOperation user and system time of all node processes; 0 when it is not known
 */
public record Measurement(
        String job,
        String through,
        long operations,
        double perSecond,
        double bytesPerSecond,
        double p50Micros,
        double p99Micros,
        double p999Micros,
        double cpuMicrosPerOperation) {

    static Measurement of(Job job, String through, JsonNode fio, long cpuMicros) {
        JsonNode read = fio.path("read");
        JsonNode write = fio.path("write");
        long operations = read.path("total_ios").asLong() + write.path("total_ios").asLong();
        JsonNode latency = write.path("total_ios").asLong() > 0 ? write : read;
        JsonNode percentile = latency.path("clat_ns").path("percentile");
        return new Measurement(
                job.title(),
                through,
                operations,
                read.path("iops").asDouble() + write.path("iops").asDouble(),
                read.path("bw_bytes").asDouble() + write.path("bw_bytes").asDouble(),
                percentile.path("50.000000").asDouble() / 1000,
                percentile.path("99.000000").asDouble() / 1000,
                percentile.path("99.900000").asDouble() / 1000,
                operations == 0 ? 0 : (double) cpuMicros / operations);
    }
}
