package io.holdfast.node.scrub;

import io.holdfast.node.port.Store;
import io.holdfast.node.runtime.DataLoop;
import io.holdfast.proto.peer.ScrubMessage.AskVersions;
import io.holdfast.proto.peer.ScrubMessage.Versions;
import java.util.ArrayDeque;

/**
 * Answers other nodes that compare their replicas with those here, one after the other. Their own
 * rate limits keep the pace.
 */
final class VersionAnswers {
    /** Questions that wait; further ones are dropped, and asked again by the other node. */
    static final int MAX_WAITING = 16;

    private record Question(int from, AskVersions ask) {}

    private final DataLoop loop;
    private final Store store;
    private final ArrayDeque<Question> waiting = new ArrayDeque<>();
    private boolean busy;

    VersionAnswers(DataLoop loop, Store store) {
        this.loop = loop;
        this.store = store;
    }

    void asked(int from, AskVersions ask) {
        if (waiting.size() < MAX_WAITING) {
            waiting.add(new Question(from, ask));
            next();
        }
    }

    private void next() {
        while (!busy && !waiting.isEmpty()) {
            Question question = waiting.remove();
            // One without a replica keeps quiet, as one does that is down.
            if (loop.has(question.ask.shard())) {
                busy = true;
                answer(question);
            }
        }
    }

    private void answer(Question question) {
        AskVersions ask = question.ask;
        store.verify(
                ask.shard(),
                ask.from(),
                ask.to(),
                ShardScrub.PART_BYTES,
                part -> {
                    busy = false;
                    if (part != null) {
                        loop.sendToPeer(
                                question.from,
                                new Versions(
                                        ask.shard(),
                                        ask.ask(),
                                        part.applied(),
                                        ask.from(),
                                        part.next(),
                                        part.stretches()));
                    }
                    next();
                });
    }
}
