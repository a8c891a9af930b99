package io.holdfast.node.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.node.store.ExtentPage.Extent;
import io.holdfast.proto.peer.Blocks;
import io.holdfast.proto.peer.ShardId;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ExtentPageTest {
    private final ShardMap owner =
            new ShardMap(new ShardId(1, 0), new SegmentUsage(64 << 20, 0).ofShard(), false);

    /**
     * Writes, zeroes and moved copies in any order of sequence, against a sequence and a place per
     * block; and the captured changes, carried out on a map of rows, give the same page again.
     */
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void perBlockTheNewestSequenceThenTheLaterPlaceWins(long seed) {
        Random random = new Random(seed);
        ExtentPage page = new ExtentPage(owner, 1, 3);
        ExtentPage.Scratch scratch = new ExtentPage.Scratch();
        long[] sequences = new long[ExtentPage.BLOCKS];
        long[] places = new long[ExtentPage.BLOCKS];
        TreeMap<Long, Extent> rows = new TreeMap<>();
        int size = 0;
        for (int step = 1; step <= 20_000; step++) {
            Extent extent = new Extent();
            extent.count = 1 + random.nextInt(random.nextInt(10) == 0 ? 200 : 8);
            extent.start = random.nextInt(ExtentPage.BLOCKS - extent.count + 1);
            // Few sequences, so that equal ones meet; a sequence always is zeroes or always data.
            extent.sequence = Math.max(1, step / 4 + random.nextInt(400) - 200);
            boolean zero = extent.sequence % 3 == 0;
            extent.place = zero ? Place.NONE : (long) step << 32;
            extent.keyId = zero ? 0 : 1;
            extent.trim = zero;

            size += page.put(extent, scratch);

            assertThat(page.size()).isEqualTo(size);
            for (int i = 0; i < extent.count; i++) {
                int block = (int) extent.start + i;
                long place = zero ? Place.NONE : extent.place + (long) i * Blocks.SEALED_SIZE;
                if (extent.sequence > sequences[block]
                        || (extent.sequence == sequences[block] && place > places[block])) {
                    sequences[block] = extent.sequence;
                    places[block] = place;
                }
            }
            if (step % 500 == 0) {
                check(seed, page, sequences, places);
                capture(page, rows);
                ExtentPage loaded = new ExtentPage(owner, 1, 3);
                rows.values().forEach(loaded::load);
                check(seed, loaded, sequences, places);
                assertThat(loaded.size()).isEqualTo(page.size());
            }
        }
    }

    private static void capture(ExtentPage page, Map<Long, Extent> rows) {
        page.capture(
                new ExtentPage.RowSink() {
                    @Override
                    public void put(ExtentPage from, Extent row) {
                        Extent copy = new Extent();
                        copy.copy(row);
                        rows.put(copy.start, copy);
                    }

                    @Override
                    public void delete(ExtentPage from, int start) {
                        rows.remove((long) start);
                    }
                },
                new Extent());
        assertThat(page.isDirty()).isFalse();
    }

    private static void check(long seed, ExtentPage page, long[] sequences, long[] places) {
        long[] foundSequences = new long[ExtentPage.BLOCKS];
        long[] foundPlaces = new long[ExtentPage.BLOCKS];
        Extent extent = new Extent();
        long end = 0;
        for (int i = 0; i < page.size(); i++) {
            page.get(i, extent);
            assertThat(extent.start).as("seed %d", seed).isGreaterThanOrEqualTo(end);
            end = extent.end();
            for (int j = 0; j < extent.count; j++) {
                int block = (int) extent.start + j;
                foundSequences[block] = extent.sequence;
                foundPlaces[block] =
                        extent.place == Place.NONE
                                ? Place.NONE
                                : extent.place + (long) j * Blocks.SEALED_SIZE;
            }
        }
        assertThat(foundSequences).as("seed %d", seed).isEqualTo(sequences);
        assertThat(foundPlaces).as("seed %d", seed).isEqualTo(places);
    }
}
