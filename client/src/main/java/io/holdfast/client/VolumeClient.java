package io.holdfast.client;

import io.holdfast.client.crypto.BlockCipher;
import io.holdfast.client.crypto.CorruptBlockException;
import io.holdfast.client.crypto.VolumeKey;
import io.holdfast.proto.catalogue.Volume;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.ClientReply;
import io.holdfast.proto.peer.ClientReply.Run;
import io.holdfast.proto.peer.ClientRequest;
import io.netty.buffer.ByteBuf;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One volume as a block device over the cluster. A {@link Call} is cut into {@link Request}s of one
 * shard each; a {@link ShardChannel} per shard numbers, sends and repeats them; the {@link
 * Attachment} has the session and the claim; {@link PartialWrites} merges what is smaller than a
 * block. Blocks are sealed before they are handed to {@link ShardLinks} and opened after they came
 * from there (promise P7).
 *
 * <p>Everything on one thread; no clock, no thread, no randomness inside, so that it runs in the
 * simulator as it does in a node.
 *
 * <p>After a power loss of a majority every call fails, {@link #flush} included, until the volume
 * is opened again by a new client (promise P5). So it is when the claim of an exclusive volume was
 * taken over, by the same user through another client or because this one was held for dead: what
 * is still under way here belongs to the past (promise P4).
 */
public final class VolumeClient implements BlockDevice {
    private static final Logger log = LoggerFactory.getLogger(VolumeClient.class);

    private static final long MS = 1_000_000;

    /** How often time-outs and repetitions are looked at, while anything is under way. */
    static final long SWEEP_NANOS = 20 * MS;

    /** Most calls at once; more fail with {@link BlockDevice.Outcome#IO_ERROR}. */
    static final int MAX_CALLS = 65_536;

    /**
     * How much may be under way at once; more waits.
     *
     * @param requests to leaders
     * @param bytes of sealed blocks, asked for or sent; a single larger request goes alone
     */
    public record Window(int requests, int bytes) {
        /** What production uses. */
        public static final Window DEFAULT = new Window(1_024, 64 << 20);
    }

    /** How long closing waits for the leaders to hear of it. */
    static final long CLOSE_NANOS = 5_000 * MS;

    /** Corrupt blocks that are logged; further ones are only counted. */
    static final int MAX_LOGGED_BLOCKS = 1_024;

    private final Window window;

    private enum State {
        OPEN,
        /** No further calls; the ones under way complete. */
        CLOSING,
        /** Claim and session are being given up. */
        DETACHING,
        CLOSED
    }

    private final int number;
    private final int node;
    private final ClientIdentity identity;
    private final ShardLinks links;
    private final Timers timers;
    private final ClientEvents events;
    private final BlockCipher cipher;
    private final int volumeNumber;
    private final String volumeName;
    private final long sizeBytes;
    private final long stripeBlocks;
    private final long timeoutNanos;
    private final int layer;
    private final ShardChannel[] channels;
    private final Attachment attachment;
    private final PartialWrites partialWrites;
    private final byte[] block = new byte[Blocks.SIZE];
    private final byte[] entry = new byte[Blocks.MAX_PER_ENTRY * Blocks.SIZE];
    private final Set<Long> loggedBlocks = new LinkedHashSet<>();
    private final Set<Long> unreadableBlocks = new LinkedHashSet<>();

    private State state = State.OPEN;
    private boolean detaching;
    private boolean deleted;
    private @Nullable Outcome condition;
    private @Nullable Runnable whenClosed;
    private long closeDeadlineNanos;
    private long nextNumber = 1;
    private int calls;
    private int requests;
    private long bytes;
    private boolean starved;
    private Timers.@Nullable Handle sweepTimer;

    /**
     * A client; it sends nothing before {@link #open} or the first call.
     *
     * @param number of this client within its process, from 1, never used before in it
     * @param node this process's node number, asked first while no leader is known; 0: no node
     * @param volume READY
     * @param key the volume's current key
     */
    public VolumeClient(
            int number,
            int node,
            Volume volume,
            ClientIdentity identity,
            VolumeKey key,
            Window window,
            ShardLinks links,
            Timers timers,
            ClientEvents events) {
        this.window = window;
        this.number = number;
        this.node = node;
        this.identity = identity;
        this.links = links;
        this.timers = timers;
        this.events = events;
        this.cipher = new BlockCipher(key, volume.number());
        this.volumeNumber = volume.number();
        this.volumeName = volume.name();
        this.sizeBytes = volume.sizeBytes();
        this.stripeBlocks = volume.stripeBytes() >> Blocks.SHIFT;
        this.timeoutNanos = volume.timeoutSeconds() * 1_000L * MS;
        this.layer = volume.layer();
        if (volume.keyId() != key.id()
                || volume.shards().isEmpty()
                || sizeBytes % Blocks.SIZE != 0
                || stripeBlocks < 1
                || volume.stripeBytes() % Blocks.SIZE != 0) {
            throw new IllegalStateException("no client can be made for " + volume + " and " + key);
        }
        channels = new ShardChannel[volume.shards().size()];
        for (int i = 0; i < channels.length; i++) {
            channels[i] = new ShardChannel(this, volume.shards().get(i), volume.shardId(i));
        }
        attachment = new Attachment(this, volume);
        partialWrites = new PartialWrites(this);
    }

    // ---- the block device --------------------------------------------------------------------

    @Override
    public long sizeBytes() {
        return sizeBytes;
    }

    @Override
    public boolean readOnly() {
        return false;
    }

    /** Opens the session, so that this client learns of a power loss from here on. */
    public void open() {
        attachment.open();
        armSweep();
    }

    @Override
    public void read(long offset, ByteBuf target, Completion done) {
        start(Call.read(this, offset, target, done));
    }

    @Override
    public void write(long offset, ByteBuf source, boolean fua, Completion done) {
        start(Call.write(this, offset, source, fua, done));
    }

    @Override
    public void zero(long offset, long length, boolean punch, boolean fua, Completion done) {
        start(Call.zero(this, offset, length, punch, fua, done));
    }

    @Override
    public void flush(Completion done) {
        start(Call.flush(this, done));
    }

    private void start(Call call) {
        if (state != State.OPEN) {
            throw new IllegalStateException("call on a closed client of volume " + volumeName);
        }
        if (condition != null) {
            call.refuse(condition);
        } else if (calls >= MAX_CALLS) {
            log.warn("volume {}: more than {} calls at once", volumeName, MAX_CALLS);
            call.refuse(Outcome.IO_ERROR);
        } else {
            calls++;
            call.advance();
        }
    }

    void callEnded() {
        calls--;
        if (calls == 0 && state == State.CLOSING) {
            detach();
        }
    }

    @Override
    public void close() {
        close(() -> {});
    }

    /**
     * As {@link #close()}.
     *
     * @param closed called once, when claim and session are given up, or the leaders did not answer
     *     for five seconds after the last call
     */
    public void close(Runnable closed) {
        if (state != State.OPEN) {
            throw new IllegalStateException("client of volume " + volumeName + " closed twice");
        }
        whenClosed = closed;
        state = State.CLOSING;
        if (calls == 0) {
            detach();
        }
    }

    private void detach() {
        state = State.DETACHING;
        closeDeadlineNanos = now() + CLOSE_NANOS;
        maybeDetach();
        armSweep();
    }

    /** A grant that is under way is waited for: what is not known cannot be given up. */
    private void maybeDetach() {
        if (state != State.DETACHING || detaching) {
            return;
        }
        if (deleted) {
            finish();
        } else if (!attachment.isAsking()) {
            detaching = true;
            attachment.detach(this::finish);
        }
    }

    private void finish() {
        if (state == State.CLOSED) {
            return;
        }
        state = State.CLOSED;
        if (sweepTimer != null) {
            sweepTimer.cancel();
        }
        for (ShardChannel channel : channels) {
            channel.drop();
        }
        Runnable closed = whenClosed;
        whenClosed = null;
        if (closed != null) {
            closed.run();
        }
    }

    // ---- what the runtime tells --------------------------------------------------------------

    /** A reply that names this client. Not from within {@link ShardLinks#send}. */
    public void onReply(int from, ClientReply reply) {
        if (state == State.CLOSED) {
            return;
        }
        if (reply.client() != number
                || reply.shard().volume() != volumeNumber
                || reply.shard().index() >= channels.length) {
            onMalformed(from, reply);
            return;
        }
        channels[reply.shard().index()].onReply(from, reply);
        maybeDetach();
    }

    /** {@code leader} leads a shard since {@code epoch}; older news than known is ignored. */
    public void onLeader(int shard, int leader, long epoch) {
        if (state != State.CLOSED && shard < channels.length) {
            channels[shard].onLeader(leader, epoch);
        }
    }

    /** Messages can reach the node again. */
    public void onConnected(int reached) {
        if (state != State.CLOSED) {
            for (ShardChannel channel : channels) {
                channel.onConnected(reached);
            }
        }
    }

    /** Messages can no longer reach the node; those on their way may be lost. */
    public void onDisconnected(int lost) {
        if (state != State.CLOSED) {
            for (ShardChannel channel : channels) {
                channel.onDisconnected(lost);
            }
        }
    }

    /** A newer definition of the volume: other replicas, other leaders. */
    public void onVolume(Volume volume) {
        for (int i = 0; i < channels.length && state != State.CLOSED; i++) {
            channels[i].onShard(volume.shards().get(i));
        }
    }

    /** The node stops: everything fails from now on. */
    public void shutDown() {
        fail(Outcome.SHUTTING_DOWN);
    }

    /** The volume is no more: everything fails from now on, and there is no claim to give up. */
    public void volumeDeleted() {
        deleted = true;
        fail(Outcome.SHUTTING_DOWN);
        maybeDetach();
    }

    /** Whether this client holds the claim, as far as it knows. */
    boolean isHolder() {
        return attachment.isClaimed();
    }

    /** Whether every call fails, so that a new client is needed. */
    public boolean isUnusable() {
        return condition != null;
    }

    /**
     * Asks the leader who holds the volume.
     *
     * @param waitNanos how long to wait for an answer
     * @param answer called once: identity of the holder, empty when nobody does; null: no answer
     */
    void askHolder(long waitNanos, Consumer<ClientReply.@Nullable Holder> answer) {
        ShardChannel first = channels[0];
        first.submit(
                new Request(first, now() + waitNanos) {
                    @Override
                    boolean sequenced() {
                        return false;
                    }

                    @Override
                    ClientRequest make(long newNumber, long lowWater) {
                        return new ClientRequest.AskHolder(
                                first.id, VolumeClient.this.number, newNumber);
                    }

                    @Override
                    boolean accepts(ClientReply reply) {
                        return reply instanceof ClientReply.Holder;
                    }

                    @Override
                    void succeeded(ClientReply reply) {
                        answer.accept((ClientReply.Holder) reply);
                    }

                    @Override
                    void failed(Outcome outcome) {
                        answer.accept(null);
                    }
                });
    }

    // ---- failures ----------------------------------------------------------------------------

    void onPowerLoss(ShardChannel channel) {
        if (condition == null) {
            log.error(
                    "volume {}: a majority of shard {} lost power, acknowledged writes that were"
                            + " not flushed may be missing; all calls fail until it is opened again",
                    volumeName,
                    channel.index);
        }
        fail(Outcome.IO_ERROR);
    }

    /**
     * This attachment is over: another has the claim since.
     *
     * @param generation of the claim that was taken over; 0: it had none yet, and its leaders have
     *     forgotten how old it is
     */
    void onSuperseded(long generation) {
        if (condition == null) {
            log.warn(
                    "volume {}: client {} is fenced (generation {}), all calls fail until it opens"
                            + " the volume again",
                    volumeName,
                    identity,
                    generation);
        }
        fail(Outcome.IO_ERROR);
    }

    private void fail(Outcome outcome) {
        if (condition != null || state == State.CLOSED) {
            return;
        }
        condition = outcome;
        for (ShardChannel channel : channels) {
            channel.failAll(outcome);
        }
    }

    /** Why every call fails; null: it does not. */
    @Nullable Outcome condition() {
        return condition;
    }

    void failWaiting(Outcome outcome) {
        for (ShardChannel channel : channels) {
            channel.failWaiting(outcome);
        }
    }

    void onMalformed(int from, ClientReply reply) {
        events.replyMalformed(volumeNumber, from);
        log.warn(
                "volume {}: node {} sent a {} for request {} that cannot be",
                volumeName,
                from,
                reply.getClass().getSimpleName(),
                reply.request());
    }

    /** A copy of a block is corrupt; {@link BlockRecovery} looks for another. */
    private void onCorrupt(long corrupt, String what) {
        events.blockCorrupt(volumeNumber, corrupt);
        if (loggedBlocks.size() < MAX_LOGGED_BLOCKS && loggedBlocks.add(corrupt)) {
            log.error("volume {}: block {} is corrupt: {}", volumeName, corrupt, what);
        }
    }

    /** No replica has the block. */
    void onUnreadable(long unreadable) {
        events.blockUnreadable(volumeNumber, unreadable);
        if (unreadableBlocks.size() < MAX_LOGGED_BLOCKS && unreadableBlocks.add(unreadable)) {
            log.error("volume {}: no replica has a good copy of block {}", volumeName, unreadable);
        }
    }

    // ---- time --------------------------------------------------------------------------------

    void armSweep() {
        if (sweepTimer == null && state != State.CLOSED) {
            sweepTimer = timers.schedule(SWEEP_NANOS, this::sweep);
        }
    }

    private void sweep() {
        sweepTimer = null;
        long now = now();
        boolean busy = false;
        partialWrites.sweep(now);
        for (ShardChannel channel : channels) {
            if (state == State.CLOSED) {
                return;
            }
            channel.sweep(now);
            busy |= channel.isBusy();
        }
        if (state == State.DETACHING && now - closeDeadlineNanos >= 0) {
            log.warn("volume {}: closed without an answer from its leaders", volumeName);
            finish();
        }
        if (busy || state == State.DETACHING) {
            armSweep();
        }
    }

    // ---- for the other classes of the client -------------------------------------------------

    long now() {
        return timers.nanoTime();
    }

    long deadlineNanos() {
        return now() + timeoutNanos;
    }

    int number() {
        return number;
    }

    int node() {
        return node;
    }

    int volumeNumber() {
        return volumeNumber;
    }

    int layer() {
        return layer;
    }

    int keyId() {
        return cipher.keyId();
    }

    ClientIdentity identity() {
        return identity;
    }

    ClientEvents events() {
        return events;
    }

    ShardLinks links() {
        return links;
    }

    Attachment attachment() {
        return attachment;
    }

    PartialWrites partialWrites() {
        return partialWrites;
    }

    int shardCount() {
        return channels.length;
    }

    ShardChannel channel(int index) {
        return channels[index];
    }

    ShardChannel channelOf(long blockNumber) {
        return channels[(int) (blockNumber / stripeBlocks % channels.length)];
    }

    /** Blocks from {@code blockNumber} to the end of what stays in its shard. */
    long blocksInShard(long blockNumber) {
        return channels.length == 1 ? Long.MAX_VALUE : stripeBlocks - blockNumber % stripeBlocks;
    }

    long peekNumber() {
        return nextNumber;
    }

    long takeNumber() {
        return nextNumber++;
    }

    boolean hasRoom(Request request) {
        boolean room =
                requests < window.requests()
                        && (bytes == 0 || bytes + request.sizeBytes() <= window.bytes());
        starved |= !room;
        return room;
    }

    void occupy(Request request) {
        requests++;
        bytes += request.sizeBytes();
    }

    void vacate(Request request) {
        requests--;
        bytes -= request.sizeBytes();
    }

    void pumpAfter(ShardChannel channel) {
        if (starved) {
            starved = false;
            pumpAll();
        } else {
            channel.pump();
        }
    }

    void pumpAll() {
        for (ShardChannel channel : channels) {
            channel.pump();
        }
    }

    void send(int to, Request request) {
        ClientRequest message = request.message;
        if (message == null) {
            throw new IllegalStateException("request " + request.number + " has no message");
        }
        links.send(to, message);
    }

    /** Seals {@code count} blocks of a buffer into a new payload. */
    byte[] seal(ByteBuf source, int index, long first, int count, int session, long counter) {
        byte[] payload = new byte[count * Blocks.SEALED_SIZE];
        byte[] plain = entry;
        int from = 0;
        if (source.hasArray()) {
            plain = source.array();
            from = source.arrayOffset() + index;
        } else {
            source.getBytes(index, entry, 0, count * Blocks.SIZE);
        }
        for (int i = 0; i < count; i++) {
            cipher.seal(
                    plain,
                    from + i * Blocks.SIZE,
                    layer,
                    first + i,
                    session,
                    counter + i,
                    payload,
                    i * Blocks.SEALED_SIZE);
        }
        return payload;
    }

    /** Seals one block. */
    byte[] seal(byte[] plain, long blockNumber, int session, long counter) {
        byte[] payload = new byte[Blocks.SEALED_SIZE];
        cipher.seal(plain, 0, layer, blockNumber, session, counter, payload, 0);
        return payload;
    }

    /** Whether runs are what a read of these blocks can be answered with. */
    static boolean isAnswer(ClientReply reply, long first, int count) {
        if (!(reply instanceof ClientReply.Data data)) {
            return false;
        }
        long next = first;
        for (Run run : data.runs()) {
            long payload = run.isZero() ? 0 : (long) run.count() * Blocks.SEALED_SIZE;
            if (run.block() != next
                    || run.count() < 1
                    || run.count() > count
                    || run.sequence() < 0
                    || run.payload().length != payload) {
                return false;
            }
            next += run.count();
        }
        return next == first + count;
    }

    /** Receives blocks in the order of their numbers. */
    @FunctionalInterface
    interface BlockSink {
        /**
         * One block.
         *
         * @param plain of one block, valid during the call only; null: zeroes
         */
        void accept(long blockNumber, byte @Nullable [] plain);
    }

    /**
     * Opens all blocks of an answer.
     *
     * @param data checked by {@link #isAnswer}
     * @param sink gets those that are intact
     * @return the others, in order
     */
    List<Long> openAll(ClientReply.Data data, BlockSink sink) {
        List<Long> corrupt = List.of();
        for (Run run : data.runs()) {
            for (int i = 0; i < run.count(); i++) {
                long blockNumber = run.block() + i;
                if (run.isZero()) {
                    sink.accept(blockNumber, null);
                    continue;
                }
                try {
                    if (run.nonce().keyId() != cipher.keyId()) {
                        throw new CorruptBlockException(
                                blockNumber, "no key with id " + run.nonce().keyId());
                    }
                    cipher.open(
                            run.payload(),
                            i * Blocks.SEALED_SIZE,
                            layer,
                            blockNumber,
                            run.nonce().session(),
                            run.nonce().counter() + i,
                            block,
                            0);
                } catch (CorruptBlockException e) {
                    onCorrupt(e.block(), String.valueOf(e.getMessage()));
                    corrupt = corrupt.isEmpty() ? new ArrayList<>() : corrupt;
                    corrupt.add(blockNumber);
                    continue;
                }
                sink.accept(blockNumber, block);
            }
        }
        return corrupt;
    }
}
