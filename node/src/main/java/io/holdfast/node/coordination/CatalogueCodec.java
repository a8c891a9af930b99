package io.holdfast.node.coordination;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.MapperFeature;
import com.fasterxml.jackson.databind.cfg.CoercionAction;
import com.fasterxml.jackson.databind.cfg.CoercionInputShape;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.holdfast.proto.catalogue.Catalogue;
import io.holdfast.proto.catalogue.Change;
import java.io.IOException;
import java.nio.charset.StandardCharsets;

/**
 * Changes, results and catalogues as bytes: what Atomix moves, logs and puts into snapshots, and
 * what {@code catalogue.json} holds. UTF-8 JSON, fields in the order below, no white space.
 *
 * <pre>
 * every value  format   1; a reader refuses another one
 *              kind     what follows
 * kind         fields
 * catalogue    version, nextVolume, volumes
 * result       applied, version, volume, reason
 * create       volume
 * ready        volume
 * delete       volume, name
 * claim        volume, shard, node, incarnation, epoch
 * </pre>
 *
 * <p>Within a format all fields are there and no others: a node that skipped a field it does not
 * know would apply a change differently from one that knows it. So a new field is a new format,
 * written only when every node reads it. Stateless.
 */
final class CatalogueCodec {
    static final int FORMAT = 1;

    /**
     * Most bytes of an encoded value. Atomix' log takes entries up to {@link #MAX_ENTRY_BYTES}; the
     * rest is for what it adds.
     */
    static final int MAX_VALUE_BYTES = 1_000_000;

    /** {@code maxEntrySize} of Atomix' log. An entry above it would stop its Raft server. */
    static final int MAX_ENTRY_BYTES = 1 << 20;

    private static final JsonMapper JSON =
            JsonMapper.builder()
                    .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
                    .enable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
                    .enable(DeserializationFeature.FAIL_ON_MISSING_CREATOR_PROPERTIES)
                    .enable(DeserializationFeature.FAIL_ON_NULL_CREATOR_PROPERTIES)
                    .enable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
                    .enable(DeserializationFeature.FAIL_ON_NUMBERS_FOR_ENUMS)
                    .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
                    .disable(DeserializationFeature.ACCEPT_FLOAT_AS_INT)
                    .disable(MapperFeature.ALLOW_COERCION_OF_SCALARS)
                    .withCoercionConfigDefaults(
                            c -> c.setCoercion(CoercionInputShape.Integer, CoercionAction.Fail))
                    .build();

    private CatalogueCodec() {}

    static byte[] encode(Catalogue catalogue) {
        return encode("catalogue", catalogue);
    }

    static byte[] encode(Change.Result result) {
        return encode("result", result);
    }

    static byte[] encode(Change change) {
        return switch (change) {
            case Change.CreateVolume c -> encode("create", c);
            case Change.MarkReady c -> encode("ready", c);
            case Change.DeleteVolume c -> encode("delete", c);
            case Change.ClaimLeader c -> encode("claim", c);
        };
    }

    private static byte[] encode(String kind, Object value) {
        ObjectNode tree = JSON.createObjectNode();
        tree.put("format", FORMAT);
        tree.put("kind", kind);
        tree.setAll(JSON.<ObjectNode>valueToTree(value));
        return tree.toString().getBytes(StandardCharsets.UTF_8);
    }

    static Catalogue decodeCatalogue(byte[] bytes) throws MalformedValueException {
        return decode(envelope(bytes), "catalogue", Catalogue.class);
    }

    static Change.Result decodeResult(byte[] bytes) throws MalformedValueException {
        return decode(envelope(bytes), "result", Change.Result.class);
    }

    static Change decodeChange(byte[] bytes) throws MalformedValueException {
        Envelope envelope = envelope(bytes);
        Class<? extends Change> type =
                switch (envelope.kind) {
                    case "create" -> Change.CreateVolume.class;
                    case "ready" -> Change.MarkReady.class;
                    case "delete" -> Change.DeleteVolume.class;
                    case "claim" -> Change.ClaimLeader.class;
                    default -> throw new MalformedValueException("no change: " + envelope.kind);
                };
        return decode(envelope, envelope.kind, type);
    }

    private record Envelope(String kind, ObjectNode fields) {}

    private static Envelope envelope(byte[] bytes) throws MalformedValueException {
        if (bytes.length > MAX_VALUE_BYTES) {
            throw new MalformedValueException(
                    bytes.length + " bytes are more than " + MAX_VALUE_BYTES);
        }
        try {
            if (!(JSON.readTree(bytes) instanceof ObjectNode fields)) {
                throw new MalformedValueException("not a JSON object");
            }
            JsonNode format = fields.remove("format");
            JsonNode kind = fields.remove("kind");
            if (format == null || !format.isInt() || kind == null || !kind.isTextual()) {
                throw new MalformedValueException("no format and kind");
            }
            if (format.intValue() != FORMAT) {
                throw new UnknownFormatException(format.intValue());
            }
            return new Envelope(kind.textValue(), fields);
        } catch (JsonProcessingException e) {
            throw new MalformedValueException(e.getOriginalMessage());
        } catch (MalformedValueException e) {
            throw e;
        } catch (IOException e) {
            throw new MalformedValueException(String.valueOf(e.getMessage()));
        }
    }

    private static <T> T decode(Envelope envelope, String kind, Class<T> type)
            throws MalformedValueException {
        if (!envelope.kind.equals(kind)) {
            throw new MalformedValueException(envelope.kind + " instead of " + kind);
        }
        try {
            return JSON.treeToValue(envelope.fields, type);
        } catch (JsonProcessingException e) {
            throw new MalformedValueException(e.getOriginalMessage());
        } catch (IllegalArgumentException | NullPointerException e) {
            // A record's own constructor, for instance List.copyOf of a list with a null.
            throw new MalformedValueException(kind + ": " + e);
        }
    }

    /** Bytes that are no value of the kind asked for. */
    static class MalformedValueException extends Exception {
        private static final long serialVersionUID = 1L;

        MalformedValueException(String message) {
            super(message);
        }
    }

    /** A value of a format that this version does not read: written by a newer one. */
    static final class UnknownFormatException extends MalformedValueException {
        private static final long serialVersionUID = 1L;

        UnknownFormatException(int format) {
            super("format " + format + ", this version reads " + FORMAT);
        }
    }
}
