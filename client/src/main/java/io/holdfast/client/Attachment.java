package io.holdfast.client;

import io.holdfast.client.BlockDevice.Outcome;
import io.holdfast.client.crypto.NonceSource;
import io.holdfast.proto.catalogue.Volume;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ClientReply.Refused;
import io.holdfast.proto.peer.ClientRequest;
import java.util.Arrays;
import java.util.function.Consumer;
import java.util.function.LongFunction;
import java.util.function.LongPredicate;
import org.jspecify.annotations.Nullable;

/**
 * The session and, for an exclusive volume, the claim of one volume client.
 *
 * <p>The session number is granted by shard 0 and then told to each other shard before the first
 * request there; likewise the claim's generation, when the first write comes. A session that a
 * shard turns out not to know is given up as a whole, and a new number is asked for: a number is
 * never opened twice at the same shard after it was closed there, and nonces come from one source
 * per number.
 *
 * <p>An attachment has one generation for its whole life, and leaders know it by its first session,
 * which tells older from newer ones of the same user. When a shard fences a request made under it,
 * shard 0 is asked whether the claim still stands (the shard may have forgotten the session only).
 * If a newer one has been granted, the attachment is over: its user may be writing elsewhere since,
 * and whatever is under way or waits here, or still comes in over an old connection, would undo
 * that (promise P4). Claiming once more is left to a new attachment.
 */
final class Attachment {
    /** After HELD, writes are refused for this long before the leader is asked again. */
    static final long HELD_NANOS = 1_000_000_000L;

    /** A session given up sooner than this after its opening is not replaced before it. */
    static final long REOPEN_NANOS = 100_000_000L;

    /** Whether a request may start. */
    enum Readiness {
        READY,
        WAIT,
        /** Another client holds the volume. */
        HELD
    }

    private enum Told {
        NO,
        ASKED,
        YES
    }

    private final VolumeClient client;
    private final boolean exclusive;
    private final Told[] sessionAt;
    private final Told[] claimAt;
    private int session;

    /** What leaders know this attachment by, though its session may be replaced. */
    private int firstSession;

    private long generation;
    private @Nullable NonceSource nonces;
    private long openAllowedNanos;
    private long heldUntilNanos;
    private boolean wasOpened;
    private boolean wasHeld;

    /** A request under the claim was fenced, and shard 0 has not yet said why. */
    private boolean doubted;

    Attachment(VolumeClient client, Volume volume) {
        this.client = client;
        exclusive = volume.attach() == Volume.Attach.EXCLUSIVE;
        sessionAt = new Told[volume.shards().size()];
        claimAt = new Told[volume.shards().size()];
        Arrays.fill(claimAt, Told.NO);
        forgetSession();
    }

    /** Whether writes need a claim. */
    boolean isExclusive() {
        return exclusive;
    }

    int session() {
        return session;
    }

    /** Of the claim, 0: never granted. */
    long generation() {
        return generation;
    }

    /** Whether the volume is claimed, as far as is known here. */
    boolean isClaimed() {
        return claimAt[0] == Told.YES;
    }

    /**
     * The nonces of the current session.
     *
     * @throws IllegalStateException when there is no session
     */
    NonceSource nonces() {
        if (nonces == null) {
            throw new IllegalStateException("no nonces without a session");
        }
        return nonces;
    }

    /** Asks for a session, if there is none, so that the first write does not wait for it. */
    void open() {
        if (session != 0 || sessionAt[0] != Told.NO) {
            return;
        }
        long now = client.now();
        if (wasOpened && now - openAllowedNanos < 0) {
            return; // the sweep comes here again
        }
        wasOpened = true;
        openAllowedNanos = now + REOPEN_NANOS;
        sessionAt[0] = Told.ASKED;
        ShardChannel first = client.channel(0);
        control(
                first,
                number -> new ClientRequest.OpenSession(first.id, client.number(), number, 0),
                value -> value >= 1 && value <= Integer.MAX_VALUE,
                this::onGranted);
    }

    private void onGranted(ClientReply reply) {
        if (!(reply instanceof ClientReply.Done done)) {
            sessionAt[0] = Told.NO;
            client.failWaiting(outcome(reply));
            return;
        }
        session = (int) done.value();
        if (firstSession == 0) {
            firstSession = session;
        }
        nonces = new NonceSource(client.keyId(), session);
        sessionAt[0] = Told.YES;
        client.events().sessionOpened(client.volumeNumber());
        for (int i = 1; i < sessionAt.length; i++) {
            tellSession(client.channel(i));
        }
        client.pumpAll();
    }

    private void tellSession(ShardChannel channel) {
        int told = session;
        sessionAt[channel.index] = Told.ASKED;
        control(
                channel,
                number -> new ClientRequest.OpenSession(channel.id, client.number(), number, told),
                reply -> {
                    if (told != session) {
                        return;
                    }
                    if (reply instanceof ClientReply.Done) {
                        sessionAt[channel.index] = Told.YES;
                        channel.pump();
                    } else if (isFenced(reply)) {
                        forgetSession();
                        client.pumpAll();
                    } else {
                        sessionAt[channel.index] = Told.NO;
                        channel.failWaiting(outcome(reply));
                    }
                });
    }

