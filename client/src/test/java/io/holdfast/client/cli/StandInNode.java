package io.holdfast.client.cli;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.holdfast.client.admin.AdminError;
import io.holdfast.client.admin.AdminJson;
import io.holdfast.client.admin.CreateVolume;
import io.holdfast.client.admin.NodeVersion;
import io.holdfast.client.admin.ScrubDocument;
import io.holdfast.client.admin.ScrubDocument.Counts;
import io.holdfast.client.admin.ScrubDocument.State;
import io.holdfast.client.admin.ScrubDocument.VolumeScrub;
import io.holdfast.client.admin.StatusDocument;
import io.holdfast.client.admin.StatusDocument.AttachMode;
import io.holdfast.client.admin.StatusDocument.CatchUpKind;
import io.holdfast.client.admin.StatusDocument.CatchUpLine;
import io.holdfast.client.admin.StatusDocument.DurabilityMode;
import io.holdfast.client.admin.StatusDocument.NodeLine;
import io.holdfast.client.admin.StatusDocument.NodeState;
import io.holdfast.client.admin.StatusDocument.ReplicaLine;
import io.holdfast.client.admin.StatusDocument.ReplicaRole;
import io.holdfast.client.admin.StatusDocument.ReplicaState;
import io.holdfast.client.admin.StatusDocument.ShardLine;
import io.holdfast.client.admin.StatusDocument.VolumeLine;
import io.holdfast.client.admin.VolumeHash;
import io.holdfast.client.admin.VolumeHash.ShardHash;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.Semaphore;

/** A real HTTP server with the admin interface of a node and nothing behind it. */
final class StandInNode implements AutoCloseable {
    final String id;
    final List<String> requests = new ArrayList<>();
    final TreeMap<String, VolumeLine> volumes = new TreeMap<>();

    /** When set, every request gets this status. */
    volatile int failWith;

    /** What is free on the node's disk. */
    volatile long freeBytes = 1L << 40;

    /** Nodes of the cluster beside this one, which are down. */
    final List<NodeLine> others = new ArrayList<>();

    volatile String sha256 = "ab".repeat(32);

    /** Times that a scrub is found running after its start. */
    private static final int SCRUB_LOOKS = 2;

    private int scrubLooks;

    /** What the scrub finds. */
    volatile Counts scrubbed = new Counts(262144, 262144, 0, 2, 1, 3, 0);

    /** A permit per request. */
    final Semaphore served = new Semaphore(0);

    private final HttpServer server;

    StandInNode(String id) throws IOException {
        this.id = id;
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", this::answer);
        server.start();
    }

    String address() {
        return "127.0.0.1:" + server.getAddress().getPort();
    }

    private synchronized void answer(HttpExchange exchange) throws IOException {
        String method = exchange.getRequestMethod();
        String path = exchange.getRequestURI().getPath();
        String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
        requests.add(method + " " + path);
        served.release();
        if (failWith != 0) {
            reply(exchange, failWith, new AdminError("no majority of nodes", "start the others"));
        } else if (path.equals("/v1/status")) {
            reply(exchange, 200, status());
        } else if (path.equals("/metrics")) {
            reply(exchange, 200, "text/plain", metrics());
        } else if (path.equals("/v1/version")) {
            reply(exchange, 200, new NodeVersion("0.1.0", id));
        } else if (path.equals("/v1/scrub")) {
            scrub(exchange, method);
        } else if (path.equals("/v1/volumes") && method.equals("GET")) {
            reply(exchange, 200, List.copyOf(volumes.values()));
        } else if (path.equals("/v1/volumes") && method.equals("POST")) {
            create(exchange, AdminJson.readStrict(body, CreateVolume.class));
        } else {
            oneVolume(exchange, method, path.substring("/v1/volumes/".length()));
        }
    }

    /** An empty store, and how far it may grow. */
    private String metrics() {
        return """
        holdfast_journal_appended_bytes_total 0.0
        holdfast_journal_client_bytes_total 0.0
        holdfast_journal_bytes 0.0
        holdfast_disk_free_bytes %d.0
        """
                .formatted(freeBytes);
    }

    private void create(HttpExchange exchange, CreateVolume wanted) throws IOException {
        if (volumes.containsKey(wanted.name())) {
            reply(
                    exchange,
                    409,
                    new AdminError(
                            "volume '" + wanted.name() + "' exists already",
                            "choose another name"));
            return;
        }
        VolumeLine made = volume(wanted);
        volumes.put(made.name(), made);
        reply(exchange, 201, made);
    }

