package io.holdfast.node.admin;

import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.AppenderBase;
import io.holdfast.client.admin.AdminError;
import io.holdfast.client.admin.AdminJson;
import io.holdfast.client.admin.Health;
import io.holdfast.client.admin.ScrubDocument;
import io.holdfast.client.admin.StatusDocument;
import io.holdfast.client.admin.StatusDocument.NodeState;
import io.holdfast.client.admin.StatusDocument.ReplicaLine;
import io.holdfast.client.admin.StatusDocument.ReplicaRole;
import io.holdfast.client.admin.StatusDocument.ReplicaState;
import io.holdfast.client.admin.StatusDocument.ShardLine;
import io.holdfast.client.admin.StatusDocument.VolumeLine;
import io.holdfast.client.admin.VolumeHash;
import io.holdfast.client.crypto.ClusterKey;
import io.holdfast.config.NodeConfig;
import io.holdfast.config.NodeConfig.Endpoint;
import io.holdfast.config.NodeConfig.Limits;
import io.holdfast.config.NodeConfig.Member;
import io.holdfast.node.runtime.LeaderRecorder;
import io.holdfast.node.runtime.TestNode;
import io.holdfast.node.scrub.ScrubTimes;
import io.holdfast.node.scrub.Scrubber;
import io.netty.channel.DefaultEventLoop;
import java.io.IOException;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.slf4j.LoggerFactory;

/** The admin interface of a cluster of one, over real HTTP, with the real core and store. */
class AdminServerTest {
    @TempDir Path directory;

    private final DefaultEventLoop eventLoop = new DefaultEventLoop();
    private final MemoryCoordinator coordinator = new MemoryCoordinator();
    private final Metrics metrics = new Metrics();
    private final HttpClient http = HttpClient.newHttpClient();
    private TestNode node;
    private NodeHealth health;
    private volatile boolean keyDisputed;
    private ClusterAdmin admin;
    private AdminServer server;

    private Scrubber scrubber;

    @BeforeEach
    void start() throws Exception {
        node = new TestNode(1, List.of(1), directory, eventLoop);
        LeaderRecorder recorder = new LeaderRecorder(node.loop, coordinator, 1, "node1#1");
        node.loop.listen(recorder::onAnnouncement);
        coordinator.watch(node::show);
        Endpoint any = new Endpoint("127.0.0.1", 0);
        Member self = new Member(1, "node1", any, any, any, any);
        NodeConfig config =
                new NodeConfig(
                        "test",
                        self,
                        List.of(self),
                        directory,
                        directory.resolve("key"),
                        NodeConfig.Scrub.DEFAULT,
                        NodeConfig.CatchUp.DEFAULT,
                        new Limits(4 << 20, 16 << 20, 1 << 20, 10, 1 << 20, 0));
        health = new NodeHealth(node.loop, coordinator, 1, () -> keyDisputed);
        scrubber =
                new Scrubber(
                        node.loop,
                        node.store,
                        1,
                        node.keeper::catalogue,
                        new Scrubber.Options(1 << 30, 0),
                        new ScrubTimes(directory.resolve("scrub-times"), Runnable::run),
                        () -> 1_000_000_000_000L,
                        () -> 0);
        node.run(scrubber::start);
        metrics.watch(scrubber);
        admin =
                new ClusterAdmin(
                        config,
                        node.loop,
                        node.store,
                        coordinator,
                        new ClusterKey(new byte[ClusterKey.SIZE]),
                        health,
                        scrubber,
                        "1.2.3");
        server = new AdminServer(any, admin, () -> metrics.scrape(node.loop));
    }

    @AfterEach
    void stop() throws Exception {
        server.close();
        admin.close();
        node.stop();
        metrics.close();
        http.close();
        eventLoop.shutdownGracefully(0, 5, TimeUnit.SECONDS).sync();
    }

    private HttpResponse<String> ask(String method, String path, String body) throws Exception {
        HttpRequest request =
                HttpRequest.newBuilder(
                                URI.create("http://127.0.0.1:" + server.address().getPort() + path))
                        .timeout(Duration.ofSeconds(60))
                        .method(method, BodyPublishers.ofString(body))
                        .build();
        return http.send(request, BodyHandlers.ofString());
    }