    /** Whether a request may start, after asking for what it lacks. */
    Readiness readiness(ShardChannel channel, Request request) {
        if (session == 0) {
            open();
            return Readiness.WAIT;
        }
        if (sessionAt[channel.index] != Told.YES) {
            if (sessionAt[channel.index] == Told.NO) {
                tellSession(channel);
            }
            return Readiness.WAIT;
        }
        if (!exclusive || !request.needsClaim()) {
            return Readiness.READY;
        }
        if (claimAt[0] == Told.ASKED) {
            return Readiness.WAIT;
        }
        if (claimAt[0] == Told.NO) {
            if (wasHeld && client.now() - heldUntilNanos < 0) {
                return Readiness.HELD;
            }
            claim();
            return Readiness.WAIT;
        }
        if (claimAt[channel.index] != Told.YES) {
            if (claimAt[channel.index] == Told.NO) {
                tellClaim(channel);
            }
            return Readiness.WAIT;
        }
        return Readiness.READY;
    }

    /** Asks for the claim, or whether the one that this attachment had still stands. */
    private void claim() {
        long had = generation;
        claimAt[0] = Told.ASKED;
        ShardChannel first = client.channel(0);
        control(
                first,
                number ->
                        new ClientRequest.Claim(
                                first.id,
                                client.number(),
                                number,
                                firstSession,
                                client.identity().name(),
                                had,
                                false),
                value -> had == 0 ? value >= 1 : value == had,
                reply -> {
                    claimAt[0] = Told.NO;
                    wasHeld = false;
                    if (reply instanceof ClientReply.Done done) {
                        claimAt[0] = Told.YES;
                        onClaimStands(done.value());
                    } else if (reply instanceof Refused refused
                            && refused.why() == ClientReply.Refusal.HELD) {
                        wasHeld = true;
                        heldUntilNanos = client.now() + HELD_NANOS;
                    } else if (isFenced(reply)) {
                        client.onSuperseded(had);
                    } else {
                        client.failWaiting(outcome(reply));
                    }
                    client.pumpAll();
                });
    }

    private void onClaimStands(long granted) {
        if (generation == 0) {
            generation = granted;
            client.events().claimGranted(client.volumeNumber(), generation);
        } else if (doubted) {
            // What fenced a request was not a newer claim, so its shard has forgotten the session.
            forgetSession();
        }
        doubted = false;
    }

    private void tellClaim(ShardChannel channel) {
        long told = generation;
        claimAt[channel.index] = Told.ASKED;
        control(
                channel,
                number ->
                        new ClientRequest.Claim(
                                channel.id,
                                client.number(),
                                number,
                                firstSession,
                                client.identity().name(),
                                told,
                                false),
                reply -> {
                    if (reply instanceof ClientReply.Done) {
                        claimAt[channel.index] = Told.YES;
                        channel.pump();
                    } else if (isFenced(reply)) {
                        client.onSuperseded(told);
                    } else {
                        claimAt[channel.index] = Told.NO;
                        channel.failWaiting(outcome(reply));
                    }
                });
    }

    /** A request was fenced: its claim is over, or its session is; shard 0 knows of the claim. */
    void onFenced(Request request) {
        if (request.session != session) {
            return;
        }
        if (!exclusive || !request.needsClaim()) {
            forgetSession();
        } else if (claimAt[0] == Told.YES) {
            doubted = true;
            Arrays.fill(claimAt, Told.NO);
        }
    }

    private void forgetSession() {
        session = 0;
        nonces = null;
        Arrays.fill(sessionAt, Told.NO);
    }

    /** Whether an answer is outstanding that would grant a session or a claim. */
    boolean isAsking() {
        return (session == 0 && sessionAt[0] == Told.ASKED)
                || (generation == 0 && claimAt[0] == Told.ASKED);
    }

    /** Gives up the claim, then the session, everywhere; {@code done} when all shards answered. */
    void detach(Runnable done) {
        long claimed = generation;
        Countdown released = new Countdown(() -> closeSessions(done));
        for (int i = 0; claimed != 0 && i < claimAt.length; i++) {
            // A shard that was not told of the claim just says so.
            ShardChannel channel = client.channel(i);
            released.expect();
            control(
                    channel,
                    number ->
                            new ClientRequest.Release(
                                    channel.id, client.number(), number, firstSession, claimed),
                    reply -> released.arrived());
        }
        released.arrived();
    }

    private void closeSessions(Runnable done) {
        Countdown closed = new Countdown(done);
        for (int i = 0; i < sessionAt.length; i++) {
            if (session != 0 && sessionAt[i] != Told.NO) {
                closeSession(client.channel(i), session, closed);
            }
            if (firstSession != 0 && firstSession != session) {
                closeSession(client.channel(i), firstSession, closed);
            }
        }
        closed.arrived();
    }

    private void closeSession(ShardChannel channel, int closing, Countdown closed) {
        closed.expect();
        control(
                channel,
                number ->
                        new ClientRequest.CloseSession(
                                channel.id, client.number(), number, closing),
                reply -> closed.arrived());
    }

    private static final class Countdown {
        private final Runnable done;
        private int open = 1;

        Countdown(Runnable done) {
            this.done = done;
        }

        void expect() {
            open++;
        }

        void arrived() {
            if (--open == 0) {
                done.run();
            }
        }
    }

    private static void control(
            ShardChannel channel,
            LongFunction<ClientRequest> maker,
            Consumer<ClientReply> answered) {
        control(channel, maker, value -> true, answered);
    }

    private static void control(
            ShardChannel channel,
            LongFunction<ClientRequest> maker,
            LongPredicate valid,
            Consumer<ClientReply> answered) {
        channel.submit(new ControlRequest(channel, maker, valid, answered));
    }

    private static boolean isFenced(ClientReply reply) {
        return reply instanceof Refused refused && refused.why() == ClientReply.Refusal.FENCED;
    }

    private static Outcome outcome(ClientReply reply) {
        return reply instanceof Refused refused ? Request.outcomeOf(refused) : Outcome.IO_ERROR;
    }
}
