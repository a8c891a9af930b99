/**
 * What the node's core needs from outside, as contracts: {@link io.holdfast.node.port.Store}
 * (disk), {@link io.holdfast.node.port.PeerLinks} (network), {@link
 * io.holdfast.node.port.Coordinator} (catalogue and membership). Each has a real adapter and a
 * simulated one.
 */
@NullMarked
package io.holdfast.node.port;

import org.jspecify.annotations.NullMarked;
