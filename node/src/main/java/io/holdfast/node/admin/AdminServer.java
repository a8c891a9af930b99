package io.holdfast.node.admin;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.holdfast.client.admin.AdminError;
import io.holdfast.client.admin.AdminJson;
import io.holdfast.client.admin.CreateVolume;
import io.holdfast.client.admin.Health;
import io.holdfast.config.NodeConfig.Endpoint;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The admin interface over HTTP. Each request runs on a virtual thread of its own, so that one that
 * waits (a volume being created, a hash being computed) keeps nobody else waiting.
 *
 * <p>A caller costs bounded memory and time: {@link #MAX_REQUESTS} at once, {@link #MAX_BODY_BYTES}
 * of body, {@link #REQUEST_SECONDS} to send the request.
 */
public final class AdminServer implements AutoCloseable {
    /** Requests at the same time; further ones are answered 503. */
    static final int MAX_REQUESTS = 64;

    /** Open connections; the JDK's server closes further ones. */
    static final int MAX_CONNECTIONS = 256;

    /** Bytes of a request's body. */
    static final int MAX_BODY_BYTES = 64 << 10;

    /** A request must have arrived after this long. */
    static final int REQUEST_SECONDS = 10;

    private static final int BACKLOG = 64;
    private static final int OK = 200;
    private static final int CREATED = 201;
    private static final String JSON = "application/json";
    private static final String METRICS = "text/plain; version=0.0.4; charset=utf-8";
    private static final String VOLUMES = "/v1/volumes";
    private static final String SCRUB = "/v1/scrub";
    private static final String VOLUME_QUERY = "volume=";

    private static final Logger LOG = LoggerFactory.getLogger(AdminServer.class);

    static {
        // The JDK's server reads its limits from here, once, when its first server is made.
        System.setProperty("sun.net.httpserver.maxReqTime", String.valueOf(REQUEST_SECONDS));
        System.setProperty("jdk.httpserver.maxConnections", String.valueOf(MAX_CONNECTIONS));
        System.setProperty("sun.net.httpserver.nodelay", "true");
    }

    private final HttpServer server;
    private final ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor();
    private final Semaphore free = new Semaphore(MAX_REQUESTS);
    private final ClusterAdmin admin;
    private final Supplier<String> metrics;

    /** What a request gets. */
    private record Answer(int status, String type, String body) {
        static Answer json(int status, Object document) {
            return new Answer(status, JSON, AdminJson.write(document) + "\n");
        }
    }

    /**
     * Binds and serves at once.
     *
     * @param metrics the text of {@code /metrics}
     * @throws IOException when the address cannot be bound
     */
    public AdminServer(Endpoint address, ClusterAdmin admin, Supplier<String> metrics)
            throws IOException {
        this.admin = admin;
        this.metrics = metrics;
        server = HttpServer.create(new InetSocketAddress(address.host(), address.port()), BACKLOG);
        server.setExecutor(threads);
        server.createContext("/", this::handle);
        server.start();
    }

    /** Where it listens. */
    public InetSocketAddress address() {
        return server.getAddress();
    }

    private void handle(HttpExchange exchange) throws IOException {
        try (exchange) {
            Answer answer = answer(exchange);
            byte[] body = answer.body().getBytes(StandardCharsets.UTF_8);
            exchange.getResponseHeaders().set("Content-Type", answer.type());
            exchange.getResponseHeaders().set("Cache-Control", "no-store");
            boolean head = exchange.getRequestMethod().equals("HEAD");
            exchange.sendResponseHeaders(answer.status(), head ? -1 : body.length);
            if (!head) {
                exchange.getResponseBody().write(body);
                // A close alone fails before it sends this when the request's body is broken.
                exchange.getResponseBody().flush();
            }
        }
    }

    private Answer answer(HttpExchange exchange) {
        if (!free.tryAcquire()) {
            return Answer.json(
                    AdminRefusal.UNAVAILABLE,
                    new AdminError(
                            MAX_REQUESTS + " requests are being worked on", "ask again later"));
        }
        try {
            return route(exchange);
        } catch (AdminRefusal refusal) {
            return Answer.json(refusal.status(), refusal.toError());
        } catch (RuntimeException e) {
            LOG.warn(
                    "admin request {} {} failed",
                    exchange.getRequestMethod(),
                    exchange.getRequestURI(),
                    e);
            return Answer.json(
                    AdminRefusal.UNAVAILABLE,
                    new AdminError("the node failed to answer: " + e, "see the node's log"));
        } finally {
            free.release();
        }
    }

    private Answer route(HttpExchange exchange) {
        String path = exchange.getRequestURI().getPath();
        String method = exchange.getRequestMethod();
        return switch (path) {
            case "/healthz" -> get(method, this::health);
            case "/metrics" -> get(method, () -> new Answer(OK, METRICS, metrics.get()));
            case "/v1/version" -> get(method, () -> Answer.json(OK, admin.version()));
            case "/v1/status" -> get(method, () -> Answer.json(OK, admin.status()));
            case "/v1/local" -> get(method, () -> Answer.json(OK, admin.local()));
            case SCRUB ->
                    switch (method) {
                        case "POST" ->
                                Answer.json(
                                        OK,
                                        admin.startScrub(
                                                scrubbed(exchange.getRequestURI().getQuery())));
                        default -> get(method, () -> Answer.json(OK, admin.scrub()));
                    };
            case VOLUMES ->
                    switch (method) {
                        case "POST" -> Answer.json(CREATED, admin.create(volume(exchange)));
                        default -> get(method, () -> Answer.json(OK, admin.volumes()));
                    };
            default -> routeVolume(method, path, exchange.getRequestURI().getQuery());
        };
    }

    private Answer routeVolume(String method, String path, @Nullable String query) {
        if (!path.startsWith(VOLUMES + "/")) {
            throw noSuchPath(path);
        }
        String[] parts = path.substring(VOLUMES.length() + 1).split("/", -1);
        if (parts[0].isEmpty() || parts.length > 2) {
            throw noSuchPath(path);
        }
        String name = parts[0];
        if (parts.length == 2) {
            if (!parts[1].equals("hash")) {
                throw noSuchPath(path);
            }
            return get(method, () -> Answer.json(OK, admin.hash(name)));
        }
        if (method.equals("DELETE")) {
            admin.delete(name, isForced(query));
            return new Answer(OK, JSON, "{}\n");
        }
        return get(method, () -> Answer.json(OK, admin.volume(name)));
    }

    private static boolean isForced(@Nullable String query) {
        if (query == null || query.equals("force=false")) {
            return false;
        }
        if (query.equals("force=true")) {
            return true;
        }
        throw new AdminRefusal(
                AdminRefusal.BAD_REQUEST,
                "the query '" + query + "' is not known",
                "A deletion knows ?force=true only.");
    }

    /** The volume that is to be scrubbed; null: all. */
    private static @Nullable String scrubbed(@Nullable String query) {
        if (query == null) {
            return null;
        }
        if (query.startsWith(VOLUME_QUERY) && query.length() > VOLUME_QUERY.length()) {
            return query.substring(VOLUME_QUERY.length());
        }
        throw new AdminRefusal(
                AdminRefusal.BAD_REQUEST,
                "the query '" + query + "' is not known",
                "A scrub knows ?volume=NAME only.");
    }

    private Answer health() {
        Health health = admin.health();
        boolean serving = health.status().equals(Health.SERVING);
        return Answer.json(serving ? OK : AdminRefusal.UNAVAILABLE, health);
    }

    private static Answer get(String method, Supplier<Answer> answer) {
        if (!method.equals("GET") && !method.equals("HEAD")) {
            throw new AdminRefusal(
                    AdminRefusal.WRONG_METHOD,
                    method + " is not possible here",
                    "see docs/admin-api.md for what is");
        }
        return answer.get();
    }

    private static CreateVolume volume(HttpExchange exchange) {
        byte[] body;
        try {
            body = exchange.getRequestBody().readNBytes(MAX_BODY_BYTES + 1);
        } catch (IOException | IndexOutOfBoundsException e) {
            // The client's doing, or its going away: it must not fill the log. Out of bounds is how
            // the JDK's server puts a chunk of 2^31 bytes or more.
            LOG.debug(
                    "admin request {} {} has no whole body: {}",
                    exchange.getRequestMethod(),
                    exchange.getRequestURI(),
                    e.toString());
            throw new AdminRefusal(
                    AdminRefusal.BAD_REQUEST,
                    "the body broke off or its chunks are wrong",
                    "send the body whole, with its Content-Length; see docs/admin-api.md");
        }
        if (body.length > MAX_BODY_BYTES) {
            throw new AdminRefusal(
                    AdminRefusal.BAD_REQUEST,
                    "the body is larger than " + MAX_BODY_BYTES + " bytes",
                    "send one JSON object; see docs/admin-api.md");
        }
        try {
            CreateVolume volume =
                    AdminJson.readStrict(
                            new String(body, StandardCharsets.UTF_8), CreateVolume.class);
            // Jackson leaves out what the body leaves out, whatever the type says.
            if (volume.name() == null) {
                throw new IllegalArgumentException("name is missing");
            }
            return volume;
        } catch (IllegalArgumentException e) {
            throw new AdminRefusal(
                    AdminRefusal.BAD_REQUEST,
                    "the body cannot be read: " + e.getMessage(),
                    "send a JSON object with at least name and sizeBytes; see docs/admin-api.md");
        }
    }

    private static AdminRefusal noSuchPath(String path) {
        return new AdminRefusal(
                AdminRefusal.NOT_FOUND, "there is nothing at " + path, "see docs/admin-api.md");
    }

    /** Stops at once; requests under way are broken off. */
    @Override
    public void close() {
        server.stop(0);
        threads.shutdownNow();
    }
}
