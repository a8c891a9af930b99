package io.holdfast.simulation;

import io.holdfast.node.replica.Event;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ClientRequest;
import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.PeerMessage;
import io.holdfast.proto.peer.ReplicaMessage;
import io.holdfast.proto.peer.ScrubMessage;
import java.util.List;

/**
 * Events in words, for the trace. Unlike {@code toString} of the records, the words are the same in
 * every run: arrays and entries have no identity in them.
 */
final class Describe {
    private Describe() {}

    static String event(Event event) {
        return switch (event) {
            case Event.FromPeer peer -> "from " + peer.from() + " " + message(peer.message());
            case Event.FromClient client ->
                    "from " + client.origin() + " " + message(client.request());
            default -> event.toString();
        };
    }

    static String message(PeerMessage message) {
        return switch (message) {
            case ReplicaMessage.Append append ->
                    "Append["
                            + append.epoch()
                            + " after "
                            + append.previousEpoch()
                            + ":"
                            + append.previousSequence()
                            + " commit "
                            + append.commit()
                            + " sync "
                            + append.syncThrough()
                            + (append.promote() ? " promote" : "")
                            + " sent "
                            + append.sentNanos()
                            + entries(append.entries())
                            + "]";
            case ReplicaMessage.InstallBegin begin ->
                    "InstallBegin["
                            + begin.epoch()
                            + " since "
                            + begin.since()
                            + " base "
                            + begin.baseEpoch()
                            + ":"
                            + begin.baseSequence()
                            + "]";
            case ReplicaMessage.InstallExtents part ->
                    "InstallExtents["
                            + part.epoch()
                            + " "
                            + part.from().block()
                            + ".."
                            + part.next().block()
                            + (part.done() ? " done" : "")
                            + entries(part.extents())
                            + "]";
            case ReplicaMessage.FetchedBlock copy ->
                    "FetchedBlock["
                            + copy.epoch()
                            + " #"
                            + copy.fetch()
                            + " block "
                            + copy.block()
                            + "@"
                            + copy.sequence()
                            + " "
                            + copy.nonce()
                            + (copy.intact() ? " intact" : "")
                            + (copy.payload().length == 0 ? " empty" : "")
                            + "]";
            case ReplicaMessage other -> other.toString();
            case ScrubMessage scrub -> scrub.toString();
            case ClientRequest.Write write ->
                    "Write["
                            + write.shard()
                            + " "
                            + write.client()
                            + "#"
                            + write.request()
                            + " session "
                            + write.session()
                            + " low "
                            + write.lowWater()
                            + " generation "
                            + write.generation()
                            + " blocks "
                            + write.block()
                            + "+"
                            + write.count()
                            + " expects "
                            + write.expectedSequence()
                            + (write.fua() ? " fua" : "")
                            + "]";
            case ClientRequest other -> other.toString();
            case ClientReply.Data data -> {
                StringBuilder text = new StringBuilder("Data[");
                text.append(data.client()).append('#').append(data.request());
                for (ClientReply.Run run : data.runs()) {
                    text.append(' ').append(run.block()).append('+').append(run.count());
                    text.append('@').append(run.sequence());
                }
                yield text.append(']').toString();
            }
            case ClientReply other -> other.toString();
        };
    }

    private static String entries(List<Entry> entries) {
        if (entries.isEmpty()) {
            return "";
        }
        Entry first = entries.getFirst();
        Entry last = entries.getLast();
        return " entries " + first + (first == last ? "" : " .. " + last);
    }
}
