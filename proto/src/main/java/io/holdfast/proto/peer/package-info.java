/**
 * What replicas and clients say to each other, and the log entry, which is the same on the wire and
 * on disk. Start at {@link io.holdfast.proto.peer.PeerMessage}. No I/O here.
 *
 * <p>Depends on the JDK and Netty's buffers only. The records are used by the replication core, the
 * volume client, the transport and the simulator alike.
 */
@NullMarked
package io.holdfast.proto.peer;

import org.jspecify.annotations.NullMarked;
