package io.holdfast.nemesis;

import java.nio.ByteBuffer;

/**
 * What a block that holds a value looks like: the value and where it belongs, over and over, so
 * that a torn or misplaced block is told from a good one. A block never written has value 0 and is
 * zero.
 */
final class BlockContents {
    private BlockContents() {}

    /** Registers {@code first...} holding {@code value...}. */
    static byte[] of(int first, long value, int count) {
        ByteBuffer data = ByteBuffer.allocate(count * VolumeHistory.BLOCK_BYTES);
        for (int i = 0; i < count; i++) {
            for (int word = 0; word < VolumeHistory.BLOCK_BYTES / 16; word++) {
                data.putLong(value + i).putInt(first + i).putInt(word);
            }
        }
        return data.array();
    }

    /**
     * The values of registers {@code first...}.
     *
     * @throws TornBlock when a block is none that anybody wrote there
     */
    static long[] valuesOf(int first, byte[] data) throws TornBlock {
        ByteBuffer bytes = ByteBuffer.wrap(data);
        long[] values = new long[data.length / VolumeHistory.BLOCK_BYTES];
        for (int i = 0; i < values.length; i++) {
            values[i] = bytes.getLong(i * VolumeHistory.BLOCK_BYTES);
            for (int word = 0; word < VolumeHistory.BLOCK_BYTES / 16; word++) {
                long value = bytes.getLong();
                int register = bytes.getInt();
                int number = bytes.getInt();
                boolean good =
                        value == values[i]
                                && (value == 0
                                        ? register == 0 && number == 0
                                        : register == first + i && number == word);
                if (!good) {
                    throw new TornBlock(
                            "register %d holds value %d at first, but value %d of register %d, word %d at byte %d"
                                    .formatted(
                                            first + i, values[i], value, register, number,
                                            word * 16));
                }
            }
        }
        return values;
    }

    /** Data that nobody wrote. */
    static final class TornBlock extends Exception {
        private static final long serialVersionUID = 1;

        TornBlock(String message) {
            super(message);
        }
    }
}
