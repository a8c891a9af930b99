package io.holdfast.integration;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** A cluster as its users see it: NBD ports on this machine, and the launcher's commands. */
abstract class TestCluster implements AutoCloseable {
    private static final Duration COMMAND_LIMIT = Duration.ofMinutes(4);
    private static final Duration POLL = Duration.ofMillis(50);

    /** A command of the launcher, for instance {@code volume list}, against this cluster. */
    abstract Tool.Result cli(String... arguments);

    abstract int nbdPort(int node);

    @Override
    public abstract void close();

    String nbdUri(int node, String volume) {
        return "nbd://127.0.0.1:" + nbdPort(node) + "/" + volume;
    }

    static Tool.Result launcher(String... arguments) {
        List<String> command = new ArrayList<>();
        command.add(Tool.projectRoot().resolve("holdfast").toString());
        command.addAll(List.of(arguments));
        return Tool.run(COMMAND_LIMIT, Map.of(), command);
    }

    /** The status document, from whichever node answers. */
    JsonNode status() {
        String json = cli("status", "--json").succeeds().output();
        try {
            return new ObjectMapper().readTree(json.substring(json.indexOf('{')));
        } catch (JsonProcessingException e) {
            throw new AssertionError("status is not JSON:\n" + json, e);
        }
    }

    private JsonNode firstShard(String volume) {
        for (JsonNode line : status().path("volumes")) {
            if (line.path("name").asText().equals(volume)) {
                return line.path("shards").path(0);
            }
        }
        throw new AssertionError("status does not name volume " + volume);
    }

    /** Number of the node that leads the volume's first shard; waits until one does. */
    int leader(String volume) {
        int[] found = new int[1];
        await(
                "a leader of " + volume,
                Duration.ofSeconds(20),
                () -> {
                    String id = firstShard(volume).path("leader").asText("");
                    found[0] = id.startsWith("node") ? Integer.parseInt(id.substring(4)) : 0;
                    return found[0] != 0;
                });
        return found[0];
    }

    /** Waits until all replicas are in sync at the same applied point. */
    void awaitInSync(String volume, Duration limit) {
        await(
                "all replicas of " + volume + " to be in sync",
                limit,
                () -> {
                    long applied = -1;
                    for (JsonNode replica : firstShard(volume).path("replicas")) {
                        long here = replica.path("applied").asLong();
                        if (!replica.path("state").asText().equals("in-sync")
                                || (applied >= 0 && applied != here)) {
                            return false;
                        }
                        applied = here;
                    }
                    return applied >= 0;
                });
    }

    /** Fails unless every replica holds the same blocks. */
    void assertReplicasEqual(String volume) {
        awaitInSync(volume, Duration.ofSeconds(60));
        cli("debug", "hash", volume).succeeds();
    }

    static void await(String what, Duration limit, BooleanSupplier condition) {
        long deadline = System.nanoTime() + limit.toNanos();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > deadline) {
                throw new AssertionError("waited " + limit + " in vain for " + what);
            }
            // Polling interval of an outside observer; nothing depends on its length.
            LockSupport.parkNanos(POLL.toNanos());
        }
    }
}
