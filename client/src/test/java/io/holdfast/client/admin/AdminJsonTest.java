package io.holdfast.client.admin;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class AdminJsonTest {
    /** People read these; the library's own texts name its classes. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "{\"name\":\"a\",\"sizeBytes\":1,\"size\":1}|unknown field size, known are",
                "{\"name\":\"a\",\"sizeBytes\":\"10G\"}|sizeBytes cannot be \"10G\" at line 1",
                "{\"name\":\"a\",\"sizeBytes\":null}|sizeBytes has no usable value",
                "{\"name\":\"a\",\"sizeBytes\":1.5}|sizeBytes cannot be \"1.5\"",
                "{\"name\":\"a\",\"name\":\"b\",\"sizeBytes\":1}|not JSON at line 1, column 19",
                "{\"name\":\"a\",\"sizeBytes\":1} 7|not a JSON object at line 1",
                "[1]|not a JSON object at line 1",
                "{\"name\"|not JSON at line 1",
                "hello|not JSON at line 1",
            })
    void saysWhatIsWrongInTheWordsOfTheDocument(String json, String problem) {
        assertThatThrownBy(() -> AdminJson.readStrict(json, CreateVolume.class))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining(problem)
                .satisfies(e -> assertThat(e.getMessage()).doesNotContain("io.holdfast", "java."));
    }
}
