package io.holdfast.client;

import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;

/** The volumes that an NBD server offers. All calls and call-backs on the server's event loop. */
public interface Exports {
    /** Names that {@code client} may see, sorted. */
    List<String> names(ClientIdentity client);

    /**
     * Size and mode of an export without opening it, for NBD_OPT_INFO; empty: no such export.
     *
     * @param done called once, possibly before this returns
     */
    void describe(String name, ClientIdentity client, Consumer<Optional<Description>> done);

    /**
     * Opens an export for one connection.
     *
     * @param done called once, possibly before this returns; empty: no such export
     */
    void open(String name, ClientIdentity client, Consumer<Optional<BlockDevice>> done);

    /**
     * What a client learns about an export.
     *
     * @param readOnly because of the volume, or because another client holds it
     */
    record Description(String name, long sizeBytes, boolean readOnly) {}
}