    private void scrub(HttpExchange exchange, String method) throws IOException {
        String query = exchange.getRequestURI().getQuery();
        String name = query == null ? "data" : query.substring("volume=".length());
        if (query != null && !volumes.containsKey(name)) {
            reply(exchange, 404, new AdminError("there is no volume " + name, "look"));
            return;
        }
        if (method.equals("POST")) {
            scrubLooks = SCRUB_LOOKS;
        }
        boolean running = scrubLooks > 0;
        scrubLooks--;
        State state = running ? State.RUNNING : State.DONE;
        reply(
                exchange,
                200,
                new ScrubDocument(
                        id,
                        state,
                        false,
                        "2026-12-01T10:00:00Z",
                        running ? null : "2026-12-01T10:01:00Z",
                        running ? 512 << 20 : 1 << 30,
                        1 << 30,
                        32 << 20,
                        running ? 16L : null,
                        scrubbed,
                        List.of(new VolumeScrub(name, state, scrubbed, null))));
    }

    private void oneVolume(HttpExchange exchange, String method, String rest) throws IOException {
        boolean hash = rest.endsWith("/hash");
        String name = hash ? rest.substring(0, rest.length() - "/hash".length()) : rest;
        VolumeLine volume = volumes.get(name);
        if (volume == null) {
            reply(
                    exchange,
                    404,
                    new AdminError("there is no volume '" + name + "'", "'holdfast volume list'"));
        } else if (method.equals("DELETE")
                && volume.holder() != null
                && !"force=true".equals(exchange.getRequestURI().getQuery())) {
            reply(
                    exchange,
                    423,
                    new AdminError(
                            "volume " + name + " is in use: " + volume.holder() + " holds it", ""));
        } else if (method.equals("DELETE")) {
            volumes.remove(name);
            exchange.sendResponseHeaders(204, -1);
            exchange.close();
        } else if (hash) {
            reply(exchange, 200, new VolumeHash(id, List.of(new ShardHash(0, 42, sha256))));
        } else {
            reply(exchange, 200, volume);
        }
    }

    private StatusDocument status() {
        List<NodeLine> nodes = new ArrayList<>();
        nodes.add(
                new NodeLine(
                        id,
                        1,
                        NodeState.ALIVE,
                        "127.0.0.1:10809",
                        address(),
                        5L << 20,
                        freeBytes,
                        null));
        nodes.addAll(others);
        return new StatusDocument(nodes, List.copyOf(volumes.values()));
    }

    static VolumeLine held(VolumeLine volume, String holder) {
        return new VolumeLine(
                volume.name(),
                volume.sizeBytes(),
                volume.replicas(),
                volume.timeoutSeconds(),
                volume.attach(),
                volume.durability(),
                holder,
                volume.shards());
    }

    private static VolumeLine volume(CreateVolume wanted) {
        DurabilityMode durability = wanted.durability();
        AttachMode attach = wanted.attach();
        return new VolumeLine(
                wanted.name(),
                wanted.sizeBytes(),
                wanted.replicas() == null ? 3 : wanted.replicas(),
                wanted.timeoutSeconds() == null ? 30 : wanted.timeoutSeconds(),
                attach == null ? AttachMode.EXCLUSIVE : attach,
                durability == null ? DurabilityMode.FLUSH : durability,
                null,
                List.of(
                        new ShardLine(
                                0,
                                "node1",
                                3,
                                8123L,
                                List.of(
                                        new ReplicaLine(
                                                "node1",
                                                ReplicaRole.LEADER,
                                                ReplicaState.IN_SYNC,
                                                8123L,
                                                null),
                                        new ReplicaLine(
                                                "node2",
                                                ReplicaRole.LEARNER,
                                                ReplicaState.CATCHING_UP,
                                                17L,
                                                new CatchUpLine(
                                                        CatchUpKind.EXTENTS,
                                                        37.2,
                                                        4080218931L,
                                                        10737418240L,
                                                        117440512,
                                                        55L))))));
    }

    private static void reply(HttpExchange exchange, int status, Object body) throws IOException {
        reply(exchange, status, "application/json", AdminJson.write(body));
    }

    private static void reply(HttpExchange exchange, int status, String type, String text)
            throws IOException {
        byte[] body = text.getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().add("Content-Type", type);
        exchange.sendResponseHeaders(status, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    @Override
    public void close() {
        server.stop(0);
    }
}
