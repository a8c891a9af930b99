package io.holdfast.node.store;

import io.holdfast.proto.peer.Entry;
import io.holdfast.proto.peer.MalformedException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32C;

/** What the simulator, which lives elsewhere, may know of a store beyond its port. */
public final class StoreInside {
    private static final int CHECKSUM = 4;

    private StoreInside() {}

    /** Lets go of a store as the end of its process does. */
    public static void abandon(JournalStore store) {
        store.abandon();
    }

    /** Whether the start cut off a torn or unsynced tail. */
    public static boolean tailWasCut(JournalStore store) {
        return store.tailWasCut();
    }

    /** Begins a checkpoint, unless one is under way. */
    public static void checkpoint(JournalStore store) {
        if (!store.checkpointRunning()) {
            store.checkpoint();
        }
    }

    /** Lets the cleaner empty a segment, if there is one. */
    public static void clean(JournalStore store) {
        store.clean();
    }

    /** Whether live bytes of segments, as the database has them, are what its extents add up to. */
    public static boolean isUsageRight(JournalStore store) {
        try {
            List<List<UsageRow>> both = store.recount();
            return both.get(0).equals(both.get(1));
        } catch (IOException e) {
            return false;
        }
    }

    /** Key of the store's own row. */
    public static byte[] storeKey() {
        return new byte[] {'s', 't', 'o', 'r', 'e'};
    }

    /** Whether a store's own row says that a sync has failed. */
    public static boolean saysSyncFailed(byte[] row) {
        try {
            return StoreRow.decode(row).bootId().equals(StoreRow.SYNC_FAILED);
        } catch (StoreException e) {
            return false;
        }
    }

    /** Whether a store's own row says that it was closed in order. */
    public static boolean saysClean(byte[] row) {
        try {
            return StoreRow.decode(row).clean();
        } catch (StoreException e) {
            return false;
        }
    }

    /** A store's own row with a bug: a start reads from the synced end. */
    public static byte[] ignoreCovered(byte[] row) {
        try {
            StoreRow now = StoreRow.decode(row);
            return new StoreRow(now.clean(), now.store(), now.synced(), now.synced(), now.bootId())
                    .encode();
        } catch (StoreException e) {
            throw new IllegalStateException(e);
        }
    }

    /** A record of a journal: what is known of it without its contents. */
    public record Stored(int segment, long offset, int length, boolean proven) {
        public long place() {
            return Place.of(segment, offset);
        }
    }

    /** Place that a store's own row says the journal is synced through. */
    public static long syncedThrough(byte[] row) {
        return row(row).synced();
    }

    private static StoreRow row(byte[] row) {
        try {
            return StoreRow.decode(row);
        } catch (StoreException e) {
            throw new IllegalStateException(e);
        }
    }

    /** The bytes of segments. */
    public interface Segments {
        /** All of a segment's bytes; empty: there is none. */
        byte[] bytes(int segment);
    }

    /**
     * The valid records that a start would read, each with whether it is proven to have been
     * synced: by the last checkpoint, or by a mark behind it.
     */
    public static List<Stored> records(byte[] row, Segments segments) {
        StoreRow store = row(row);
        List<Stored> found = new ArrayList<>();
        long proven = store.synced();
        int segment = Place.segment(store.covered());
        long offset = Math.max(SegmentHeader.SIZE, Place.offset(store.covered()));
        for (byte[] bytes = segments.bytes(segment); bytes.length > 0; ) {
            while (offset + Mark.SIZE <= bytes.length) {
                ByteBuffer in = ByteBuffer.wrap(bytes);
                in.position((int) offset);
                long place = Place.of(segment, offset);
                int length;
                try {
                    if (in.getInt((int) offset) == Mark.MAGIC) {
                        length = Mark.lengthOf(in);
                        Mark mark = Mark.decode(in.slice(), place);
                        if (mark.type() == Mark.Type.SYNCED) {
                            proven = Math.max(proven, mark.position());
                        }
                    } else {
                        length = Entry.lengthOf(in);
                        Entry.decode(in.slice());
                    }
                } catch (MalformedException e) {
                    break;
                }
                found.add(new Stored(segment, offset, length, false));
                offset += Journal.padded(length);
            }
            segment++;
            offset = SegmentHeader.SIZE;
            bytes = segments.bytes(segment);
        }
        long through = proven;
        return found.stream()
                .map(each ->
                        new Stored(each.segment, each.offset, each.length, each.place() < through))
                .toList();
    }

    /** With a bug: makes the checksums of all entries in some bytes of a segment match. */
    public static void acceptTorn(ByteBuffer bytes, long offset) {
        int at = (int) (-offset & (Journal.ALIGNMENT - 1));
        for (; at + Entry.HEADER_SIZE <= bytes.limit(); at += Journal.ALIGNMENT) {
            if (bytes.getInt(at) != Entry.MAGIC) {
                continue;
            }
            int length = bytes.getInt(at + 8);
            if (length >= Entry.HEADER_SIZE
                    && length <= Entry.MAX_SIZE
                    && at + length <= bytes.limit()) {
                CRC32C crc = new CRC32C();
                crc.update(bytes.slice(at + 8, length - 8));
                bytes.putInt(at + CHECKSUM, (int) crc.getValue());
            }
        }
    }
}
