package io.holdfast.client;

import io.holdfast.client.BlockDevice.Outcome;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ClientReply.Refused;
import io.holdfast.proto.peer.ClientRequest;
import java.util.function.Consumer;
import java.util.function.LongFunction;
import java.util.function.LongPredicate;

/**
 * Opens or ends a session or a claim. It has no time-out of its own: it is repeated as long as the
 * client lives, since later calls need it anyway.
 */
final class ControlRequest extends Request {
    private final LongFunction<ClientRequest> maker;
    private final LongPredicate valid;
    private final Consumer<ClientReply> answered;

    /**
     * A request.
     *
     * @param maker makes the message from the request's number
     * @param valid whether the value of a Done is one that can be
     * @param answered receives the Done or the Refused
     */
    ControlRequest(
            ShardChannel channel,
            LongFunction<ClientRequest> maker,
            LongPredicate valid,
            Consumer<ClientReply> answered) {
        super(channel, NO_DEADLINE);
        this.maker = maker;
        this.valid = valid;
        this.answered = answered;
    }

    @Override
    boolean sequenced() {
        return true;
    }

    @Override
    boolean isControl() {
        return true;
    }

    @Override
    ClientRequest make(long newNumber, long lowWater) {
        return maker.apply(newNumber);
    }

    @Override
    boolean accepts(ClientReply reply) {
        return reply instanceof ClientReply.Done done && valid.test(done.value());
    }

    @Override
    void succeeded(ClientReply reply) {
        answered.accept(reply);
    }

    @Override
    void refused(Refused refused) {
        answered.accept(refused);
    }

    @Override
    void failed(Outcome outcome) {
        throw new IllegalStateException("control request " + number + " cannot fail: " + outcome);
    }
}
