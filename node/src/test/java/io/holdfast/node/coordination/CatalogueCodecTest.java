package io.holdfast.node.coordination;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.holdfast.node.coordination.CatalogueCodec.MalformedValueException;
import io.holdfast.node.coordination.CatalogueCodec.UnknownFormatException;
import io.holdfast.proto.catalogue.Catalogue;
import io.holdfast.proto.catalogue.Change;
import io.holdfast.proto.catalogue.Volume;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Golden values: these bytes mean this, for ever. */
class CatalogueCodecTest {
    private static final String VOLUME =
            "{\"number\":0,\"name\":\"a\",\"sizeBytes\":1073741824,\"stripeBytes\":4194304,"
                    + "\"durability\":\"FLUSH\",\"attach\":\"EXCLUSIVE\",\"reads\":\"LEASE\","
                    + "\"timeoutSeconds\":30,\"state\":\"CREATING\",\"layer\":0,\"keyId\":1,"
                    + "\"wrappedKey\":\""
                    + Volumes.KEY
                    + "\",\"shards\":[{\"index\":0,"
                    + "\"replicas\":[1,2,3],\"leader\":0,\"epoch\":0}]}";

    private static final Map<Change, String> CHANGES = new LinkedHashMap<>();

    static {
        CHANGES.put(
                new Change.CreateVolume(Volumes.volume("a")),
                "{\"format\":1,\"kind\":\"create\",\"volume\":" + VOLUME + "}");
        CHANGES.put(new Change.MarkReady(3), "{\"format\":1,\"kind\":\"ready\",\"volume\":3}");
        CHANGES.put(
                new Change.DeleteVolume(3, "a"),
                "{\"format\":1,\"kind\":\"delete\",\"volume\":3,\"name\":\"a\"}");
        CHANGES.put(
                new Change.ClaimLeader(3, 1, 2, "node2#00ff", Long.MAX_VALUE),
                "{\"format\":1,\"kind\":\"claim\",\"volume\":3,\"shard\":1,\"node\":2,"
                        + "\"incarnation\":\"node2#00ff\",\"epoch\":9223372036854775807}");
    }

    @Test
    void goldenChanges() throws Exception {
        for (Map.Entry<Change, String> golden : CHANGES.entrySet()) {
            assertThat(new String(CatalogueCodec.encode(golden.getKey()), UTF_8))
                    .isEqualTo(golden.getValue());
            assertThat(CatalogueCodec.decodeChange(golden.getValue().getBytes(UTF_8)))
                    .isEqualTo(golden.getKey());
        }
    }

    @Test
    void goldenResult() throws Exception {
        Change.Result result = new Change.Result(false, 7, 0, "no volume 3");
        String golden =
                "{\"format\":1,\"kind\":\"result\",\"applied\":false,\"version\":7,\"volume\":0,"
                        + "\"reason\":\"no volume 3\"}";
        assertThat(new String(CatalogueCodec.encode(result), UTF_8)).isEqualTo(golden);
        assertThat(CatalogueCodec.decodeResult(golden.getBytes(UTF_8))).isEqualTo(result);
    }

    @Test
    void goldenCatalogue() throws Exception {
        Catalogue catalogue = new Catalogue(9, 4, List.of(Volumes.volume("a")));
        String golden =
                "{\"format\":1,\"kind\":\"catalogue\",\"version\":9,\"nextVolume\":4,\"volumes\":["
                        + VOLUME
                        + "]}";
        assertThat(new String(CatalogueCodec.encode(catalogue), UTF_8)).isEqualTo(golden);
        assertThat(CatalogueCodec.decodeCatalogue(golden.getBytes(UTF_8))).isEqualTo(catalogue);
    }

    @Test
    void aNewerFormatIsToldFromNonsense() {
        assertThatThrownBy(() ->
                        CatalogueCodec.decodeChange(
                                "{\"format\":2,\"kind\":\"ready\",\"volume\":3}".getBytes(UTF_8)))
                .isInstanceOf(UnknownFormatException.class)
                .hasMessageContaining("format 2");
    }

