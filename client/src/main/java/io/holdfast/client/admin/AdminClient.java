package io.holdfast.client.admin;

import io.holdfast.client.admin.StatusDocument.VolumeLine;
import io.holdfast.config.NodeConfig.Endpoint;
import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.UnknownHostException;
import java.net.http.HttpClient;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.net.http.HttpTimeoutException;
import java.nio.channels.UnresolvedAddressException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Asks a cluster's nodes for what the admin interface offers. Any node will do, so each request
 * goes to the first node that can be connected to, beginning with the one that answered last.
 *
 * <p>A request that changes something is sent to one node only: once connected, a failure leaves
 * open whether it took effect, so it is reported instead of repeated elsewhere.
 *
 * <p>Blocks; not thread-safe.
 */
public final class AdminClient implements AutoCloseable {
    /** A node that does not accept a connection in this time is passed over. */
    public static final Duration CONNECT_TIMEOUT = Duration.ofSeconds(2);

    /** A node that does not answer a question in this time is passed over. */
    public static final Duration ANSWER_TIMEOUT = Duration.ofSeconds(10);

    /** How long a change may take: it waits for a majority of nodes. */
    public static final Duration CHANGE_TIMEOUT = Duration.ofSeconds(60);

    /** Hashing reads a whole volume. */
    public static final Duration HASH_TIMEOUT = Duration.ofHours(1);

    private static final int UNAVAILABLE = 503;
    private static final String SCRUB = "/v1/scrub";

    private final List<Endpoint> nodes;
    private final HttpClient http = PlainHttp.client(CONNECT_TIMEOUT);

    /**
     * @param nodes admin addresses of at least one node
     */
    public AdminClient(List<Endpoint> nodes) {
        if (nodes.isEmpty()) {
            throw new IllegalArgumentException("needs at least one node");
        }
        this.nodes = new ArrayList<>(nodes);
    }

    public StatusDocument status() throws AdminException {
        return get("/v1/status", StatusDocument.class);
    }

    public NodeVersion version() throws AdminException {
        return get("/v1/version", NodeVersion.class);
    }

    public List<VolumeLine> volumes() throws AdminException {
        return Arrays.asList(get("/v1/volumes", VolumeLine[].class));
    }

    public VolumeLine volume(String name) throws AdminException {
        return get(volumePath(name), VolumeLine.class);
    }

    /** Returns when the volume is ready and served. */
    public VolumeLine create(CreateVolume volume) throws AdminException {
        Answer answer = change("POST", "/v1/volumes", AdminJson.write(volume));
        return decode(answer, VolumeLine.class);
    }

    /**
     * Destroys a volume with all its data.
     *
     * @param force also when a client holds it for writing
     * @throws AdminException with {@link AdminException#IN_USE} when one does, and not {@code
     *     force}
     */
    public void delete(String name, boolean force) throws AdminException {
        var _ = change("DELETE", volumePath(name) + (force ? "?force=true" : ""), "");
    }

    /** How the scrub of one node's replicas is; asks only the first node. */
    public ScrubDocument scrub() throws AdminException {
        Endpoint node = nodes.getFirst();
        try {
            return decode(send(node, "GET", SCRUB, "", ANSWER_TIMEOUT), ScrubDocument.class);
        } catch (IOException e) {
            throw unreachable(List.of(node + " (" + reason(e) + ")"));
        }
    }

    /**
     * Starts a scrub of the first node's replicas, or joins the one that runs there.
     *
     * @param volume only its replicas; null: all
     */
    public ScrubDocument startScrub(@Nullable String volume) throws AdminException {
        Endpoint node = nodes.getFirst();
        String path = volume == null ? SCRUB : SCRUB + "?volume=" + encoded(volume);
        try {
            return decode(send(node, "POST", path, "", ANSWER_TIMEOUT), ScrubDocument.class);
        } catch (IOException e) {
            throw unreachable(List.of(node + " (" + reason(e) + ")"));
        }
    }

    /** What the replicas of one node hold; asks only the first node. */
    public VolumeHash hash(String volume) throws AdminException {
        Endpoint node = nodes.getFirst();
        String path = volumePath(volume) + "/hash";
        try {
            return decode(send(node, "GET", path, "", HASH_TIMEOUT), VolumeHash.class);
        } catch (IOException e) {
            throw unreachable(List.of(node + " (" + reason(e) + ")"));
        }
    }

