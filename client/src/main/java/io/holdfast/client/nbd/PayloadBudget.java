package io.holdfast.client.nbd;

import java.util.ArrayDeque;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.LongSupplier;

/**
 * What the payloads of all connections of a server may hold together, bytes. A READ or WRITE takes
 * its length before its buffer is made, and the length comes back with the buffer: when a WRITE was
 * answered, when the client has taken a READ's data, or when the connection is gone and the device
 * has completed.
 *
 * <p>Small requests have a part of their own ({@link Pool}), so that they never queue behind large
 * ones. In each pool, who does not fit waits in line, and nobody overtakes. A connection waits for
 * one request at a time, so the lines are as long as there are connections.
 *
 * <p>Nobody waits for ever: what was taken is with the device, which completes; or with a client
 * that sends or takes data, which {@link Holder#onCheck} ends when it is too slow. A connection
 * that waits receives no payload meanwhile, and what it holds otherwise ends without it.
 *
 * <p>On the server's event loop throughout.
 */
final class PayloadBudget {
    /** Requests up to this length are small, bytes; stock clients rarely send longer ones. */
    static final int SMALL_REQUEST = 256 << 10;

    /** One part in so many of the budget is for small requests. */
    static final int SMALL_SHARE = 4;

    /** A connection that may hold or wait for bytes. */
    interface Holder {
        /** The bytes waited for are taken; called from within another holder's release. */
        void onGranted();

        /** Time to end what makes no progress. */
        void onCheck(long nowNanos);
    }

    /** The part of the budget for requests of one class. */
    final class Pool {
        private record Waiter(Holder holder, long bytes) {}

        private final long limitBytes;
        private final ArrayDeque<Waiter> waiters = new ArrayDeque<>();
        private long heldBytes;

        private Pool(long limitBytes) {
            this.limitBytes = limitBytes;
        }

        /** Takes {@code bytes} if they fit and nobody waits. */
        boolean tryTake(long bytes) {
            if (!waiters.isEmpty() || bytes > limitBytes - heldBytes) {
                return false;
            }
            take(bytes);
            return true;
        }

        /** Waits in line for {@code bytes}, until {@link Holder#onGranted} or {@link #cancel}. */
        void await(Holder holder, long bytes) {
            if (bytes > limitBytes) {
                throw new IllegalArgumentException(bytes + " bytes of " + limitBytes);
            }
            waiters.add(new Waiter(holder, bytes));
        }

        /** Leaves the line. */
        void cancel(Holder holder) {
            waiters.removeIf(waiter -> waiter.holder.equals(holder));
            grant();
        }

        /** Gives {@code bytes} back. */
        void release(long bytes) {
            if (bytes > heldBytes) {
                throw new IllegalStateException("%d bytes of %d".formatted(bytes, heldBytes));
            }
            heldBytes -= bytes;
            grant();
        }

        /** Whether somebody waits. */
        boolean pressed() {
            return !waiters.isEmpty();
        }

        private void grant() {
            Waiter first = waiters.peek();
            while (first != null && first.bytes <= limitBytes - heldBytes) {
                waiters.remove();
                take(first.bytes);
                first.holder.onGranted();
                first = waiters.peek();
            }
        }

        private void take(long bytes) {
            heldBytes += bytes;
            scheduleCheck();
        }
    }

    private final Pool small;
    private final Pool large;
    private final long checkPeriodNanos;
    private final LongSupplier nanoTime;
    private final Consumer<Runnable> afterCheckPeriod;
    private final Set<Holder> holders = new LinkedHashSet<>();
    private final Runnable check = this::check;
    private boolean checkScheduled;
    private long checkDueNanos;

    /**
     * @param nanoTime a clock like {@link System#nanoTime}
     * @param afterCheckPeriod runs a task on the loop after {@link NbdLimits.Payloads#checkPeriod}
     */
    PayloadBudget(
            NbdLimits.Payloads limits, LongSupplier nanoTime, Consumer<Runnable> afterCheckPeriod) {
        long smallBytes = limits.budgetBytes() / SMALL_SHARE;
        this.small = new Pool(smallBytes);
        this.large = new Pool(limits.budgetBytes() - smallBytes);
        this.checkPeriodNanos = limits.checkPeriod().toNanos();
        this.nanoTime = nanoTime;
        this.afterCheckPeriod = afterCheckPeriod;
    }

    /** The pool for a request with a payload of {@code bytes}. */
    Pool pool(long bytes) {
        return bytes <= SMALL_REQUEST ? small : large;
    }

    Pool small() {
        return small;
    }

    Pool large() {
        return large;
    }

    /** Checks {@code holder} from now on. */
    void add(Holder holder) {
        holders.add(holder);
    }

    void remove(Holder holder) {
        holders.remove(holder);
    }

    /** What is taken at present, bytes. */
    long heldBytes() {
        return small.heldBytes + large.heldBytes;
    }

    /** One check serves all; it runs while anything is held, whoever took it. */
    private void scheduleCheck() {
        if (!checkScheduled) {
            checkScheduled = true;
            checkDueNanos = nanoTime.getAsLong() + checkPeriodNanos;
            afterCheckPeriod.accept(check);
        }
    }

    private void check() {
        long now = nanoTime.getAsLong();
        boolean late = now - checkDueNanos > checkPeriodNanos;
        checkScheduled = false;
        if (heldBytes() == 0) {
            return;
        }
        scheduleCheck();
        if (late) {
            // The process or its loop stood still. What clients did meanwhile is still in the
            // sockets: they are judged when it has been read.
            return;
        }
        for (Holder holder : List.copyOf(holders)) {
            holder.onCheck(now);
        }
    }
}
