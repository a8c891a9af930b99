package io.holdfast.node.store;

import io.holdfast.node.store.ExtentPage.Extent;
import io.holdfast.node.store.StoreProblem.Kind;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.ShardId;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.Consumer;

/**
 * Holds the extents of some segments against the records there, both in the order of the journal.
 */
final class ExtentCheck {
    /** An extent with an absolute start, and whose it is. */
    record Claim(ShardId shard, int layer, Extent extent) {
        StoreProblem problem(String file, String what) {
            long bytes = (long) extent.count * Blocks.SEALED_SIZE;
            return new StoreProblem(
                    Kind.EXTENT,
                    Place.text(extent.place),
                    file,
                    bytes,
                    "extent",
                    shard.toString(),
                    extent.sequence,
                    layer,
                    extent.start,
                    extent.count,
                    extent.count,
                    what);
        }
    }

    private final List<Claim> claims = new ArrayList<>();
    private final Consumer<StoreProblem> problems;
    private int next;

    ExtentCheck(Consumer<StoreProblem> problems) {
        this.problems = problems;
    }

    void add(Claim claim) {
        claims.add(claim);
    }

    /** All are there; the records follow. */
    void sort() {
        claims.sort(Comparator.comparingLong(claim -> claim.extent.place));
    }

    /** A valid entry; extents that point to it must agree with it. */
    void entry(EntryHead entry, long place, String file) {
        before(place, file);
        long end = place + Journal.padded(entry.length());
        for (; next < claims.size() && claims.get(next).extent.place < end; next++) {
            Claim claim = claims.get(next);
            if (!holds(entry, place, claim)) {
                problems.accept(
                        claim.problem(
                                file,
                                "the record at "
                                        + Place.text(place)
                                        + " is another: "
                                        + entry.kindName()
                                        + " of shard "
                                        + entry.shard()
                                        + ", sequence "
                                        + entry.sequence()
                                        + ", blocks "
                                        + entry.block()
                                        + "+"
                                        + entry.count()));
            } else if (entry.isDoubtful()) {
                problems.accept(claim.problem(file, "copied from a damaged record"));
            }
        }
    }

    private static boolean holds(EntryHead entry, long place, Claim claim) {
        Extent extent = claim.extent;
        long into = extent.place - place - Entry.HEADER_SIZE;
        long skipped = into / Blocks.SEALED_SIZE;
        return entry.isWrite()
                && into >= 0
                && into % Blocks.SEALED_SIZE == 0
                && skipped + extent.count <= entry.count()
                && extent.start == entry.block() + skipped
                && claim.layer == entry.layer()
                && claim.shard.volume() == entry.volume()
                && claim.shard.index() == entry.index()
                && extent.sequence == entry.sequence()
                && extent.epoch == entry.epoch()
                && extent.keyId == entry.keyId()
                && extent.nonceSession == entry.nonceSession()
                && extent.nonceCounter == entry.nonceCounter() + skipped;
    }

    /** Bytes that are no records; returns how many blocks the extents have in them. */
    long damage(long from, long to, String file) {
        before(from, file);
        long blocks = 0;
        for (; next < claims.size() && claims.get(next).extent.place < to; next++) {
            blocks += claims.get(next).extent.count;
        }
        return blocks;
    }

    /** What points to places before this one that was not met. */
    void before(long place, String file) {
        for (; next < claims.size() && claims.get(next).extent.place < place; next++) {
            problems.accept(claims.get(next).problem(file, "there is no record here"));
        }
    }
}
