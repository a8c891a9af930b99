package io.holdfast.node.store;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.UUID;

/**
 * What a checkpoint keeps of the whole store, under the key {@code store}.
 *
 * <p>Layout of the value, all numbers big-endian:
 *
 * <pre>
 * offset size field
 *      0    4 version  of the map's format, 2
 *      4    1 clean    1: the store was closed after this checkpoint, nothing was written since
 *      5    3 reserved 0
 *      8   16 store    id of the store, two longs
 *     24    8 covered  place in the journal from which a start reads
 *     32    8 synced   the journal was synced through this place
 *     40      boot id  in UTF-8, of the boot that wrote; or {@link #SYNC_FAILED}
 * </pre>
 */
record StoreRow(boolean clean, UUID store, long covered, long synced, String bootId) {
    /** Version 1 had no rows of {@link UsageRow}. */
    static final int VERSION = 2;

    /** Version that {@link MapDatabase#upgrade} makes the present one. */
    static final int WITHOUT_USAGE = 1;

    private static final int BOOT_ID = 40;

    /** In the place of a boot id, which it is not: see {@link MapDatabase#noteFailedSync}. */
    static final String SYNC_FAILED = "sync failed";

    byte[] encode() {
        byte[] boot = bootId.getBytes(StandardCharsets.UTF_8);
        ByteBuffer out = ByteBuffer.allocate(BOOT_ID + boot.length);
        out.putInt(VERSION);
        out.put((byte) (clean ? 1 : 0));
        out.position(8);
        out.putLong(store.getMostSignificantBits());
        out.putLong(store.getLeastSignificantBits());
        out.putLong(covered);
        out.putLong(synced);
        out.put(boot);
        return out.array();
    }

    static int version(byte[] bytes) {
        return bytes.length < Integer.BYTES ? 0 : ByteBuffer.wrap(bytes).getInt(0);
    }

    static StoreRow decode(byte[] bytes) throws StoreException {
        ByteBuffer in = ByteBuffer.wrap(bytes);
        int version = version(bytes);
        if (version != VERSION && version != WITHOUT_USAGE) {
            throw StoreException.otherFormat("the map", version, VERSION);
        }
        if (bytes.length < BOOT_ID) {
            throw new StoreException("the map's row of the store has " + bytes.length + " bytes");
        }
        return new StoreRow(
                bytes[4] == 1,
                new UUID(in.getLong(8), in.getLong(16)),
                in.getLong(24),
                in.getLong(32),
                new String(bytes, BOOT_ID, bytes.length - BOOT_ID, StandardCharsets.UTF_8));
    }
}