    private <T> T get(String path, Class<T> type) throws AdminException {
        List<String> failures = new ArrayList<>();
        Optional<AdminException> notYet = Optional.empty();
        for (Endpoint node : List.copyOf(nodes)) {
            try {
                Answer answer = send(node, "GET", path, "", ANSWER_TIMEOUT);
                prefer(node);
                return decode(answer, type);
            } catch (IOException e) {
                failures.add(node + " (" + reason(e) + ")");
            } catch (AdminException e) {
                if (e.status() != UNAVAILABLE) {
                    throw e;
                }
                // It is starting or has no majority; another node may know more.
                notYet = notYet.or(() -> Optional.of(e));
            }
        }
        throw notYet.orElse(unreachable(failures));
    }

    private Answer change(String method, String path, String body) throws AdminException {
        List<String> failures = new ArrayList<>();
        for (Endpoint node : List.copyOf(nodes)) {
            try {
                Answer answer = send(node, method, path, body, CHANGE_TIMEOUT);
                prefer(node);
                return answer;
            } catch (IOException e) {
                if (!neverSent(e)) {
                    throw new AdminException(
                            AdminException.UNREACHABLE,
                            new AdminError(
                                    "node "
                                            + node
                                            + " broke off ("
                                            + reason(e)
                                            + "): it is not known whether the change took effect",
                                    "look with: holdfast volume list"));
                }
                failures.add(node + " (" + reason(e) + ")");
            }
        }
        throw unreachable(failures);
    }

    private static String volumePath(String name) {
        return "/v1/volumes/" + encoded(name);
    }

    private static String encoded(String name) {
        return URLEncoder.encode(name, StandardCharsets.UTF_8).replace("+", "%20");
    }

    private void prefer(Endpoint node) {
        nodes.remove(node);
        nodes.addFirst(node);
    }

    private Answer send(Endpoint node, String method, String path, String body, Duration timeout)
            throws IOException, AdminException {
        HttpRequest request =
                HttpRequest.newBuilder(URI.create("http://" + node + path))
                        .timeout(timeout)
                        .header("Content-Type", "application/json")
                        .method(
                                method,
                                body.isEmpty()
                                        ? BodyPublishers.noBody()
                                        : BodyPublishers.ofString(body))
                        .build();
        HttpResponse<String> response;
        try {
            response = http.send(request, BodyHandlers.ofString());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted", e);
        } catch (IOException e) {
            if (!neverSent(e) && NbdPort.answersAt(node)) {
                throw new NbdPort.FoundException(e);
            }
            throw e;
        }
        if (response.statusCode() / 100 != 2) {
            throw new AdminException(response.statusCode(), error(node, response));
        }
        return new Answer(node, response.body());
    }

    private static AdminError error(Endpoint node, HttpResponse<String> response) {
        try {
            return AdminJson.read(response.body(), AdminError.class);
        } catch (IllegalArgumentException _) {
            // Something else listens there, or a proxy is in between.
            return new AdminError(
                    node + " answered with HTTP status " + response.statusCode(),
                    "is this the admin address of a Holdfast node?");
        }
    }

    private static <T> T decode(Answer answer, Class<T> type) throws AdminException {
        try {
            return AdminJson.read(answer.body(), type);
        } catch (IllegalArgumentException e) {
            throw new AdminException(
                    AdminException.UNREACHABLE,
                    new AdminError(
                            answer.node()
                                    + " gave an answer that cannot be read: "
                                    + e.getMessage(),
                            "is this the admin address of a Holdfast node?"));
        }
    }

    /** Whether the request cannot have reached the node. */
    private static boolean neverSent(IOException e) {
        return e instanceof NbdPort.FoundException
                || e instanceof ConnectException
                || e instanceof HttpConnectTimeoutException
                || e instanceof UnknownHostException;
    }

    private static String reason(IOException e) {
        return switch (e) {
            case HttpConnectTimeoutException _ ->
                    "no connection within " + CONNECT_TIMEOUT.toSeconds() + " s";
            case ConnectException refused
                    when refused.getCause() instanceof UnresolvedAddressException ->
                    "unknown host";
            case ConnectException _ -> "connection refused";
            case HttpTimeoutException _ -> "no answer in time";
            default -> e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage();
        };
    }

    private static AdminException unreachable(List<String> failures) {
        return new AdminException(
                AdminException.UNREACHABLE,
                new AdminError(
                        "no node answers: " + String.join(", ", failures),
                        "start the cluster with: holdfast up"
                                + " (or name its admin addresses with --admin)"));
    }

    @Override
    public void close() {
        http.close();
    }

    private record Answer(Endpoint node, String body) {}
}
