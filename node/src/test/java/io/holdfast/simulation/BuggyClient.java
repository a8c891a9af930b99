package io.holdfast.simulation;

import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ClientRequest;
import java.util.HashSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Falsifies what a volume client sends and is answered; without a bug for it, nothing. */
final class BuggyClient {
    /** What is added to the number of a repeated write. */
    private static final long RENUMBERED = 30_000;

    private final PlantedBug bug;
    private final SimCluster cluster;
    private final String identity;
    private final Set<Long> sentBefore = new HashSet<>();

    BuggyClient(PlantedBug bug, SimCluster cluster, String identity) {
        this.bug = bug;
        this.cluster = cluster;
        this.identity = identity;
    }

    /** What goes to the network instead of a request. */
    ClientRequest sending(ClientRequest request) {
        if (!(request instanceof ClientRequest.Write write)) {
            return request;
        }
        return switch (bug) {
            case REPEATED_AS_ANOTHER ->
                    sentBefore.add(write.request())
                            ? write
                            : copy(write, write.request() + RENUMBERED, write.expectedSequence());
            case MERGED_UNCONDITIONALLY ->
                    copy(write, write.request(), ClientRequest.UNCONDITIONAL);
            default -> request;
        };
    }

    private static ClientRequest copy(ClientRequest.Write write, long request, long expected) {
        return new ClientRequest.Write(
                write.shard(),
                write.client(),
                request,
                write.session(),
                write.lowWater(),
                write.generation(),
                write.layer(),
                write.block(),
                write.count(),
                write.nonce(),
                expected,
                write.fua(),
                write.payload());
    }

    /** What the volume client gets instead of a reply. */
    ClientReply answered(ClientReply reply) {
        if (bug != PlantedBug.REPEATED_AS_ANOTHER || reply.request() <= RENUMBERED) {
            return reply;
        }
        long request = reply.request() - RENUMBERED;
        return switch (reply) {
            case ClientReply.Done done ->
                    new ClientReply.Done(done.shard(), done.client(), request, done.value());
            case ClientReply.Refused refused ->
                    new ClientReply.Refused(
                            refused.shard(),
                            refused.client(),
                            request,
                            refused.why(),
                            refused.leader(),
                            refused.epoch(),
                            refused.text());
            default -> reply;
        };
    }

    /** An answer that no leader gave, to a request that then reaches none. */
    @Nullable ClientReply forged(ClientRequest request) {
        if (bug != PlantedBug.GENERATION_NOT_RAISED
                || !(request instanceof ClientRequest.Claim claim)
                || !identity.equals(cluster.newestHolder())) {
            return null;
        }
        return new ClientReply.Done(
                claim.shard(), claim.client(), claim.request(), cluster.newestGeneration());
    }
}
