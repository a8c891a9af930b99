package io.holdfast.config;

import java.util.List;

/**
 * What all nodes of a cluster agree on; enough to find it. Made by {@link ConfigLoader}.
 *
 * @param name nodes of another cluster are refused
 * @param nodes sorted by number
 */
public record ClusterConfig(String name, List<NodeConfig.Member> nodes) {
    public ClusterConfig {
        nodes = List.copyOf(nodes);
    }
}
