package io.holdfast.integration;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** What a node says of catch-ups, over its admin interface. */
final class CatchUpWatch implements AutoCloseable {
    private static final Duration LIMIT = Duration.ofSeconds(10);

    private final HttpClient http = HttpClient.newBuilder().connectTimeout(LIMIT).build();
    private final ObjectMapper json = new ObjectMapper();
    private final LocalCluster cluster;

    /** Percent, as often as it was looked at while a catch-up was shown. */
    private final List<Double> percents = new ArrayList<>();

    /** How a replica is. */
    record Seen(String state, @Nullable Double percent, String by) {
        boolean isInSync() {
            return state.equals("in-sync");
        }

        boolean isCatchingUp() {
            return state.equals("catching-up") && percent != null;
        }
    }

    CatchUpWatch(LocalCluster cluster) {
        this.cluster = cluster;
    }

    private String get(int node, String path) {
        HttpRequest request =
                HttpRequest.newBuilder(
                                URI.create("http://127.0.0.1:" + cluster.httpPort(node) + path))
                        .timeout(LIMIT)
                        .build();
        try {
            return http.send(request, BodyHandlers.ofString()).body();
        } catch (ConnectException e) {
            return "";
        } catch (IOException e) {
            throw new AssertionError("node " + node + " does not answer " + path, e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError(e);
        }
    }

    /** The sum of the samples whose lines begin so. */
    double counter(int node, String beginning) {
        double sum = 0;
        for (String line : get(node, "/metrics").lines().toList()) {
            if (line.startsWith(beginning)) {
                sum += Double.parseDouble(line.substring(line.lastIndexOf(' ') + 1));
            }
        }
        return sum;
    }

    /** Bytes that a node has sent to bring others forward. */
    long sentBytes(int node) {
        return (long) counter(node, "holdfast_catchup_sent_bytes_total{");
    }

    /** A replica of the first volume, as the leader's node shows it. */
    Seen look(int leader, int follower) {
        JsonNode replicas;
        try {
            replicas = json.readTree(get(leader, "/v1/local")).at("/volumes/0/shards/0/replicas");
        } catch (IOException e) {
            throw new AssertionError(e);
        }
        for (JsonNode replica : replicas) {
            if (replica.path("node").asText().equals("node" + follower)) {
                JsonNode catchUp = replica.path("catchUp");
                Double percent = catchUp.isObject() ? catchUp.path("percent").asDouble() : null;
                if (percent != null) {
                    percents.add(percent);
                }
                return new Seen(
                        replica.path("state").asText(), percent, catchUp.path("by").asText());
            }
        }
        throw new AssertionError("node " + leader + " does not lead: " + replicas);
    }

    List<Double> percents() {
        return List.copyOf(percents);
    }

    @Override
    public void close() {
        http.close();
    }
}
