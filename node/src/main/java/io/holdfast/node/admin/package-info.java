/**
 * The node's admin interface: HTTP with JSON ({@link io.holdfast.node.admin.AdminServer}), what it
 * does for people ({@link io.holdfast.node.admin.ClusterAdmin}) and the node's metrics ({@link
 * io.holdfast.node.admin.Metrics}).
 *
 * <p>Never on the data path. What it needs from the data loop it asks with a time-out, so that a
 * stuck loop shows as an error and not as a hanging status. Depends on {@code node.runtime}, {@code
 * node.port}, the documents of {@code client.admin}, Micrometer and the JDK's HTTP classes.
 */
@NullMarked
package io.holdfast.node.admin;

import org.jspecify.annotations.NullMarked;
