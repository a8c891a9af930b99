package io.holdfast.node.runtime;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.node.port.Coordinator.NodeState;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class GoneNodesTest {
    private static final long SECOND = 1_000_000_000L;
    private static final Map<Integer, NodeState> ALL_DEAD =
            Map.of(2, NodeState.DEAD, 3, NodeState.DEAD);
    private static final Map<Integer, NodeState> NOBODY_DEAD =
            Map.of(2, NodeState.ALIVE, 3, NodeState.SUSPECT);

    private final GoneNodes nodes = new GoneNodes(List.of(2, 3));

    @BeforeEach
    void start() {
        nodes.start(0);
    }

    @Test
    void doesNotBelieveGossipWhileTheLinkIsUp() {
        nodes.connected(2);
        nodes.connected(3);
        assertThat(nodes.newlyDead(ALL_DEAD, 100 * SECOND)).isEmpty();
    }

    @Test
    void doesNotBelieveGossipOfNodesThatWereNeverConnected() {
        assertThat(nodes.newlyDead(ALL_DEAD, 9 * SECOND)).isEmpty();
        assertThat(nodes.newlyDead(ALL_DEAD, 11 * SECOND)).containsExactly(2, 3);
    }

    @Test
    void doesNotBelieveGossipOfNodesThatItHasNotMetSinceTheStart() {
        nodes.connected(2);
        nodes.connected(3);
        nodes.disconnected(2, SECOND);
        assertThat(nodes.newlyDead(ALL_DEAD, 10 * SECOND)).isEmpty();
        assertThat(nodes.newlyDead(ALL_DEAD, 12 * SECOND)).containsExactly(2);
    }

    @Test
    void declaresDeadOnceWhenLinkAndGossipAgree() {
        nodes.connected(2);
        nodes.connected(3);
        assertThat(nodes.newlyDead(NOBODY_DEAD, 9 * SECOND)).isEmpty();
        nodes.disconnected(2, 10 * SECOND);
        assertThat(nodes.newlyDead(ALL_DEAD, 13 * SECOND)).containsExactly(2);
        assertThat(nodes.newlyDead(ALL_DEAD, 14 * SECOND)).isEmpty();
        assertThat(nodes.dead()).containsExactly(2);
    }

    @Test
    void declaresDeadWithoutGossipAfterALongSilence() {
        nodes.connected(2);
        nodes.connected(3);
        nodes.disconnected(3, 0);
        assertThat(nodes.newlyDead(NOBODY_DEAD, GoneNodes.GONE_NANOS)).isEmpty();
        assertThat(nodes.newlyDead(NOBODY_DEAD, GoneNodes.GONE_NANOS + 1)).containsExactly(3);
    }

    @Test
    void aNodeThatComesBackCanDieAgain() {
        assertThat(nodes.newlyDead(ALL_DEAD, 20 * SECOND)).containsExactly(2, 3);
        nodes.connected(2);
        assertThat(nodes.dead()).containsExactly(3);
        assertThat(nodes.newlyDead(NOBODY_DEAD, 29 * SECOND)).isEmpty();
        nodes.disconnected(2, 30 * SECOND);
        assertThat(nodes.newlyDead(ALL_DEAD, 40 * SECOND)).containsExactly(2);
    }

    @Test
    void repeatedDisconnectsDoNotRestartTheClock() {
        nodes.connected(2);
        nodes.connected(3);
        nodes.disconnected(2, 0);
        nodes.disconnected(2, 9 * SECOND);
        assertThat(nodes.newlyDead(NOBODY_DEAD, 11 * SECOND)).containsExactly(2);
    }
}
