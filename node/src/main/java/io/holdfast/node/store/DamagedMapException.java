package io.holdfast.node.store;

/**
 * The database cannot be read: the store goes out of service. The message names the database, what
 * could not be read and why, and what to do about it.
 */
final class DamagedMapException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    DamagedMapException(String message, Throwable cause) {
        super(message + StoreException.reason(cause) + ". " + StoreException.REFILL, cause);
    }
}
