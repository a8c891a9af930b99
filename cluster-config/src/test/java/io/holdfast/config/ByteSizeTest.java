package io.holdfast.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ByteSizeTest {
    @ParameterizedTest
    @CsvSource({
        "0, 0",
        "4096, 4096",
        "4096B, 4096",
        "1K, 1024",
        "64 MiB, 67108864",
        "64m, 67108864",
        "10G, 10737418240",
        "1T, 1099511627776",
        "8388607T, 9223370937343148032",
    })
    void readsPowersOf1024(String text, long bytes) {
        assertThat(ByteSize.parse(text)).isEqualTo(bytes);
    }

    @ParameterizedTest
    @CsvSource({
        "10GB, write 10G for powers of 1024",
        "1.5G, needs a whole number",
        "-1, needs a whole number",
        "'', needs a whole number",
        "G, needs a whole number",
        "10 parsecs, the unit parsecs is not known",
        "8388608T, larger than",
        "99999999999999999999, needs a whole number",
        "9999999999999999999, larger than",
    })
    void refusesTheRestWithWhatWouldBeRight(String text, String message) {
        assertThatThrownBy(() -> ByteSize.parse(text))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining(message);
    }

    @ParameterizedTest
    @CsvSource({"0, 0B", "1023, 1023B", "1024, 1K", "1536, 1.5K", "10737418240, 10G"})
    void writesTheLargestUnitThatFits(long bytes, String text) {
        assertThat(ByteSize.format(bytes)).isEqualTo(text);
    }

    @Test
    void writesTheLargestSize() {
        assertThat(ByteSize.format(Long.MAX_VALUE)).isEqualTo("8388607.9T");
    }
}
