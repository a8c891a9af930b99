package io.holdfast.proto.nbd;

import io.holdfast.proto.peer.MalformedException;
import io.netty.buffer.ByteBuf;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;

/** Strings as section "Conventions" defines them: UTF-8, no NUL, at most 4096 bytes. */
public final class NbdStrings {
    private NbdStrings() {}

    /**
     * Reads a string of known length.
     *
     * @param length bytes; any value, compared with what is there before it is trusted
     * @param what names the field in the error
     * @throws MalformedException when it is too long, cut short, not UTF-8 or holds a NUL
     */
    public static String read(ByteBuf in, long length, String what) {
        if (length < 0 || length > NbdProtocol.MAX_STRING || length > in.readableBytes()) {
            throw new MalformedException(
                    "%s of %d bytes, %d left, limit %d"
                            .formatted(what, length, in.readableBytes(), NbdProtocol.MAX_STRING));
        }
        var bytes = new byte[(int) length];
        in.readBytes(bytes);
        for (byte b : bytes) {
            if (b == 0) {
                throw new MalformedException(what + " holds a NUL");
            }
        }
        try {
            return StandardCharsets.UTF_8
                    .newDecoder()
                    .onMalformedInput(CodingErrorAction.REPORT)
                    .onUnmappableCharacter(CodingErrorAction.REPORT)
                    .decode(ByteBuffer.wrap(bytes))
                    .toString();
        } catch (CharacterCodingException _) {
            throw new MalformedException(what + " is not UTF-8");
        }
    }
}
