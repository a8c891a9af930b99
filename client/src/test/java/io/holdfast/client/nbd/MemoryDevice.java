package io.holdfast.client.nbd;

import io.holdfast.client.BlockDevice;
import io.netty.buffer.ByteBuf;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.jspecify.annotations.Nullable;

/**
 * A disk in memory. In adversarial mode calls take effect when they are completed, which happens
 * later and in any order: {@link #completeSome} runs some of those that wait.
 */
final class MemoryDevice implements BlockDevice {
    private final byte[] bytes;
    private final boolean readOnly;
    private final List<Runnable> waiting = new ArrayList<>();
    private boolean holding;
    private @Nullable Outcome failure;

    int flushes;
    int fuaWrites;
    int punches;
    int keptZeroes;
    int opens;
    int closes;
    int mostWaiting;

    MemoryDevice(int sizeBytes, boolean readOnly) {
        this.bytes = new byte[sizeBytes];
        this.readOnly = readOnly;
    }

    /** From now on calls wait for {@link #completeSome}. */
    void hold() {
        holding = true;
    }

    /** From now on calls end with {@code outcome}; null: they succeed. */
    void failWith(@Nullable Outcome outcome) {
        failure = outcome;
    }

    int waiting() {
        return waiting.size();
    }

    byte[] contents() {
        return bytes.clone();
    }

    /**
     * Completes {@code count} waiting calls, chosen by {@code random}; fewer if there are fewer.
     */
    void completeSome(Random random, int count) {
        for (int i = 0; i < count && !waiting.isEmpty(); i++) {
            waiting.remove(random.nextInt(waiting.size())).run();
        }
    }

    @Override
    public long sizeBytes() {
        return bytes.length;
    }

    @Override
    public boolean readOnly() {
        return readOnly;
    }

    @Override
    public void read(long offset, ByteBuf target, Completion done) {
        int length = target.writableBytes();
        check(offset, length);
        run(done, () -> target.writeBytes(bytes, (int) offset, length));
    }

    @Override
    public void write(long offset, ByteBuf source, boolean fua, Completion done) {
        check(offset, source.readableBytes());
        fuaWrites += fua ? 1 : 0;
        run(
                done,
                () ->
                        source.getBytes(
                                source.readerIndex(), bytes, (int) offset, source.readableBytes()));
    }

    @Override
    public void zero(long offset, long length, boolean punch, boolean fua, Completion done) {
        check(offset, length);
        fuaWrites += fua ? 1 : 0;
        punches += punch ? 1 : 0;
        keptZeroes += punch ? 0 : 1;
        run(done, () -> Arrays.fill(bytes, (int) offset, (int) (offset + length), (byte) 0));
    }

    @Override
    public void flush(Completion done) {
        flushes++;
        run(done, () -> {});
    }

    @Override
    public void close() {
        closes++;
        if (!waiting.isEmpty()) {
            throw new IllegalStateException("closed with %d calls".formatted(waiting.size()));
        }
    }

    private void run(Completion done, Runnable effect) {
        if (closes >= opens) {
            throw new IllegalStateException("called after close");
        }
        Outcome outcome = failure;
        Runnable call =
                () -> {
                    if (outcome == null) {
                        effect.run();
                    }
                    done.done(outcome == null ? Outcome.OK : outcome);
                };
        if (holding) {
            waiting.add(call);
            mostWaiting = Math.max(mostWaiting, waiting.size());
        } else {
            call.run();
        }
    }

    private void check(long offset, long length) {
        if (offset < 0 || length < 1 || offset + length > bytes.length) {
            throw new IllegalStateException("range not validated: %d+%d".formatted(offset, length));
        }
    }
}
