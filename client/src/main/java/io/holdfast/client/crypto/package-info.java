/**
 * Keys and sealing: a {@link io.holdfast.client.crypto.ClusterKey} wraps each volume's {@link
 * io.holdfast.client.crypto.VolumeKey}; a {@link io.holdfast.client.crypto.BlockCipher} seals and
 * opens blocks with it, under nonces that a {@link io.holdfast.client.crypto.NonceSource} hands out
 * once each.
 *
 * <p>Depends on the JDK and on the sizes in {@code proto.peer} only. No key ever shows up in a
 * message, a log line or a {@code toString}.
 */
@NullMarked
package io.holdfast.client.crypto;

import org.jspecify.annotations.NullMarked;
