package io.holdfast.client.admin;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonMappingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.MapperFeature;
import com.fasterxml.jackson.databind.cfg.CoercionAction;
import com.fasterxml.jackson.databind.cfg.CoercionInputShape;
import com.fasterxml.jackson.databind.exc.UnrecognizedPropertyException;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.type.LogicalType;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** Records of this package to and from JSON; the same for client and server. Thread-safe. */
public final class AdminJson {
    // A client meets newer nodes: fields it does not know are none of its business. A field that is
    // missing or null where a number belongs is an error, not a silent 0.
    private static final JsonMapper MAPPER =
            JsonMapper.builder()
                    .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
                    .enable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
                    .disable(DeserializationFeature.ACCEPT_FLOAT_AS_INT)
                    .build();

    /** Characters of a wrong value that an error shows. */
    private static final int MAX_SHOWN = 64;

    // What people send to a node is read strictly: a mistyped field must not fall back to a
    // default, nor one that is there twice or behind the end be chosen by chance. Nor is a value of
    // another type bent into shape: the number 1 would be the second constant of an enum.
    private static final JsonMapper STRICT =
            MAPPER.rebuild()
                    .enable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
                    .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
                    .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
                    .enable(DeserializationFeature.FAIL_ON_NUMBERS_FOR_ENUMS)
                    .disable(MapperFeature.ALLOW_COERCION_OF_SCALARS)
                    .withCoercionConfig(
                            LogicalType.Textual,
                            text ->
                                    text.setCoercion(
                                                    CoercionInputShape.Integer, CoercionAction.Fail)
                                            .setCoercion(
                                                    CoercionInputShape.Float, CoercionAction.Fail)
                                            .setCoercion(
                                                    CoercionInputShape.Boolean,
                                                    CoercionAction.Fail))
                    .build();

    /** The library has no exception of its own for this. */
    private static final Pattern TWICE = Pattern.compile("Duplicate field '([^']*)'");

    private AdminJson() {}

    public static String write(Object record) {
        try {
            return MAPPER.writeValueAsString(record);
        } catch (JsonProcessingException e) {
            throw new IllegalArgumentException("cannot write " + record.getClass(), e);
        }
    }

    /** Like {@link #write}, indented for people. */
    public static String writePretty(Object record) {
        try {
            return MAPPER.writerWithDefaultPrettyPrinter().writeValueAsString(record);
        } catch (JsonProcessingException e) {
            throw new IllegalArgumentException("cannot write " + record.getClass(), e);
        }
    }

    /**
     * Reads an answer; unknown fields are ignored.
     *
     * @throws IllegalArgumentException naming what is wrong
     */
    public static <T> T read(String json, Class<T> type) {
        return read(MAPPER, json, type);
    }

    /**
     * Reads a request; unknown fields are an error.
     *
     * @throws IllegalArgumentException naming what is wrong
     */
    public static <T> T readStrict(String json, Class<T> type) {
        return read(STRICT, json, type);
    }

    /** The library's own texts name its classes and options. */
    private static String problem(JsonProcessingException e, String json) {
        String place =
                e.getLocation() == null
                        ? ""
                        : " at line %d, column %d"
                                .formatted(
                                        e.getLocation().getLineNr(), e.getLocation().getColumnNr());
        return switch (e) {
            case UnrecognizedPropertyException unknown ->
                    "unknown field "
                            + unknown.getPropertyName()
                            + ", known are "
                            + unknown.getKnownPropertyIds().stream()
                                    .map(String::valueOf)
                                    .sorted()
                                    .collect(Collectors.joining(", "));
            case JsonMappingException wrong when !wrong.getPath().isEmpty() ->
                    path(wrong) + " cannot be " + shown(wrong, json) + place;
            case JsonMappingException _ -> "not a JSON object" + place;
            default -> {
                Matcher twice = TWICE.matcher(String.valueOf(e.getOriginalMessage()));
                yield (twice.lookingAt()
                                ? "field " + twice.group(1) + " is there twice"
                                : "not JSON")
                        + place;
            }
        };
    }

    /** The wrong value as it was written; the library's error does not always have it. */
    private static String shown(JsonMappingException e, String json) {
        JsonNode value;
        try {
            value = MAPPER.readTree(json);
        } catch (JsonProcessingException _) {
            // It ends, or breaks, after the wrong value.
            return "what it is";
        }
        for (JsonMappingException.Reference step : e.getPath()) {
            value =
                    step.getFieldName() == null
                            ? value.path(step.getIndex())
                            : value.path(step.getFieldName());
        }
        String text = value.toString();
        return text.length() <= MAX_SHOWN ? text : text.substring(0, MAX_SHOWN) + "...";
    }

    private static String path(JsonMappingException e) {
        return e.getPath().stream()
                .map(step -> String.valueOf(step.getFieldName()))
                .collect(Collectors.joining("."));
    }

    private static <T> T read(JsonMapper mapper, String json, Class<T> type) {
        T value;
        try {
            value = mapper.readValue(json, type);
        } catch (JsonProcessingException e) {
            throw new IllegalArgumentException(problem(e, json), e);
        }
        if (value == null) {
            throw new IllegalArgumentException("null instead of " + type.getSimpleName());
        }
        return value;
    }
}
