/**
 * Connections between nodes, and from attach agents to nodes, over TCP with Netty. Start at {@link
 * io.holdfast.node.peer.NettyPeerLinks}; the bytes are described in docs/protocol.md.
 *
 * <p>Depends on {@code node.port}, {@code proto.peer}, the configuration records, Netty and SLF4J.
 * Everything runs on the data loop.
 */
@NullMarked
package io.holdfast.node.peer;

import org.jspecify.annotations.NullMarked;
