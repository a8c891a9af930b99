package io.holdfast.node.scrub;

/**
 * What a scrub has seen and done.
 *
 * @param blocks of this node's replicas verified, those of zeroes not among them
 * @param bytes of them, as they are on disk
 * @param compared blocks and zeroes compared with the leader's
 * @param notCompared could not be: there was no leader, or it gave no answer
 * @param damaged blocks in a record with a wrong checksum, or unreadable
 * @param differing from the leader's, in their version or in their bytes
 * @param repaired of the damaged and the differing ones
 * @param unrepairable of them: nobody has a good copy, or nobody knows which is the right one, or
 *     there is no room. What is missing from {@code damaged + differing} was written anew meanwhile
 */
public record Counts(
        long blocks,
        long bytes,
        long compared,
        long notCompared,
        long damaged,
        long differing,
        long repaired,
        long unrepairable) {
    /** Nothing. */
    public static final Counts NONE = new Counts(0, 0, 0, 0, 0, 0, 0, 0);

    Counts plus(Counts more) {
        return new Counts(
                blocks + more.blocks,
                bytes + more.bytes,
                compared + more.compared,
                notCompared + more.notCompared,
                damaged + more.damaged,
                differing + more.differing,
                repaired + more.repaired,
                unrepairable + more.unrepairable);
    }

    static Counts verified(long blocks, long bytes) {
        return new Counts(blocks, bytes, 0, 0, 0, 0, 0, 0);
    }

    static Counts compared(long blocks, boolean answered) {
        return new Counts(0, 0, answered ? blocks : 0, answered ? 0 : blocks, 0, 0, 0, 0);
    }

    static Counts damaged(long blocks) {
        return new Counts(0, 0, 0, 0, blocks, 0, 0, 0);
    }

    static Counts differing(long blocks) {
        return new Counts(0, 0, 0, 0, 0, blocks, 0, 0);
    }

    static Counts repaired(long blocks) {
        return new Counts(0, 0, 0, 0, 0, 0, blocks, 0);
    }

    static Counts unrepairable(long blocks) {
        return new Counts(0, 0, 0, 0, 0, 0, 0, blocks);
    }
}
