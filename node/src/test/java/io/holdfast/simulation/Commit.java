package io.holdfast.simulation;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** Which code a failure was found in. */
public final class Commit {
    private static final int PATIENCE_SECONDS = 10;

    private Commit() {}

    /** Id of the commit of a working tree, marked when files differ from it. */
    public static String of(Path tree) {
        try {
            String id = git(tree, "rev-parse", "HEAD");
            return git(tree, "status", "--porcelain").isEmpty()
                    ? id
                    : id + " and uncommitted changes";
        } catch (IOException e) {
            return "unknown: " + e.getMessage();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return "unknown: interrupted";
        }
    }

    private static String git(Path tree, String... arguments)
            throws IOException, InterruptedException {
        Process process =
                new ProcessBuilder(Stream.concat(Stream.of("git"), Stream.of(arguments)).toList())
                        .directory(tree.toAbsolutePath().toFile())
                        .redirectError(ProcessBuilder.Redirect.DISCARD)
                        .start();
        try (var out = process.getInputStream()) {
            String text = new String(out.readAllBytes(), StandardCharsets.UTF_8).strip();
            if (!process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS) || process.exitValue() != 0) {
                throw new IOException("git " + String.join(" ", arguments) + " failed");
            }
            return text;
        } finally {
            process.destroy();
        }
    }
}
