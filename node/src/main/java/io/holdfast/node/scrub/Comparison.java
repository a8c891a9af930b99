package io.holdfast.node.scrub;

import io.holdfast.proto.peer.ReplicaMessage.Cursor;
import io.holdfast.proto.peer.ScrubMessage;
import io.holdfast.proto.peer.ScrubMessage.Stretch;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What the maps of two replicas of a shard differ in, each as it was at a moment of its own.
 *
 * <p>They need not be from the same moment, as each says how far it is applied: a replica holds, of
 * every block, the newest write up to its applied point, or a newer one. So where one has an older
 * write than the other, and is applied beyond the newer one, it has lost something; where it is not
 * applied that far, it just has not got there yet. This holds in every state of a replica, and
 * whoever leads.
 */
final class Comparison {
    private Comparison() {}

    /**
     * A map's part.
     *
     * @param applied what was committed up to it is in the map
     */
    record Side(long applied, List<Stretch> stretches) {}

    /** How two copies of a block differ. */
    enum Kind {
        /** A newer write than the one here was applied here, too, and is not in the map. */
        OLDER_HERE,
        /** The other way round. */
        OLDER_THERE,
        /** Two writes under the same sequence. */
        OTHER_WRITE,
        /** The same write with other bytes, both in a record with the right checksum. */
        OTHER_BYTES
    }

    /**
     * Blocks in a row that differ in the same way.
     *
     * @param here what is here; null: nothing was ever written
     * @param there what is there
     */
    record Difference(
            Kind kind,
            int layer,
            long block,
            int count,
            @Nullable Stretch here,
            @Nullable Stretch there) {
        @Override
        public String toString() {
            return kind + " " + layer + ":" + block + "+" + count;
        }
    }

    /** Compares two maps from one place to another; what lies outside is not looked at. */
    static List<Difference> of(Side here, Side there, Cursor from, Cursor to) {
        return new Walk(here, there, to).run(from);
    }

    private static final class Walk {
        private final Side here;
        private final Side there;
        private final Cursor to;
        private final List<Difference> found = new ArrayList<>();
        private int nextHere;
        private int nextThere;

        Walk(Side here, Side there, Cursor to) {
            this.here = here;
            this.there = there;
            this.to = to;
        }

        List<Difference> run(Cursor from) {
            Cursor at = from;
            while (true) {
                nextHere = skip(here.stretches, nextHere, at);
                nextThere = skip(there.stretches, nextThere, at);
                Stretch own = get(here.stretches, nextHere);
                Stretch other = get(there.stretches, nextThere);
                Cursor start = earlier(start(own, at), start(other, at));
                if (start == null || !isBefore(start, to)) {
                    return found;
                }
                Stretch ownHere = covers(own, start) ? own : null;
                Stretch otherHere = covers(other, start) ? other : null;
                long end = Math.min(end(own, start), end(other, start));
                if (start.layer() == to.layer()) {
                    end = Math.min(end, to.block());
                }
                compare(start, (int) (end - start.block()), ownHere, otherHere);
                at = new Cursor(start.layer(), end);
            }
        }

        private void compare(Cursor at, int count, @Nullable Stretch own, @Nullable Stretch other) {
            long ownSequence = own == null ? 0 : own.sequence();
            long otherSequence = other == null ? 0 : other.sequence();
            if (ownSequence < otherSequence) {
                if (otherSequence <= here.applied) {
                    add(Kind.OLDER_HERE, at, count, own, other);
                }
            } else if (ownSequence > otherSequence) {
                if (ownSequence <= there.applied) {
                    add(Kind.OLDER_THERE, at, count, own, other);
                }
            } else if (own != null && other != null) {
                if (!own.nonceOf(at.block()).equals(other.nonceOf(at.block()))) {
                    add(Kind.OTHER_WRITE, at, count, own, other);
                } else if (own.intact() && other.intact() && !own.isZero()) {
                    compareBytes(at, count, own, other);
                }
            }
        }

        private void compareBytes(Cursor at, int count, Stretch own, Stretch other) {
            for (int i = 0; i < count; i++) {
                long block = at.block() + i;
                int a = (int) (block - own.block()) * ScrubMessage.SUM_SIZE;
                int b = (int) (block - other.block()) * ScrubMessage.SUM_SIZE;
                if (!Arrays.equals(
                        own.sums(),
                        a,
                        a + ScrubMessage.SUM_SIZE,
                        other.sums(),
                        b,
                        b + ScrubMessage.SUM_SIZE)) {
                    add(Kind.OTHER_BYTES, new Cursor(at.layer(), block), 1, own, other);
                }
            }
        }

        private void add(
                Kind kind, Cursor at, int count, @Nullable Stretch own, @Nullable Stretch other) {
            found.add(new Difference(kind, at.layer(), at.block(), count, own, other));
        }

        private static int skip(List<Stretch> stretches, int next, Cursor at) {
            int from = next;
            while (from < stretches.size() && endsBy(stretches.get(from), at)) {
                from++;
            }
            return from;
        }

        private static @Nullable Stretch get(List<Stretch> stretches, int index) {
            return index < stretches.size() ? stretches.get(index) : null;
        }

        private static boolean endsBy(Stretch stretch, Cursor at) {
            return stretch.layer() < at.layer()
                    || (stretch.layer() == at.layer() && stretch.end() <= at.block());
        }

        private static @Nullable Cursor start(@Nullable Stretch stretch, Cursor at) {
            if (stretch == null) {
                return null;
            }
            Cursor start = new Cursor(stretch.layer(), stretch.block());
            return isBefore(start, at) ? at : start;
        }

        private static boolean covers(@Nullable Stretch stretch, Cursor at) {
            return stretch != null
                    && stretch.layer() == at.layer()
                    && stretch.block() <= at.block();
        }

        /** Where the stretch's part in what is compared next ends. */
        private static long end(@Nullable Stretch stretch, Cursor start) {
            if (stretch == null || stretch.layer() != start.layer()) {
                return Long.MAX_VALUE;
            }
            return stretch.block() <= start.block() ? stretch.end() : stretch.block();
        }

        private static @Nullable Cursor earlier(@Nullable Cursor one, @Nullable Cursor other) {
            if (one == null || other == null) {
                return one == null ? other : one;
            }
            return isBefore(one, other) ? one : other;
        }
    }

    static boolean isBefore(Cursor one, Cursor other) {
        return one.layer() < other.layer()
                || (one.layer() == other.layer() && one.block() < other.block());
    }
}
