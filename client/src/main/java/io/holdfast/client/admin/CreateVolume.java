package io.holdfast.client.admin;

import com.fasterxml.jackson.annotation.JsonInclude;
import io.holdfast.client.admin.StatusDocument.AttachMode;
import io.holdfast.client.admin.StatusDocument.DurabilityMode;
import io.holdfast.config.ByteSize;
import io.holdfast.proto.catalogue.Volume;
import java.util.Optional;
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

    /** What is wrong with the values themselves, whatever the cluster; empty when they are fine. */
    public Optional<AdminError> problem() {
        if (!name.matches(Volume.NAME_PATTERN)) {
            return Optional.of(nameError(name));
        }
        if (replicas != null && (replicas < 1 || replicas % 2 == 0)) {
            return error(
                    "replicas " + replicas + " is not valid",
                    "The number of replicas needs to be odd, from 1 to the number of nodes.");
        }
        if (shards != null && (shards < 1 || shards > MAX_SHARDS)) {
            return error(
                    "shards " + shards + " is not valid",
                    "The number of shards needs to be from 1 to " + MAX_SHARDS + ".");
        }
        if (timeoutSeconds != null
                && (timeoutSeconds < 1 || timeoutSeconds > MAX_TIMEOUT_SECONDS)) {
            return error(
                    "timeout of " + timeoutSeconds + " s is not valid",
                    "The timeout needs to be from 1 to " + MAX_TIMEOUT_SECONDS + " s.");
        }
        return sizeProblem(sizeBytes, String.valueOf(sizeBytes));
    }

    /** For a name that is none. */
    public static AdminError nameError(String name) {
        return new AdminError(
                "volume name '" + name + "' is not valid",
                "A name needs 1 to 64 letters, digits, '.', '_' or '-', and starts with a letter or"
                        + " digit.");
    }

    /**
     * What is wrong with a size; empty when it is fine.
     *
     * @param shown the size as it was given
     */
    public static Optional<AdminError> sizeProblem(long bytes, String shown) {
        if (bytes >= MIN_SIZE_BYTES
                && bytes <= Volume.MAX_SIZE_BYTES
                && bytes % SIZE_UNIT_BYTES == 0) {
            return Optional.empty();
        }
        return error(
                "size " + shown + " is not valid",
                "A size needs to be a multiple of %d bytes from %s to %s."
                        .formatted(
                                SIZE_UNIT_BYTES,
                                ByteSize.format(MIN_SIZE_BYTES),
                                ByteSize.format(Volume.MAX_SIZE_BYTES)));
    }

    private static Optional<AdminError> error(String what, String remedy) {
        return Optional.of(new AdminError(what, remedy));
    }
}
