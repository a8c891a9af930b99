package io.holdfast.proto.catalogue;

import java.util.List;
import java.util.Optional;

/**
 * All volumes at one version.
 *
 * @param version rises by one with every change that took effect
 * @param nextVolume number of the next volume; numbers are never given twice
 * @param volumes sorted by name
 */
public record Catalogue(long version, int nextVolume, List<Volume> volumes) {
    /** A new cluster's. */
    public static final Catalogue EMPTY = new Catalogue(0, 1, List.of());

    public Catalogue {
        volumes = List.copyOf(volumes);
    }

    /** The volume with a name. */
    public Optional<Volume> volume(String name) {
        return volumes.stream().filter(v -> v.name().equals(name)).findFirst();
    }

    /** The volume with a number. */
    public Optional<Volume> volume(int number) {
        return volumes.stream().filter(v -> v.number() == number).findFirst();
    }
}
