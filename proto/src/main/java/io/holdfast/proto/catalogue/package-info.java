/**
 * The cluster's catalogue: which volumes exist and where they are. One immutable {@link
 * io.holdfast.proto.catalogue.Catalogue} at a version; changed only by {@link
 * io.holdfast.proto.catalogue.Change}s. No I/O here.
 */
@NullMarked
package io.holdfast.proto.catalogue;

import org.jspecify.annotations.NullMarked;
