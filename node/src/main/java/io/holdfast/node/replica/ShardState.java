package io.holdfast.node.replica;

import io.holdfast.proto.peer.Entry;
import java.nio.ByteBuffer;
import java.util.Iterator;
import java.util.Map;
import java.util.TreeMap;

/**
 * What the log's entries add up to, the map apart: open sessions and the claim. The same on every
 * replica at the same sequence, part of each checkpoint and of each catch-up by extents.
 */
final class ShardState {
    private static final int VERSION = 2;

    private final TreeMap<Integer, CompletedRequests> sessions = new TreeMap<>();
    private int newestSession;
    private int powerLossThrough;
    private Claim claim = Claim.NEVER;
    private final ReplicaOptions options;

    ShardState(ReplicaOptions options) {
        this.options = options;
    }

    Claim claim() {
        return claim;
    }

    /** Highest session number ever opened here. */
    int newestSession() {
        return newestSession;
    }

    /** Whether writes that this session saw acknowledged may be missing. */
    boolean lostByPowerFailure(int session) {
        return session <= powerLossThrough;
    }

    boolean isOpen(int session) {
        return sessions.containsKey(session);
    }

    /** Below this, nothing of the session may run. */
    long lowWater(int session) {
        CompletedRequests requests = sessions.get(session);
        return requests == null ? Long.MAX_VALUE : requests.lowWater();
    }

    boolean hasRun(int session, long request) {
        CompletedRequests requests = sessions.get(session);
        return requests != null && requests.contains(request);
    }

    void apply(Entry entry) {
        switch (entry.kind()) {
            case NOOP -> {}
            case WRITE, ZERO -> {
                CompletedRequests requests = sessions.get(entry.session());
                if (requests != null) {
                    requests.raiseLowWater(entry.lowWater());
                    requests.add(entry.request());
                }
            }
            case OPEN_SESSION -> open(entry.session());
            case CLOSE_SESSION -> sessions.remove(entry.session());
            case CLAIM ->
                    claim =
                            Claim.ofPayload(
                                    entry.generation(), true, entry.session(), entry.payload());
            case RELEASE -> {
                if (claim.generation() == entry.generation()) {
                    claim = claim.released();
                }
            }
            case POWER_LOSS -> {
                sessions.clear();
                powerLossThrough = newestSession;
                claim = Claim.voidSince(claim.generation() + 1);
            }
        }
    }

    private void open(int session) {
        newestSession = Math.max(newestSession, session);
        sessions.putIfAbsent(session, new CompletedRequests());
        Iterator<Integer> oldest = sessions.keySet().iterator();
        while (sessions.size() > options.limits().sessions() && oldest.hasNext()) {
            options.taken(Branch.SESSION_FORGOTTEN);
            oldest.next();
            oldest.remove();
        }
    }

    /**
     * The state at {@code applied}. Layout, big-endian: version (1), newest session (4), power loss
     * through (4), claim generation (8), held (1), session (4), payload length (2) and payload,
     * epoch history, number of sessions (4), then each session's number (4) and completed requests.
     */
    byte[] encode(EpochHistory epochs, long applied) {
        byte[] holder = claim.payload();
        int size = 1 + 4 + 4 + 8 + 1 + 4 + 2 + holder.length + epochs.encodedSize(applied) + 4;
        for (CompletedRequests requests : sessions.values()) {
            size += 4 + requests.encodedSize();
        }
        ByteBuffer out = ByteBuffer.allocate(size);
        out.put((byte) VERSION).putInt(newestSession).putInt(powerLossThrough);
        out.putLong(claim.generation()).put((byte) (claim.held() ? 1 : 0)).putInt(claim.session());
        out.putShort((short) holder.length).put(holder);
        epochs.encode(out, applied);
        out.putInt(sessions.size());
        for (Map.Entry<Integer, CompletedRequests> session : sessions.entrySet()) {
            out.putInt(session.getKey());
            session.getValue().encode(out);
        }
        return out.array();
    }

    /** What {@link #encode} gave out. */
    record Decoded(ShardState state, EpochHistory epochs) {}

    static Decoded decode(ReplicaOptions options, byte[] bytes) {
        ShardState state = new ShardState(options);
        if (bytes.length == 0) {
            return new Decoded(state, new EpochHistory());
        }
        ByteBuffer in = ByteBuffer.wrap(bytes);
        int version = in.get();
        Invariant.check(version == VERSION, "shard state has version " + VERSION, version);
        state.newestSession = in.getInt();
        state.powerLossThrough = in.getInt();
        long generation = in.getLong();
        boolean held = in.get() != 0;
        int session = in.getInt();
        byte[] holder = new byte[in.getShort()];
        in.get(holder);
        state.claim = Claim.ofPayload(generation, held, session, holder);
        EpochHistory epochs = EpochHistory.decode(in);
        int count = in.getInt();
        for (int i = 0; i < count; i++) {
            state.sessions.put(in.getInt(), CompletedRequests.decode(in));
        }
        Invariant.check(!in.hasRemaining(), "shard state has no bytes left", in.remaining());
        return new Decoded(state, epochs);
    }
}
