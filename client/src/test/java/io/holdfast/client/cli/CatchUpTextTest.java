package io.holdfast.client.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.client.admin.StatusDocument.CatchUpKind;
import io.holdfast.client.admin.StatusDocument.CatchUpLine;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class CatchUpTextTest {
    private static String text(
            double percent, long done, @Nullable Long total, long rate, @Nullable Long left) {
        return CatchUpText.of(
                new CatchUpLine(CatchUpKind.ENTRIES, percent, done, total, rate, left));
    }

    @Test
    void aLineAsOfMdstat() {
        assertThat(text(37.2, 3994319584L, 10L << 30, 112 << 20, 55L))
                .isEqualTo("[=======>............] 37.2% (3.7/10.0 GiB) 112.0 MiB/s, 55 s left");
    }

    @Test
    void theBarIsOfOneLengthAndNeverFull() {
        assertThat(text(0, 0, 1L << 20, 0, null))
                .isEqualTo("[>...................] 0.0% (0.0/1.0 MiB) 0 B/s");
        assertThat(text(99.9, 999, 1000L, 12, 1L))
                .isEqualTo("[===================>] 99.9% (999/1000 B) 12 B/s, 1 s left");
    }

    @Test
    void aTotalThatIsNotKnownYetIsNotInvented() {
        assertThat(text(0, 5 << 20, null, 1 << 20, null))
                .isEqualTo(
                        "[>...................] 0.0% (5.0 MiB of a total not yet known) 1.0 MiB/s");
    }

    @Test
    void longTimesAreRoundedUp() {
        assertThat(text(1, 1, 100L, 1, 121L)).endsWith(", 3 min left");
        assertThat(text(1, 1, 100L, 1, 7201L)).endsWith(", 3 h left");
        assertThat(text(1, 1, 100L, 1, 200_000L)).endsWith(", 3 days left");
    }
}
