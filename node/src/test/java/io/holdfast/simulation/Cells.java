package io.holdfast.simulation;

import static io.holdfast.simulation.SimFailure.check;

import io.holdfast.proto.peer.Blocks;
import java.nio.ByteBuffer;

/**
 * The pieces that calls of the block device are made of: each block is divided into a few cells of
 * different sizes, at odd offsets, and a call covers whole cells. A cell holds one number, over and
 * over; or zeroes, which are the number 0. A block is written as a whole, so a cell is too.
 */
final class Cells {
    /** Where the cells of a block begin, and the last one ends. */
    private static final int[] OFFSETS = {0, 512, 1000, 4087, Blocks.SIZE};

    static final int PER_BLOCK = OFFSETS.length - 1;

    private Cells() {}

    /** Offset of a cell in the volume, in bytes; cells are counted through all blocks. */
    static long offset(long cell) {
        return cell / PER_BLOCK * Blocks.SIZE + OFFSETS[(int) (cell % PER_BLOCK)];
    }

    /** Bytes of {@code count} cells. */
    static int length(long first, int count) {
        return (int) (offset(first + count) - offset(first));
    }

    /** Fills cells with {@code value} and the numbers after it. */
    static void fill(byte[] bytes, int at, long first, int count, long value) {
        int position = at;
        for (int i = 0; i < count; i++) {
            int length = length(first + i, 1);
            for (int b = 0; b < length; b++) {
                bytes[position + b] = byteOf(value + i, b);
            }
            position += length;
        }
    }

    /** What cells hold. */
    static long[] read(byte[] bytes, int at, long first, int count) {
        long[] values = new long[count];
        int position = at;
        for (int i = 0; i < count; i++) {
            int length = length(first + i, 1);
            values[i] = ByteBuffer.wrap(bytes).getLong(position);
            for (int b = Long.BYTES; b < length; b++) {
                check(
                        bytes[position + b] == byteOf(values[i], b),
                        "contents",
                        "a cell is mixed: begins with ",
                        values[i]);
            }
            position += length;
        }
        return values;
    }

    private static byte byteOf(long value, int position) {
        return (byte) (value >>> (56 - 8 * (position % Long.BYTES)));
    }
}