    @Test
    void unknownMissingAndMistypedFieldsAreRefused() {
        for (String bad :
                List.of(
                        "",
                        "null",
                        "[]",
                        "{}",
                        "{\"format\":1}",
                        "{\"format\":\"1\",\"kind\":\"ready\",\"volume\":3}",
                        "{\"format\":1,\"kind\":\"result\",\"volume\":3}",
                        "{\"format\":1,\"kind\":\"ready\"}",
                        "{\"format\":1,\"kind\":\"ready\",\"volume\":null}",
                        "{\"format\":1,\"kind\":\"ready\",\"volume\":\"3\"}",
                        "{\"format\":1,\"kind\":\"ready\",\"volume\":3.0}",
                        "{\"format\":1,\"kind\":\"ready\",\"volume\":3,\"more\":1}",
                        "{\"format\":1,\"kind\":\"ready\",\"volume\":3,\"volume\":4}",
                        "{\"format\":1,\"kind\":\"ready\",\"volume\":3}x",
                        "{\"format\":1,\"kind\":\"ready\",\"volume\":99999999999}",
                        "{\"format\":1,\"kind\":\"delete\",\"volume\":3,\"name\":7}",
                        "{\"format\":1,\"kind\":\"create\",\"volume\":null}",
                        "{\"format\":1,\"kind\":\"create\",\"volume\":"
                                + VOLUME.replace("[1,2,3]", "[1,null]")
                                + "}",
                        "{\"format\":1,\"kind\":\"create\",\"volume\":"
                                + VOLUME.replace("\"FLUSH\"", "\"LATER\"")
                                + "}",
                        "{\"format\":1,\"kind\":\"create\",\"volume\":"
                                + VOLUME.replace("\"FLUSH\"", "0")
                                + "}")) {
            assertThatThrownBy(() -> CatalogueCodec.decodeChange(bad.getBytes(UTF_8)))
                    .as(bad)
                    .isInstanceOf(MalformedValueException.class);
        }
    }

    @Test
    void damagedBytesNeverThrowAnythingElse() throws Exception {
        Random random = new Random(20261130);
        for (String golden : CHANGES.values()) {
            for (int i = 0; i < 3000; i++) {
                byte[] bytes = golden.getBytes(UTF_8);
                for (int j = 0; j <= random.nextInt(3); j++) {
                    bytes[random.nextInt(bytes.length)] = (byte) random.nextInt(256);
                }
                try {
                    new CatalogueState().apply(CatalogueCodec.decodeChange(bytes));
                } catch (MalformedValueException e) {
                    assertThat(e.getMessage()).isNotEmpty();
                }
            }
        }
    }

    @Test
    void aValueAboveTheLimitIsRefusedUnread() {
        byte[] large = new byte[CatalogueCodec.MAX_VALUE_BYTES + 1];
        assertThatThrownBy(() -> CatalogueCodec.decodeCatalogue(large))
                .isInstanceOf(MalformedValueException.class)
                .hasMessageContaining("1000001 bytes");
    }

    @Test
    void everyFieldOfAVolumeSurvives() throws Exception {
        Volume volume =
                new Volume(
                        5,
                        "x.y_z-1",
                        8192,
                        4096,
                        Volume.Durability.SYNC,
                        Volume.Attach.SHARED,
                        Volume.Reads.QUORUM,
                        7,
                        Volume.State.READY,
                        2,
                        3,
                        Volumes.KEY,
                        List.of(
                                new Volume.Shard(0, List.of(3, 1), 1, 8),
                                new Volume.Shard(1, List.of(2), 0, 0)));
        Catalogue catalogue = new Catalogue(1, 6, List.of(volume));
        assertThat(CatalogueCodec.decodeCatalogue(CatalogueCodec.encode(catalogue)))
                .isEqualTo(catalogue);
    }
}
