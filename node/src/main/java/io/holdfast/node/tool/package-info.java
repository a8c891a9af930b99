/**
 * {@code holdfast store}: looks at the store of a node that does not run. A program of its own
 * beside {@link io.holdfast.node.Main}, in the node's jar because only that holds the store.
 */
@NullMarked
package io.holdfast.node.tool;

import org.jspecify.annotations.NullMarked;
