/**
 * A node's and a cluster's configuration: HOCON in, typed and validated records out. Start at
 * {@link io.holdfast.config.ConfigLoader}. Depends on {@code proto} and Typesafe Config only.
 */
@NullMarked
package io.holdfast.config;

import org.jspecify.annotations.NullMarked;
