package io.holdfast.node.store;

import java.io.IOException;

/** A store that cannot be opened as it stands. The message names the file and what is wrong. */
public final class StoreException extends IOException {
    private static final long serialVersionUID = 1L;

    StoreException(String message) {
        super(message);
    }

    StoreException(String message, Throwable cause) {
        super(message, cause);
    }
}
