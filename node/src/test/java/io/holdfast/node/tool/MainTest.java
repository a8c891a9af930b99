package io.holdfast.node.tool;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import io.holdfast.node.replica.HardState;
import io.holdfast.node.store.JournalStore;
import io.holdfast.node.store.StoreOptions;
import io.holdfast.proto.peer.ShardId;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import picocli.CommandLine;

/** Words, exit codes and JSON of {@code holdfast store}. */
class MainTest {
    @TempDir Path directory;

    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    private int run(String... args) {
        CommandLine command =
                Main.commandLine().setOut(new PrintWriter(out)).setErr(new PrintWriter(err));
        return command.execute(args);
    }

    private void store() throws IOException {
        StoreOptions options = new StoreOptions(2 << 20, 1L << 40, 64 << 20, 1 << 20, 2, "boot");
        JournalStore store = new JournalStore(directory, options, Runnable::run);
        store.create(new ShardId(7, 0), HardState.FRESH, new NoOwner());
        store.close();
    }

    @ParameterizedTest
    @CsvSource({
        "store inspect --help, holdfast store inspect run/node-1",
        "store verify --help, holdfast store verify run/node-1",
        "store --help, Never writes anything",
    })
    void helpHasExamples(String line, String expected) {
        assertThat(run(line.split(" "))).isZero();
        assertThat(out.toString()).contains("Usage: holdfast store").contains(expected);
    }

    @Test
    void aSoundStoreEndsWithZero() throws Exception {
        store();
        assertThat(run("store", "verify", directory.toString())).isZero();
        assertThat(out.toString()).contains("the store in " + directory + " is sound");
        assertThat(run("store", "inspect", directory.toString())).isZero();
        assertThat(out.toString()).contains("SHARD").contains("7/0").contains("VOTER");
    }

    @Test
    void aDamagedStoreEndsWithOneAndSaysWhatToDo() throws Exception {
        store();
        Path segment = directory.resolve("journal").resolve("0000000001.seg");
        try (FileChannel file = FileChannel.open(segment, StandardOpenOption.WRITE)) {
            file.write(ByteBuffer.wrap(new byte[] {1, 2, 3, 4}), 100);
        }
        assertThat(run("store", "verify", directory.toString())).isEqualTo(1);
        assertThat(out.toString())
                .contains("damaged: 1:64 (journal/0000000001.seg, ")
                .contains("DAMAGED")
                .contains("Move the node's data directory away");
    }

    @Test
    void jsonIsOneDocument() throws Exception {
        store();
        assertThat(run("store", "verify", "--json", directory.toString())).isZero();
        JsonNode verify = JsonMapper.builder().build().readTree(out.toString());
        assertThat(verify.get("sound").asBoolean()).isTrue();
        assertThat(verify.get("listed")).isEmpty();
        out.getBuffer().setLength(0);
        assertThat(run("store", "inspect", "--json", directory.toString())).isZero();
        JsonNode inspect = JsonMapper.builder().build().readTree(out.toString());
        assertThat(inspect.get("shards").get(0).get("standing").asText()).isEqualTo("VOTER");
        assertThat(inspect.get("segments").get(0).get("first").asText()).isEqualTo("1:64");
    }

    @Test
    void wrongUsageEndsWithTwo() {
        assertThat(run("store")).isEqualTo(2);
        assertThat(err.toString()).contains("store inspect or store verify?");
        assertThat(run("store", "verify")).isEqualTo(2);
        assertThat(run("store", "verify", directory.resolve("nowhere").toString())).isEqualTo(2);
        assertThat(err.toString()).contains("is no directory").contains("run/node-1");
    }

    @Test
    void aDamagedDatabaseEndsWithOne() throws Exception {
        store();
        Files.delete(directory.resolve("map").resolve("CURRENT"));
        assertThat(run("store", "inspect", directory.toString())).isEqualTo(1);
        assertThat(err.toString())
                .contains("the map is damaged")
                .contains("CURRENT")
                .contains("Move the node's data directory away")
                .doesNotContain("store verify");
    }

    @Test
    void whatVerifyCannotOpenItFindsDamaged() throws Exception {
        store();
        Files.delete(directory.resolve("map").resolve("CURRENT"));
        assertThat(run("store", "verify", "--json", directory.toString())).isEqualTo(1);
        JsonNode verify = JsonMapper.builder().build().readTree(out.toString());
        assertThat(verify.get("sound").asBoolean()).isFalse();
        assertThat(verify.get("listed").get(0).get("kind").asText()).isEqualTo("MAP");
        assertThat(verify.get("listed").get(0).get("what").asText()).contains("CURRENT is missing");
        assertThat(run("store", "verify", directory.toString())).isEqualTo(1);
        assertThat(out.toString())
                .contains("damaged: the map is damaged: ")
                .contains("nothing was read")
                .contains("Move the node's data directory away");
    }

    @Test
    void aSegmentMadeAheadOfTimeIsCalledSpare() throws Exception {
        store();
        Files.write(directory.resolve("journal").resolve("0000000002.seg"), new byte[2 << 20]);
        assertThat(run("store", "inspect", directory.toString())).isZero();
        assertThat(out.toString().lines().filter(line -> line.startsWith("2 ")))
                .singleElement()
                .asString()
                .contains("spare");
    }

    private static final class NoOwner implements io.holdfast.node.port.Store.Owner {
        @Override
        public byte[] shardState() {
            return new byte[0];
        }

        @Override
        public long applied() {
            return 0;
        }

        @Override
        public long appliedEpoch() {
            return 0;
        }

        @Override
        public void failed(Exception cause) {
            throw new AssertionError(cause);
        }
    }
}
