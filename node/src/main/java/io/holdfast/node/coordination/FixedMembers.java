package io.holdfast.node.coordination;

import io.atomix.cluster.ClusterMembershipEventListener;
import io.atomix.cluster.ClusterMembershipService;
import io.atomix.cluster.Member;
import io.atomix.cluster.MemberId;
import io.atomix.utils.net.Address;
import io.holdfast.config.NodeConfig;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * The members as configured: where Raft's messages go. Atomix would ask its gossip, which is not
 * authenticated, forgets a node that was silent for a while, and fails for one never seen.
 *
 * <p>A node is left out until its host name resolves: Atomix dials the wildcard address in its
 * place, which is this very node. Thread-safe.
 */
final class FixedMembers implements ClusterMembershipService {
    private final NodeConfig config;
    private final ClusterMembershipService gossip;
    private final Map<MemberId, Member> resolved = new ConcurrentHashMap<>();

    FixedMembers(NodeConfig config, ClusterMembershipService gossip) {
        this.config = config;
        this.gossip = gossip;
    }

    /** By number, which never changes; Raft's log remembers its members for ever. */
    static MemberId id(NodeConfig.Member node) {
        return MemberId.from("n" + node.number());
    }

    /** Looks up hosts not yet known; may block for as long as name servers take. */
    void resolve() {
        for (NodeConfig.Member node : config.nodes()) {
            if (!resolved.containsKey(id(node))) {
                NodeConfig.Endpoint endpoint = node.coordination();
                try {
                    InetAddress address = InetAddress.getByName(endpoint.host());
                    resolved.put(
                            id(node),
                            Member.member(
                                    id(node),
                                    new Address(endpoint.host(), endpoint.port(), address)));
                } catch (UnknownHostException e) {
                    // Not up yet, perhaps: the next call tries again.
                }
            }
        }
    }

    /** Configured nodes whose host is not known so far, by id. */
    Map<String, String> unresolved() {
        Map<String, String> hosts = new LinkedHashMap<>();
        for (NodeConfig.Member node : config.nodes()) {
            if (!resolved.containsKey(id(node))) {
                hosts.put(node.id(), node.coordination().host());
            }
        }
        return hosts;
    }

    @Override
    public Member getLocalMember() {
        return gossip.getLocalMember();
    }

    @Override
    public Set<Member> getMembers() {
        return config.nodes().stream()
                .map(node -> resolved.get(id(node)))
                .filter(member -> member != null)
                .collect(Collectors.toUnmodifiableSet());
    }

    @Override
    public @Nullable Member getMember(MemberId id) {
        return resolved.get(id);
    }

    /** Gossip's events: they make followers elect sooner when their leader is gone. */
    @Override
    public void addListener(ClusterMembershipEventListener listener) {
        gossip.addListener(listener);
    }

    @Override
    public void removeListener(ClusterMembershipEventListener listener) {
        gossip.removeListener(listener);
    }
}
