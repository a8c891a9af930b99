package io.holdfast.node.runtime;

import io.holdfast.node.replica.Branch;
import io.holdfast.node.replica.Effect;
import io.holdfast.proto.peer.ShardId;

/** What the runtime reports for metrics. Called on the data loop: must be cheap, never block. */
public interface RuntimeObserver {
    /** One gathered write of the journal took this long. */
    void journalWritten(long nanos);

    /** One sync of the journal took this long, waiting for a running one included. */
    void journalSynced(long nanos);

    /** Leadership of a shard as this node's replica sees it has changed. */
    void leadershipChanged(ShardId shard, Effect.Announce announce);

    /** A message of this node to itself found the queue full. */
    void localMessageDropped();

    /** A replica took a rare branch. */
    void branchTaken(Branch branch);

    /**
     * Something has been sent to a follower that is behind: extents, or entries that a majority
     * held already.
     *
     * @param bytes of entries with their headers
     */
    void catchUpSent(CatchUpProgress.By by, long bytes);

    /** The same has arrived here, whether it was of use or not. */
    void catchUpReceived(CatchUpProgress.By by, long bytes);

    /** Reports nothing. */
    RuntimeObserver NONE =
            new RuntimeObserver() {
                @Override
                public void journalWritten(long nanos) {}

                @Override
                public void journalSynced(long nanos) {}

                @Override
                public void leadershipChanged(ShardId shard, Effect.Announce announce) {}

                @Override
                public void localMessageDropped() {}

                @Override
                public void branchTaken(Branch branch) {}

                @Override
                public void catchUpSent(CatchUpProgress.By by, long bytes) {}

                @Override
                public void catchUpReceived(CatchUpProgress.By by, long bytes) {}
            };
}
