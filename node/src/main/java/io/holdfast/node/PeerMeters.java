package io.holdfast.node;

import io.holdfast.node.peer.PeerObserver;
import io.holdfast.proto.peer.PeerMessage;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.MeterRegistry;

/** Counts what happens on the links between nodes. */
final class PeerMeters implements PeerObserver {
    private final Counter connected;
    private final Counter disconnected;
    private final Counter dropped;
    private final Counter sent;
    private final Counter received;
    private final Counter refused;
    private final Counter malformed;

    PeerMeters(MeterRegistry registry) {
        connected = counter(registry, "connected", "Connections that came up");
        disconnected = counter(registry, "disconnected", "Connections that broke");
        dropped = counter(registry, "dropped", "Messages dropped: not connected, or queue full");
        sent = counter(registry, "sent.bytes", "Bytes sent to peers");
        received = counter(registry, "received.bytes", "Bytes received from peers");
        refused = counter(registry, "refused", "Connections refused before they were up");
        malformed = counter(registry, "malformed", "Connections closed for malformed bytes");
    }

    private static Counter counter(MeterRegistry registry, String name, String description) {
        return Counter.builder("holdfast.peer." + name).description(description).register(registry);
    }

    @Override
    public void connected(int peer) {
        connected.increment();
    }

    @Override
    public void disconnected(int peer) {
        disconnected.increment();
    }

    @Override
    public void dropped(int to, PeerMessage message) {
        dropped.increment();
    }

    @Override
    public void sent(int to, long bytes) {
        sent.increment((double) bytes);
    }

    @Override
    public void received(int from, long bytes) {
        received.increment((double) bytes);
    }

    @Override
    public void refused() {
        refused.increment();
    }

    @Override
    public void malformed(int from) {
        malformed.increment();
    }
}
