package io.holdfast.node.runtime;

import io.holdfast.node.port.PeerLinks;
import io.holdfast.proto.peer.PeerMessage;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/** Links between nodes that share one thread. A message leaves with the flush, or not at all. */
public final class MemoryNetwork {
    private final Map<Integer, PeerLinks.Receiver> receivers = new TreeMap<>();
    private final Map<Integer, DataThread> threads = new TreeMap<>();
    private final Set<Integer> cut = new HashSet<>();
    private int flushes;

    private record Letter(int to, PeerMessage message) {}

    PeerLinks links(int self, DataThread thread, PeerLinks.Receiver receiver) {
        receivers.put(self, receiver);
        threads.put(self, thread);
        return new Links(self);
    }

    /** Nothing reaches the node or leaves it any more. */
    public void cut(int node) {
        cut.add(node);
        receivers.forEach((other, receiver) -> {
            if (other != node) {
                receiver.disconnected(node);
            }
        });
    }

    /** It is reached again. */
    public void heal(int node) {
        cut.remove(node);
    }

    int flushes() {
        return flushes;
    }

    private final class Links implements PeerLinks {
        private final int self;
        private List<Letter> queued = new ArrayList<>();

        Links(int self) {
            this.self = self;
        }

        @Override
        public void send(int to, PeerMessage message) {
            queued.add(new Letter(to, message));
        }

        @Override
        public void flush() {
            flushes++;
            List<Letter> leaving = queued;
            queued = new ArrayList<>();
            for (Letter letter : leaving) {
                PeerLinks.Receiver receiver = receivers.get(letter.to());
                DataThread thread = threads.get(letter.to());
                if (receiver == null
                        || thread == null
                        || cut.contains(self)
                        || cut.contains(letter.to())) {
                    continue;
                }
                thread.execute(() -> {
                    receiver.received(self, letter.message());
                    receiver.turnEnded();
                });
            }
        }

        @Override
        public long incarnation() {
            return self;
        }

        @Override
        public boolean connected(int node) {
            return receivers.containsKey(node) && !cut.contains(node) && !cut.contains(self);
        }

        @Override
        public void close() {
            receivers.remove(self);
        }
    }
}
