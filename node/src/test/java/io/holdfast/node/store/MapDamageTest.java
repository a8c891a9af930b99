package io.holdfast.node.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.holdfast.proto.peer.Entry;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A database that has lost something: nobody guesses, and everybody is told what to do. */
class MapDamageTest {
    private final Loop loop = new Loop();

    @TempDir Path folder;

    private Path sound;
    private Path directory;

    private JournalStore open() throws IOException {
        return new JournalStore(directory, Rig.OPTIONS, loop);
    }

    /** Two checkpoints, so that every family has files. */
    @BeforeEach
    void make() throws IOException {
        sound = folder.resolve("sound");
        directory = sound;
        JournalStore store = open();
        TestOwner owner = new TestOwner();
        Rig.create(store, Rig.SHARD, owner);
        for (int i = 1; i <= 2; i++) {
            List<Entry> entries = List.of(Rig.write(Rig.SHARD, 1, i, i * 100L, 64));
            store.append(Rig.SHARD, entries, null);
            store.apply(Rig.SHARD, entries);
            owner.applied = i;
            owner.appliedEpoch = 1;
            Rig.checkpoint(store, loop);
        }
        store.close();
    }

    private Path map(String name) throws IOException {
        directory = folder.resolve(name);
        Rig.copy(sound, directory);
        return directory.resolve("map");
    }

    private static List<Path> files(Path map, String mark) throws IOException {
        try (Stream<Path> files = Files.list(map)) {
            return files.filter(file -> file.getFileName().toString().contains(mark)).toList();
        }
    }

    private void assertRefused() {
        // More than once: the first attempt must not change what the second finds.
        for (int attempt = 0; attempt < 2; attempt++) {
            assertThatThrownBy(this::open)
                    .isInstanceOf(StoreException.class)
                    .hasMessageContaining(directory.toString())
                    .hasMessageContaining("map")
                    .hasMessageContaining("Move the node's data directory away")
                    .hasMessageContaining("learner");
        }
    }

    private static void truncate(Path file, long size) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
            channel.truncate(size);
        }
    }

    @Test
    void withoutTheDirectoryAStartIsRefused() throws IOException {
        Path map = map("gone");
        for (Path file : files(map, "")) {
            Files.delete(file);
        }
        assertRefused();

        map = map("gone-2");
        for (Path file : files(map, "")) {
            Files.delete(file);
        }
        Files.delete(map);
        assertRefused();
    }

    /** RocksDB would make a new database here, and remove the files of the old one. */
    @Test
    void withoutTheFileThatNamesTheRestAStartIsRefusedAndNothingIsRemoved() throws IOException {
        Path map = map("current");
        int tables = files(map, ".sst").size();
        Files.delete(map.resolve("CURRENT"));
        assertRefused();
        assertThat(files(map, ".sst")).hasSize(tables);
    }

    @Test
    void withoutTheListOfTablesAStartIsRefused() throws IOException {
        for (Path manifest : files(map("manifest"), "MANIFEST")) {
            truncate(manifest, 0);
        }
        assertRefused();
        for (Path manifest : files(map("manifest-2"), "MANIFEST")) {
            Files.delete(manifest);
        }
        assertRefused();
    }

    @Test
    void withoutAnyTableAStartIsRefused() throws IOException {
        List<Path> tables = files(sound.resolve("map"), ".sst");
        assertThat(tables).hasSizeGreaterThan(3);
        for (Path table : tables) {
            Path map = map("without-" + table.getFileName());
            Files.delete(map.resolve(table.getFileName()));
            assertRefused();
        }
    }

    @Test
    void aTableCutShortIsNoticedAtTheLatestWhenItIsRead() throws IOException {
        for (Path table : files(sound.resolve("map"), ".sst")) {
            Path cut = map("cut-" + table.getFileName()).resolve(table.getFileName());
            truncate(cut, Files.size(cut) / 2);
            assertNoticed();
        }
    }

    @Test
    void aFlippedBitInATableIsNoticedWhenItIsRead() throws IOException {
        int noticed = 0;
        for (Path table : files(sound.resolve("map"), ".sst")) {
            Path file = map("flipped-" + table.getFileName()).resolve(table.getFileName());
            byte[] bytes = Files.readAllBytes(file);
            bytes[20] ^= 1;
            Files.write(file, bytes);
            noticed += complaints().size();
        }
        // At least one table of each family; an older one may hold nothing that is still read.
        assertThat(noticed).isGreaterThanOrEqualTo(Rows.Family.values().length);
    }

    private void assertNoticed() throws IOException {
        assertThat(complaints()).hasSize(1);
    }

    private List<String> complaints() throws IOException {
        TestOwner owner = new TestOwner();
        List<String> texts = new ArrayList<>();
        try {
            JournalStore store = open();
            store.open(Rig.SHARD, owner);
            store.newestSequence(Rig.SHARD, 1, 0, 1000);
            store.abandon();
            owner.failures.forEach(failure -> texts.add(failure.getMessage()));
        } catch (StoreException e) {
            texts.add(e.getMessage());
        }
        assertThat(texts)
                .allSatisfy(text ->
                        assertThat(text)
                                .contains("Move the node's data directory away")
                                .contains(directory.toString()));
        return texts;
    }
}
