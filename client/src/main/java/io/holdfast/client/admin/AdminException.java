package io.holdfast.client.admin;

/** A request that failed: a node refused it, or no node answered. */
public final class AdminException extends Exception {
    private static final long serialVersionUID = 1L;

    /** Status of an {@link AdminException} that no node answered. */
    public static final int UNREACHABLE = 0;

    /** Status of a refusal to delete a volume that a client writes to. */
    public static final int IN_USE = 423;

    private final int status;
    private final String remedy;

    public AdminException(int status, AdminError error) {
        super(error.error());
        this.status = status;
        this.remedy = error.remedy();
    }

    /** HTTP status, or {@link #UNREACHABLE}. */
    public int status() {
        return status;
    }

    /** What to do; may be empty. */
    public String remedy() {
        return remedy;
    }

    /** What failed. */
    @Override
    public String getMessage() {
        return String.valueOf(super.getMessage());
    }
}
