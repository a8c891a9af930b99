package io.holdfast.simulation;

import io.holdfast.proto.peer.ClientReply;

/** Somebody who asks shards and is answered. */
interface Replies {
    /** The process it lives in: a node's number, or an agent's. */
    int endpoint();

    /** An answer has come, on the process's loop. */
    void reply(int from, ClientReply reply);
}
