package io.holdfast.nemesis;

import io.holdfast.nemesis.Operation.Kind;
import io.holdfast.nemesis.Operation.State;
import java.io.EOFException;
import java.io.IOException;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * Reads and writes a volume through one node at a time, some requests at once. When its connection
 * breaks, or its patience ends, it goes on through another node, as a multipath client would: what
 * was under way is in doubt. Sometimes it leaves the old connection open, so that the node does not
 * know.
 *
 * <p>Of an <b>exclusive</b> volume it is the only user, and always comes back through another node
 * than the one it left. There a write that is acknowledged settles all that are in doubt at other
 * nodes: they are fenced, and must never be seen afterwards unless they took effect before. (Shared
 * volumes promise less: a request of a connection that is gone may run until the leader knows.)
 *
 * <p>Runs in a thread of its own.
 */
final class Client implements Runnable {
    private static final int DEPTH = 4;
    private static final long MEAN_PAUSE_NANOS = 8_000_000;
    private static final Duration CONNECT_LIMIT = Duration.ofSeconds(4);

    /** Opening an exclusive volume waits for the last holder to go. */
    private static final Duration EXCLUSIVE_CONNECT_LIMIT = Duration.ofSeconds(15);

    private static final long RETRY_NANOS = 100_000_000;
    private static final long REFUSED_NANOS = 400_000_000;
    private static final long SECOND = 1_000_000_000;
    private static final int MOST_ABANDONED = 3;

    private final String name;
    private final boolean exclusive;
    private final Stage stage;
    private final VolumeHistory history;
    private final Random random;

    private final Map<Long, Operation> underWay = new LinkedHashMap<>();

    /** Of an exclusive volume only. */
    private final List<Operation> inDoubt = new ArrayList<>();

    private final Deque<NbdSession> abandoned = new ArrayDeque<>();
    private @Nullable NbdSession session;
    private int node;
    private int connection;
    private long connectedNanos;

    /** When the newest write began that was done through this connection. */
    private long provenNanos = Judge.NO_PROOF;

    private long patienceNanos;
    private long leaveAtNanos;
    private long nextSendNanos;
    private long cookie;

    Client(
            String name,
            boolean exclusive,
            int firstNode,
            Stage stage,
            VolumeHistory history,
            Random random) {
        this.name = name;
        this.exclusive = exclusive;
        this.node = firstNode;
        this.stage = stage;
        this.history = history;
        this.random = random;
    }

    String name() {
        return name;
    }

