package io.holdfast.simulation;

import static io.holdfast.simulation.SimFailure.check;

import io.holdfast.client.crypto.BlockCipher;
import io.holdfast.client.crypto.CorruptBlockException;
import io.holdfast.client.crypto.VolumeKey;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.Nonce;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.zip.CRC32C;

/**
 * Every block that clients ever sealed for a volume, known by its nonce. The real cipher with a
 * fixed key: a wrong nonce, address or layer on any way through the cluster is noticed by its tag.
 */
final class SealedBlocks {
    /** The layer that is written. */
    static final int LAYER = 0;

    private static final int KEY_ID = 1;
    private static final int COUNTER_BITS = 32;

    private record Sealed(long block, int hash, long[] cells) {}

    private final BlockCipher cipher;
    private final byte[] plain = new byte[Blocks.SIZE];
    private final Map<Long, Sealed> byId = new HashMap<>();
    private final Map<Long, List<long[]>> byBlock = new HashMap<>();

    SealedBlocks(int volume) {
        cipher = new BlockCipher(key(), volume);
    }

    /** The key of all volumes, the same in every run. */
    static VolumeKey key() {
        byte[] bytes = new byte[VolumeKey.SIZE];
        Arrays.fill(bytes, (byte) 7);
        return new VolumeKey(KEY_ID, bytes);
    }

    /** What stands for a sealed block in the history of the shards; positive. */
    private static long id(Nonce nonce) {
        return ((long) nonce.session() << COUNTER_BITS) | nonce.counter();
    }

    /** Seals blocks that hold {@code value} and the numbers after it, cell by cell. */
    byte[] seal(long value, long first, int count, Nonce nonce) {
        byte[] payload = new byte[count * Blocks.SEALED_SIZE];
        for (int i = 0; i < count; i++) {
            Cells.fill(plain, 0, 0, Cells.PER_BLOCK, value + (long) i * Cells.PER_BLOCK);
            cipher.seal(
                    plain,
                    0,
                    LAYER,
                    first + i,
                    nonce.session(),
                    nonce.counter() + i,
                    payload,
                    i * Blocks.SEALED_SIZE);
        }
        return payload;
    }

    /**
     * Notes blocks that a client sends for the first time.
     *
     * @return what stands for each of them
     */
    long[] sent(long first, int count, Nonce nonce, byte[] payload) {
        long[] ids = new long[count];
        for (int i = 0; i < count; i++) {
            ids[i] = id(nonce.plus(i));
            int hash = hash(payload, i * Blocks.SEALED_SIZE);
            Sealed before = byId.get(ids[i]);
            check(
                    before == null || (before.block == first + i && before.hash == hash),
                    "nonces",
                    "two blocks are sealed with the nonce ",
                    nonce.plus(i));
            if (before == null) {
                long[] cells = open(first + i, nonce.plus(i), payload, i * Blocks.SEALED_SIZE);
                byId.put(ids[i], new Sealed(first + i, hash, cells));
                byBlock.computeIfAbsent(first + i, block -> new ArrayList<>()).add(cells);
            }
        }
        return ids;
    }

    private long[] open(long block, Nonce nonce, byte[] payload, int offset) {
        try {
            cipher.open(payload, offset, LAYER, block, nonce.session(), nonce.counter(), plain, 0);
        } catch (CorruptBlockException e) {
            throw new SimFailure("contents", "sent with a wrong tag: " + e.getMessage());
        }
        return Cells.read(plain, 0, 0, Cells.PER_BLOCK);
    }

    private static int hash(byte[] payload, int offset) {
        CRC32C sum = new CRC32C();
        sum.update(payload, offset, Blocks.SEALED_SIZE);
        return (int) sum.getValue();
    }

    /** Whether block {@code i} of a payload is as it was sent. */
    boolean isIntact(Nonce nonce, byte[] payload, int i) {
        Sealed sealed = byId.get(id(nonce.plus(i)));
        return sealed != null && sealed.hash == hash(payload, i * Blocks.SEALED_SIZE);
    }

    /** What stands for block {@code i} of a payload, which must be as it was sent. */
    long idOf(Nonce nonce, byte[] payload, int i) {
        long id = id(nonce.plus(i));
        Sealed sealed = byId.get(id);
        check(
                sealed != null && sealed.hash == hash(payload, i * Blocks.SEALED_SIZE),
                "contents",
                "a block under the nonce ",
                nonce.plus(i),
                " is not what was sent under it");
        return id;
    }

    /** The cells of a block, by what stands for it; that of zeroes is 0 or below. */
    long[] cells(long id) {
        Sealed sealed = byId.get(id);
        return sealed == null ? new long[Cells.PER_BLOCK] : sealed.cells;
    }

    /**
     * Whether a block ever was sent with these cells from {@code cell} on: what is read of one
     * block must come from one moment.
     */
    boolean existed(long block, int cell, long[] seen, int from, int count) {
        boolean zeroes = true;
        for (int i = 0; i < count; i++) {
            zeroes &= seen[from + i] == 0;
        }
        return zeroes
                || byBlock.getOrDefault(block, List.of()).stream()
                        .anyMatch(cells ->
                                Arrays.equals(cells, cell, cell + count, seen, from, from + count));
    }
}
