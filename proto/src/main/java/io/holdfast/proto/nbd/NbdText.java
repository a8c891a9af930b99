package io.holdfast.proto.nbd;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Error messages for humans, kept below the limit of the protocol. */
final class NbdText {
    private NbdText() {}

    /** UTF-8 of {@code message}, at most {@link NbdProtocol#MAX_STRING} bytes. */
    static byte[] bytes(String message) {
        byte[] text = message.getBytes(StandardCharsets.UTF_8);
        if (text.length <= NbdProtocol.MAX_STRING) {
            return text;
        }
        int end = NbdProtocol.MAX_STRING;
        while ((text[end] & 0xc0) == 0x80) {
            end--; // not in the middle of a character
        }
        return Arrays.copyOf(text, end);
    }
}