    @Override
    public void run() {
        try {
            while (!stage.gate.isOver()) {
                turn();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (RuntimeException | Error e) {
            // Otherwise the run would go on with a client less.
            stage.verdict.violation("none: the test itself", name + " failed: " + e, trace(e));
            throw e;
        } finally {
            if (session != null) {
                session.close();
            }
            abandoned.forEach(NbdSession::close);
        }
    }

    private static List<String> trace(Throwable e) {
        List<String> lines = new ArrayList<>();
        for (StackTraceElement at : e.getStackTrace()) {
            lines.add("  at " + at);
        }
        return lines;
    }

    private void turn() throws InterruptedException {
        if (underWay.isEmpty() && stage.gate.isClosed()) {
            while (!abandoned.isEmpty()) {
                abandoned.pop().close();
            }
            stage.gate.rest();
            return;
        }
        NbdSession open = session;
        if (open == null) {
            connect();
            return;
        }
        try {
            long now = System.nanoTime();
            boolean leaving = now > leaveAtNanos || stage.gate.isClosed();
            if (leaving && underWay.isEmpty()) {
                leave(false);
            } else if (!leaving && underWay.size() < DEPTH && now >= nextSendNanos) {
                send(open);
            } else if (!underWay.isEmpty()) {
                receive(open);
            } else {
                LockSupport.parkNanos(nextSendNanos - now);
            }
        } catch (SocketTimeoutException e) {
            giveUp(State.UNKNOWN);
        } catch (EOFException | SocketException e) {
            giveUp(State.HUNG_UP);
        } catch (IOException e) {
            giveUp(State.UNKNOWN);
        }
    }

    private void connect() {
        connection = stage.newConnection();
        connectedNanos = System.nanoTime();
        provenNanos = Judge.NO_PROOF;
        try {
            NbdSession fresh =
                    NbdSession.open(
                            stage.endpoint(node).nbdAddress(),
                            history.volume,
                            exclusive ? EXCLUSIVE_CONNECT_LIMIT : CONNECT_LIMIT);
            if (fresh.isReadOnly()) {
                fresh.close();
                stage.verdict.note("attached read-only, another holds the volume", 1);
                moveOn();
                LockSupport.parkNanos(REFUSED_NANOS);
                return;
            }
            session = fresh;
            // Most are more patient than the volume; some come back while it still tries.
            patienceNanos = (random.nextInt(3) == 0 ? 2 + random.nextInt(6) : 60) * SECOND;
            leaveAtNanos = System.nanoTime() + (5 + random.nextInt(60)) * SECOND;
        } catch (IOException e) {
            moveOn();
            LockSupport.parkNanos(RETRY_NANOS);
        }
    }

    private void moveOn() {
        node = 1 + (node + random.nextInt(stage.endpoints.size() - 1)) % stage.endpoints.size();
    }

    private void leave(boolean silently) {
        NbdSession old = session;
        session = null;
        if (old == null) {
            return;
        }
        if (silently) {
            abandoned.add(old);
            if (abandoned.size() > MOST_ABANDONED) {
                abandoned.pop().close();
            }
        } else {
            old.close();
        }
        moveOn();
    }

    private void giveUp(State state) {
        long now = System.nanoTime();
        for (Operation operation : underWay.values()) {
            operation.state = state;
            end(operation, now);
        }
        underWay.clear();
        leave(random.nextInt(3) == 0);
    }

    private void send(NbdSession open) throws IOException {
        nextSendNanos = System.nanoTime() + random.nextLong(2 * MEAN_PAUSE_NANOS);
        int draw = random.nextInt(100);
        int first = random.nextInt(VolumeHistory.REGISTERS);
        int room = VolumeHistory.GROUP - first % VolumeHistory.GROUP;
        int count = random.nextInt(4) == 0 ? Math.min(room, 1 + random.nextInt(4)) : 1;
        Kind kind = draw < 55 ? Kind.WRITE : draw < 96 ? Kind.READ : Kind.FLUSH;
        if (kind == Kind.FLUSH) {
            count = 0;
        }
        long value = kind == Kind.WRITE ? stage.newValues(count) : 0;
        byte[] data = kind == Kind.WRITE ? BlockContents.of(first, value, count) : new byte[0];
        boolean fua = random.nextInt(20) == 0;
        Operation operation =
                new Operation(kind, name, connection, node, first, count, value, System.nanoTime());
        history.add(operation);
        cookie++;
        underWay.put(cookie, operation);
        long offset = VolumeHistory.offset(first);
        switch (kind) {
            case READ -> open.read(cookie, offset, count * VolumeHistory.BLOCK_BYTES);
            case WRITE -> open.write(cookie, offset, data, fua);
            case FLUSH -> open.flush(cookie);
        }
    }

    private void receive(NbdSession open) throws IOException {
        Operation oldest = underWay.values().iterator().next();
        NbdSession.Reply reply = open.reply(oldest.beganNanos + patienceNanos);
        Operation operation = underWay.get(reply.cookie());
        if (operation == null) {
            stage.verdict.violation(
                    "NBD", name + " got an answer to nothing: cookie " + reply.cookie(), List.of());
            throw new IOException("unknown cookie");
        }
        if (reply.error() == 0 && operation.kind == Kind.READ) {
            byte[] data = open.data(operation.count * VolumeHistory.BLOCK_BYTES);
            try {
                operation.seen = BlockContents.valuesOf(operation.first, data);
            } catch (BlockContents.TornBlock torn) {
                stage.verdict.violation(
                        "P3: a block is read as it was written",
                        torn.getMessage(),
                        List.of(history.describe(operation)));
                throw new IOException(torn);
            }
        }
        underWay.remove(reply.cookie());
        operation.error = reply.error();
        operation.state = reply.error() == 0 ? State.DONE : State.FAILED;
        end(operation, System.nanoTime());
        if (operation.state == State.FAILED && (exclusive || random.nextBoolean())) {
            throw new IOException("goes on elsewhere after an error");
        }
    }

    private void end(Operation operation, long now) {
        operation.endedNanos = now;
        stage.ended(operation, history, exclusive, connectedNanos, provenNanos);
        if (operation.kind != Kind.WRITE || !exclusive) {
            return;
        }
        if (operation.state != State.DONE) {
            inDoubt.add(operation);
            return;
        }
        provenNanos = operation.beganNanos;
        inDoubt.removeIf(old -> {
            boolean fenced = old.connection < connection && old.node != node;
            if (fenced) {
                old.settledNanos = now;
            }
            return fenced;
        });
    }
}
