package io.holdfast.node.store;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What a store on disk is, as {@link OfflineStore#inspect} finds it. Places are SEGMENT:OFFSET.
 *
 * @param store id of the store
 * @param mapFormat version of the map's rows
 * @param journalFormat version of the journal's segments that this program knows
 * @param clean closed by the node that used it last, which wrote nothing since
 * @param boot of the machine, when the store was written last
 * @param covered place from which a start reads the journal
 * @param synced the last checkpoint knew the journal to be synced through here
 * @param end behind the last record
 * @param journalBytes of all segment files
 * @param liveBytes sealed blocks that the map points to
 * @param records in all segments
 * @param extents rows of the map
 * @param damages places of the journal where no record can be read
 */
public record StoreSummary(
        String directory,
        String store,
        int mapFormat,
        int journalFormat,
        boolean clean,
        String boot,
        String covered,
        String synced,
        String end,
        long journalBytes,
        long liveBytes,
        long records,
        long extents,
        long damages,
        List<SegmentLine> segments,
        List<ShardLine> shards) {
    /**
     * A segment.
     *
     * @param spare made ahead of time, and not begun
     * @param first place of the first record; null: there is none
     * @param last place of the last record; null: there is none
     */
    public record SegmentLine(
            int number,
            boolean spare,
            long bytes,
            long liveBytes,
            long records,
            @Nullable String first,
            @Nullable String last) {}

    /**
     * A shard's replica.
     *
     * @param promised epoch
     * @param promisedTo number of a node, 0: none
     * @param applied the last checkpoint's map, or a later base, holds the log through here
     * @param logFirst first entry of the log that a start would find, one after the last: none
     * @param logLast last entry of the log
     * @param extents rows of the map
     */
    public record ShardLine(
            int volume,
            int shard,
            long promised,
            int promisedTo,
            String standing,
            long applied,
            long logFirst,
            long logLast,
            long extents) {}
}
