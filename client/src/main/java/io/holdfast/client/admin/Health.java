package io.holdfast.client.admin;

import com.fasterxml.jackson.annotation.JsonInclude;
import org.jspecify.annotations.Nullable;

/**
 * {@code GET /healthz}: with status 200 when serving, else 503.
 *
 * @param status {@link #SERVING}, {@link #STARTING} or {@link #FAILED}
 * @param reason what the node waits for or what has failed; null when it serves
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
public record Health(String status, @Nullable String reason) {
    public static final String SERVING = "serving";
    public static final String STARTING = "starting";

    /** The node does not serve, and will not before it is restarted. */
    public static final String FAILED = "failed";
}
