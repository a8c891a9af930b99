package io.holdfast.nemesis;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * What a run has to say in the end.
 *
 * @param options what was asked for
 * @param commit of the code that ran
 */
record Report(
        Options options,
        String commit,
        double seconds,
        int faultCount,
        int checks,
        Verdict verdict,
        List<String> leftOut,
        Path files) {
    /** Of a block's history. */
    private static final int MOST_LINES = 400;

    String text() {
        StringBuilder text = new StringBuilder();
        text.append(
                String.format(
                        Locale.ROOT,
                        "seed %d: %d operations, %d faults, %d checks of all blocks in %.0f s%n",
                        options.seed(),
                        verdict.total(),
                        faultCount,
                        checks,
                        seconds));
        text.append("commit: ").append(commit).append('\n');
        append(text, "operations", verdict.operations());
        append(text, "writes done", verdict.writesDone());
        append(text, "faults", verdict.faults());
        append(text, "notes", verdict.notes());
        leftOut.forEach(line -> text.append("left out: ").append(line).append('\n'));
        text.append(
                String.format(
                        Locale.ROOT,
                        "worst answer %.1f s, worst stall with a healthy majority %.1f s (bound %d s)%n",
                        verdict.worstAnswerSeconds(),
                        verdict.worstFairStallSeconds(),
                        Judge.BOUND_NANOS / 1_000_000_000));
        Verdict.Violation violation = verdict.violation();
        if (violation == null) {
            return text.append("verdict: no promise was broken\n").toString();
        }
        text.append("verdict: BROKEN: ").append(violation.promise()).append('\n');
        text.append(violation.what()).append('\n');
        List<String> details = violation.details();
        int skipped = Math.max(0, details.size() - MOST_LINES);
        if (skipped > 0) {
            text.append("  (the first ").append(skipped).append(" lines are left out)\n");
        }
        details.stream().skip(skipped).forEach(line -> text.append("  ").append(line).append('\n'));
        text.append("the nodes' logs (node-K/holdfast.log) and data are kept in ").append(files);
        return text.append("\nagain: ").append(options.command()).append('\n').toString();
    }

    private static void append(StringBuilder text, String what, Map<String, Long> counts) {
        if (!counts.isEmpty()) {
            text.append(what).append(": ");
            text.append(
                    String.join(
                            ", ",
                            counts.entrySet().stream()
                                    .map(one -> one.getKey() + " " + one.getValue())
                                    .toList()));
            text.append('\n');
        }
    }

    String json() {
        Map<String, Object> document = new LinkedHashMap<>();
        document.put("seed", options.seed());
        document.put("commit", commit);
        document.put("again", options.command());
        document.put("seconds", Math.round(seconds));
        document.put("operations", verdict.operations());
        document.put("writesDone", verdict.writesDone());
        document.put("faults", verdict.faults());
        document.put("notes", verdict.notes());
        document.put("checks", checks);
        document.put("leftOut", leftOut);
        document.put("worstAnswerSeconds", verdict.worstAnswerSeconds());
        document.put("worstStallSeconds", verdict.worstFairStallSeconds());
        document.put("boundSeconds", Judge.BOUND_NANOS / 1_000_000_000);
        Verdict.Violation violation = verdict.violation();
        document.put("broken", violation != null);
        if (violation != null) {
            document.put("promise", violation.promise());
            document.put("what", violation.what());
            document.put("history", violation.details());
            document.put("files", files.toString());
        }
        try {
            return new ObjectMapper().writerWithDefaultPrettyPrinter().writeValueAsString(document);
        } catch (JsonProcessingException e) {
            throw new IllegalStateException(e);
        }
    }
}
