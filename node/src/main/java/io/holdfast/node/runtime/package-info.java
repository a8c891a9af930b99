/**
 * Runs the pure replication core against real ports. {@link io.holdfast.node.runtime.DataLoop} is
 * the one thread that everything of the data path happens on; {@link
 * io.holdfast.node.runtime.ShardDriver} takes one replica through events and effects; {@link
 * io.holdfast.node.runtime.ReplicaKeeper} opens, makes and drops replicas as the catalogue says;
 * {@link io.holdfast.node.runtime.LeaderRecorder} tells the catalogue who leads.
 *
 * <p>Depends on the core, the ports, {@code proto}, {@code client}'s links and Netty's event loop;
 * on no adapter.
 */
@NullMarked
package io.holdfast.node.runtime;

import org.jspecify.annotations.NullMarked;
