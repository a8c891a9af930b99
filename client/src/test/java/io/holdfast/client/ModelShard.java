package io.holdfast.client;

import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ClientReply.Refusal;
import io.holdfast.proto.peer.ClientReply.Run;
import io.holdfast.proto.peer.ClientRequest;
import io.holdfast.proto.peer.Nonce;
import io.holdfast.proto.peer.ShardId;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * What a shard's leader decides, without replication: sessions, claims, exactly-once, conditional
 * writes, the map. State survives a change of leader, as committed entries do. It checks what no
 * client may do: run a request twice, or use a nonce for two different blocks.
 */
final class ModelShard {
    /** A stored block; no payload: zeroes. */
    record Stored(long sequence, Nonce nonce, byte @Nullable [] sealed) {}

    /** What a leader remembers of a session. */
    static final class Session {
        final Map<Long, Long> done = new HashMap<>();
        long lowWater;
    }

    final ShardId id;
    final boolean exclusive;
    final int[] sessionsGranted;
    final Map<Integer, Session> sessions = new TreeMap<>();
    final Set<Integer> closed = new HashSet<>();
    final TreeMap<Long, Stored> map = new TreeMap<>();
    private final Map<String, byte[]> sealedBy = new HashMap<>();
    final List<String> ran = new ArrayList<>();
    private final Set<String> ranOnce = new HashSet<>();
    long sequence;
    long generation;
    String holder = "";
    private String lastHolder = "";
    private int holdersSession;
    boolean holderConnected = true;
    boolean powerLost;
    boolean full;
    int conflicts;
    int flushes;

    /**
     * A shard without any past.
     *
     * @param sessionsGranted one counter for the volume
     */
    ModelShard(ShardId id, boolean exclusive, int[] sessionsGranted) {
        this.id = id;
        this.exclusive = exclusive;
        this.sessionsGranted = sessionsGranted;
    }

    ClientReply decide(int node, ClientRequest request) {
        return switch (request) {
            case ClientRequest.OpenSession open -> openSession(open);
            case ClientRequest.CloseSession close -> {
                sessions.remove(close.session());
                closed.add(close.session());
                yield done(close, 0);
            }
            case ClientRequest.Claim claim -> claim(claim);
            case ClientRequest.Release release -> {
                if (release.generation() == generation) {
                    holder = "";
                    generation++;
                }
                yield done(release, 0);
            }
            case ClientRequest.Write write -> write(write);
            case ClientRequest.Zero zero -> zero(zero);
            case ClientRequest.Flush flush -> {
                flushes++;
                yield powerLost
                        ? refuse(flush, Refusal.POWER_LOSS)
                        : sessions.containsKey(flush.session())
                                ? done(flush, 0)
                                : refuse(flush, Refusal.FENCED);
            }
            case ClientRequest.Read read -> read(node, read);
            case ClientRequest.AskHolder ask ->
                    new ClientReply.Holder(
                            id, ask.client(), ask.request(), generation, holderConnected, holder);
        };
    }

    /** What a replica's disk has done to its copies. */
    static final class Copies {
        /** Blocks whose bytes have changed. */
        final Set<Long> corrupt = new HashSet<>();

        /** Blocks that the disk cannot read. */
        final Set<Long> unreadable = new HashSet<>();

        /** Whether it answers nobody just now. */
        boolean away;
    }

    /** By node; a node without an entry is in order. */
    final Map<Integer, Copies> copies = new HashMap<>();

    Copies copiesOf(int node) {
        return copies.computeIfAbsent(node, any -> new Copies());
    }

    /** Copies that were asked for by node, in order. */
    final List<Integer> copiesAskedFor = new ArrayList<>();

    private ClientReply read(int leader, ClientRequest.Read read) {
        int node = read.copy() == ClientRequest.OWN_COPY ? leader : read.copy();
        if (read.copy() != ClientRequest.OWN_COPY) {
            copiesAskedFor.add(read.copy());
        }
        Copies there = copiesOf(node);
        if (there.away) {
            return refuse(read, Refusal.COPY_UNAVAILABLE);
        }
        for (long block = read.block(); block < read.block() + read.count(); block++) {
            if (there.unreadable.contains(block)) {
                return refuse(read, Refusal.IO_ERROR);
            }
        }
        List<Run> runs = new ArrayList<>();
        for (Run run : runs(read.block(), read.count())) {
            byte[] payload = run.payload().clone();
            for (int i = 0; i < run.count() && payload.length > 0; i++) {
                if (there.corrupt.contains(run.block() + i)) {
                    payload[i * Blocks.SEALED_SIZE + 77] ^= 1;
                }
            }
            runs.add(new Run(run.block(), run.count(), run.sequence(), run.nonce(), payload));
        }
        return new ClientReply.Data(id, read.client(), read.request(), runs);
    }

    /** A power loss: every session from before is void. */
    void losePower() {
        powerLost = true;
        sessions.clear();
    }

    /** Forgets a session, as a leader does that knows its node is gone. */
    void evictAll() {
        closed.addAll(sessions.keySet());
        sessions.clear();
    }

    private ClientReply openSession(ClientRequest.OpenSession open) {
        int session = open.session();
        if (session == 0) {
            powerLost = false;
            session = ++sessionsGranted[0];
        } else if (powerLost) {
            return refuse(open, Refusal.POWER_LOSS);
        } else if (closed.contains(session)) {
            return refuse(open, Refusal.FENCED);
        }
        sessions.computeIfAbsent(session, number -> new Session());
        return done(open, session);
    }

