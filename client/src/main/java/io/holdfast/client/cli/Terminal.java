package io.holdfast.client.cli;

import java.io.Console;
import java.util.Optional;

/** The terminal at which a person sits. */
final class Terminal {
    private Terminal() {}

    /** Empty when input or output is a file or pipe. */
    // JDK 25 went back to returning null where there is no terminal.
    @SuppressWarnings("SystemConsoleNull")
    static Optional<Console> get() {
        return Optional.ofNullable(System.console()).filter(Console::isTerminal);
    }
}