    private <T> T get(String path, Class<T> type) throws Exception {
        HttpResponse<String> response = ask("GET", path, "");
        assertThat(response.statusCode()).as(response.body()).isEqualTo(200);
        return AdminJson.read(response.body(), type);
    }

    private void refused(int status, String method, String path, String body, String about)
            throws Exception {
        HttpResponse<String> response = ask(method, path, body);
        assertThat(response.statusCode()).as(response.body()).isEqualTo(status);
        assertThat(AdminJson.read(response.body(), AdminError.class).error()).contains(about);
    }

    /** The volume's key would be wrapped with a key that no other node holds. */
    @Test
    void aNodeWithTheWrongClusterKeyMakesNoVolumesAndSaysSo() throws Exception {
        keyDisputed = true;
        HttpResponse<String> refused =
                ask("POST", "/v1/volumes", "{\"name\":\"data\",\"sizeBytes\":1073741824}");
        assertThat(refused.statusCode()).isEqualTo(503);
        assertThat(refused.body()).contains("this node's cluster key is not that of");
        assertThat(get("/v1/status", StatusDocument.class).volumes()).isEmpty();
        assertThat(ask("GET", "/healthz", "").body()).contains("this node's cluster key");
    }

    @Test
    void createsShowsHashesAndDeletesAVolume() throws Exception {
        HttpResponse<String> created =
                ask("POST", "/v1/volumes", "{\"name\":\"data\",\"sizeBytes\":1073741824}");
        assertThat(created.statusCode()).as(created.body()).isEqualTo(201);
        VolumeLine line = AdminJson.read(created.body(), VolumeLine.class);
        assertThat(line.name()).isEqualTo("data");
        assertThat(line.replicas()).isEqualTo(1);
        assertThat(line.timeoutSeconds()).isEqualTo(30);
        assertThat(line.shards().getFirst().leader()).isEqualTo("node1");
        assertThat(line.shards().getFirst().replicas())
                .extracting(r -> r.role())
                .containsExactly(ReplicaRole.LEADER);

        StatusDocument status = get("/v1/status", StatusDocument.class);
        assertThat(status.nodes()).extracting(n -> n.state()).containsExactly(NodeState.ALIVE);
        assertThat(status.nodes().getFirst().usedBytes()).isPositive();
        assertThat(status.nodes().getFirst().freeBytes()).isPositive();
        assertThat(status.nodes().getFirst().failure()).isNull();
        assertThat(status.volumes()).extracting(VolumeLine::name).containsExactly("data");
        assertThat(get("/v1/local", StatusDocument.class).volumes()).hasSize(1);
        assertThat(get("/v1/volumes", VolumeLine[].class)).hasSize(1);
        assertThat(get("/v1/volumes/data", VolumeLine.class).sizeBytes()).isEqualTo(1 << 30);
        assertThat(get("/v1/volumes/data/hash", VolumeHash.class).shards())
                .singleElement()
                .satisfies(hash -> assertThat(hash.sha256()).hasSize(64));
        assertThat(ask("GET", "/metrics", "").body())
                .contains("holdfast_replica_commit{shard=\"0\",volume=\"1\"}")
                .contains("jvm_memory_used_bytes");

        refused(
                409,
                "POST",
                "/v1/volumes",
                "{\"name\":\"data\",\"sizeBytes\":1073741824}",
                "exists");
        assertThat(ask("DELETE", "/v1/volumes/data", "").statusCode()).isEqualTo(200);
        refused(404, "GET", "/v1/volumes/data", "", "data");
        refused(404, "DELETE", "/v1/volumes/data", "", "data");
        node.await("the replica dropped", () -> node.loop.shards().isEmpty());
    }

