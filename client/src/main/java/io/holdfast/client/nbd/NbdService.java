package io.holdfast.client.nbd;

import io.holdfast.client.ClientIdentity;
import io.holdfast.client.Exports;
import java.net.SocketAddress;
import java.util.function.Function;
import java.util.function.LongSupplier;

/**
 * What all connections of a server share.
 *
 * @param nanoTime a clock like {@link System#nanoTime}
 */
record NbdService(
        Exports exports,
        NbdLimits limits,
        PayloadBudget budget,
        Function<SocketAddress, ClientIdentity> identify,
        NbdEvents events,
        LongSupplier nanoTime) {}
