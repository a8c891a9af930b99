/** Rules of the replication core, one at a time. */
@NullMarked
package io.holdfast.node.replica;

import org.jspecify.annotations.NullMarked;
