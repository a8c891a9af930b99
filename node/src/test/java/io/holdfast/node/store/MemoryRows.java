package io.holdfast.node.store;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** Rows in memory, for tests that open thousands of stores. */
final class MemoryRows implements Rows {
    /** By key, each byte a letter: strings compare as unsigned bytes then. */
    private final Map<Family, TreeMap<String, byte[]>> families = new EnumMap<>(Family.class);

    MemoryRows() {
        for (Family family : Family.values()) {
            families.put(family, new TreeMap<>());
        }
    }

    /** The same rows, which then change without these. */
    synchronized MemoryRows copy() {
        MemoryRows copy = new MemoryRows();
        families.forEach((family, rows) -> copy.rows(family).putAll(rows));
        return copy;
    }

    private static String text(byte[] key) {
        return new String(key, StandardCharsets.ISO_8859_1);
    }

    private NavigableMap<String, byte[]> rows(Family family) {
        return families.getOrDefault(family, new TreeMap<>());
    }

    @Override
    public synchronized byte @Nullable [] get(Family family, byte[] key) {
        return rows(family).get(text(key));
    }

    @Override
    public void scan(Family family, byte @Nullable [] from, byte @Nullable [] to, Visitor visitor) {
        List<Map.Entry<String, byte[]>> found;
        synchronized (this) {
            var rows = from == null ? rows(family) : rows(family).tailMap(text(from), true);
            found = new ArrayList<>((to == null ? rows : rows.headMap(text(to), false)).entrySet());
        }
        for (var each : found) {
            if (!visitor.row(
                    each.getKey().getBytes(StandardCharsets.ISO_8859_1), each.getValue())) {
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
                String ownKey = text(key);
                byte[] ownValue = value.clone();
                changes.add(() -> rows(family).put(ownKey, ownValue));
            }

            @Override
            public void delete(Family family, byte[] key) {
                String ownKey = text(key);
                changes.add(() -> rows(family).remove(ownKey));
            }

            @Override
            public void deleteRange(Family family, byte[] from, byte[] to) {
                String first = text(from);
                String end = text(to);
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
