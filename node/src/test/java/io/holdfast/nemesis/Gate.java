package io.holdfast.nemesis;

import java.time.Duration;

/** Where clients rest between two parts of the history. Thread-safe. */
final class Gate {
    private final int clients;
    private int resting;
    private boolean closed;
    private boolean over;

    Gate(int clients) {
        this.clients = clients;
    }

    synchronized boolean isClosed() {
        return closed;
    }

    /** Whether clients have to end. */
    synchronized boolean isOver() {
        return over;
    }

    /** A client that has nothing under way waits here until the gate opens. */
    synchronized void rest() throws InterruptedException {
        resting++;
        notifyAll();
        while (closed && !over) {
            wait();
        }
        resting--;
    }

    /** Closes the gate and waits until all clients rest; false when they do not in time. */
    synchronized boolean close(Duration limit) throws InterruptedException {
        closed = true;
        long deadline = System.nanoTime() + limit.toNanos();
        while (resting < clients) {
            long millis = (deadline - System.nanoTime()) / 1_000_000;
            if (millis <= 0) {
                return false;
            }
            wait(millis);
        }
        return true;
    }

    synchronized void open() {
        closed = false;
        notifyAll();
    }

    synchronized void end() {
        over = true;
        notifyAll();
    }
}
