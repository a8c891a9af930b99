package io.holdfast.simulation;

import io.holdfast.node.store.Rows;
import io.holdfast.node.store.StoreInside;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * What one node's RocksDB keeps. A batch that was committed lasts, whatever happens, and is there
 * as a whole; of one that was not, nothing is left: the store has no log of RocksDB's, so what is
 * not flushed dies with the process. Outlives processes, like {@link SimDisk}.
 */
final class SimRows implements Rows {
    private final SimDisk disk;
    private final PlantedBug bug;
    private final Counters counters;
    private final Map<Family, TreeMap<byte[], byte[]>> families = new EnumMap<>(Family.class);

    SimRows(SimDisk disk, PlantedBug bug, Counters counters) {
        this.disk = disk;
        this.bug = bug;
        this.counters = counters;
        wipe();
    }

    /** An empty map in the place of this one. */
    void wipe() {
        for (Family each : Family.values()) {
            families.put(each, new TreeMap<>(Arrays::compareUnsigned));
        }
    }

    private NavigableMap<byte[], byte[]> rows(Family family) {
        NavigableMap<byte[], byte[]> rows = families.get(family);
        if (rows == null) {
            throw new IllegalArgumentException("no family " + family);
        }
        return rows;
    }

    @Override
    public byte @Nullable [] get(Family family, byte[] key) {
        byte[] value = rows(family).get(key);
        if (value == null) {
            return null;
        }
        return bug == PlantedBug.COVERED_IGNORED && family == Family.META
                ? StoreInside.ignoreCovered(value)
                : value.clone();
    }

    @Override
    public void scan(Family family, byte @Nullable [] from, byte @Nullable [] to, Visitor visitor) {
        NavigableMap<byte[], byte[]> range = rows(family);
        range = from == null ? range : range.tailMap(from, true);
        range = to == null ? range : range.headMap(to, false);
        for (var row : range.entrySet()) {
            if (!visitor.row(row.getKey().clone(), row.getValue().clone())) {
                break;
            }
        }
    }

    @Override
    public Batch batch() {
        return new Changes();
    }

    private final class Changes implements Batch {
        private final List<Runnable> changes = new ArrayList<>();

        @Override
        public void put(Family family, byte[] key, byte[] value) {
            byte[] ownKey = key.clone();
            byte[] ownValue = value.clone();
            changes.add(() -> rows(family).put(ownKey, ownValue));
        }

        @Override
        public void delete(Family family, byte[] key) {
            byte[] ownKey = key.clone();
            changes.add(() -> rows(family).remove(ownKey));
        }

        @Override
        public void deleteRange(Family family, byte[] from, byte[] to) {
            byte[] ownFrom = from.clone();
            byte[] ownTo = to.clone();
            changes.add(() -> rows(family).subMap(ownFrom, true, ownTo, false).clear());
        }

        @Override
        public void commit() throws IOException {
            disk.failPerhaps("map");
            changes.forEach(Runnable::run);
            counters.add(Rare.STORE_CHECKPOINT);
        }

        @Override
        public void close() {}
    }

    @Override
    public long estimate(Family family) {
        return rows(family).size();
    }

    @Override
    public void close() {}
}
