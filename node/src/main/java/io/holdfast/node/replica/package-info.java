/**
 * The replication core: one {@link io.holdfast.node.replica.Replica} per shard and node, a pure
 * state machine {@code step(event, nowNanos) -> effects}.
 *
 * <p>Nothing here reads a clock, starts a thread, opens a file or a socket, draws a random number
 * or waits. The same code runs under {@code node.runtime} in production and under the deterministic
 * simulator in tests. It depends on the JDK and {@code proto.peer} records only, and iterates over
 * ordered collections only.
 */
@NullMarked
package io.holdfast.node.replica;

import org.jspecify.annotations.NullMarked;
