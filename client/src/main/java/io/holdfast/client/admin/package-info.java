/**
 * The admin interface of a node: what its JSON documents hold, and {@link
 * io.holdfast.client.admin.AdminClient} to ask for them. The node's server answers with the same
 * records. Documented for users in {@code docs/admin-api.md}.
 *
 * <p>Depends on {@code cluster-config} (endpoints), Jackson and the JDK's HTTP client.
 */
@NullMarked
package io.holdfast.client.admin;

import org.jspecify.annotations.NullMarked;
