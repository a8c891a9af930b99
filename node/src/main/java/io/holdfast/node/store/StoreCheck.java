package io.holdfast.node.store;

import java.util.List;

/**
 * What {@link OfflineStore#verify} found.
 *
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
        String store,
        boolean sound,
        int segments,
        long records,
        long bytes,
        int shards,
        long extents,
        long blocks,
        long problems,
        List<StoreProblem> listed,
        List<String> notes) {}
