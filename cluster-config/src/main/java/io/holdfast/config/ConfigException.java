package io.holdfast.config;

/**
 * A configuration that cannot be used. The message lists every error: key, value, what is right.
 */
public final class ConfigException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public ConfigException(String message) {
        super(message);
    }
}
