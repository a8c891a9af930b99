package io.holdfast.proto.peer;

/** Bytes from outside that are not what they claim to be. The message names the field and value. */
public final class MalformedException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** An exception without stack trace: it tells of a peer's or disk's fault, not of ours. */
    public MalformedException(String message) {
        super(message, null, false, false);
    }
}