    @Test
    void scrubsWhenAskedAndTellsHowItWent() throws Exception {
        assertThat(get("/v1/scrub", ScrubDocument.class).state())
                .isEqualTo(ScrubDocument.State.NEVER);
        ask("POST", "/v1/volumes", "{\"name\":\"data\",\"sizeBytes\":1073741824}");
        HttpResponse<String> started = ask("POST", "/v1/scrub?volume=data", "");
        assertThat(started.statusCode()).as(started.body()).isEqualTo(200);
        assertThat(AdminJson.read(started.body(), ScrubDocument.class).volumes())
                .extracting(ScrubDocument.VolumeScrub::volume)
                .containsExactly("data");
        node.await("the scrub's end", () -> !scrubber.isRunning());
        ScrubDocument done = get("/v1/scrub", ScrubDocument.class);
        assertThat(done.state()).isEqualTo(ScrubDocument.State.DONE);
        assertThat(done.started()).isEqualTo("2001-09-09T01:46:40Z");
        assertThat(done.secondsLeft()).isNull();
        assertThat(done.volumes().getFirst().lastCompleted()).isEqualTo(done.finished());
        assertThat(ask("GET", "/metrics", "").body())
                .contains("holdfast_scrub_running 0.0")
                .contains("holdfast_scrub_repaired_blocks_total 0.0");
        refused(404, "POST", "/v1/scrub?volume=none", "", "none");
        refused(400, "POST", "/v1/scrub?all", "", "all");
        refused(405, "DELETE", "/v1/scrub", "", "DELETE");
    }

    @Test
    void refusesImpossibleVolumesNamingTheValue() throws Exception {
        refused(400, "DELETE", "/v1/volumes/data?now", "", "now");
        refused(400, "POST", "/v1/volumes", "{}", "read");
        refused(400, "POST", "/v1/volumes", "{\"sizeBytes\":4194304}", "name");
        refused(400, "POST", "/v1/volumes", "no json", "read");
        refused(400, "POST", "/v1/volumes", volume("a/b", "4194304", ""), "a/b");
        refused(400, "POST", "/v1/volumes", volume("a", "4194305", ""), "4194305");
        refused(400, "POST", "/v1/volumes", volume("a", "-4096", ""), "-4096");
        refused(400, "POST", "/v1/volumes", volume("a", "4194304", ",\"replicas\":2"), "2");
        refused(400, "POST", "/v1/volumes", volume("a", "4194304", ",\"replicas\":3"), "3");
        refused(400, "POST", "/v1/volumes", volume("a", "4194304", ",\"shards\":65"), "65");
        refused(400, "POST", "/v1/volumes", volume("a", "4194304", ",\"shard\":1"), "shard");
        refused(400, "POST", "/v1/volumes", " ".repeat(AdminServer.MAX_BODY_BYTES + 1), "larger");
        assertThat(coordinator.catalogue().volumes()).isEmpty();
    }

    /** Jackson would take a number for the constant at that place: a shared volume. */
    @Test
    void refusesValuesOfTheWrongTypeNamingKeyAndValue() throws Exception {
        refused(
                400,
                "POST",
                "/v1/volumes",
                volume("a", "4194304", ",\"attach\":1"),
                "attach cannot be 1");
        refused(
                400,
                "POST",
                "/v1/volumes",
                "{\"name\":5,\"sizeBytes\":4194304}",
                "name cannot be 5");
        refused(
                400,
                "POST",
                "/v1/volumes",
                volume("a", "\"4194304\"", ""),
                "sizeBytes cannot be \"4194304\"");
        refused(
                400,
                "POST",
                "/v1/volumes",
                volume("a", "4194304", ",\"name\":\"b\""),
                "name is there twice");
        assertThat(coordinator.catalogue().volumes()).isEmpty();
    }

