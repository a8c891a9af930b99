/**
 * Real node processes under faults, with a history of every block that is checked like the
 * simulator's: {@code ./holdfast nemesis}.
 *
 * <p>Three nodes run in network namespaces of their own, with their data on small loop-mounted file
 * systems. Clients write unique values through all of them, over sockets, and record when each
 * request was sent and what became of it. Meanwhile the nemesis kills, pauses, cuts off and fills
 * up nodes, drawn from a seed. A 4 KiB block is a register; {@link
 * io.holdfast.simulation.RegisterChecker} decides whether its history is linearizable.
 *
 * <p>Who is who: {@link io.holdfast.nemesis.Nemesis} is the command, {@link
 * io.holdfast.nemesis.Run} one run; {@link io.holdfast.nemesis.Cluster} with {@link
 * io.holdfast.nemesis.NodeProcess}, {@link io.holdfast.nemesis.Network} and {@link
 * io.holdfast.nemesis.SmallDisk} is what is tormented, {@link io.holdfast.nemesis.Faults} the
 * torment; {@link io.holdfast.nemesis.Client} with {@link io.holdfast.nemesis.NbdSession} works,
 * {@link io.holdfast.nemesis.VolumeHistory} remembers and judges, {@link
 * io.holdfast.nemesis.Weather} knows when a request had to be served, {@link
 * io.holdfast.nemesis.Judge} whether it was.
 *
 * <p>The order of faults comes from the seed; when exactly they meet a request does not, so a seed
 * repeats the kind of trouble, not the run.
 */
@NullMarked
package io.holdfast.nemesis;

import org.jspecify.annotations.NullMarked;
