package io.holdfast.client.crypto;

/** A key that cannot be used: its file, its form, or the key that wraps it is wrong. */
public final class KeyException extends Exception {
    private static final long serialVersionUID = 1L;

    /** A message for the operator; it never contains key material. */
    public KeyException(String message) {
        super(message);
    }

    /** As above, with the cause, which must not contain key material either. */
    public KeyException(String message, Throwable cause) {
        super(message, cause);
    }
}
