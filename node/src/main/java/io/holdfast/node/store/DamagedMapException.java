package io.holdfast.node.store;

/** The database cannot be read: the store goes out of service. */
final class DamagedMapException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    DamagedMapException(String message, Throwable cause) {
        super(message, cause);
    }
}
