package io.holdfast.client.crypto;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.holdfast.proto.catalogue.Volume;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class ClusterKeyTest {
    @TempDir Path directory;

    /** RFC 3394, section 4.6: 256 bits of key data with a 256-bit key encryption key. */
    @Test
    void wrapsAsTheRfcSays() throws Exception {
        HexFormat hex = HexFormat.of();
        ClusterKey cluster =
                new ClusterKey(
                        hex.parseHex(
                                "000102030405060708090a0b0c0d0e0f"
                                        + "101112131415161718191a1b1c1d1e1f"));
        VolumeKey key =
                new VolumeKey(
                        3,
                        hex.parseHex(
                                "00112233445566778899aabbccddeeff"
                                        + "000102030405060708090a0b0c0d0e0f"));
        String wrapped = cluster.wrap(key);
        assertThat(hex.formatHex(Base64.getDecoder().decode(wrapped)))
                .isEqualTo(
                        "28c9f404c4b810f4cbccb35cfb87f8263f5786e2d80ed326"
                                + "cbc7f0e71a99f43bfb988b9b7a02dd21");
        VolumeKey back = cluster.unwrap(3, wrapped);
        assertThat(back.id()).isEqualTo(3);
        assertThat(back.secret().getEncoded()).isEqualTo(key.secret().getEncoded());
    }

    @Test
    void refusesAKeyWrappedByAnotherClusterOrDamaged() throws Exception {
        ClusterKey cluster = ClusterKey.create(directory.resolve("a"));
        ClusterKey other = ClusterKey.create(directory.resolve("b"));
        String wrapped = cluster.wrap(VolumeKey.generate(1));
        assertThatThrownBy(() -> other.unwrap(1, wrapped)).isInstanceOf(KeyException.class);
        assertThatThrownBy(() -> cluster.unwrap(1, wrapped.substring(4)))
                .isInstanceOf(KeyException.class);
        assertThatThrownBy(() -> cluster.unwrap(1, "?")).isInstanceOf(KeyException.class);
        assertThatThrownBy(() -> cluster.unwrap(1, "")).isInstanceOf(KeyException.class);
    }

    @Test
    void aKeyThatOpensNoVolumeIsRefusedWhereThereAreSome() throws Exception {
        ClusterKey cluster = ClusterKey.create(directory.resolve("a"));
        ClusterKey other = ClusterKey.create(directory.resolve("b"));
        List<Volume> volumes = List.of(volume(1, other), volume(2, cluster), volume(3, cluster));
        cluster.requireOpensOneOf(volumes);
        cluster.requireOpensOneOf(List.of());
        assertThatThrownBy(() -> other.requireOpensOneOf(volumes.subList(1, 3)))
                .isInstanceOf(KeyException.class)
                .hasMessageContaining("none of the cluster's volumes (2)");
    }

    private static Volume volume(int number, ClusterKey key) {
        return new Volume(
                number,
                "v" + number,
                1 << 20,
                Volume.DEFAULT_STRIPE_BYTES,
                Volume.Durability.FLUSH,
                Volume.Attach.SHARED,
                Volume.Reads.LEASE,
                30,
                Volume.State.READY,
                1,
                1,
                key.wrap(VolumeKey.generate(1)),
                List.of(new Volume.Shard(0, List.of(1), 1, 1)));
    }

    @Test
    void createsAFileForItsOwnerOnlyAndReadsItBack() throws Exception {
        Path file = directory.resolve("cluster.key");
        ClusterKey created = ClusterKey.create(file);
        assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(file)))
                .isEqualTo("rw-------");
        assertThat(Files.readString(file)).matches("[0-9a-f]{64}\n");
        String wrapped = created.wrap(VolumeKey.generate(1));
        assertThat(ClusterKey.load(file).unwrap(1, wrapped).id()).isEqualTo(1);
        assertThatThrownBy(() -> ClusterKey.create(file))
                .isInstanceOf(KeyException.class)
                .hasMessageContaining("exists already");
    }

    @Test
    void refusesAFileThatOthersMayReadAndSaysWhatToDo() throws Exception {
        Path file = directory.resolve("cluster.key");
        ClusterKey.create(file);
        for (String permissions : new String[] {"rw-r-----", "rw----r--", "rw--w----"}) {
            Files.setPosixFilePermissions(file, PosixFilePermissions.fromString(permissions));
            assertThatThrownBy(() -> ClusterKey.load(file))
                    .isInstanceOf(KeyException.class)
                    .hasMessageContaining("chmod 600 " + file);
        }
    }

    @Test
    void refusesWhatIsNotAKeyWithoutShowingIt() throws Exception {
        String digits = "0123456789abcdef".repeat(4);
        for (String text :
                new String[] {
                    "",
                    "\n",
                    digits.substring(1),
                    digits + "0",
                    "g" + digits.substring(1),
                    digits + " \n",
                    digits + "\n" + digits
                }) {
            Path file = directory.resolve("k" + text.hashCode());
            Files.writeString(file, text);
            Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-------"));
            assertThatThrownBy(() -> ClusterKey.load(file))
                    .isInstanceOf(KeyException.class)
                    .hasMessageContaining("64 hex digits")
                    .hasMessageNotContaining("123456");
        }
        assertThatThrownBy(() -> ClusterKey.load(directory.resolve("none")))
                .isInstanceOf(KeyException.class)
                .hasMessageContaining("does not exist");
    }

    @Test
    void readsUpperCaseAndCarriageReturn() throws Exception {
        Path file = directory.resolve("cluster.key");
        Files.writeString(file, "0123456789ABCDEF".repeat(4) + "\r\n");
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("r--------"));
        assertThat(ClusterKey.load(file).toString()).isEqualTo("ClusterKey[hidden]");
    }

    @Test
    void keysDoNotShowThemselves() {
        byte[] bytes = new byte[32];
        bytes[0] = 0x5a;
        assertThat(new ClusterKey(bytes).toString()).doesNotContainIgnoringCase("5a");
        assertThat(new VolumeKey(1, bytes).toString()).isEqualTo("VolumeKey[id=1]");
    }
}
