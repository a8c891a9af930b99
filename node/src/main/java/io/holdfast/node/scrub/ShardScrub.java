package io.holdfast.node.scrub;

import io.holdfast.client.Timers;
import io.holdfast.node.port.Store;
import io.holdfast.node.port.Store.Verified;
import io.holdfast.node.runtime.DataLoop;
import io.holdfast.node.runtime.DataLoop.ReplicaView;
import io.holdfast.node.scrub.Comparison.Difference;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.EntryKind;
import io.holdfast.proto.peer.Nonce;
import io.holdfast.proto.peer.ReplicaMessage.Cursor;
import io.holdfast.proto.peer.ReplicaMessage.FetchBlock;
import io.holdfast.proto.peer.ReplicaMessage.FetchedBlock;
import io.holdfast.proto.peer.ScrubMessage;
import io.holdfast.proto.peer.ScrubMessage.AskVersions;
import io.holdfast.proto.peer.ScrubMessage.Stretch;
import io.holdfast.proto.peer.ScrubMessage.Versions;
import io.holdfast.proto.peer.ShardId;
import java.util.ArrayDeque;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * One walk over this node's replica of a shard. Part by part:
 *
 * <pre>
 * verify --> compare with the leader's --> repair, block by block --> pause --> verify ...
 * </pre>
 *
 * <p>The leader compares with nobody: the others compare themselves with it, and put themselves
 * right. What the leader has and has applied is committed, so its newer version of a block is the
 * right one; where <em>it</em> lacks one, that is found when another node leads.
 *
 * <p>At most one question is under way: to the disk, to the leader, or for a copy.
 */
final class ShardScrub {
    /** Blocks verified at a time, in bytes. What waits for repair is never more than a part. */
    static final int PART_BYTES = 1 << 20;

    /** How long the leader's answer, or another replica's copy, is waited for. */
    static final long ANSWER_NANOS = 5_000_000_000L;

    /** Times that the leader is asked, whoever it is then, before a part goes uncompared. */
    static final int QUESTIONS = 3;

    /** Pause before the leader is looked for again. */
    private static final long LEADER_PAUSE_NANOS = 1_000_000_000L;

    /** What a scrub of one shard needs of the one of the node. */
    interface Owner {
        /** Nodes with a replica of the shard. */
        List<Integer> replicas(ShardId shard);

        /** A number that no other question or fetch of this process has. */
        long newNumber();

        void count(ShardId shard, Counts more);

        /** Says what was found of a block, unless too much was said already. */
        void say(boolean bad, ShardId shard, long block, String what);

        /** So many bytes were read, beginning at that time; calls {@code next} when it is time. */
        void pace(long bytes, long startNanos, Runnable next);

        /**
         * The walk is over.
         *
         * @param complete false: the replica went away, or the store has failed
         */
        void ended(ShardId shard, boolean complete);
    }

    /**
     * A block that is to be replaced.
     *
     * @param damaged true: by a copy of the same write; false: by a newer write than the one here
     * @param where for people
     */
    private record Want(
            boolean damaged,
            int layer,
            long block,
            long epoch,
            long sequence,
            Nonce nonce,
            String where) {}

    private final ShardId shard;
    private final DataLoop loop;
    private final Store store;
    private final int self;
    private final Owner owner;
    private final ArrayDeque<Want> wants = new ArrayDeque<>();

    private Cursor at = Cursor.START;
    private long partStartNanos;
    private @Nullable Verified part;
    private Cursor compared = Cursor.START;
    private int questions;
    private boolean ended;

    /** What an answer is waited for with; 0: none is. */
    private long asked;

    private int askedNode;
    private Timers.@Nullable Handle alarm;
    private @Nullable Want want;

    /** Another replica has a newer write of the wanted block: it was overwritten meanwhile. */
    private boolean newerSeen;

    private final ArrayDeque<Integer> askLeft = new ArrayDeque<>();

