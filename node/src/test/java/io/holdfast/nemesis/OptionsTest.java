package io.holdfast.nemesis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The command line of the nemesis. */
class OptionsTest {
    private static Options parse(String line) throws Options.Wrong {
        return Options.parse(line.isEmpty() ? new String[0] : line.split(" ", -1));
    }

    @Test
    void nothingGivenMeansAllFaultsForFiveMinutes() throws Exception {
        Options options = parse("");
        assertThat(options.length()).isEqualTo(Duration.ofMinutes(5));
        assertThat(options.rounds()).isZero();
        assertThat(options.faults()).containsExactly(Fault.values());
        assertThat(options.seed()).isNotNegative();
    }

    @Test
    void takesWhatIsGiven() throws Exception {
        Options options = parse("--rounds 200 --seed 7 --faults kill,kill-all --dir /tmp/x --json");
        assertThat(options.rounds()).isEqualTo(200);
        assertThat(options.seed()).isEqualTo(7);
        assertThat(options.faults()).containsExactly(Fault.KILL, Fault.KILL_ALL);
        assertThat(options.dir()).hasToString("/tmp/x");
        assertThat(options.json()).isTrue();
        assertThat(options.keep()).isFalse();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "--minutes 7 --seed 3",
                "--rounds 200 --seed 7 --faults kill,kill-all",
                "--minutes 5 --seed 0 --faults pause"
            })
    void commandToDoItAgainSaysAllThatWasAskedFor(String line) throws Exception {
        Options options = parse(line);
        assertThat(options.command()).isEqualTo("./holdfast nemesis " + line);
        Verdict verdict = new Verdict();
        Report report = new Report(options, "abc", 1, 2, 3, verdict, List.of(), Path.of("/tmp/x"));
        assertThat(report.text()).contains("commit: abc\n").doesNotContain("again:");
        verdict.violation("P3", "lost", List.of());
        assertThat(report.text()).contains("commit: abc\n").endsWith(options.command() + "\n");
    }

    @ParameterizedTest
    @CsvSource({
        "--minutes, needs a value",
        "--minutes 0, --minutes 0: needs a whole number from 1",
        "--seed x, --seed x: needs a whole number",
        "--faults kil, '--faults kil: needs a list of kill,kill-all,pause'",
        "--minutes 1 --rounds 2, exclude each other",
        "--frob, does not know --frob",
    })
    void refusesWhatItDoesNotUnderstand(String line, String why) {
        assertThatThrownBy(() -> parse(line))
                .isInstanceOf(Options.Wrong.class)
                .hasMessageContaining(why);
    }
}
