/**
 * A whole cluster in one thread, everything drawn from one seed: the production replication core
 * and the production volume client, with its real cipher, over a simulated clock, network, disk and
 * coordinator, with faults mixed in and checkers after every event.
 *
 * <p>What is atomic: a block is written, zeroed and read as a whole, so the block is the register
 * of the requests that reach a shard. A call of the block device may cover several blocks, which
 * need not change at the same moment, and parts of blocks; its registers are {@link
 * io.holdfast.simulation.Cells}, the smallest pieces that calls are made of here. {@link
 * io.holdfast.simulation.History} checks both. A call that timed out may take effect until a later
 * request of its client, a newer claim, or the end of its session rules that out.
 *
 * <p>Two kinds of clients meet. {@link io.holdfast.simulation.SimUser} works through volume
 * clients, as an NBD connection does. {@link io.holdfast.simulation.SimClient} speaks the protocol
 * itself and does what a volume client never would: it goes on while older requests are in doubt,
 * gives up early, never releases. Most runs have the first kind only, some both or the second only.
 *
 * <p>Replicas are kept in the production store, on a simulated file system ({@link
 * io.holdfast.simulation.SimJournal}), or in a model of it ({@link
 * io.holdfast.simulation.SimStore}), which is faster: the seed decides. {@link
 * io.holdfast.simulation.SimDisk} says what is left after which fault.
 *
 * <p>Start at {@link io.holdfast.simulation.Simulation} (one run of one seed) or {@link
 * io.holdfast.simulation.SimCluster} (hand-written scenarios). {@link
 * io.holdfast.simulation.Simulate} runs seeds on all cores.
 *
 * <p>Nothing here reads a clock, starts a thread or iterates over a collection without order,
 * except {@code Simulate}, which starts whole runs side by side.
 */
@NullMarked
package io.holdfast.simulation;

import org.jspecify.annotations.NullMarked;
