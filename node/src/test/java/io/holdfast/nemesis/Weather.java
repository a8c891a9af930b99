package io.holdfast.nemesis;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;

/**
 * When the nodes could be expected to serve. A node is <b>fair</b> while it runs, its clients reach
 * it, and it is among a majority of nodes that run, reach each other, and are not reached by
 * halves: each node that runs either reaches every other of them both ways, or none. With a cut
 * between two nodes of three the third sees a majority, but the node behind the cut may be unable
 * to reach the leader; so then no node is called fair.
 *
 * <p>Thread-safe.
 */
final class Weather {
    private record Change(long nanos, boolean[] fair, boolean[] hidden, boolean roomy) {}

    private final int nodes;
    private final boolean[] running;
    private final boolean[] hidden;
    private final boolean[] full;
    private final boolean[][] cut;
    private final List<Change> changes = new ArrayList<>();

    Weather(int nodes) {
        this.nodes = nodes;
        running = new boolean[nodes];
        hidden = new boolean[nodes];
        full = new boolean[nodes];
        cut = new boolean[nodes][nodes];
        changed();
    }

    /** Whether a node (from 1) runs and can be asked for something. */
    synchronized void running(int node, boolean now) {
        running[node - 1] = now;
        changed();
    }

    /** Whether clients are cut off from a node. */
    synchronized void hidden(int node, boolean now) {
        hidden[node - 1] = now;
        changed();
    }

    /** Whether there is no room on the disk of a node. */
    synchronized void full(int node, boolean now) {
        full[node - 1] = now;
        changed();
    }

    /** Whether messages from one node to another are lost. */
    synchronized void cut(int from, int to, boolean now) {
        cut[from - 1][to - 1] = now;
        changed();
    }

    private void changed() {
        boolean[] fair = new boolean[nodes];
        boolean halves = false;
        boolean roomy = true;
        for (int node = 0; node < nodes; node++) {
            int reached = running[node] ? 1 : 0;
            for (int other = 0; other < nodes; other++) {
                if (node != other && running[node] && running[other]) {
                    reached += cut[node][other] || cut[other][node] ? 0 : 1;
                    halves |= cut[node][other] != cut[other][node];
                }
            }
            roomy &= !full[node];
            fair[node] = running[node] && !hidden[node] && reached > nodes / 2;
        }
        // Reaching is transitive among three unless one pair only is cut.
        for (int a = 0; a < nodes; a++) {
            for (int b = 0; b < nodes; b++) {
                for (int c = 0; c < nodes; c++) {
                    halves |= linked(a, b) && linked(b, c) && !linked(a, c);
                }
            }
        }
        changes.add(
                new Change(
                        System.nanoTime(),
                        halves ? new boolean[nodes] : fair,
                        hidden.clone(),
                        roomy));
    }

    private boolean linked(int a, int b) {
        return running[a] && running[b] && !cut[a][b] && !cut[b][a];
    }

    /**
     * The longest time without a break, from {@code from} to {@code to}, in which a node was fair;
     * 0 if clients were cut off from it meanwhile: TCP sends again only after a while as long as
     * that.
     */
    synchronized long longestFairNanos(int node, long from, long to) {
        long longest = 0;
        long since = Long.MAX_VALUE;
        for (int i = at(from); i < changes.size() && changes.get(i).nanos < to; i++) {
            Change change = changes.get(i);
            if (change.hidden[node - 1]) {
                return 0;
            }
            if (!change.fair[node - 1]) {
                since = Long.MAX_VALUE;
                continue;
            }
            long end = i + 1 < changes.size() ? changes.get(i + 1).nanos : Long.MAX_VALUE;
            since = Math.min(since, Math.max(from, change.nanos));
            longest = Math.max(longest, Math.min(to, end) - since);
        }
        return longest;
    }

    /** Whether a node was fair from {@code from} to {@code to} without a break. */
    synchronized boolean wasFair(int node, long from, long to) {
        return always(from, to, change -> change.fair[node - 1]);
    }

    /** Whether no disk was full from {@code from} to {@code to}. */
    synchronized boolean hadRoom(long from, long to) {
        return always(from, to, Change::roomy);
    }

    private boolean always(long from, long to, Predicate<Change> good) {
        for (int i = at(from); i < changes.size() && changes.get(i).nanos <= to; i++) {
            if (!good.test(changes.get(i))) {
                return false;
            }
        }
        return true;
    }

    /** The change that was the newest at a time. Most ask for times of late: from the end on. */
    private int at(long nanos) {
        int i = changes.size() - 1;
        while (i > 0 && changes.get(i).nanos > nanos) {
            i--;
        }
        return i;
    }
}
