package io.holdfast.node.replica;

import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * Which requests of one session have run, from the session's low water on. Below the low water the
 * client has settled everything, so nothing there may run (again).
 *
 * <p>A bitmap over request numbers; bit 0 of word 0 is {@code base}, a multiple of 64.
 */
final class CompletedRequests {
    /** Furthest a request may be ahead of its session's low water. */
    static final int MAX_SPAN = 1 << 16;

    private long lowWater = 1;
    private long base;
    private long[] words = new long[2];

    long lowWater() {
        return lowWater;
    }

    /** Whether a request is one of the {@code span} that begin with the low water. */
    static boolean withinSpan(long request, long lowWater, int span) {
        return request >= lowWater && request - lowWater < span;
    }

    boolean contains(long request) {
        long bit = request - base;
        return request >= lowWater
                && bit >>> 6 < words.length
                && (words[(int) (bit >>> 6)] & (1L << bit)) != 0;
    }

    void add(long request) {
        if (request < lowWater) {
            return;
        }
        Invariant.check(
                withinSpan(request, lowWater, MAX_SPAN),
                "a request is near its session's low water",
                request,
                lowWater);
        int word = (int) ((request - base) >>> 6);
        if (word >= words.length) {
            words = Arrays.copyOf(words, Math.max(word + 1, words.length * 2));
        }
        words[word] |= 1L << (request - base);
    }

    void raiseLowWater(long to) {
        if (to <= lowWater) {
            return;
        }
        lowWater = to;
        long newBase = to & ~63L;
        long shift = (newBase - base) >>> 6;
        if (shift >= words.length) {
            Arrays.fill(words, 0);
        } else if (shift > 0) {
            System.arraycopy(words, (int) shift, words, 0, words.length - (int) shift);
            Arrays.fill(words, words.length - (int) shift, words.length, 0);
        }
        base = newBase;
    }

    private int usedWords() {
        int used = words.length;
        while (used > 0 && words[used - 1] == 0) {
            used--;
        }
        return used;
    }

    /** Low water (8), number of words (4), the words from {@code base} on. */
    int encodedSize() {
        return 12 + 8 * usedWords();
    }

    void encode(ByteBuffer out) {
        int used = usedWords();
        out.putLong(lowWater).putInt(used);
        for (int i = 0; i < used; i++) {
            out.putLong(words[i]);
        }
    }

    static CompletedRequests decode(ByteBuffer in) {
        CompletedRequests requests = new CompletedRequests();
        requests.lowWater = in.getLong();
        requests.base = requests.lowWater & ~63L;
        int used = in.getInt();
        Invariant.check(
                used >= 0 && used <= MAX_SPAN / 64 + 1, "a session's bitmap is bounded", used);
        requests.words = new long[Math.max(used, 2)];
        for (int i = 0; i < used; i++) {
            requests.words[i] = in.getLong();
        }
        return requests;
    }
}
