package io.holdfast.node.coordination;

import io.holdfast.node.coordination.CatalogueCodec.MalformedValueException;
import io.holdfast.node.coordination.CatalogueCodec.UnknownFormatException;
import io.holdfast.proto.catalogue.Catalogue;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * {@code catalogue.json}: the newest catalogue this node has seen, kept because Atomix does not
 * sync its own log (D3) and because a node serves what it knows before Atomix has started.
 *
 * <p>One thread.
 */
final class SavedCatalogue {
    private static final Logger LOG = LoggerFactory.getLogger(SavedCatalogue.class);

    private static final String NAME = "catalogue.json";

    private final Path file;
    private final Path temporary;

    SavedCatalogue(Path directory) {
        file = directory.resolve(NAME);
        temporary = directory.resolve(NAME + ".tmp");
    }

    /**
     * What the last run saved; {@link Catalogue#EMPTY} if there is none. An unreadable file is set
     * aside: the cluster has the catalogue too.
     *
     * @throws IOException the file cannot be read, or a newer version wrote it
     */
    Catalogue load() throws IOException {
        byte[] bytes;
        try {
            bytes = Files.readAllBytes(file);
        } catch (NoSuchFileException e) {
            return Catalogue.EMPTY;
        }
        try {
            Catalogue catalogue = CatalogueCodec.decodeCatalogue(bytes);
            Optional<String> problem = CatalogueState.problem(catalogue);
            if (problem.isPresent()) {
                throw new MalformedValueException(problem.get());
            }
            return catalogue;
        } catch (UnknownFormatException e) {
            throw new IOException(file + " was written by a newer version: " + e.getMessage(), e);
        } catch (MalformedValueException e) {
            Path aside = file.resolveSibling(NAME + ".unreadable");
            Files.move(file, aside, StandardCopyOption.REPLACE_EXISTING);
            LOG.error(
                    "{} is unreadable ({}); kept as {}, starting without",
                    file,
                    e.getMessage(),
                    aside.getFileName());
            return Catalogue.EMPTY;
        }
    }

    /** Replaces the file. After a crash at any point there is the old content or the new. */
    void save(Catalogue catalogue) throws IOException {
        try (FileChannel channel =
                FileChannel.open(
                        temporary,
                        StandardOpenOption.CREATE,
                        StandardOpenOption.WRITE,
                        StandardOpenOption.TRUNCATE_EXISTING)) {
            ByteBuffer bytes = ByteBuffer.wrap(CatalogueCodec.encode(catalogue));
            while (bytes.hasRemaining()) {
                channel.write(bytes);
            }
            // Before the rename, else the name may be on disk before the content.
            channel.force(true);
        }
        Files.move(
                temporary,
                file,
                StandardCopyOption.ATOMIC_MOVE,
                StandardCopyOption.REPLACE_EXISTING);
        try (FileChannel directory =
                FileChannel.open(file.toAbsolutePath().getParent(), StandardOpenOption.READ)) {
            directory.force(true);
        }
    }
}
