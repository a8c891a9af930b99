package io.holdfast.config;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Everything one node is told. Made by {@link ConfigLoader}; all values are valid.
 *
 * @param clusterName nodes of another cluster are refused
 * @param self this node's entry in {@code nodes}
 * @param nodes all nodes of the cluster, this one among them, sorted by number
 * @param dataDirectory journal, map and catalogue live below it
 * @param clusterKeyFile file of mode 0600 with the cluster key (32 bytes as 64 hex digits)
 */
public record NodeConfig(
        String clusterName,
        Member self,
        List<Member> nodes,
        Path dataDirectory,
        Path clusterKeyFile,
        Scrub scrub,
        CatchUp catchUp,
        Limits limits) {
    public NodeConfig {
        nodes = List.copyOf(nodes);
    }

    /**
     * One node of the cluster. Addresses are {@code host:port}; a node binds its own and dials the
     * others'.
     *
     * @param number from 1, unique, never reused; what messages and the catalogue say
     * @param id what people say, for instance {@code node1}
     * @param nbd where NBD clients connect
     * @param http admin
     * @param peer data traffic between nodes
     * @param coordination Atomix
     */
    public record Member(
            int number,
            String id,
            Endpoint nbd,
            Endpoint http,
            Endpoint peer,
            Endpoint coordination) {}

    /** Host (name, IPv4 or IPv6 without brackets) and port, 1 to 65535. */
    public record Endpoint(String host, int port) {
        private static final Pattern FORM =
                Pattern.compile("(?:\\[([0-9A-Fa-f:.]+)]|([^\\s:/\\[\\]]+)):([0-9]{1,5})");

        /** Reads {@code host:port} or {@code [v6]:port}; empty when it is neither. */
        public static Optional<Endpoint> parse(String text) {
            Matcher form = FORM.matcher(text);
            if (!form.matches()) {
                return Optional.empty();
            }
            int port = Integer.parseInt(form.group(3));
            if (port < 1 || port > 65535) {
                return Optional.empty();
            }
            String v6 = form.group(1);
            return Optional.of(new Endpoint(v6 != null ? v6 : form.group(2), port));
        }

        @Override
        public String toString() {
            return (host.contains(":") ? "[" + host + "]" : host) + ":" + port;
        }
    }

    /**
     * How stored data is verified.
     *
     * @param bytesPerSecond read at most
     * @param every time between two scrubs of the same data; zero: only when asked
     */
    public record Scrub(long bytesPerSecond, Duration every) {
        /** As where the configuration says nothing. */
        public static final Scrub DEFAULT = new Scrub(32L << 20, Duration.ofDays(7));
    }

    /**
     * How fast a node brings followers forward that were away, all of them together.
     *
     * @param bytesPerSecond at most
     * @param bytesPerSecondWithClients at most while clients use the node's replicas
     */
    public record CatchUp(long bytesPerSecond, long bytesPerSecondWithClients) {
        /** As where the configuration says nothing. */
        public static final CatchUp DEFAULT = new CatchUp(256L << 20, 16L << 20);
    }

    /**
     * Bounds of memory and disk.
     *
     * @param segmentBytes size of a journal segment
     * @param checkpointBytes journal written between two checkpoints of the map
     * @param cacheBytes extent map pages held in memory
     * @param nbdConnections most NBD connections at once
     * @param inFlightBytes most bytes of requests under way per NBD connection
     * @param storeBytes what all journal segments together may take; 0: what the file system holds
     */
    public record Limits(
            long segmentBytes,
            long checkpointBytes,
            long cacheBytes,
            int nbdConnections,
            long inFlightBytes,
            long storeBytes) {}
}
