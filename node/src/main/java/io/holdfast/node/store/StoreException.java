package io.holdfast.node.store;

import java.io.IOException;
import org.jspecify.annotations.Nullable;

/**
 * A store that cannot be opened as it stands. The message names the place, what is wrong, and, in
 * lines of their own, what to do about it.
 */
public final class StoreException extends IOException {
    private static final long serialVersionUID = 1L;

    /** What to do about a store that is damaged, for who knows what is. */
    static final String REMEDY =
            "Move the node's data directory away (keep it until all is well) and start the node"
                    + " again: it comes back empty, as a learner, and is filled from the other"
                    + " replicas. A volume with one replica has no other.";

    /** What to do about a store that has lost something. */
    static final String REFILL =
            REMEDY + " 'holdfast store verify DIR' lists everything that is damaged.";

    /** What kind of trouble it is, for programs. */
    public enum Kind {
        /** Something is missing, or is not what was written. */
        DAMAGED,
        /** Another process has the directory. */
        IN_USE,
        /** Written by another version of this program. */
        OTHER_FORMAT,
        /** There is no store in that place. */
        NO_STORE
    }

    private final Kind kind;
    private final String what;

    /** Damage, with what to do about it. */
    StoreException(String message) {
        this(Kind.DAMAGED, message, REFILL, null);
    }

    /** Damage, with what to do about it and what the cause says. */
    StoreException(String message, Throwable cause) {
        this(Kind.DAMAGED, message + reason(cause), REFILL, cause);
    }

    StoreException(Kind kind, String message, String remedy) {
        this(kind, message, remedy, null);
    }

    private StoreException(Kind kind, String message, String remedy, @Nullable Throwable cause) {
        super(message + "\n  " + remedy, cause);
        this.kind = kind;
        what = message;
    }

    /** A format that is not known here. */
    static StoreException otherFormat(String what, long found, int known) {
        return new StoreException(
                Kind.OTHER_FORMAT,
                what + " is of format " + found + "; this program knows format " + known,
                "Use the version of Holdfast that wrote it.");
    }

    public Kind kind() {
        return kind;
    }

    /** What is wrong and where, without what to do about it. */
    public String what() {
        return what;
    }

    /** What a cause says, and what is behind it; RocksDB's own text names its file. */
    static String reason(Throwable cause) {
        StringBuilder text = new StringBuilder();
        for (Throwable each = cause; each != null; each = each.getCause()) {
            String message = each.getMessage();
            text.append(": ").append(message == null ? each.getClass().getSimpleName() : message);
        }
        return text.toString();
    }
}