    private ClientReply claim(ClientRequest.Claim claim) {
        if (claim.generation() == 0) {
            if (!sessions.containsKey(claim.session())) {
                return refuse(claim, powerLost ? Refusal.POWER_LOSS : Refusal.FENCED);
            }
            boolean same = lastHolder.equals(claim.identity());
            if (same && !holder.isEmpty() && claim.session() == holdersSession) {
                return done(claim, generation);
            }
            if ((same && claim.session() < holdersSession)
                    || (!holder.isEmpty() && !holder.equals(claim.identity()))) {
                return refuse(claim, Refusal.HELD);
            }
            generation++;
        } else if (claim.generation() < generation) {
            return refuse(claim, Refusal.FENCED);
        } else {
            generation = claim.generation();
        }
        holder = claim.identity();
        lastHolder = holder;
        holdersSession = claim.session();
        return done(claim, generation);
    }

    private ClientReply write(ClientRequest.Write write) {
        for (int i = 0; i < write.count(); i++) {
            byte[] sealed =
                    Arrays.copyOfRange(
                            write.payload(), i * Blocks.SEALED_SIZE, (i + 1) * Blocks.SEALED_SIZE);
            byte[] before = sealedBy.putIfAbsent(write.nonce().plus(i).toString(), sealed);
            if (before != null && !Arrays.equals(before, sealed)) {
                throw new AssertionError("nonce used twice: " + write.nonce().plus(i));
            }
        }
        ClientReply answer =
                admit(
                        write,
                        write.session(),
                        write.lowWater(),
                        write.generation(),
                        write.block(),
                        write.expectedSequence());
        if (answer != null) {
            return answer;
        }
        run(write, write.session(), write.lowWater());
        for (int i = 0; i < write.count(); i++) {
            map.put(
                    write.block() + i,
                    new Stored(
                            sequence,
                            write.nonce().plus(i),
                            Arrays.copyOfRange(
                                    write.payload(),
                                    i * Blocks.SEALED_SIZE,
                                    (i + 1) * Blocks.SEALED_SIZE)));
        }
        return done(write, sequence);
    }

    private ClientReply zero(ClientRequest.Zero zero) {
        ClientReply answer =
                admit(
                        zero,
                        zero.session(),
                        zero.lowWater(),
                        zero.generation(),
                        zero.block(),
                        ClientRequest.UNCONDITIONAL);
        if (answer != null) {
            return answer;
        }
        run(zero, zero.session(), zero.lowWater());
        for (int i = 0; i < zero.count(); i++) {
            map.put(zero.block() + i, new Stored(sequence, Nonce.NONE, null));
        }
        return done(zero, sequence);
    }

    private @Nullable ClientReply admit(
            ClientRequest request,
            int number,
            long lowWater,
            long itsGeneration,
            long block,
            long expected) {
        Session session = sessions.get(number);
        if (session == null) {
            return refuse(request, powerLost ? Refusal.POWER_LOSS : Refusal.FENCED);
        }
        if (lowWater > request.request()) {
            throw new AssertionError("low water above the request itself: " + request);
        }
        Long before = session.done.get(request.request());
        if (before != null) {
            return done(request, before);
        }
        if (request.request() < session.lowWater) {
            return refuse(request, Refusal.FENCED);
        }
        if (exclusive && (holder.isEmpty() || itsGeneration != generation)) {
            return refuse(request, Refusal.FENCED);
        }
        if (full) {
            return refuse(request, Refusal.NO_SPACE);
        }
        Stored stored = map.get(block);
        if (expected >= 0 && expected != (stored == null ? 0 : stored.sequence())) {
            conflicts++;
            return refuse(request, Refusal.CONFLICT);
        }
        return null;
    }

    private void run(ClientRequest request, int number, long lowWater) {
        Session session = sessions.get(number);
        if (session == null) {
            throw new AssertionError("no session " + number);
        }
        sequence++;
        session.lowWater = Math.max(session.lowWater, lowWater);
        session.done.put(request.request(), sequence);
        session.done.keySet().removeIf(old -> old < session.lowWater);
        String name = number + "#" + request.request();
        ran.add(name);
        if (!ranOnce.add(name)) {
            throw new AssertionError("ran twice: " + request);
        }
    }

    private List<Run> runs(long block, int count) {
        List<Run> runs = new ArrayList<>();
        long at = block;
        while (at < block + count) {
            Stored first = map.get(at);
            int length = 1;
            while (at + length < block + count && follows(first, map.get(at + length), length)) {
                length++;
            }
            byte[] payload = new byte[0];
            if (first != null && first.sealed() != null) {
                payload = new byte[length * Blocks.SEALED_SIZE];
                for (int i = 0; i < length; i++) {
                    byte[] sealed = sealedOf(map.get(at + i));
                    System.arraycopy(
                            sealed, 0, payload, i * Blocks.SEALED_SIZE, Blocks.SEALED_SIZE);
                }
            }
            runs.add(
                    new Run(
                            at,
                            length,
                            first == null ? 0 : first.sequence(),
                            first == null ? Nonce.NONE : first.nonce(),
                            payload));
            at += length;
        }
        return runs;
    }

    /** The sealed bytes of a block that has some. */
    static byte[] sealedOf(@Nullable Stored stored) {
        byte[] sealed = stored == null ? null : stored.sealed();
        if (sealed == null) {
            throw new AssertionError("no sealed bytes in " + stored);
        }
        return sealed;
    }

    private static boolean follows(@Nullable Stored first, @Nullable Stored next, int distance) {
        if (first == null || next == null) {
            return first == null && next == null;
        }
        return first.sequence() == next.sequence()
                && first.nonce().plus(distance).equals(next.nonce());
    }

    private ClientReply done(ClientRequest request, long value) {
        return new ClientReply.Done(id, request.client(), request.request(), value);
    }

    private ClientReply refuse(ClientRequest request, Refusal why) {
        return new ClientReply.Refused(id, request.client(), request.request(), why, 0, 0, holder);
    }
}
