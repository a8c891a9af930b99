/**
 * NBD server over {@link io.holdfast.client.BlockDevice}s: {@link io.holdfast.client.nbd.NbdServer}
 * accepts, one connection object per client parses the stream, {@code Handshake} answers options,
 * {@code Transmission} validates requests, hands them to the device and sends the replies.
 *
 * <p>Everything runs on one event loop. Bad input is refused in one place per phase ({@code
 * OptionHandlers} and {@code RequestValidator}); what is behind it trusts.
 *
 * <p>Depends on Netty, {@code proto.nbd} and the contracts of {@code io.holdfast.client}.
 */
@NullMarked
package io.holdfast.client.nbd;

import org.jspecify.annotations.NullMarked;
