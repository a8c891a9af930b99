package io.holdfast.client;

import io.holdfast.client.BlockDevice.Outcome;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ClientReply.Refused;
import io.holdfast.proto.peer.ClientRequest;
import org.jspecify.annotations.Nullable;

/**
 * One request to one shard on its way: it waits in its {@link ShardChannel} until it may start,
 * gets a number and a message then, and the message is repeated, unchanged but for its low water,
 * until it is answered or its time is up. Ends with exactly one call of {@link #succeeded} or
 * {@link #refused} or {@link #failed}.
 *
 * <p>A fenced request may start again, as a new message under a new number; see {@link
 * ShardChannel}.
 */
abstract class Request {
    /** Deadline of requests that are given up by other rules. */
    static final long NO_DEADLINE = Long.MAX_VALUE;

    final ShardChannel channel;

    /** Clock reading at which the request fails, or {@link #NO_DEADLINE}. */
    final long deadlineNanos;

    /** Session and claim that the message was made under. */
    int session;

    long generation;

    /** Number of the message, 0 before the start. */
    long number;

    @Nullable ClientRequest message;

    /** How often the message was handed to the links. */
    int sends;

    /** Node it was last sent to, 0: none. */
    int sentTo;

    /** Whether the last sending may still be answered; after a refusal it is not. */
    boolean awaiting;

    /** Times that it was repeated because of silence, for the back-off. */
    int silences;

    /** Refusals that tell to come again, for the back-off. */
    int refusals;

    /** When the message is due for (another) sending. */
    long nextSendNanos;

    /** How long after its start the message is first sent; the next sweep after that sends it. */
    long pauseNanos;

    /** How often it was fenced. */
    int fencings;

    Request(ShardChannel channel, long deadlineNanos) {
        this.channel = channel;
        this.deadlineNanos = deadlineNanos;
    }

    /** Whether the session's exactly-once order covers it; reads and questions are not covered. */
    abstract boolean sequenced();

    /** Whether an exclusive volume must be claimed first. */
    boolean needsClaim() {
        return false;
    }

    /** Whether it opens or ends sessions and claims, and hence does not wait for them. */
    boolean isControl() {
        return false;
    }

    /** Whether running it twice is as good as once. */
    boolean isRepeatable() {
        return false;
    }

    /** Bytes it pins while under way, known before the start. */
    int sizeBytes() {
        return 0;
    }

    /** The message. Called once per start; {@link #session} and {@link #generation} are set. */
    abstract ClientRequest make(long newNumber, long lowWater);

    /** Puts the present low water into a message that is to be repeated. */
    void refresh(long lowWater) {
        ClientRequest current = message;
        if (current != null) {
            message = current.withLowWater(lowWater);
        }
    }

    /** Whether a reply that is no refusal is of the right kind and well-formed. */
    abstract boolean accepts(ClientReply reply);

    /** Answered; {@code reply} was accepted. */
    abstract void succeeded(ClientReply reply);

    /** Refused for good. The channel deals with NOT_LEADER, BUSY, UNKNOWN_SHARD, POWER_LOSS. */
    void refused(Refused refused) {
        failed(outcomeOf(refused));
    }

    /** Failed without an answer: its time is up, or the client is done for. */
    abstract void failed(Outcome outcome);

    static Outcome outcomeOf(Refused refused) {
        return switch (refused.why()) {
            case NO_SPACE -> Outcome.NO_SPACE;
            case HELD, FENCED -> Outcome.NOT_PERMITTED;
            case NOT_LEADER,
                    BUSY,
                    CONFLICT,
                    IO_ERROR,
                    POWER_LOSS,
                    UNKNOWN_SHARD,
                    COPY_UNAVAILABLE,
                    INVALID ->
                    Outcome.IO_ERROR;
        };
    }
}
