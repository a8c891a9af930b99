package io.holdfast.client.nbd;

import static io.holdfast.proto.nbd.NbdProtocol.*;

import io.holdfast.proto.nbd.NbdProtocol;
import io.holdfast.proto.nbd.NbdRequest;
import org.jspecify.annotations.Nullable;

/**
 * Decides on every request of the transmission phase before anything else sees it. What passes has
 * a known command, flags that are valid for it, a range within the export and a payload within the
 * limit. Which error answers what is in section "Error values" of the standard.
 *
 * @param sizeBytes of the export
 * @param readOnly whether everything that changes data is refused
 * @param structured whether structured replies were negotiated
 */
record RequestValidator(long sizeBytes, boolean readOnly, boolean structured) {
    /**
     * Why a request is not served.
     *
     * @param error value of the standard
     * @param message for a human
     */
    record Refusal(int error, String message) {}

    /** Returns null when the request may be served. */
    @Nullable Refusal check(NbdRequest request) {
        return switch (request.type()) {
            case NBD_CMD_READ -> checkRead(request);
            case NBD_CMD_WRITE -> checkWrite(request);
            case NBD_CMD_FLUSH -> checkFlush(request);
            case NBD_CMD_TRIM -> checkChange(request, 0, NBD_EINVAL);
            case NBD_CMD_CACHE -> {
                Refusal flags = checkFlags(request, 0);
                yield flags != null ? flags : checkRange(request, NBD_EINVAL);
            }
            case NBD_CMD_WRITE_ZEROES -> checkChange(request, NBD_CMD_FLAG_NO_HOLE, NBD_ENOSPC);
            case NBD_CMD_BLOCK_STATUS ->
                    new Refusal(NBD_EINVAL, "no metadata context was negotiated");
            default -> new Refusal(NBD_EINVAL, "unknown command " + request.type());
        };
    }

    private @Nullable Refusal checkRead(NbdRequest request) {
        Refusal flags = checkFlags(request, structured ? NBD_CMD_FLAG_DF : 0);
        if (flags != null) {
            return flags;
        }
        Refusal range = checkRange(request, NBD_EINVAL);
        if (range != null) {
            return range;
        }
        // EOVERFLOW is known to clients that can use DF only.
        return checkPayload(request, structured ? NBD_EOVERFLOW : NBD_EINVAL);
    }

    private @Nullable Refusal checkWrite(NbdRequest request) {
        Refusal refusal = checkChange(request, 0, NBD_ENOSPC);
        return refusal != null ? refusal : checkPayload(request, NBD_EINVAL);
    }

    private @Nullable Refusal checkFlush(NbdRequest request) {
        Refusal flags = checkFlags(request, 0);
        if (flags != null) {
            return flags;
        }
        if (request.offset() != 0 || request.length() != 0) {
            return new Refusal(NBD_EINVAL, "offset and length of a flush must be zero");
        }
        return null;
    }

    private @Nullable Refusal checkChange(NbdRequest request, int flagsAllowed, int rangeError) {
        Refusal flags = checkFlags(request, flagsAllowed);
        if (flags != null) {
            return flags;
        }
        if (readOnly) {
            return new Refusal(NBD_EPERM, "the export is read-only");
        }
        return checkRange(request, rangeError);
    }

    /** FUA is valid with every command (section "Command flags"). */
    private static @Nullable Refusal checkFlags(NbdRequest request, int allowed) {
        int unknown = request.flags() & ~(allowed | NBD_CMD_FLAG_FUA);
        return unknown == 0
                ? null
                : new Refusal(
                        NBD_EINVAL,
                        "flags 0x%x are not valid for command %d"
                                .formatted(unknown, request.type()));
    }

    private @Nullable Refusal checkRange(NbdRequest request, int error) {
        long offset = request.offset();
        if (offset >= 0 && offset <= sizeBytes && request.length() <= sizeBytes - offset) {
            return null;
        }
        return new Refusal(
                error,
                "%d bytes at %s are beyond the export of %d bytes"
                        .formatted(request.length(), Long.toUnsignedString(offset), sizeBytes));
    }

    private static @Nullable Refusal checkPayload(NbdRequest request, int error) {
        return request.length() <= NbdProtocol.MAX_PAYLOAD
                ? null
                : new Refusal(
                        error,
                        "payload of %d bytes, limit %d"
                                .formatted(request.length(), NbdProtocol.MAX_PAYLOAD));
    }
}
