package io.holdfast.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.simulation.Simulate.Totals;
import io.holdfast.simulation.Simulation.Result;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Runs a fixed share of seeds. {@code -Dholdfast.sim.seeds=N} runs more, {@code
 * -Dholdfast.sim.seed=N} one. Longer: {@link Simulate}.
 */
final class SimulationTest {
    private static final int DEFAULT_SEEDS = 300;

    @Test
    void keepsItsPromisesUnderFaults() {
        Long one = Long.getLong("holdfast.sim.seed");
        long first = one == null ? 1 : one;
        long count = one == null ? Integer.getInteger("holdfast.sim.seeds", DEFAULT_SEEDS) : 1;
        Totals totals = new Totals();
        for (long seed = first; seed < first + count; seed++) {
            Result result = Simulation.run(seed, PlantedBug.NONE);
            totals.add(result);
            assertThat(result.failed()).as(result::report).isFalse();
        }
        System.out.println(totals);
    }

    /**
     * A write of part of a block failed with an older one that it was merged with, long before its
     * own time was up.
     */
    @ParameterizedTest
    @ValueSource(longs = {600005, 600014, 600031, 600037, 600044})
    void keepsItsPromisesWithSeedsThatOnceFailed(long seed) {
        Result result = Simulation.run(seed, PlantedBug.NONE);
        assertThat(result.failed()).as(result::report).isFalse();
    }

    @Test
    void runsTheSameWayTwice() {
        for (long seed = 1; seed <= 4; seed++) {
            Result once = Simulation.run(seed, PlantedBug.NONE);
            Result again = Simulation.run(seed, PlantedBug.NONE);
            assertThat(again.hash()).as("trace of seed %d", seed).isEqualTo(once.hash());
            assertThat(again.events()).isEqualTo(once.events());
        }
    }

    @Test
    void differentSeedsRunDifferently() {
        assertThat(Simulation.run(1, PlantedBug.NONE).hash())
                .isNotEqualTo(Simulation.run(2, PlantedBug.NONE).hash());
    }
}
