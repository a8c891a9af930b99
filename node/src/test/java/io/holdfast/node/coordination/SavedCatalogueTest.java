package io.holdfast.node.coordination;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.holdfast.proto.catalogue.Catalogue;
import io.holdfast.proto.catalogue.Change;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SavedCatalogueTest {
    @TempDir Path directory;
    private final CatalogueState state = new CatalogueState();

    @BeforeEach
    void oneVolume() {
        state.apply(new Change.CreateVolume(Volumes.volume("a")));
    }

    @Test
    void anEmptyDirectoryHoldsTheEmptyCatalogue() throws Exception {
        assertThat(new SavedCatalogue(directory).load()).isEqualTo(Catalogue.EMPTY);
    }

    @Test
    void theLastOneSavedIsLoaded() throws Exception {
        SavedCatalogue saved = new SavedCatalogue(directory);
        saved.save(Catalogue.EMPTY);
        saved.save(state.catalogue());

        assertThat(new SavedCatalogue(directory).load()).isEqualTo(state.catalogue());
        assertThat(directory.resolve("catalogue.json.tmp")).doesNotExist();
    }

    @Test
    void aCrashWhileTheNewOneIsWrittenLeavesTheOldOne() throws Exception {
        new SavedCatalogue(directory).save(state.catalogue());
        Files.writeString(directory.resolve("catalogue.json.tmp"), "{\"format\":1,\"kin");

        assertThat(new SavedCatalogue(directory).load()).isEqualTo(state.catalogue());
    }

    @Test
    void anUnreadableOneIsSetAside() throws Exception {
        Files.writeString(directory.resolve("catalogue.json"), "{\"format\":1,\"kin");

        assertThat(new SavedCatalogue(directory).load()).isEqualTo(Catalogue.EMPTY);
        assertThat(directory.resolve("catalogue.json.unreadable")).exists();
        assertThat(directory.resolve("catalogue.json")).doesNotExist();
    }

    @Test
    void oneOfANewerVersionIsAnErrorAndStays() throws Exception {
        Files.writeString(
                directory.resolve("catalogue.json"), "{\"format\":2,\"kind\":\"catalogue\"}");

        assertThatThrownBy(() -> new SavedCatalogue(directory).load())
                .isInstanceOf(IOException.class)
                .hasMessageContaining("newer version");
        assertThat(directory.resolve("catalogue.json")).exists();
    }
}
