package io.holdfast.client.nbd;

import io.holdfast.client.BlockDevice;
import io.holdfast.client.ClientIdentity;
import io.holdfast.client.Exports;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.Consumer;

/** Exports in memory; names that start with "secret" are shown to nobody. */
final class MemoryExports implements Exports {
    final TreeMap<String, MemoryDevice> devices = new TreeMap<>();
    private final List<Runnable> waiting = new ArrayList<>();
    private boolean holding;

    MemoryDevice add(String name, int sizeBytes, boolean readOnly) {
        var device = new MemoryDevice(sizeBytes, readOnly);
        devices.put(name, device);
        return device;
    }

    MemoryDevice device(String name) {
        return Objects.requireNonNull(devices.get(name), name);
    }

    /** From now on opening waits for {@link #release}. */
    void hold() {
        holding = true;
    }

    void release() {
        holding = false;
        List.copyOf(waiting).forEach(Runnable::run);
        waiting.clear();
    }

    @Override
    public List<String> names(ClientIdentity client) {
        return devices.keySet().stream().filter(name -> !name.startsWith("secret")).toList();
    }

    @Override
    public void describe(String name, ClientIdentity client, Consumer<Optional<Description>> done) {
        run(() ->
                done.accept(
                        Optional.ofNullable(devices.get(name))
                                .map(d -> new Description(name, d.sizeBytes(), d.readOnly()))));
    }

    @Override
    public void open(String name, ClientIdentity client, Consumer<Optional<BlockDevice>> done) {
        run(() -> {
            MemoryDevice device = devices.get(name);
            if (device != null) {
                device.opens++;
            }
            done.accept(Optional.ofNullable(device));
        });
    }

    private void run(Runnable answer) {
        if (holding) {
            waiting.add(answer);
        } else {
            answer.run();
        }
    }
}
