package io.holdfast.node.store;

import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What {@link OfflineStore#verify} found.
 *
 * @param store its id; null: it could not be opened, and nothing was read
 * @param sound whether everything is as it was written
 * @param records valid ones
 * @param bytes of all segment files
 * @param extents rows of the map that were checked against the journal
 * @param blocks of these extents, those of zeroes not counted
 * @param problems how many there are
 * @param listed the first of them
 * @param notes what is not as it should be, but is no damage
 */
public record StoreCheck(
        String directory,
        @Nullable String store,
        boolean sound,
        int segments,
        long records,
        long bytes,
        int shards,
        long extents,
        long blocks,
        long problems,
        List<StoreProblem> listed,
        List<String> notes) {

    /**
     * Of a store that cannot even be opened, because its map is damaged or something is missing.
     */
    public static StoreCheck notOpened(Path directory, StoreException damage) {
        StoreProblem problem = StoreProblem.of(StoreProblem.Kind.MAP, damage.what());
        return new StoreCheck(
                directory.toString(),
                null,
                false,
                0,
                0,
                0,
                0,
                0,
                0,
                1,
                List.of(problem),
                List.of());
    }
}
