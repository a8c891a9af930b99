package io.holdfast.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.simulation.Simulation.Result;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Each planted bug must be found within a number of seeds, or the simulator is broken. */
final class PlantedBugsTest {
    private static final int SEEDS = 200;

    @ParameterizedTest
    @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "NONE")
    void isFound(PlantedBug bug) {
        Result found = null;
        for (long seed = 1; seed <= SEEDS && found == null; seed++) {
            Result result = Simulation.run(seed, bug);
            found = result.failed() ? result : null;
        }
        assertThat(found).as("%s within %d seeds", bug, SEEDS).isNotNull();
        System.out.println(
                bug
                        + ": seed "
                        + (found == null ? 0 : found.seed())
                        + ", "
                        + (found == null ? "" : found.failure()));
    }
}
