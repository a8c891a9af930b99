package io.holdfast.simulation;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;

/** Which code a failure was found in. */
final class Commit {
    private static final int PATIENCE_SECONDS = 10;

    private Commit() {}

    /** Id of the commit in the working directory, marked when files differ from it. */
    static String name() {
        try {
            String id = git("rev-parse", "HEAD");
            return git("status", "--porcelain").isEmpty() ? id : id + " and uncommitted changes";
        } catch (IOException e) {
            return "unknown: " + e.getMessage();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return "unknown: interrupted";
        }
    }

    private static String git(String... arguments) throws IOException, InterruptedException {
        String[] command = new String[arguments.length + 1];
        command[0] = "git";
        System.arraycopy(arguments, 0, command, 1, arguments.length);
        Process process =
                new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD).start();
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
