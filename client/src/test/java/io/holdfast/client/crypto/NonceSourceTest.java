package io.holdfast.client.crypto;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.holdfast.proto.peer.Nonce;
import org.junit.jupiter.api.Test;

final class NonceSourceTest {
    @Test
    void runsNeverOverlap() {
        NonceSource nonces = new NonceSource(1, 4);
        assertThat(nonces.take(64)).isEqualTo(new Nonce(1, 4, 0));
        assertThat(nonces.take(1)).isEqualTo(new Nonce(1, 4, 64));
        assertThat(nonces.take(3)).isEqualTo(new Nonce(1, 4, 65));
        assertThat(nonces.take(1).plus(0)).isEqualTo(new Nonce(1, 4, 68));
    }

    @Test
    void refusesAnUnknownSession() {
        assertThatThrownBy(() -> new NonceSource(1, 0))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("session 0");
    }

    @Test
    void refusesToOverflowAndGivesOutNothingThen() {
        NonceSource nonces = new NonceSource(1, 1, 5, 10);
        assertThatThrownBy(() -> nonces.take(6)).isInstanceOf(IllegalStateException.class);
        assertThat(nonces.take(5).counter()).isEqualTo(5);
        assertThatThrownBy(() -> nonces.take(1)).isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(() -> nonces.take(0)).isInstanceOf(IllegalStateException.class);
    }
}
