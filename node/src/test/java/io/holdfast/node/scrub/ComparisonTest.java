package io.holdfast.node.scrub;

import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.node.scrub.Comparison.Difference;
import io.holdfast.node.scrub.Comparison.Kind;
import io.holdfast.node.scrub.Comparison.Side;
import io.holdfast.proto.peer.Nonce;
import io.holdfast.proto.peer.ReplicaMessage.Cursor;
import io.holdfast.proto.peer.ScrubMessage;
import io.holdfast.proto.peer.ScrubMessage.Stretch;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.NavigableMap;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/** Two replicas' maps of different moments, against a map of single blocks. */
class ComparisonTest {
    private static final long SEED = 20_261_201;
    private static final int BLOCKS = 40;
    private static final int LAYERS = 2;

    private static Stretch written(int layer, long block, int count, long sequence) {
        ByteBuffer sums = ByteBuffer.allocate(count * ScrubMessage.SUM_SIZE);
        for (int i = 0; i < count; i++) {
            sums.putInt((int) (sequence * 1000 + block + i));
        }
        Nonce nonce = new Nonce(1, 5, sequence * 1000 + block);
        return new Stretch(layer, block, count, sequence, 1, nonce, false, true, sums.array());
    }

    private static Stretch zeroes(int layer, long block, int count, long sequence) {
        return new Stretch(layer, block, count, sequence, 1, Nonce.NONE, true, true, new byte[0]);
    }

    private static List<Difference> compare(Side here, Side there) {
        return Comparison.of(here, there, Cursor.START, ScrubMessage.END);
    }

    @Test
    void aNewerWriteBeyondTheOthersAppliedPointIsNoDifference() {
        Side here = new Side(7, List.of(written(1, 10, 4, 3)));
        Side there = new Side(9, List.of(written(1, 10, 4, 8)));
        assertThat(compare(here, there)).isEmpty();
        assertThat(compare(there, here)).isEmpty();
    }

    @Test
    void aWriteThatWasAppliedAndIsNotThereIsOne() {
        Side whole = new Side(9, List.of(written(1, 10, 4, 3), zeroes(1, 20, 100, 4)));
        Side hole = new Side(9, List.of(written(1, 10, 1, 3), written(1, 12, 2, 3)));
        List<Difference> found = compare(hole, whole);
        assertThat(found).extracting(Difference::kind).containsOnly(Kind.OLDER_HERE);
        assertThat(found).extracting(Difference::block).containsExactly(11L, 20L);
        assertThat(found).extracting(Difference::count).containsExactly(1, 100);
        assertThat(compare(whole, hole))
                .extracting(Difference::kind)
                .containsOnly(Kind.OLDER_THERE);
        // Only where it was looked for.
        assertThat(Comparison.of(hole, whole, new Cursor(1, 12), new Cursor(1, 50)))
                .singleElement()
                .matches(each -> each.block() == 20 && each.count() == 30);
        assertThat(Comparison.of(hole, whole, new Cursor(2, 0), ScrubMessage.END)).isEmpty();
    }

    @Test
    void otherNoncesAndOtherBytesAreToldApart() {
        Stretch one = written(1, 10, 3, 3);
        Stretch again = new Stretch(1, 10, 3, 3, 2, new Nonce(1, 6, 10), false, true, one.sums());
        assertThat(compare(new Side(3, List.of(one)), new Side(3, List.of(again))))
                .singleElement()
                .matches(each -> each.kind() == Kind.OTHER_WRITE && each.count() == 3);
        byte[] sums = one.sums().clone();
        sums[5] ^= 1;
        Stretch rotten = new Stretch(1, 10, 3, 3, 1, one.nonce(), false, true, sums);
        assertThat(compare(new Side(3, List.of(one)), new Side(3, List.of(rotten))))
                .singleElement()
                .matches(each ->
                        each.kind() == Kind.OTHER_BYTES && each.block() == 11 && each.count() == 1);
        // What is damaged anyway is another matter.
        Stretch damaged = new Stretch(1, 10, 3, 3, 1, one.nonce(), false, false, sums);
        assertThat(compare(new Side(3, List.of(one)), new Side(3, List.of(damaged)))).isEmpty();
    }

    /** Per block its stretch; the key is layer * BLOCKS + block. */
    private static NavigableMap<Integer, Stretch> mapAt(List<Stretch> history, long applied) {
        NavigableMap<Integer, Stretch> map = new TreeMap<>();
        for (Stretch each : history) {
            if (each.sequence() <= applied) {
                for (long block = each.block(); block < each.end(); block++) {
                    map.put(each.layer() * BLOCKS + (int) block, each);
                }
            }
        }
        return map;
    }

    private static List<Stretch> stretches(NavigableMap<Integer, Stretch> map, Random random) {
        List<Stretch> all = new ArrayList<>();
        Integer at = map.isEmpty() ? null : map.firstKey();
        while (at != null) {
            Stretch of = map.get(at);
            int end = at + 1;
            // Cut at random: how extents are split must not matter.
            while (of.equals(map.get(end)) && end % BLOCKS != 0 && random.nextInt(4) > 0) {
                end++;
            }
            int block = at % BLOCKS;
            all.add(
                    of.isZero()
                            ? zeroes(of.layer(), block, end - at, of.sequence())
                            : written(of.layer(), block, end - at, of.sequence()));
            at = map.ceilingKey(end);
        }
        return all;
    }

    @Test
    void replicasOfOneHistoryNeverDifferAndWhatIsLostIsFound() {
        Random random = new Random(SEED);
        for (int round = 0; round < 2000; round++) {
            List<Stretch> history = new ArrayList<>();
            int writes = random.nextInt(30);
            for (int sequence = 1; sequence <= writes; sequence++) {
                int block = random.nextInt(BLOCKS);
                int count = 1 + random.nextInt(BLOCKS - block);
                int layer = random.nextInt(LAYERS);
                history.add(
                        random.nextBoolean()
                                ? written(layer, block, count, sequence)
                                : zeroes(layer, block, count, sequence));
            }
            long a = random.nextInt(writes + 1);
            long b = random.nextInt(writes + 1);
            NavigableMap<Integer, Stretch> here = mapAt(history, a);
            NavigableMap<Integer, Stretch> there = mapAt(history, b);
            Side there1 = new Side(b, stretches(there, random));
            String when = "seed " + SEED + ", round " + round;
            assertThat(compare(new Side(a, stretches(here, random)), there1)).as(when).isEmpty();
            if (here.isEmpty()) {
                continue;
            }
            Integer lost = new ArrayList<>(here.keySet()).get(random.nextInt(here.size()));
            here.remove(lost);
            Stretch other = there.get(lost);
            boolean visible = other != null && other.sequence() <= a;
            List<Difference> found = compare(new Side(a, stretches(here, random)), there1);
            assertThat(found).as(when).hasSize(visible ? 1 : 0);
            if (visible) {
                assertThat(found.getFirst().kind()).as(when).isEqualTo(Kind.OLDER_HERE);
                assertThat(found.getFirst().layer() * BLOCKS + (int) found.getFirst().block())
                        .as(when)
                        .isEqualTo(lost);
            }
        }
    }
}
