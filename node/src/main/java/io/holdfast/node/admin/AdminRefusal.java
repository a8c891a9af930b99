package io.holdfast.node.admin;

import io.holdfast.client.admin.AdminError;
import io.holdfast.client.admin.AdminException;

/** A request of the admin interface that is not granted. Without stack trace: it tells no fault. */
final class AdminRefusal extends RuntimeException {
    private static final long serialVersionUID = 1L;

    static final int BAD_REQUEST = 400;
    static final int NOT_FOUND = 404;
    static final int WRONG_METHOD = 405;
    static final int CONFLICT = 409;
    static final int IN_USE = AdminException.IN_USE;
    static final int UNAVAILABLE = 503;

    private final int status;
    private final String remedy;

    /**
     * @param error what is wrong, with the value
     * @param remedy what to do about it; may be empty
     */
    AdminRefusal(int status, String error, String remedy) {
        super(error, null, false, false);
        this.status = status;
        this.remedy = remedy;
    }

    int status() {
        return status;
    }

    AdminError toError() {
        return new AdminError(String.valueOf(getMessage()), remedy);
    }
}
