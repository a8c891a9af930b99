package io.holdfast.node.admin;

import io.holdfast.client.admin.AdminJson;
import io.holdfast.client.admin.PlainHttp;
import io.holdfast.client.admin.StatusDocument;
import io.holdfast.client.admin.StatusDocument.NodeLine;
import io.holdfast.client.admin.StatusDocument.NodeState;
import io.holdfast.client.admin.StatusDocument.ReplicaLine;
import io.holdfast.client.admin.StatusDocument.ReplicaRole;
import io.holdfast.client.admin.StatusDocument.ReplicaState;
import io.holdfast.client.admin.StatusDocument.ShardLine;
import io.holdfast.client.admin.StatusDocument.VolumeLine;
import io.holdfast.config.NodeConfig;
import io.holdfast.config.NodeConfig.Member;
import io.holdfast.node.port.Coordinator;
import io.holdfast.proto.catalogue.Volume;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.jspecify.annotations.Nullable;

/**
 * The whole cluster's state, gathered from all nodes at the same time. A node that does not answer
 * within {@link #ANSWER_TIMEOUT} shows as suspect or dead and its replicas as offline. Any thread.
 */
final class ClusterStatus implements AutoCloseable {
    /** How long the other nodes are waited for. */
    static final Duration ANSWER_TIMEOUT = Duration.ofSeconds(1);

    private static final int OK = 200;

    private final NodeConfig config;
    private final Coordinator coordinator;
    private final LocalStatus local;
    private final HttpClient http = PlainHttp.client(ANSWER_TIMEOUT);

    ClusterStatus(NodeConfig config, Coordinator coordinator, LocalStatus local) {
        this.config = config;
        this.coordinator = coordinator;
        this.local = local;
    }

    /**
     * What one node said.
     *
     * @param state as it follows from its answer
     * @param document null: it gave none
     */
    record Answer(NodeState state, @Nullable StatusDocument document) {
        static Answer of(StatusDocument document) {
            return new Answer(
                    document.nodes().stream()
                            .findFirst()
                            .map(NodeLine::state)
                            .orElse(NodeState.ALIVE),
                    document);
        }
    }

    /** What the nodes say, by number. */
    Map<Integer, Answer> gather() {
        Map<Integer, CompletableFuture<Answer>> asked = new TreeMap<>();
        for (Member member : config.nodes()) {
            if (member.number() != config.self().number()) {
                asked.put(member.number(), ask(member));
            }
        }
        Map<Integer, Answer> answers = new TreeMap<>();
        answers.put(config.self().number(), self());
        asked.forEach((node, answer) -> answers.put(node, answer.join()));
        return answers;
    }

    private Answer self() {
        try {
            return Answer.of(local.document());
        } catch (AdminRefusal stuck) {
            return new Answer(NodeState.SUSPECT, null);
        }
    }

    private CompletableFuture<Answer> ask(Member member) {
        HttpRequest request =
                HttpRequest.newBuilder(URI.create("http://" + member.http() + "/v1/local"))
                        .timeout(ANSWER_TIMEOUT)
                        .build();
        return http.sendAsync(request, BodyHandlers.ofString())
                .thenApply(ClusterStatus::read)
                .exceptionally(failure -> new Answer(stateOf(member, failure), null));
    }

    private static Answer read(HttpResponse<String> response) {
        if (response.statusCode() != OK) {
            return new Answer(NodeState.SUSPECT, null);
        }
        return Answer.of(AdminJson.read(response.body(), StatusDocument.class));
    }

    /** A refused connection means that there is no process; anything else may be a slow one. */
    private NodeState stateOf(Member member, Throwable failure) {
        Throwable cause = failure;
        while (cause instanceof CompletionException && cause.getCause() != null) {
            cause = cause.getCause();
        }
        boolean dead =
                cause instanceof ConnectException
                        || coordinator.members().get(member.number()) == Coordinator.NodeState.DEAD;
        return dead ? NodeState.DEAD : NodeState.SUSPECT;
    }

    /** The document of {@code /v1/status}. */
    StatusDocument document() {
        Map<Integer, Answer> answers = gather();
        List<NodeLine> nodes = new ArrayList<>();
        for (Member member : config.nodes()) {
            nodes.add(nodeLine(member, answers.get(member.number())));
        }
        List<VolumeLine> volumes =
                coordinator.catalogue().volumes().stream()
                        .map(volume -> merge(volume, answers))
                        .toList();
        return new StatusDocument(nodes, volumes);
    }

