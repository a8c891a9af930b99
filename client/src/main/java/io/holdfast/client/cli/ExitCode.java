package io.holdfast.client.cli;

/** Exit codes, documented in {@code docs/cli.md} and {@code holdfast --help}. */
final class ExitCode {
    static final int OK = 0;
    static final int FAILED = 1;
    static final int USAGE = 2;
    static final int UNREACHABLE = 3;
    static final int NO_SUCH_VOLUME = 4;
    static final int NAME_TAKEN = 5;

    /** A client holds the volume for writing. */
    static final int IN_USE = 6;

    private ExitCode() {}
}
