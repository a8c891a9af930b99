package io.holdfast.node.runtime;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.node.port.Coordinator.NodeState;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class LivenessTest {
    private static final long SECOND = 1_000_000_000L;
    private static final Map<Integer, NodeState> ALL_DEAD =
            Map.of(2, NodeState.DEAD, 3, NodeState.DEAD);
    private static final Map<Integer, NodeState> NOBODY_DEAD =
            Map.of(2, NodeState.ALIVE, 3, NodeState.SUSPECT);

    private final Liveness liveness = new Liveness(List.of(2, 3));

    @BeforeEach
    void start() {
        liveness.start(0);
    }

    @Test
    void doesNotBelieveGossipWhileTheLinkIsUp() {
        liveness.connected(2);
        liveness.connected(3);
        assertThat(liveness.newlyDead(ALL_DEAD, 100 * SECOND)).isEmpty();
    }

    @Test
    void doesNotBelieveGossipOfNodesThatWereNeverConnected() {
        assertThat(liveness.newlyDead(ALL_DEAD, 9 * SECOND)).isEmpty();
        assertThat(liveness.newlyDead(ALL_DEAD, 11 * SECOND)).containsExactly(2, 3);
    }

    @Test
    void doesNotBelieveGossipOfNodesThatItHasNotMetSinceTheStart() {
        liveness.connected(2);
        liveness.connected(3);
        liveness.disconnected(2, SECOND);
        assertThat(liveness.newlyDead(ALL_DEAD, 10 * SECOND)).isEmpty();
        assertThat(liveness.newlyDead(ALL_DEAD, 12 * SECOND)).containsExactly(2);
    }

    @Test
    void declaresDeadOnceWhenLinkAndGossipAgree() {
        liveness.connected(2);
        liveness.connected(3);
        assertThat(liveness.newlyDead(NOBODY_DEAD, 9 * SECOND)).isEmpty();
        liveness.disconnected(2, 10 * SECOND);
        assertThat(liveness.newlyDead(ALL_DEAD, 13 * SECOND)).containsExactly(2);
        assertThat(liveness.newlyDead(ALL_DEAD, 14 * SECOND)).isEmpty();
        assertThat(liveness.dead()).containsExactly(2);
    }

    @Test
    void declaresDeadWithoutGossipAfterALongSilence() {
        liveness.connected(2);
        liveness.connected(3);
        liveness.disconnected(3, 0);
        assertThat(liveness.newlyDead(NOBODY_DEAD, Liveness.GONE_NANOS)).isEmpty();
        assertThat(liveness.newlyDead(NOBODY_DEAD, Liveness.GONE_NANOS + 1)).containsExactly(3);
    }

    @Test
    void aNodeThatComesBackCanDieAgain() {
        assertThat(liveness.newlyDead(ALL_DEAD, 20 * SECOND)).containsExactly(2, 3);
        liveness.connected(2);
        assertThat(liveness.dead()).containsExactly(3);
        assertThat(liveness.newlyDead(NOBODY_DEAD, 29 * SECOND)).isEmpty();
        liveness.disconnected(2, 30 * SECOND);
        assertThat(liveness.newlyDead(ALL_DEAD, 40 * SECOND)).containsExactly(2);
    }

    @Test
    void repeatedDisconnectsDoNotRestartTheClock() {
        liveness.connected(2);
        liveness.connected(3);
        liveness.disconnected(2, 0);
        liveness.disconnected(2, 9 * SECOND);
        assertThat(liveness.newlyDead(NOBODY_DEAD, 11 * SECOND)).containsExactly(2);
    }
}
