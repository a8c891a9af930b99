package io.holdfast.proto.catalogue;

/** A change of the catalogue: a compare-and-set, deterministic, applied on every node alike. */
public sealed interface Change {
    /**
     * Adds a volume. Number and state in {@code volume} are ignored: the catalogue gives the next
     * number and CREATING. Refused when the name is taken.
     */
    record CreateVolume(Volume volume) implements Change {}

    /** CREATING becomes READY; no effect when it is READY. */
    record MarkReady(int volume) implements Change {}

    /**
     * Removes a volume, wrapped key and all. Refused when number and name do not belong together.
     */
    record DeleteVolume(int volume, String name) implements Change {}

    /**
     * Records a shard's leader. Refused unless {@code epoch} is above the recorded one.
     *
     * @param incarnation of the node, for the log only
     */
    record ClaimLeader(int volume, int shard, int node, String incarnation, long epoch)
            implements Change {}

    /**
     * What became of a change.
     *
     * @param applied whether it took effect (or already had)
     * @param version of the catalogue afterwards
     * @param volume number of the volume created, else 0
     * @param reason why not, for people; empty when applied
     */
    record Result(boolean applied, long version, int volume, String reason) {}
}
