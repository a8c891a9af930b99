package io.holdfast.node.store;

/** What the simulator, which lives elsewhere, may ask of a store beyond its port. */
public final class StoreInside {
    private StoreInside() {}

    /** Lets go of a store as the end of its process does. */
    public static void abandon(JournalStore store) {
        store.abandon();
    }

    /** Whether the start cut off a torn or unsynced tail. */
    public static boolean tailWasCut(JournalStore store) {
        return store.tailWasCut();
    }

    /** Begins a checkpoint, unless one is under way. */
    public static void checkpoint(JournalStore store) {
        if (!store.checkpointRunning()) {
            store.checkpoint();
        }
    }
}
