package io.holdfast.node.coordination;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Three processes, killed and paused. */
class CoordinatorCrashIT {
    private static final int START_SECONDS = 120;
    private static final int ASK_SECONDS = 20;

    @TempDir Path directory;
    private final List<CoordinatorProcess> nodes = new ArrayList<>();

    @AfterEach
    void killAll() {
        nodes.forEach(CoordinatorProcess::close);
    }

    /** The case that breaks stock Atomix with two primitives in a group (D2). */
    @Test
    void afterCompactionAKillOfAllNodesLosesNothingAndLeavesThemEqual() throws Exception {
        List<Integer> ports = TestNodes.freePorts(3);
        startAll(ports);
        assertThat(nodes.getFirst().ask("create a 8", ASK_SECONDS)).isEqualTo("applied 1 ");

        long epoch = 0;
        long deadline = System.nanoTime() + 300_000_000_000L;
        while (!compactedEverywhere() && System.nanoTime() < deadline) {
            epoch++;
            String claim = "claim 1 " + epoch % 8 + " " + (1 + epoch % 3) + " " + epoch;
            assertThat(nodes.get((int) (epoch % 3)).ask(claim, ASK_SECONDS))
                    .isEqualTo("applied " + (epoch + 1) + " ");
        }
        assertThat(compactedEverywhere()).isTrue();
        String before = nodes.get((int) (epoch % 3)).ask("show", ASK_SECONDS);

        for (CoordinatorProcess node : nodes) {
            node.kill();
        }
        // Without what the nodes saved themselves: Atomix must come back from its snapshots.
        for (int i = 1; i <= 3; i++) {
            Files.delete(directory.resolve("node" + i).resolve("catalogue.json"));
        }
        startAll(ports);
        for (CoordinatorProcess node : nodes) {
            assertThat(node.ask("show", ASK_SECONDS)).isEqualTo(before);
        }
        for (CoordinatorProcess node : nodes) {
            epoch++;
            assertThat(node.ask("claim 1 0 2 " + epoch, ASK_SECONDS))
                    .isEqualTo("applied " + (epoch + 1) + " ");
        }
    }

    /** What a power loss may leave of files that are not synced: nothing, or zeroes. */
    @Test
    void nodesWithTornFilesJoinAgain() throws Exception {
        List<Integer> ports = TestNodes.freePorts(3);
        startAll(ports);
        assertThat(nodes.getFirst().ask("create a 1", ASK_SECONDS)).isEqualTo("applied 1 ");
        for (CoordinatorProcess node : nodes) {
            node.kill();
        }
        Path log = Path.of("coordination", "catalogue-1.log");
        Files.write(directory.resolve("node1").resolve(log), new byte[0]);
        Path second = directory.resolve("node2").resolve(log);
        Files.write(second, new byte[(int) Files.size(second)]);
        startAll(ports);
        for (CoordinatorProcess node : nodes) {
            assertThat(node.ask("show", ASK_SECONDS)).contains("1");
        }
        assertThat(nodes.getFirst().ask("claim 1 0 2 1", ASK_SECONDS)).isEqualTo("applied 2 ");
        assertThat(directory.resolve("node1").resolve("coordination.unreadable")).exists();
    }

    @Test
    void aPausedNodeHealsByItself() throws Exception {
        List<Integer> ports = TestNodes.freePorts(3);
        startAll(ports);
        assertThat(nodes.getFirst().ask("create a 1", ASK_SECONDS)).isEqualTo("applied 1 ");

        long version = 1;
        for (int paused = 0; paused < 3; paused++) { // one of them is Atomix' leader
            nodes.get(paused).signal("STOP");
            CoordinatorProcess other = nodes.get((paused + 1) % 3);
            version = claimUntilApplied(other, version);
            nodes.get(paused).signal("CONT");
            version = claimUntilApplied(nodes.get(paused), version);
        }
    }

    /** A time-out is in doubt, so the next try takes a higher epoch; pauses end within a minute. */
    private static long claimUntilApplied(CoordinatorProcess node, long epoch)
            throws IOException, InterruptedException {
        String answer = "";
        for (int tries = 0; tries < 12; tries++) {
            epoch += 1;
            answer = node.ask("claim 1 0 1 " + epoch, ASK_SECONDS);
            if (answer.startsWith("applied")) {
                return epoch;
            }
        }
        throw new AssertionError("still " + answer);
    }

    private void startAll(List<Integer> ports) throws IOException, InterruptedException {
        nodes.clear();
        for (int i = 1; i <= ports.size(); i++) {
            nodes.add(new CoordinatorProcess(i, ports, directory));
        }
        for (CoordinatorProcess node : nodes) {
            assertThat(node.next(START_SECONDS)).isEqualTo("started");
        }
    }

    /** The first segment of the log is gone on each node. */
    private boolean compactedEverywhere() {
        for (int i = 1; i <= 3; i++) {
            Path log = directory.resolve("node" + i).resolve("coordination");
            if (Files.exists(log.resolve("catalogue-1.log"))) {
                return false;
            }
        }
        return true;
    }
}
