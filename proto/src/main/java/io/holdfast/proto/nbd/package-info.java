/**
 * The NBD protocol as bytes: constants under the standard's own names, the messages a server
 * receives, and encoders of what it sends. No I/O and no state; start at {@link
 * io.holdfast.proto.nbd.NbdProtocol}.
 *
 * <p>Every number on the wire is big-endian, which is also the order of Netty's buffers. "Section"
 * in comments means a heading of the standard, {@code doc/proto.md} of NetworkBlockDevice/nbd.
 *
 * <p>Depends on the JDK and Netty's buffers only.
 */
@NullMarked
package io.holdfast.proto.nbd;

import org.jspecify.annotations.NullMarked;