    @Test
    void aBodyThatIsBrokenOrBreaksOffIsAnsweredAndLogsOneDebugLineWithoutTrace() throws Exception {
        List<ILoggingEvent> events = new CopyOnWriteArrayList<>();
        AppenderBase<ILoggingEvent> listener =
                new AppenderBase<>() {
                    @Override
                    protected void append(ILoggingEvent event) {
                        events.add(event);
                    }
                };
        Logger logger = (Logger) LoggerFactory.getLogger(AdminServer.class);
        Level before = logger.getLevel();
        logger.setLevel(Level.DEBUG);
        listener.start();
        logger.addAppender(listener);
        try {
            for (String request :
                    List.of(
                            "Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
                            "Transfer-Encoding: chunked\r\n\r\n3\r\nabcdef\r\n0\r\n\r\n",
                            "Transfer-Encoding: chunked\r\n\r\n80000000\r\nabc\r\n",
                            "Content-Length: 10\r\n\r\nabc")) {
                events.clear();
                String answer = raw("POST /v1/volumes HTTP/1.1\r\n" + request);
                assertThat(answer)
                        .startsWith("HTTP/1.1 400 ")
                        .contains("\"error\":\"the body broke off or its chunks are wrong")
                        .contains("\"remedy\":\"send the body whole");
                assertThat(events)
                        .singleElement()
                        .satisfies(event -> {
                            assertThat(event.getLevel()).isEqualTo(Level.DEBUG);
                            assertThat(event.getThrowableProxy()).isNull();
                        });
            }
        } finally {
            logger.detachAppender(listener);
            logger.setLevel(before);
        }
    }

    /** Sends these bytes and no more, and returns all that comes back. */
    private String raw(String request) throws IOException {
        try (Socket socket = new Socket()) {
            socket.connect(server.address(), 10_000);
            socket.setSoTimeout(10_000);
            socket.getOutputStream().write(request.getBytes(StandardCharsets.ISO_8859_1));
            socket.shutdownOutput();
            return new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    private static String volume(String name, String size, String more) {
        return "{\"name\":\"" + name + "\",\"sizeBytes\":" + size + more + "}";
    }

    @Test
    void answersUnknownPathsAndMethodsWithAnError() throws Exception {
        refused(404, "GET", "/", "", "/");
        refused(404, "GET", "/v1/volumes/", "", "/v1/volumes/");
        refused(404, "GET", "/v1/volumes/data/keys", "", "keys");
        refused(404, "GET", "/v1/volumes/none/hash", "", "none");
        refused(405, "POST", "/v1/status", "", "POST");
        refused(405, "DELETE", "/healthz", "", "DELETE");
    }

    @Test
    void isHealthyOnceNbdIsBoundAndTheCatalogueIsKnown() throws Exception {
        assertThat(ask("GET", "/healthz", "").statusCode()).isEqualTo(503);
        health.nbdBound();
        HttpResponse<String> waiting = ask("GET", "/healthz", "");
        assertThat(waiting.statusCode()).isEqualTo(503);
        assertThat(AdminJson.read(waiting.body(), Health.class).reason()).contains("catalogue");
        health.coordinatorJoined();
        assertThat(get("/healthz", Health.class).status()).isEqualTo(Health.SERVING);
        health.stopping();
        assertThat(ask("GET", "/healthz", "").statusCode()).isEqualTo(503);
    }

    @Test
    void saysThatTheStoreHasFailedAndShowsNoLeaderThere() throws Exception {
        assertThat(ask("POST", "/v1/volumes", volume("data", "1073741824", "")).statusCode())
                .isEqualTo(201);
        health.nbdBound();
        health.coordinatorJoined();
        assertThat(get("/healthz", Health.class).status()).isEqualTo(Health.SERVING);

        node.failStore(new IOException("no space left on device"));

        HttpResponse<String> failed = ask("GET", "/healthz", "");
        assertThat(failed.statusCode()).isEqualTo(503);
        assertThat(AdminJson.read(failed.body(), Health.class))
                .isEqualTo(
                        new Health(Health.FAILED, "the store has failed: no space left on device"));
        StatusDocument status = get("/v1/status", StatusDocument.class);
        assertThat(status.nodes().getFirst().state()).isEqualTo(NodeState.FAILED);
        assertThat(status.nodes().getFirst().failure()).contains("no space left");
        ShardLine shard = status.volumes().getFirst().shards().getFirst();
        assertThat(shard.leader()).isNull();
        assertThat(shard.commit()).isNull();
        assertThat(shard.replicas())
                .containsExactly(
                        new ReplicaLine(
                                "node1", ReplicaRole.FOLLOWER, ReplicaState.OFFLINE, null, null));
        ShardLine local =
                get("/v1/local", StatusDocument.class).volumes().getFirst().shards().getFirst();
        assertThat(local.leader()).isNull();
        assertThat(local.replicas().getFirst().role()).isEqualTo(ReplicaRole.FOLLOWER);
    }
}
