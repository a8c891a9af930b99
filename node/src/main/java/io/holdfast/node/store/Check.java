package io.holdfast.node.store;

import java.util.Arrays;

/** Invariants, always on: a broken one is a fault of ours, and going on could lose data. */
final class Check {
    private Check() {}

    static void that(boolean holds, String invariant, long... values) {
        if (!holds) {
            throw new IllegalStateException(
                    "broken invariant: " + invariant + " " + Arrays.toString(values));
        }
    }
}