    ShardScrub(ShardId shard, DataLoop loop, Store store, int self, Owner owner) {
        this.shard = shard;
        this.loop = loop;
        this.store = store;
        this.self = self;
        this.owner = owner;
    }

    ShardId shard() {
        return shard;
    }

    void start() {
        verify();
    }

    /** Ends the walk without a word; late answers find nobody. */
    void close() {
        ended = true;
        stopWaiting();
    }

    private void end(boolean complete) {
        if (!ended) {
            close();
            owner.ended(shard, complete);
        }
    }

    private void verify() {
        if (ended) {
            return;
        }
        ReplicaView replica = loop.replica(shard);
        if (replica == null || replica.outOfService()) {
            end(false);
            return;
        }
        partStartNanos = loop.thread().nanoTime();
        store.verify(shard, at, ScrubMessage.END, PART_BYTES, this::verified);
    }

    private void verified(@Nullable Verified read) {
        if (ended) {
            return;
        }
        if (read == null) {
            end(false);
            return;
        }
        part = read;
        compared = at;
        questions = 0;
        for (Verified.Piece piece : read.pieces()) {
            Stretch stretch = piece.stretch();
            if (stretch.isZero()) {
                continue;
            }
            owner.count(
                    shard,
                    Counts.verified(stretch.count(), (long) stretch.count() * Blocks.SEALED_SIZE));
            if (!stretch.intact()) {
                owner.count(shard, Counts.damaged(stretch.count()));
                want(true, stretch, stretch.block(), stretch.count(), where(piece));
            }
        }
        compare();
    }

    private static String where(Verified.Piece piece) {
        return (piece.readable() ? "damaged" : "unreadable") + " at " + piece.place();
    }

    private void want(boolean damaged, Stretch of, long from, int count, String where) {
        for (long block = from; block < from + count; block++) {
            wants.add(
                    new Want(
                            damaged,
                            of.layer(),
                            block,
                            of.epoch(),
                            of.sequence(),
                            of.nonceOf(block),
                            where));
        }
    }

    // ---- comparing

    private void compare() {
        Verified own = part;
        ReplicaView replica = loop.replica(shard);
        if (ended || own == null) {
            return;
        }
        if (replica == null) {
            end(false);
            return;
        }
        int leader = replica.status().leader();
        if (leader == self || owner.replicas(shard).size() == 1) {
            repairNext();
        } else if (questions >= QUESTIONS) {
            owner.count(shard, Counts.compared(blocks(own, compared, own.next()), false));
            repairNext();
        } else if (leader == 0 || !loop.links().connected(leader)) {
            questions++;
            await(0, 0, LEADER_PAUSE_NANOS, this::compare);
        } else {
            questions++;
            long ask = owner.newNumber();
            await(ask, leader, ANSWER_NANOS, this::compare);
            loop.sendToPeer(leader, new AskVersions(shard, ask, compared, own.next()));
        }
    }

    /** The leader says what it has. */
    void received(int from, Versions versions) {
        Verified own = part;
        if (ended
                || own == null
                || asked == 0
                || versions.ask() != asked
                || from != askedNode
                || !versions.from().equals(compared)
                || Comparison.isBefore(own.next(), versions.next())) {
            return;
        }
        stopWaiting();
        questions = 0;
        List<Difference> differences =
                Comparison.of(
                        new Comparison.Side(own.applied(), own.stretches()),
                        new Comparison.Side(versions.applied(), versions.stretches()),
                        compared,
                        versions.next());
        owner.count(shard, Counts.compared(blocks(own, compared, versions.next()), true));
        differences.forEach(each -> differs(each, from));
        compared = versions.next();
        if (compared.equals(own.next())) {
            repairNext();
        } else {
            compare();
        }
    }

