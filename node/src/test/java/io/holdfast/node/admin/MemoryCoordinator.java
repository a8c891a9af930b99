package io.holdfast.node.admin;

import io.holdfast.node.port.Coordinator;
import io.holdfast.proto.catalogue.Catalogue;
import io.holdfast.proto.catalogue.Change;
import io.holdfast.proto.catalogue.Volume;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;

/** A catalogue without a cluster: every change takes effect at once. */
final class MemoryCoordinator implements Coordinator {
    private final List<Consumer<Catalogue>> watchers = new ArrayList<>();
    private volatile Catalogue catalogue = Catalogue.EMPTY;

    @Override
    public CompletableFuture<Void> start() {
        return CompletableFuture.completedFuture(null);
    }

    @Override
    public Catalogue catalogue() {
        return catalogue;
    }

    @Override
    public synchronized void watch(Consumer<Catalogue> listener) {
        watchers.add(listener);
        listener.accept(catalogue);
    }

    @Override
    public synchronized CompletableFuture<Change.Result> change(Change change) {
        Change.Result result =
                switch (change) {
                    case Change.CreateVolume create -> create(create.volume());
                    case Change.MarkReady ready ->
                            replace(ready.volume(), v -> v.with(v.number(), Volume.State.READY));
                    case Change.DeleteVolume delete -> delete(delete.volume());
                    case Change.ClaimLeader claim ->
                            replace(claim.volume(), v -> v.with(claimed(v.shards(), claim)));
                };
        return CompletableFuture.completedFuture(result);
    }

    private Change.Result create(Volume wanted) {
        if (catalogue.volume(wanted.name()).isPresent()) {
            return new Change.Result(false, catalogue.version(), 0, "the name is taken");
        }
        int number = catalogue.nextVolume();
        List<Volume> volumes = new ArrayList<>(catalogue.volumes());
        volumes.add(
                new Volume(
                        number,
                        wanted.name(),
                        wanted.sizeBytes(),
                        wanted.stripeBytes(),
                        wanted.durability(),
                        wanted.attach(),
                        wanted.reads(),
                        wanted.timeoutSeconds(),
                        Volume.State.CREATING,
                        wanted.layer(),
                        wanted.keyId(),
                        wanted.wrappedKey(),
                        wanted.shards()));
        return publish(number + 1, volumes, number);
    }

    private Change.Result delete(int number) {
        List<Volume> volumes = new ArrayList<>(catalogue.volumes());
        volumes.removeIf(v -> v.number() == number);
        return publish(catalogue.nextVolume(), volumes, 0);
    }

    private Change.Result replace(int number, UnaryOperator<Volume> change) {
        List<Volume> volumes = new ArrayList<>(catalogue.volumes());
        volumes.replaceAll(v -> v.number() == number ? change.apply(v) : v);
        return publish(catalogue.nextVolume(), volumes, 0);
    }

    private static List<Volume.Shard> claimed(List<Volume.Shard> shards, Change.ClaimLeader claim) {
        return shards.stream()
                .map(s ->
                        s.index() == claim.shard()
                                ? new Volume.Shard(
                                        s.index(), s.replicas(), claim.node(), claim.epoch())
                                : s)
                .toList();
    }

    private Change.Result publish(int nextVolume, List<Volume> volumes, int created) {
        volumes.sort(Comparator.comparing(Volume::name));
        catalogue = new Catalogue(catalogue.version() + 1, nextVolume, volumes);
        watchers.forEach(watcher -> watcher.accept(catalogue));
        return new Change.Result(true, catalogue.version(), created, "");
    }

    @Override
    public Map<Integer, NodeState> members() {
        return Map.of(1, NodeState.ALIVE);
    }

    @Override
    public void close() {}
}
