package io.holdfast.client.cli;

import io.holdfast.client.admin.StatusDocument;
import io.holdfast.client.admin.StatusDocument.NodeLine;
import io.holdfast.client.admin.StatusDocument.ShardLine;
import io.holdfast.client.admin.StatusDocument.VolumeLine;
import io.holdfast.config.ByteSize;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** What the maker of a volume should know, though nothing forbids it. */
final class Risks {
    private Risks() {}

    /** A sentence each, for people. */
    static List<String> of(VolumeLine volume, StatusDocument status) {
        List<String> risks = new ArrayList<>();
        if (volume.replicas() == 1 && status.nodes().size() > 1) {
            risks.add(
                    "volume %s has one replica only, on %s: if a node of it is lost, so is its data"
                            .formatted(volume.name(), StatusTables.nodesOf(volume)));
        }
        for (NodeLine node : status.nodes()) {
            long share = share(volume, node.id());
            if (node.freeBytes() != null && share > node.freeBytes()) {
                risks.add(
                        "volume %s is thin: its %s on %s are larger than what is free there (%s)"
                                .formatted(
                                        volume.name(),
                                        ByteSize.format(share),
                                        node.id(),
                                        ByteSize.format(node.freeBytes())));
            } else if (share > 0) {
                overProvisioned(node, status.volumes()).ifPresent(risks::add);
            }
        }
        return risks;
    }

    /** Says so if the volumes on a node may grow to more than its disk has room for. */
    static Optional<String> overProvisioned(NodeLine node, List<VolumeLine> volumes) {
        if (node.usedBytes() == null || node.freeBytes() == null) {
            return Optional.empty();
        }
        long room = node.usedBytes() + node.freeBytes();
        long promised = promised(node, volumes);
        return promised <= room
                ? Optional.empty()
                : Optional.of(
                        "volumes may grow to %s on %s, which has room for %s"
                                .formatted(
                                        ByteSize.format(promised),
                                        node.id(),
                                        ByteSize.format(room)));
    }

    /** Bytes that a node keeps once all of its volumes are written. */
    static long promised(NodeLine node, List<VolumeLine> volumes) {
        return volumes.stream().mapToLong(volume -> share(volume, node.id())).sum();
    }

    /** Bytes of the volume that a node keeps once all of it is written; shards are equal parts. */
    private static long share(VolumeLine volume, String node) {
        int here = 0;
        for (ShardLine shard : volume.shards()) {
            if (shard.replicas().stream().anyMatch(replica -> replica.node().equals(node))) {
                here++;
            }
        }
        return volume.sizeBytes() / volume.shards().size() * here;
    }
}
