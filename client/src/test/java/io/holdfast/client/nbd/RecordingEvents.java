package io.holdfast.client.nbd;

import java.net.SocketAddress;
import java.util.ArrayList;
import java.util.List;

/** Counts what it is told. */
final class RecordingEvents implements NbdEvents {
    int opened;
    int closed;
    int refused;
    final List<String> aborted = new ArrayList<>();
    final List<String> evicted = new ArrayList<>();
    final List<Long> waitedNanos = new ArrayList<>();
    final List<Done> done = new ArrayList<>();

    record Done(String export, Kind kind, long lengthBytes, int error) {}

    @Override
    public void connectionOpened(SocketAddress remote) {
        opened++;
    }

    @Override
    public void connectionClosed(SocketAddress remote) {
        closed++;
    }

    @Override
    public void connectionRefused(SocketAddress remote) {
        refused++;
    }

    @Override
    public void connectionAborted(SocketAddress remote, String reason) {
        aborted.add(reason);
    }

    @Override
    public void connectionEvicted(SocketAddress remote, String export, String reason) {
        evicted.add(export + ": " + reason);
    }

    @Override
    public void payloadWaited(String export, long lengthBytes, long nanos) {
        waitedNanos.add(nanos);
    }

    @Override
    public void requestDone(String export, Kind kind, long lengthBytes, long nanos, int error) {
        done.add(new Done(export, kind, lengthBytes, error));
    }
}
