package io.holdfast.nemesis;

import io.holdfast.integration.Tool;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A network that only a run uses: a namespace for each node, one for the clients, and one with a
 * bridge between them. Nothing of it can be reached from outside, and nothing outside from it.
 *
 * <pre>
 * hfn-PID-1 .. hfn-PID-N   nodes, 10.86.87.1 ...
 * hfn-PID-c                clients, 10.86.87.100
 * hfn-PID-b                the bridge
 * </pre>
 *
 * <p>Messages are lost where they arrive: a rule of iptables drops what comes from an address, so
 * the sender learns nothing.
 */
final class Network implements AutoCloseable {
    private static final String PREFIX = "hfn-";
    private static final Pattern OURS = Pattern.compile("^(hfn-(\\d+)-\\w+)");
    private static final String SUBNET = "10.86.87.";
    private static final String CLIENTS = SUBNET + "100";

    private final String base = PREFIX + ProcessHandle.current().pid() + "-";
    private final int nodes;

    /** Makes the network; what earlier runs that were killed left behind is removed. */
    Network(int nodes) {
        this.nodes = nodes;
        removeLeftovers();
        try {
            String bridge = base + "b";
            Shell.run("ip", "netns", "add", bridge);
            Shell.run("ip", "-n", bridge, "link", "add", "br0", "type", "bridge");
            Shell.run("ip", "-n", bridge, "link", "set", "br0", "up");
            for (int node = 1; node <= nodes; node++) {
                join(namespace(node), "n" + node, address(node));
            }
            join(clients(), "c", CLIENTS);
        } catch (RuntimeException e) {
            close();
            throw e;
        }
    }

    private void join(String namespace, String port, String address) {
        String bridge = base + "b";
        Shell.run("ip", "netns", "add", namespace);
        Shell.run("ip", "-n", namespace, "link", "set", "lo", "up");
        Shell.run(
                "ip", "-n", bridge, "link", "add", port, "type", "veth", "peer", "name", "eth0",
                "netns", namespace);
        Shell.run("ip", "-n", bridge, "link", "set", port, "master", "br0", "up");
        Shell.run("ip", "-n", namespace, "addr", "add", address + "/24", "dev", "eth0");
        Shell.run("ip", "-n", namespace, "link", "set", "eth0", "up");
    }

    /** Why there can be no such network here; empty: there can. */
    static String missing() {
        if (!Tool.isRoot()) {
            return "it needs root";
        }
        if (!Shell.tries("ip", "-V")) {
            return "it needs the command ip (Debian package iproute2)";
        }
        String probe = PREFIX + ProcessHandle.current().pid() + "-p";
        try {
            if (!Shell.tries("ip", "netns", "add", probe)) {
                return "this process may not make network namespaces";
            }
            if (!Shell.tries(
                    "nsenter", "--net=/run/netns/" + probe, "iptables", "-w", "-L", "INPUT")) {
                return "it needs iptables (Debian package iptables)";
            }
            return "";
        } finally {
            Shell.tries("ip", "netns", "delete", probe);
        }
    }

    String namespace(int node) {
        return base + node;
    }

    /**
     * For nsenter, which becomes the command. ({@code ip netns exec} would give it mounts of its
     * own as well: copies that keep loop devices in use.)
     */
    String netOption(int node) {
        return "--net=/run/netns/" + namespace(node);
    }

    String clients() {
        return base + "c";
    }

    static String address(int node) {
        return SUBNET + node;
    }

    /** From now on nothing that one node sends reaches another. */
    void cut(int from, int to) {
        drop(to, address(from));
    }

    /** From now on nothing of the clients reaches a node. */
    void cutClients(int node) {
        drop(node, CLIENTS);
    }

    private void drop(int at, String source) {
        iptables(at, "-I", "INPUT", "-s", source, "-j", "DROP");
    }

    /** Everything reaches a node again. */
    void heal(int node) {
        iptables(node, "-F", "INPUT");
    }

    private void iptables(int node, String... rule) {
        Shell.run(Shell.words(List.of("nsenter", netOption(node), "iptables", "-w"), rule));
    }

    /** A run that was killed could not clean up; its process id is in the names. */
    private static void removeLeftovers() {
        Shell.run("ip", "netns", "list")
                .lines()
                .forEach(line -> {
                    Matcher name = OURS.matcher(line);
                    if (name.find() && ProcessHandle.of(Long.parseLong(name.group(2))).isEmpty()) {
                        remove(name.group(1));
                    }
                });
    }

    private static void remove(String namespace) {
        Shell.run("ip", "netns", "pids", namespace)
                .lines()
                .forEach(pid -> Shell.tries("kill", "-KILL", pid.strip()));
        Shell.tries("ip", "netns", "delete", namespace);
    }

    @Override
    public void close() {
        List<String> all = new ArrayList<>();
        for (int node = 1; node <= nodes; node++) {
            all.add(namespace(node));
        }
        all.add(clients());
        all.add(base + "b");
        all.forEach(name -> Shell.tries("ip", "netns", "delete", name));
    }
}