    private static NodeLine nodeLine(Member member, @Nullable Answer answer) {
        if (answer == null) {
            return LocalStatus.silent(member, NodeState.SUSPECT);
        }
        if (answer.document() == null || answer.document().nodes().isEmpty()) {
            return LocalStatus.silent(member, answer.state());
        }
        return answer.document().nodes().getFirst();
    }

    /** One volume's line from what the nodes said. */
    VolumeLine merge(Volume volume, Map<Integer, Answer> answers) {
        String holder = null;
        List<ShardLine> shards = new ArrayList<>();
        for (Volume.Shard shard : volume.shards()) {
            Map<Integer, ShardLine> said = new TreeMap<>();
            for (int node : shard.replicas()) {
                Answer answer = answers.get(node);
                if (answer != null && answer.document() != null) {
                    shardLine(answer.document(), volume.name(), shard.index())
                            .ifPresent(line -> said.put(node, line));
                }
            }
            Integer leader = leader(said);
            if (shard.index() == 0 && leader != null) {
                holder = holder(answers.get(leader), volume.name());
            }
            shards.add(merge(shard, said, leader));
        }
        return LocalStatus.volumeLine(volume, holder, shards);
    }

    private ShardLine merge(
            Volume.Shard shard, Map<Integer, ShardLine> said, @Nullable Integer leader) {
        ShardLine leaders = leader == null ? null : said.get(leader);
        long epoch = leaders == null ? shard.epoch() : leaders.epoch();
        List<ReplicaLine> replicas = new ArrayList<>();
        for (int node : shard.replicas().stream().sorted().toList()) {
            String id = local.idOf(node);
            ReplicaLine own = replicaLine(said.get(node), id);
            ReplicaLine seen = replicaLine(leaders, id);
            if (own != null && own.state() != ReplicaState.OFFLINE) {
                ReplicaRole role =
                        own.role() == ReplicaRole.LEADER && (leader == null || leader != node)
                                ? ReplicaRole.FOLLOWER
                                : own.role();
                replicas.add(
                        new ReplicaLine(
                                id,
                                role,
                                seen == null ? own.state() : seen.state(),
                                own.applied(),
                                seen == null ? null : seen.catchUp()));
            } else {
                // What the leader last heard of it may be behind, or ahead after a power loss.
                replicas.add(
                        new ReplicaLine(
                                id, ReplicaRole.FOLLOWER, ReplicaState.OFFLINE, null, null));
            }
        }
        return new ShardLine(
                shard.index(),
                leader == null ? null : local.idOf(leader),
                epoch,
                leaders == null ? null : leaders.commit(),
                replicas);
    }

    /** Two nodes may both believe that they lead; the one with the higher epoch does. */
    private @Nullable Integer leader(Map<Integer, ShardLine> said) {
        Integer leader = null;
        long epoch = -1;
        for (Map.Entry<Integer, ShardLine> one : said.entrySet()) {
            ReplicaLine own = replicaLine(one.getValue(), local.idOf(one.getKey()));
            if (own != null && own.role() == ReplicaRole.LEADER && one.getValue().epoch() > epoch) {
                leader = one.getKey();
                epoch = one.getValue().epoch();
            }
        }
        return leader;
    }

    static Optional<ShardLine> shardLine(StatusDocument document, String volume, int index) {
        return document.volumes().stream()
                .filter(line -> line.name().equals(volume))
                .flatMap(line -> line.shards().stream())
                .filter(line -> line.index() == index)
                .findFirst();
    }

    private static @Nullable ReplicaLine replicaLine(@Nullable ShardLine shard, String node) {
        if (shard == null) {
            return null;
        }
        return shard.replicas().stream()
                .filter(line -> line.node().equals(node))
                .findFirst()
                .orElse(null);
    }

    private static @Nullable String holder(@Nullable Answer answer, String volume) {
        if (answer == null || answer.document() == null) {
            return null;
        }
        return answer.document().volumes().stream()
                .filter(line -> line.name().equals(volume))
                .map(VolumeLine::holder)
                .filter(Objects::nonNull)
                .findFirst()
                .orElse(null);
    }

    @Override
    public void close() {
        http.shutdownNow();
    }
}
