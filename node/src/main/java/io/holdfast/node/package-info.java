/**
 * A storage node as a process. {@link io.holdfast.node.Main} reads the command line, {@link
 * io.holdfast.node.Node} is the only place that knows every adapter and puts them together.
 */
@NullMarked
package io.holdfast.node;

import org.jspecify.annotations.NullMarked;
