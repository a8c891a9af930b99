package io.holdfast.proto.peer;

/** What an {@link Entry} does when it is applied. The {@link #code} is part of the disk format. */
public enum EntryKind {
    /** First entry of a new leader's epoch; changes nothing. */
    NOOP(1),
    /** Sealed blocks for {@code count} blocks from {@code block}. */
    WRITE(2),
    /** Zeroes for {@code count} blocks from {@code block}; no payload. */
    ZERO(3),
    /** Opens session {@code session}. The payload is empty. */
    OPEN_SESSION(4),
    /** Forgets session {@code session}; its late requests are refused from here on. */
    CLOSE_SESSION(5),
    /** The identity in the payload (UTF-8) holds the volume under {@code generation}. */
    CLAIM(6),
    /** The claim with {@code generation} ends. */
    RELEASE(7),
    /**
     * First entry of an epoch that was won after a majority lost power: acknowledged but unflushed
     * writes may be missing, so every session and claim from before it is void (promise P5).
     */
    POWER_LOSS(8);

    /** Number on wire and disk, 1 to 255. */
    public final int code;

    EntryKind(int code) {
        this.code = code;
    }

    private static final EntryKind[] BY_CODE = new EntryKind[256];

    static {
        for (EntryKind kind : values()) {
            BY_CODE[kind.code] = kind;
        }
    }

    /**
     * The kind with a code read from outside.
     *
     * @throws MalformedException when no kind has that code
     */
    public static EntryKind of(int code) {
        EntryKind kind = code >= 0 && code < BY_CODE.length ? BY_CODE[code] : null;
        if (kind == null) {
            throw new MalformedException("unknown entry kind " + code);
        }
        return kind;
    }
}
