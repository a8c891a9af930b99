/**
 * A volume as a block device: {@link io.holdfast.client.BlockDevice} is what the NBD server serves,
 * {@link io.holdfast.client.VolumeClient} implements it over the cluster (split by shard, encrypt,
 * number, route to the leader, repeat exactly once), and {@link io.holdfast.client.ClusterExports}
 * offers the catalogue's volumes through it.
 *
 * <p>Everything runs on one thread and gets its clock from {@link io.holdfast.client.Timers} and
 * its messages through {@link io.holdfast.client.ShardLinks}, so that the simulator runs the same
 * code.
 *
 * <p>Depends on {@code proto}, {@code cluster-config} and {@code client.crypto} only; never on the
 * node.
 */
@NullMarked
package io.holdfast.client;

import org.jspecify.annotations.NullMarked;
