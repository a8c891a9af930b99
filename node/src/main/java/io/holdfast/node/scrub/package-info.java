/**
 * Finds and repairs, before a client meets it, what has gone wrong with the blocks at rest: {@link
 * io.holdfast.node.scrub.Scrubber} walks over this node's replicas, {@link
 * io.holdfast.node.scrub.ShardScrub} over one, {@link io.holdfast.node.scrub.Comparison} tells what
 * two replicas differ in, {@link io.holdfast.node.scrub.VersionAnswers} answers other nodes.
 *
 * <p>Depends on the runtime, the ports and {@code proto}; on no adapter. The replication core knows
 * nothing of it. Everything runs on the data loop; what waits for the disk is the store's affair.
 */
@NullMarked
package io.holdfast.node.scrub;

import org.jspecify.annotations.NullMarked;
