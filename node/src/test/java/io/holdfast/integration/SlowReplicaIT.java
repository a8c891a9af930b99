package io.holdfast.integration;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.client.admin.AdminJson;
import io.holdfast.client.admin.StatusDocument;
import io.holdfast.client.admin.StatusDocument.ReplicaState;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A majority sets the pace: what a far or slow follower costs the others. */
@Timeout(value = 10, unit = TimeUnit.MINUTES)
class SlowReplicaIT {
    /** Each way, so that an answer of the follower comes 200 ms later. */
    private static final Duration ONE_WAY = Duration.ofMillis(100);

    /** A median is worse by this factor only if something waits; other load is on both sides. */
    private static final double NOISE = 1.5;

    private static final int MEBIBYTES = 128;

    @TempDir Path dir;

    private final HttpClient http = HttpClient.newHttpClient();

    private ReplicaState state(LocalCluster cluster, int leader, int follower) {
        URI address = URI.create("http://127.0.0.1:" + cluster.httpPort(leader) + "/v1/status");
        try {
            String body =
                    http.send(HttpRequest.newBuilder(address).build(), BodyHandlers.ofString())
                            .body();
            return AdminJson.read(body, StatusDocument.class)
                    .volumes()
                    .getFirst()
                    .shards()
                    .getFirst()
                    .replicas()
                    .stream()
                    .filter(replica -> replica.node().equals("node" + follower))
                    .findFirst()
                    .orElseThrow()
                    .state();
        } catch (IOException e) {
            throw new AssertionError("node " + leader + " does not answer", e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError("interrupted", e);
        }
    }

    private static double median(LocalCluster cluster, int leader, int perSecond, int seconds) {
        try (FioJob job =
                FioJob.timedWrites(cluster.nbdUri(leader, "data"), MEBIBYTES, perSecond, seconds)) {
            return job.medianWriteMillis();
        }
    }

    /** Writes at a rate, and what the follower was meanwhile, each time it changed. */
    private List<ReplicaState> statesDuring(
            LocalCluster cluster, int leader, int follower, Runnable work) {
        List<ReplicaState> states = new ArrayList<>();
        CompletableFuture<Void> done = CompletableFuture.runAsync(work);
        while (!done.isDone()) {
            ReplicaState now = state(cluster, leader, follower);
            if (states.isEmpty() || states.getLast() != now) {
                states.add(now);
            }
        }
        done.join();
        return states;
    }

    @Test
    void theMedianWriteDoesNotWaitForASlowFollowerWhichComesBackByItself() throws IOException {
        try (LocalCluster cluster = LocalCluster.start(dir.resolve("cluster"), 3);
                DelayedLinks links = DelayedLinks.between(cluster, 3)) {
            cluster.cli("volume", "create", "data", "--size", MEBIBYTES + "M").succeeds();
            int leader = cluster.leader("data");
            int slow = leader % 3 + 1;
            double before = median(cluster, leader, 0, 10);

            links.delay(slow, ONE_WAY);
            double[] during = new double[2];
            // Less than one window per round trip: it keeps up, late.
            List<ReplicaState> statesAtEase =
                    statesDuring(
                            cluster,
                            leader,
                            slow,
                            () -> during[0] = median(cluster, leader, 200, 10));
            List<ReplicaState> statesInAHurry =
                    statesDuring(
                            cluster,
                            leader,
                            slow,
                            () -> during[1] = median(cluster, leader, 0, 15));

            links.delay(slow, Duration.ZERO);
            cluster.awaitInSync("data", Duration.ofMinutes(2));
            double after = median(cluster, leader, 0, 10);

            System.out.printf(
                    "median write: %.3f ms, %.3f ms with a follower 200 ms away, %.3f ms after;"
                            + " 200 writes/s meanwhile: %.3f ms; the follower was %s, then %s%n",
                    before, during[1], after, during[0], statesAtEase, statesInAHurry);
            assertThat(statesAtEase).containsExactly(ReplicaState.IN_SYNC);
            assertThat(statesInAHurry)
                    .isSubsetOf(ReplicaState.IN_SYNC, ReplicaState.CATCHING_UP)
                    .hasSizeLessThanOrEqualTo(2);
            assertThat(during[0]).isLessThan(ONE_WAY.toMillis() / 2.0);
            assertThat(during[1]).isLessThan(NOISE * Math.max(before, after));
            assertThat(cluster.leader("data")).isEqualTo(leader);
            cluster.assertReplicasEqual("data");
        }
    }
}
