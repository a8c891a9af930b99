package io.holdfast.client.admin;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;

/** Version of this build of the program. */
public final class ProgramVersion {
    private ProgramVersion() {}

    /** As in the parent pom. */
    public static String get() {
        try (InputStream in = ProgramVersion.class.getResourceAsStream("version")) {
            if (in == null) {
                throw new IllegalStateException("the build lacks its version file");
            }
            return new String(in.readAllBytes(), StandardCharsets.UTF_8).strip();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
