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
                "{\"name\":\"a\",\"sizeBytes\":null}|sizeBytes cannot be null at line 1",
                "{\"name\":\"a\",\"sizeBytes\":1.5}|sizeBytes cannot be 1.5 at line 1",
                "{\"name\":\"a\",\"sizeBytes\":\"4096\"}|sizeBytes cannot be \"4096\"",
                "{\"name\":\"a\",\"sizeBytes\":true}|sizeBytes cannot be true",
                "{\"name\":\"a\",\"sizeBytes\":[4096]}|sizeBytes cannot be [4096]",
                "{\"name\":\"a\",\"sizeBytes\":99999999999999999999}|sizeBytes cannot be 99999",
                "{\"name\":5,\"sizeBytes\":1}|name cannot be 5 at line 1",
                "{\"name\":true,\"sizeBytes\":1}|name cannot be true",
                "{\"name\":1.5,\"sizeBytes\":1}|name cannot be 1.5",
                "{\"name\":{},\"sizeBytes\":1}|name cannot be {}",
                "{\"name\":\"a\",\"sizeBytes\":1,\"replicas\":\"3\"}|replicas cannot be \"3\"",
                "{\"name\":\"a\",\"sizeBytes\":1,\"replicas\":\"\"}|replicas cannot be \"\"",
                "{\"name\":\"a\",\"sizeBytes\":1,\"attach\":1}|attach cannot be 1 at line 1",
                "{\"name\":\"a\",\"sizeBytes\":1,\"attach\":\"1\"}|attach cannot be \"1\"",
                "{\"name\":\"a\",\"sizeBytes\":1,\"attach\":\"\"}|attach cannot be \"\"",
                "{\"name\":\"a\",\"sizeBytes\":1,\"attach\":\"all\"}|attach cannot be \"all\"",
                "{\"name\":\"a\",\"sizeBytes\":1,\"durability\":0}|durability cannot be 0",
                "{\"name\":\"a\",\"sizeBytes\":true|sizeBytes cannot be what it is",
                "{\"name\":\"a\",\"name\":\"b\",\"sizeBytes\":1}|field name is there twice at line 1, column 19",
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