    /** Blocks of a part between two places, zeroes included. */
    private static long blocks(Verified part, Cursor from, Cursor to) {
        long blocks = 0;
        for (Stretch each : part.stretches()) {
            long start = each.block();
            long end = each.end();
            if (each.layer() < from.layer() || each.layer() > to.layer()) {
                continue;
            }
            if (each.layer() == from.layer()) {
                start = Math.max(start, from.block());
            }
            if (each.layer() == to.layer()) {
                end = Math.min(end, to.block());
            }
            blocks += Math.max(0, end - start);
        }
        return blocks;
    }

    private void differs(Difference difference, int leader) {
        owner.count(shard, Counts.differing(difference.count()));
        Stretch there = difference.there();
        String with = " from that of node " + leader + ", which leads";
        switch (difference.kind()) {
            case OLDER_HERE -> {
                if (there == null) {
                    throw new IllegalStateException("nothing is newer: " + difference);
                }
                String where = "older than at node " + leader;
                if (there.isZero()) {
                    takeZeroes(difference, there, where);
                } else {
                    want(false, there, difference.block(), difference.count(), where);
                }
            }
            case OLDER_THERE ->
                    leave(difference, "is newer than that of node " + leader + ", which leads");
            case OTHER_WRITE -> leave(difference, "differs" + with + ", under the same sequence");
            // The tag alone can tell whose bytes are right, and only who has the key can check it:
            // a client that reads the block from the leader, and has it repaired there.
            case OTHER_BYTES -> leave(difference, "differs" + with + ", in its bytes only");
        }
    }

    /** Nobody here can tell who is right. */
    private void leave(Difference difference, String how) {
        owner.count(shard, Counts.unrepairable(difference.count()));
        owner.say(
                true,
                shard,
                difference.block(),
                "replicas differ: the copy here of "
                        + difference.count()
                        + " blocks "
                        + how
                        + " (here "
                        + version(difference.here())
                        + ", there "
                        + version(difference.there())
                        + ")");
    }

    private static String version(@Nullable Stretch stretch) {
        if (stretch == null) {
            return "never written";
        }
        return "sequence "
                + stretch.sequence()
                + (stretch.isZero() ? ", zeroes" : ", nonce session " + stretch.nonce().session());
    }

    private void takeZeroes(Difference difference, Stretch there, String where) {
        Entry zeroes =
                Entry.builder(shard, EntryKind.ZERO)
                        .at(there.epoch(), there.sequence(), 0)
                        .blocks(difference.layer(), difference.block(), difference.count())
                        .flags(Entry.FLAG_MOVED | (there.trim() ? Entry.FLAG_TRIM : 0))
                        .build();
        boolean taken = take(zeroes);
        owner.count(
                shard,
                taken
                        ? Counts.repaired(difference.count())
                        : Counts.unrepairable(difference.count()));
        owner.say(
                true,
                shard,
                difference.block(),
                "replicas differ: the copy here of "
                        + difference.count()
                        + " blocks is "
                        + where
                        + (taken
                                ? ", now zeroes as there"
                                : ", and there is no room to change it"));
    }

    /** Puts a newer write of another replica into the map here, as a catch-up would. */
    private boolean take(Entry moved) {
        ReplicaView replica = loop.replica(shard);
        if (replica == null
                || replica.status().applied() < moved.sequence()
                || store.usage().space() == Store.Space.FULL) {
            return false;
        }
        store.appendMoved(shard, List.of(moved));
        store.write();
        return loop.storeFailure() == null;
    }

    // ---- repairing

    private void repairNext() {
        Want next = wants.poll();
        if (next == null) {
            partDone();
            return;
        }
        want = next;
        newerSeen = false;
        askLeft.clear();
        ReplicaView replica = loop.replica(shard);
        int leader = replica == null ? 0 : replica.status().leader();
        for (int node : owner.replicas(shard)) {
            if (node == leader && node != self) {
                // It is the likeliest to have the newest version.
                askLeft.addFirst(node);
            } else if (node != self) {
                askLeft.addLast(node);
            }
        }
        fetch();
    }

