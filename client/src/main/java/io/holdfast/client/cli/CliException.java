package io.holdfast.client.cli;

import io.holdfast.client.admin.AdminException;

/** Ends a command with a message for people and an exit code. */
final class CliException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final int exitCode;
    private final String remedy;

    CliException(int exitCode, String message, String remedy) {
        super(message);
        this.exitCode = exitCode;
        this.remedy = remedy;
    }

    static CliException of(AdminException e) {
        int exitCode =
                switch (e.status()) {
                    case AdminException.UNREACHABLE -> ExitCode.UNREACHABLE;
                    case 400 -> ExitCode.USAGE;
                    case 404 -> ExitCode.NO_SUCH_VOLUME;
                    case 409 -> ExitCode.NAME_TAKEN;
                    case AdminException.IN_USE -> ExitCode.IN_USE;
                    default -> ExitCode.FAILED;
                };
        return new CliException(exitCode, e.getMessage(), e.remedy());
    }

    int exitCode() {
        return exitCode;
    }

    /** One or two lines. */
    String text() {
        return "holdfast: " + getMessage() + (remedy.isEmpty() ? "" : "\n  " + remedy);
    }
}
