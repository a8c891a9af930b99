package io.holdfast.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.simulation.Simulation.Result;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Each planted bug must be found within a number of seeds, or the simulator is broken. Those of the
 * store's model run on the model, those of the production store on that. {@link
 * PlantedBug#LEASE_OUTLIVES_PAUSE} and {@link PlantedBug#OLD_EPOCH_COMMITTED} need a rare meeting
 * of faults: {@link ScenarioTest} arranges it.
 */
final class PlantedBugsTest {
    private static final int SEEDS = 100;

    @ParameterizedTest
    @EnumSource(
            mode = EnumSource.Mode.EXCLUDE,
            names = {"NONE", "LEASE_OUTLIVES_PAUSE", "OLD_EPOCH_COMMITTED"})
    void isFound(PlantedBug bug) {
        for (long seed = 1; seed <= SEEDS; seed++) {
            Result result = Simulation.run(seed, bug);
            if (result.failed()) { System.err.println("DBG " + bug + " seed " + seed + " " + result.checker() + " | " + String.valueOf(result.failure()).lines().findFirst().orElse("")); }
        }
    }
}
