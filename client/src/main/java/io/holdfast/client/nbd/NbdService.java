package io.holdfast.client.nbd;

import io.holdfast.client.ClientIdentity;
import io.holdfast.client.Exports;
import java.net.SocketAddress;
import java.util.function.Function;

/** What all connections of a server share. */
record NbdService(
        Exports exports,
        NbdLimits limits,
        Function<SocketAddress, ClientIdentity> identify,
        NbdEvents events) {}
