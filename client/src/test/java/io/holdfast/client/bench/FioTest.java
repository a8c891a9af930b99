package io.holdfast.client.bench;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class FioTest {
    @Test
    void ofAFailedRunOnlyWhatIsNotTheDocumentIsShown() {
        String said =
                """
                fio: nbd: request failed, error=Input/output error

                {
                  "fio version" : "fio-3.33",
                  "jobs" : [
                    {
                      "error" : 5
                    }
                  ]
                }
                fio: pid=7, err=5/file:engines/nbd.c:100, func=write, error=Input/output error
                fio: nbd: request failed, error=Input/output error
                """;
        assertThat(Fio.useful(said))
                .isEqualTo(
                        """
                        fio: nbd: request failed, error=Input/output error
                          fio: pid=7, err=5/file:engines/nbd.c:100, func=write, error=Input/output error\
                        """);
        assertThat(Fio.useful("fio: no\n".repeat(100))).isEqualTo("fio: no");
        assertThat(Fio.useful("{\n}\n")).isEqualTo("it said nothing else");
    }
}
