/**
 * A whole cluster in one thread, everything drawn from one seed: the production replication core
 * over a simulated clock, network, disk and coordinator, with faults mixed in and checkers after
 * every event.
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