    private void fetch() {
        Want wanted = want;
        if (ended || wanted == null) {
            return;
        }
        while (!askLeft.isEmpty()) {
            int node = askLeft.removeFirst();
            ReplicaView replica = loop.replica(shard);
            if (replica != null && loop.links().connected(node)) {
                long fetch = DataLoop.FIRST_SCRUB_FETCH + owner.newNumber();
                await(fetch, node, ANSWER_NANOS, this::fetch);
                loop.sendToPeer(
                        node,
                        new FetchBlock(
                                shard,
                                replica.status().promised(),
                                fetch,
                                wanted.layer,
                                wanted.block));
                return;
            }
        }
        giveUp(wanted);
    }

    /** Another replica's copy. */
    void received(int from, FetchedBlock copy) {
        Want wanted = want;
        if (ended
                || wanted == null
                || asked == 0
                || copy.fetch() != asked
                || from != askedNode
                || copy.layer() != wanted.layer
                || copy.block() != wanted.block) {
            return;
        }
        stopWaiting();
        newerSeen |= copy.sequence() > wanted.sequence;
        boolean good =
                copy.intact()
                        && copy.sequence() == wanted.sequence
                        && copy.nonce().equals(wanted.nonce)
                        && copy.payload().length == Blocks.SEALED_SIZE;
        if (good && replace(wanted, copy)) {
            owner.count(shard, Counts.repaired(1));
            // Damage is a matter of disks. That a write was lost should never have happened.
            owner.say(
                    !wanted.damaged,
                    shard,
                    wanted.block,
                    "the copy here was " + wanted.where + ", replaced by that of node " + from);
            settled();
        } else {
            fetch();
        }
    }

    /** With a copy of the very write that is wanted. */
    private boolean replace(Want wanted, FetchedBlock copy) {
        if (wanted.damaged) {
            return store.repair(shard, wanted.layer, copy.run());
        }
        return take(
                Entry.builder(shard, EntryKind.WRITE)
                        .at(wanted.epoch, wanted.sequence, 0)
                        .blocks(wanted.layer, wanted.block, 1)
                        .sealed(wanted.nonce, copy.payload())
                        .flags(Entry.FLAG_MOVED)
                        .build());
    }

    /**
     * Nobody has a good copy, it seems; or the block was written, or repaired, meanwhile. The newer
     * write may not have been applied here yet; if it should never be, the next scrub finds that.
     */
    private void giveUp(Want wanted) {
        if (newerSeen) {
            settled();
            return;
        }
        store.copy(
                shard,
                wanted.layer,
                wanted.block,
                now -> {
                    if (ended) {
                        return;
                    }
                    boolean same =
                            wanted.damaged
                                    ? now.run().sequence() == wanted.sequence
                                            && now.run().nonce().equals(wanted.nonce)
                                            && !now.intact()
                                    : now.run().sequence() < wanted.sequence;
                    if (same) {
                        owner.count(shard, Counts.unrepairable(1));
                        owner.say(
                                true,
                                shard,
                                wanted.block,
                                "the copy here is "
                                        + wanted.where
                                        + ", and no replica has a good one, or there is no room");
                    }
                    settled();
                });
    }

    private void settled() {
        want = null;
        repairNext();
    }

    private void partDone() {
        Verified done = part;
        if (ended || done == null) {
            return;
        }
        part = null;
        if (done.next().equals(ScrubMessage.END)) {
            end(true);
            return;
        }
        at = done.next();
        long bytes = 0;
        for (Stretch each : done.stretches()) {
            bytes += each.isZero() ? 0 : (long) each.count() * Blocks.SEALED_SIZE;
        }
        owner.pace(bytes, partStartNanos, this::verify);
    }

    // ---- waiting

    private void await(long number, int node, long nanos, Runnable late) {
        asked = number;
        askedNode = node;
        alarm =
                loop.thread()
                        .schedule(
                                nanos,
                                () -> {
                                    stopWaiting();
                                    late.run();
                                });
    }

    private void stopWaiting() {
        asked = 0;
        if (alarm != null) {
            alarm.cancel();
            alarm = null;
        }
    }
}
