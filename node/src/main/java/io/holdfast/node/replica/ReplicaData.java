package io.holdfast.node.replica;

import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.EntryKind;
import io.holdfast.proto.peer.Room;
import java.util.ArrayList;
import java.util.List;

/** What a replica is apart from its role: its log, its promises, and what the log adds up to. */
final class ReplicaData {
    final ReplicaOptions options;
    final BlockVersions blocks;
    final Outbox outbox;
    final ReplicaLog log;

    /** On this replica's disk. */
    Room room = Room.ENOUGH;

    private HardState hard;
    private ShardState state;
    private long commit;
    private long applied;

    ReplicaData(ReplicaOptions options, Recovered recovered, BlockVersions blocks) {
        this.options = options;
        this.blocks = blocks;
        hard = recovered.hardState();
        applied = recovered.applied();
        commit = applied;
        ShardState.Decoded decoded = ShardState.decode(options, recovered.shardState());
        state = decoded.state();
        log = new ReplicaLog(decoded.epochs(), applied);
        Invariant.check(
                log.lastEpoch() == recovered.appliedEpoch(),
                "the shard state belongs to the applied point",
                applied,
                log.lastEpoch(),
                recovered.appliedEpoch());
        for (Entry entry : recovered.entries()) {
            log.append(entry);
            // An entry's commit point is its leader's when it was made, and the log up to this
            // entry equals that leader's, so everything up to there is known to be committed.
            commit = Math.max(commit, Math.min(entry.commit(), log.last()));
        }
        // A checkpoint syncs the journal before it counts; what came later may be in the page cache
        // only.
        outbox = new Outbox(log.last(), applied);
    }

    HardState hard() {
        return hard;
    }

    ShardState state() {
        return state;
    }

    long commit() {
        return commit;
    }

    long applied() {
        return applied;
    }

    long appliedEpoch() {
        return log.epochs().epochAt(applied);
    }

    /** Whether it may lead. */
    boolean isVoter() {
        return hard.standing() == HardState.Standing.VOTER;
    }

    /** Whether its promises and acknowledgements count as a voter's. */
    boolean counts() {
        return hard.standing().counts();
    }

    /** Changes what must never be forgotten; it is synced with the end of the turn. */
    void become(HardState next) {
        Invariant.check(
                next.promised() >= hard.promised(),
                "a promise is never taken back",
                next.promised(),
                hard.promised());
        if (!next.equals(hard)) {
            hard = next;
            outbox.persist(next);
        }
    }

    void append(Entry entry) {
        log.append(entry);
        outbox.append(entry);
    }

    /** Cuts an uncommitted tail that another leader's entries replace. */
    void truncate(long sequence) {
        Invariant.check(sequence >= commit, "what is committed stays", sequence, commit);
        // Entries of this very turn are handed over first: the cut must come after them.
        outbox.persistTurn(log.last(), options.syncWrites());
        log.truncate(sequence);
        outbox.truncate(sequence);
        outbox.add(new Effect.Truncate(sequence));
    }

    void commitThrough(long sequence) {
        Invariant.check(sequence <= log.last(), "no commit beyond the log", sequence, log.last());
        commit = Math.max(commit, sequence);
    }

    /**
     * Applies what is committed; the map's part becomes one effect. A follower may learn that an
     * entry is committed in the turn that brings it: it waits until the turn is handed to the
     * store.
     */
    void applyCommitted() {
        long through = Math.min(commit, outbox.emitted());
        if (applied >= through) {
            return;
        }
        List<Entry> forMap = new ArrayList<>();
        while (applied < through) {
            Entry entry = log.pollUnapplied();
            applied++;
            Invariant.check(entry.sequence() == applied, "applied in order", entry.sequence());
            state.apply(entry);
            if (entry.kind() == EntryKind.WRITE || entry.kind() == EntryKind.ZERO) {
                forMap.add(entry);
            }
        }
        if (!forMap.isEmpty()) {
            outbox.add(new Effect.Apply(forMap));
        }
    }

    /** Newest sequence of a block, numbered but unapplied entries included. */
    long newestSequence(int layer, long block) {
        long unapplied = log.newestUnapplied(layer, block);
        return unapplied != 0 ? unapplied : blocks.newestSequence(layer, block, 1);
    }

    /** The map stands at a base that came from the leader. */
    void restartAt(long baseSequence, byte[] shardState, HardState next) {
        ShardState.Decoded decoded = ShardState.decode(options, shardState);
        state = decoded.state();
        log.restart(decoded.epochs(), baseSequence);
        commit = baseSequence;
        applied = baseSequence;
        hard = next;
        outbox.restart(baseSequence);
    }

    /** Nothing is left but a promise, to the leader. */
    void startOver(int leader) {
        hard = hard.startingOver(leader);
        outbox.persistTurn(log.last(), options.syncWrites());
        outbox.truncate(0);
        state = new ShardState(options);
        log.restart(new EpochHistory(), 0);
        commit = 0;
        applied = 0;
        outbox.add(new Effect.StartOver(hard));
    }
}
