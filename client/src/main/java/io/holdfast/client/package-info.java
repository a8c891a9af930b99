/**
 * A volume as a block device: {@link io.holdfast.client.BlockDevice} is what the NBD server serves,
 * {@code VolumeClient} implements it over the cluster (split by shard, encrypt, number, route to
 * the leader, repeat exactly once).
 *
 * <p>Depends on {@code proto} and {@code cluster-config} only; never on the node.
 */
@NullMarked
package io.holdfast.client;

import org.jspecify.annotations.NullMarked;
