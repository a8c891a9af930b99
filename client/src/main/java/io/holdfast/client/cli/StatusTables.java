package io.holdfast.client.cli;

import io.holdfast.client.admin.StatusDocument;
import io.holdfast.client.admin.StatusDocument.NodeLine;
import io.holdfast.client.admin.StatusDocument.ReplicaLine;
import io.holdfast.client.admin.StatusDocument.ShardLine;
import io.holdfast.client.admin.StatusDocument.VolumeLine;
import io.holdfast.config.ByteSize;
import java.util.List;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** The status document as people read it. */
final class StatusTables {
    private StatusTables() {}

    static String all(StatusDocument status) {
        String text = nodes(status);
        if (status.volumes().isEmpty()) {
            return text + "\nno volumes\n";
        }
        return text + "\n" + volumes(status.volumes()) + "\n" + replicas(status.volumes());
    }

    private static String nodes(StatusDocument status) {
        Table table = new Table("NODE", "STATE", "NBD", "ADMIN", "USED", "FREE", "PROMISED");
        StringBuilder remarks = new StringBuilder();
        for (NodeLine node : status.nodes()) {
            table.row(
                    node.id(),
                    node.state(),
                    node.nbd(),
                    node.http(),
                    size(node.usedBytes()),
                    size(node.freeBytes()),
                    ByteSize.format(Risks.promised(node, status.volumes())));
            if (node.failure() != null) {
                remarks.append(node.id()).append(": ").append(node.failure()).append('\n');
            }
            Risks.overProvisioned(node, status.volumes())
                    .ifPresent(risk -> remarks.append("warning: ").append(risk).append('\n'));
        }
        return table.text() + remarks;
    }

    static String volumes(List<VolumeLine> volumes) {
        Table table =
                new Table(
                        "VOLUME",
                        "SIZE",
                        "ATTACH",
                        "DURABILITY",
                        "SHARDS",
                        "REPLICAS",
                        "TIMEOUT",
                        "HOLDER");
        for (VolumeLine volume : volumes) {
            table.row(
                    volume.name(),
                    ByteSize.format(volume.sizeBytes()),
                    volume.attach(),
                    volume.durability(),
                    volume.shards().size(),
                    volume.replicas(),
                    volume.timeoutSeconds() + "s",
                    orDash(volume.holder()));
        }
        return table.text();
    }

    static String replicas(List<VolumeLine> volumes) {
        Table table =
                new Table(
                        "VOLUME", "SHARD", "LEADER", "EPOCH", "COMMIT", "REPLICA", "ROLE", "STATE",
                        "APPLIED");
        StringBuilder catchUps = new StringBuilder();
        for (VolumeLine volume : volumes) {
            for (ShardLine shard : volume.shards()) {
                boolean first = true;
                for (ReplicaLine replica : shard.replicas()) {
                    table.row(
                            first ? volume.name() : "",
                            first ? shard.index() : "",
                            first ? orDash(shard.leader()) : "",
                            first ? shard.epoch() : "",
                            first ? orDash(shard.commit()) : "",
                            replica.node(),
                            replica.role(),
                            replica.state(),
                            orDash(replica.applied()));
                    if (replica.catchUp() != null) {
                        catchUps.append(volume.name())
                                .append(" shard ")
                                .append(shard.index())
                                .append(" to ")
                                .append(replica.node())
                                .append(": ")
                                .append(CatchUpText.of(replica.catchUp()))
                                .append('\n');
                    }
                    first = false;
                }
            }
        }
        return table.text() + catchUps;
    }

    /** Ids of the nodes that hold a copy, with commas. */
    static String nodesOf(VolumeLine volume) {
        return volume.shards().stream()
                .flatMap(shard -> shard.replicas().stream())
                .map(ReplicaLine::node)
                .distinct()
                .collect(Collectors.joining(", "));
    }

    private static String size(@Nullable Long bytes) {
        return bytes == null ? "-" : ByteSize.format(bytes);
    }

    private static String orDash(@Nullable Object value) {
        return value == null || value.equals("") ? "-" : value.toString();
    }
}
