package io.holdfast.node.replica;

import io.holdfast.proto.peer.Entry;
import java.util.List;

/**
 * What the store found of a replica at start.
 *
 * @param hardState newest in the journal
 * @param appliedEpoch epoch of the entry at {@code applied}, 0 when {@code applied} is 0
 * @param applied the map contains exactly the entries up to here
 * @param shardState the core's state at {@code applied}, as it was given out by {@link
 *     Replica#shardState}; empty: none yet
 * @param entries the log after {@code applied}, in order, without gaps
 */
public record Recovered(
        HardState hardState,
        long appliedEpoch,
        long applied,
        byte[] shardState,
        List<Entry> entries) {
    /** A replica without any past. */
    public static Recovered nothing(HardState hardState) {
        return new Recovered(hardState, 0, 0, new byte[0], List.of());
    }
}
