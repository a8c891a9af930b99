package io.holdfast.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.simulation.Simulation.Result;
import java.util.Set;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Each planted bug must be found within a number of seeds, by a checker whose task it is, in a run
 * that is well without it; or the simulator is broken. Those of the store's model run on the model,
 * those of the production store on that.
 */
final class PlantedBugsTest {
    private static final int SEEDS = 100;

    @ParameterizedTest
    @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "NONE")
    void isFound(PlantedBug bug) {
        long seed = 0;
        Result result;
        do {
            seed++;
            result = Simulation.run(seed, bug);
        } while (seed < SEEDS && !checkersOf(bug).contains(result.checker()));

        assertThat(checkersOf(bug)).as("%s within %d seeds", bug, SEEDS).contains(result.checker());
        Result control = Simulation.runWithout(seed, bug);
        assertThat(control.failed()).as(control::report).isFalse();
    }

    private static Set<String> checkersOf(PlantedBug bug) {
        return switch (bug) {
            case NONE -> Set.of();
            case ACK_BEFORE_WRITE, PROMISE_NOT_PERSISTED -> Set.of("promise");
            case SYNC_IS_A_LIE -> Set.of("promise", "majority", "store");
            case OLD_EPOCH_COMMITTED -> Set.of("majority");
            case LEARNER_VOTES, OLD_TAIL_RECOVERED -> Set.of("committed");
            case POWER_LOSS_UNNOTICED -> Set.of("committed", "power loss", "store");
            case POWER_LOSS_DROPPED -> Set.of("committed", "replicas equal");
            case APPLY_BEFORE_COMMIT, CATCH_UP_SKIPS_ZEROES ->
                    Set.of("linearizable", "replicas equal", "condition");
            case LEASE_OUTLIVES_PAUSE, REPEATED_AS_ANOTHER -> Set.of("linearizable");
            case COPY_OF_ANOTHER_VERSION -> Set.of("linearizable", "linearizable calls");
            case MERGED_UNCONDITIONALLY -> Set.of("linearizable calls");
            case GENERATION_NOT_RAISED -> Set.of("linearizable calls", "contents", "progress");
            // The production core notices by itself that its state has no sessions.
            case SESSIONS_NOT_IN_CHECKPOINT -> Set.of("BrokenInvariantError");
            case DURABLE_OVERSTATED -> Set.of("acknowledgement");
            case FLUSH_ANSWERED_BY_LEADER_ALONE -> Set.of("flush");
            case FENCING_SKIPPED -> Set.of("fencing");
            case CONDITION_UNCHECKED -> Set.of("condition");
            case MAP_BEFORE_JOURNAL, COVERED_IGNORED, TORN_RECORD_ACCEPTED ->
                    Set.of("store", "contents", "committed", "promise");
            case DOUBTS_DROPPED -> Set.of("contents", "replicas equal");
        };
    }
}
