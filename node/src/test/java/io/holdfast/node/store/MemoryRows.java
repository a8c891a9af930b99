package io.holdfast.node.store;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** Rows in memory, for tests that open thousands of stores. */
final class MemoryRows implements Rows {
    private final Map<Family, TreeMap<byte[], byte[]>> families = new EnumMap<>(Family.class);

    MemoryRows() {
        for (Family family : Family.values()) {
            families.put(family, new TreeMap<>(Arrays::compareUnsigned));
        }
    }

    /** The same rows, which then change without these. */
    synchronized MemoryRows copy() {
        MemoryRows copy = new MemoryRows();
        families.forEach((family, rows) -> copy.rows(family).putAll(rows));
        return copy;
    }

    private TreeMap<byte[], byte[]> rows(Family family) {
        return families.getOrDefault(family, new TreeMap<>());
    }

    @Override
    public synchronized byte @Nullable [] get(Family family, byte[] key) {
        return rows(family).get(key);
    }

    @Override
    public void scan(Family family, byte @Nullable [] from, byte @Nullable [] to, Visitor visitor) {
        List<Map.Entry<byte[], byte[]>> found;
        synchronized (this) {
            var rows = from == null ? rows(family) : rows(family).tailMap(from, true);
            found = new ArrayList<>((to == null ? rows : rows.headMap(to, false)).entrySet());
        }
        for (var each : found) {
            if (!visitor.row(each.getKey(), each.getValue())) {
                return;
            }
        }
    }

    @Override
    public Batch batch() {
        List<Runnable> changes = new ArrayList<>();
        return new Batch() {
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
                byte[] first = from.clone();
                byte[] end = to.clone();
                changes.add(() -> rows(family).subMap(first, true, end, false).clear());
            }

            @Override
            public void commit() throws IOException {
                synchronized (MemoryRows.this) {
                    changes.forEach(Runnable::run);
                }
            }

            @Override
            public void close() {}
        };
    }

    @Override
    public synchronized long estimate(Family family) {
        return rows(family).size();
    }

    @Override
    public void close() {}
}
