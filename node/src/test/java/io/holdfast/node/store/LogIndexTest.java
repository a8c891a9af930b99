package io.holdfast.node.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.holdfast.proto.peer.Entry;
import org.junit.jupiter.api.Test;

class LogIndexTest {
    private static final int MOST = 256;

    private static Entry entry(long sequence) {
        return Rig.zero(Rig.SHARD, 1, sequence, 0, 1);
    }

    @Test
    void forgetsTheOldestBeyondItsLimit() {
        LogIndex log = new LogIndex(1000, MOST);
        for (long at = 1001; at <= 2000; at++) {
            log.add(entry(at), at * 8);
        }

        assertThat(log.last()).isEqualTo(2000);
        assertThat(log.first()).isEqualTo(2000 - MOST + 1);
        assertThat(log.place(log.first() - 1)).isEqualTo(Place.NONE);
        assertThat(log.cached(log.first() - 1)).isNull();
        for (long at = log.first(); at <= 2000; at++) {
            assertThat(log.place(at)).isEqualTo(at * 8);
        }
        assertThat(log.place(2001)).isEqualTo(Place.NONE);
    }

    @Test
    void aCutTailIsReplaced() {
        LogIndex log = new LogIndex(0, MOST);
        for (long at = 1; at <= 100; at++) {
            log.add(entry(at), at);
        }

        assertThat(log.truncate(40)).isEqualTo(60L * Entry.HEADER_SIZE);
        log.add(entry(41), 999);

        assertThat(log.last()).isEqualTo(41);
        assertThat(log.place(41)).isEqualTo(999);
        assertThat(log.place(42)).isEqualTo(Place.NONE);
        assertThat(log.cachedBytes()).isEqualTo(41L * Entry.HEADER_SIZE);
    }

    @Test
    void evictionTakesEntriesAndLeavesPlaces() {
        LogIndex log = new LogIndex(0, MOST);
        log.add(entry(1), 8);
        log.add(entry(2), 16);

        assertThat(log.evictOldest()).isEqualTo(Entry.HEADER_SIZE);
        assertThat(log.cached(1)).isNull();
        assertThat(log.cached(2)).isNotNull();
        assertThat(log.place(1)).isEqualTo(8);
        log.evictOldest();
        assertThat(log.evictOldest()).isZero();
    }

    @Test
    void refusesAGap() {
        LogIndex log = new LogIndex(5, MOST);

        assertThatThrownBy(() -> log.add(entry(7), 8))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("7, 6");
    }
}
