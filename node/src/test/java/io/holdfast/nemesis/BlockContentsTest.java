package io.holdfast.nemesis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

/** Blocks tell their value, and that they are whole and where they belong. */
class BlockContentsTest {
    @Test
    void valuesComeBack() throws Exception {
        byte[] data = BlockContents.of(7, 100, 3);
        assertThat(BlockContents.valuesOf(7, data)).containsExactly(100, 101, 102);
        assertThat(BlockContents.valuesOf(7, new byte[VolumeHistory.BLOCK_BYTES]))
                .containsExactly(0);
    }

    @Test
    void everyFlippedByteIsNoticed() {
        byte[] data = BlockContents.of(7, 100, 1);
        for (int i = 0; i < data.length; i++) {
            data[i] ^= 1;
            assertThatThrownBy(() -> BlockContents.valuesOf(7, data))
                    .isInstanceOf(BlockContents.TornBlock.class);
            data[i] ^= 1;
        }
    }

    @Test
    void blockOfAnotherPlaceIsNoticed() {
        assertThatThrownBy(() -> BlockContents.valuesOf(8, BlockContents.of(7, 100, 1)))
                .isInstanceOf(BlockContents.TornBlock.class);
    }
}
