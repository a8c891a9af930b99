package io.holdfast.client.admin;

import com.fasterxml.jackson.annotation.JsonInclude;
import io.holdfast.client.admin.StatusDocument.AttachMode;
import io.holdfast.client.admin.StatusDocument.DurabilityMode;
import org.jspecify.annotations.Nullable;

/**
 * Body of {@code POST /v1/volumes}. What is null is left to the node.
 *
 * @param sizeBytes multiple of 4096, {@link #MIN_SIZE_BYTES} to {@code Volume.MAX_SIZE_BYTES}
 * @param replicas copies, odd, at most the number of nodes; default three, or all of fewer nodes
 * @param shards 1 to {@link #MAX_SHARDS}; default one
 * @param durability default flush
 * @param attach default exclusive
 * @param timeoutSeconds how long a request waits for a majority, 1 to {@link #MAX_TIMEOUT_SECONDS};
 *     default 30
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
public record CreateVolume(
        String name,
        long sizeBytes,
        @Nullable Integer replicas,
        @Nullable Integer shards,
        @Nullable DurabilityMode durability,
        @Nullable AttachMode attach,
        @Nullable Integer timeoutSeconds) {
    /** 1 MiB. */
    public static final long MIN_SIZE_BYTES = 1L << 20;

    public static final int SIZE_UNIT_BYTES = 4096;
    public static final int MAX_SHARDS = 64;
    public static final int MAX_TIMEOUT_SECONDS = 3600;
}
