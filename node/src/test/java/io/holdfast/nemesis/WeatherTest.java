package io.holdfast.nemesis;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** When a request through a node has to end in time. */
class WeatherTest {
    private final Weather weather = new Weather(3);

    WeatherTest() {
        for (int node = 1; node <= 3; node++) {
            weather.running(node, true);
        }
    }

    /** Whether a node is fair from now on. */
    private boolean isFair(int node) {
        long now = System.nanoTime();
        return weather.longestFairNanos(node, now, now + 10) == 10;
    }

    @Test
    void survivorsOfOneDeathAreFair() {
        weather.running(2, false);
        assertThat(isFair(1)).isTrue();
        assertThat(isFair(2)).isFalse();
        assertThat(isFair(3)).isTrue();
    }

    @Test
    void nobodyIsFairWithoutAMajority() {
        weather.running(2, false);
        weather.running(3, false);
        assertThat(isFair(1)).isFalse();
    }

    @Test
    void majorityWithoutAnIsolatedNodeIsFair() {
        for (int other : new int[] {2, 3}) {
            weather.cut(1, other, true);
            weather.cut(other, 1, true);
        }
        assertThat(isFair(1)).isFalse();
        assertThat(isFair(2)).isTrue();
        assertThat(isFair(3)).isTrue();
    }

    @Test
    void nobodyIsFairWhereNodesReachEachOtherByHalves() {
        weather.cut(1, 2, true);
        assertThat(isFair(3)).isFalse();
        weather.cut(2, 1, true);
        assertThat(isFair(3)).isFalse();
        weather.running(2, false);
        assertThat(isFair(3)).isTrue();
        assertThat(isFair(1)).isTrue();
    }

    @Test
    void requestsThatClientsWereCutOffFromAreNotJudged() {
        long before = System.nanoTime();
        weather.hidden(1, true);
        weather.hidden(1, false);
        long now = System.nanoTime();
        assertThat(weather.longestFairNanos(1, before, now + 1_000_000)).isZero();
        assertThat(isFair(1)).isTrue();
    }

    @Test
    void timeCountsAnewAfterABreak() {
        long before = System.nanoTime();
        weather.running(1, false);
        weather.running(1, true);
        long now = System.nanoTime();
        assertThat(weather.longestFairNanos(1, before, now + 1000))
                .isLessThanOrEqualTo(Math.max(1000 + (now - before), 1000));
        weather.running(3, false);
        assertThat(isFair(1)).isTrue();
    }
}
