/**
 * The cluster's agreed catalogue on Atomix 3.1.12; the only package that imports {@code io.atomix}.
 * Start at {@link io.holdfast.node.coordination.AtomixCoordinator}.
 *
 * <p>Of Atomix it uses its Raft protocol with one service of ours, and its gossip as a hint. What
 * was found wrong with 3.1.12 is named D1 to D4 in comments, each where it is kept away from us:
 *
 * <ul>
 *   <li>D1: its leader elector's terms can go back or repeat (sessions are walked in hash order).
 *   <li>D2: restored from a snapshot, sessions bind to the wrong service when a Raft group has more
 *       than one.
 *   <li>D3: it never syncs its log, whatever {@code flushOnCommit} says.
 *   <li>D4: a connection handshake has no time-out, so a frozen node is noticed late.
 * </ul>
 */
@NullMarked
package io.holdfast.node.coordination;

import org.jspecify.annotations.NullMarked;
