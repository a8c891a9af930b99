package io.holdfast.nemesis;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.integration.TimeLimit;
import io.holdfast.integration.Tool;
import java.time.Duration;
import java.util.EnumSet;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** A short share of {@code ./holdfast nemesis}, which runs for as long as one likes. */
class NemesisIT {
    private static final Duration EACH = Duration.ofMinutes(1);
    private static final long FIXED_SEED = 20261130;
    private static final int KILL_ROUNDS = Integer.getInteger("holdfast.it.kill.rounds", 12);

    /** A round takes 10 to 60 s, the longer ones on a loaded machine. */
    @RegisterExtension
    static final TimeLimit LIMIT =
            TimeLimit.of(Duration.ofMinutes(30), KILL_ROUNDS, Duration.ofMinutes(3));

    @Test
    void everyBlockIsARegisterUnderFaultsOfAFixedSeed() throws Exception {
        run(Options.of(EACH, 0, FIXED_SEED, EnumSet.allOf(Fault.class)));
    }

    @Test
    void everyBlockIsARegisterUnderFaultsOfANewSeed() throws Exception {
        run(Options.of(EACH, 0, Options.newSeed(), EnumSet.allOf(Fault.class)));
    }

    /**
     * One node or all die in mid-write, again and again; after each death every block holds the
     * newest value that was acknowledged, or one that was on its way after it.
     */
    @Test
    void nothingAcknowledgedIsLostByKillsAtRandomMoments() throws Exception {
        Set<Fault> kills = EnumSet.of(Fault.KILL, Fault.KILL_ALL);
        Report report = run(Options.of(Duration.ZERO, KILL_ROUNDS, Options.newSeed(), kills));
        assertThat(report.checks()).isGreaterThanOrEqualTo(KILL_ROUNDS);
    }

    private static Report run(Options options) throws Exception {
        Report report =
                Nemesis.run(options, Tool.projectRoot().resolve("holdfast"), System.out::println);
        System.out.print(report.text());
        assertThat(report.verdict().violation()).as(report.text()).isNull();
        assertThat(report.verdict().writesDone()).hasSize(Run.CLIENTS);
        String mine = "hfn-" + ProcessHandle.current().pid() + "-";
        if (Network.missing().isEmpty()) {
            assertThat(Shell.run("ip", "netns", "list")).doesNotContain(mine);
        }
        assertThat(Shell.run("mount")).doesNotContain(report.files().toString());
        return report;
    }
}
