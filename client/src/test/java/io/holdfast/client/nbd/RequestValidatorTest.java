package io.holdfast.client.nbd;

import static io.holdfast.proto.nbd.NbdProtocol.*;
import static org.assertj.core.api.Assertions.assertThat;

import io.holdfast.client.nbd.RequestValidator.Refusal;
import io.holdfast.proto.nbd.NbdRequest;
import org.junit.jupiter.api.Test;

/** Which request is refused with which error of the standard; 0: it is served. */
class RequestValidatorTest {
    private static final long SIZE = 1L << 30;

    private final RequestValidator simple = new RequestValidator(SIZE, false, false);
    private final RequestValidator structured = new RequestValidator(SIZE, false, true);
    private final RequestValidator readOnly = new RequestValidator(SIZE, true, true);

    @Test
    void rangesWithinTheExportAreServed() {
        for (int command :
                new int[] {
                    NBD_CMD_READ, NBD_CMD_WRITE, NBD_CMD_TRIM, NBD_CMD_CACHE, NBD_CMD_WRITE_ZEROES
                }) {
            assertThat(error(simple, command, 0, 0, 4096)).isZero();
            assertThat(error(simple, command, 0, SIZE - 1, 1)).isZero();
            assertThat(error(simple, command, 0, SIZE, 0)).isZero();
        }
        assertThat(error(simple, NBD_CMD_WRITE_ZEROES, 0, 0, SIZE)).isZero();
        assertThat(error(simple, NBD_CMD_TRIM, 0, 0, SIZE)).isZero();
    }

    @Test
    void rangesBeyondTheEndAreRefusedAlsoWhenTheyOverflow() {
        long[][] ranges = {
            {SIZE, 1}, {SIZE - 1, 2}, {Long.MAX_VALUE, 4096}, {-1, 1}, {-4096, 8192}, {SIZE + 1, 0}
        };
        for (long[] range : ranges) {
            assertThat(error(simple, NBD_CMD_READ, 0, range[0], range[1])).isEqualTo(NBD_EINVAL);
            assertThat(error(simple, NBD_CMD_TRIM, 0, range[0], range[1])).isEqualTo(NBD_EINVAL);
            assertThat(error(simple, NBD_CMD_CACHE, 0, range[0], range[1])).isEqualTo(NBD_EINVAL);
            assertThat(error(simple, NBD_CMD_WRITE, 0, range[0], range[1])).isEqualTo(NBD_ENOSPC);
            assertThat(error(simple, NBD_CMD_WRITE_ZEROES, 0, range[0], range[1]))
                    .isEqualTo(NBD_ENOSPC);
        }
    }

    @Test
    void payloadsBeyondTheLimitAreRefused() {
        assertThat(error(simple, NBD_CMD_READ, 0, 0, MAX_PAYLOAD)).isZero();
        assertThat(error(simple, NBD_CMD_READ, 0, 0, MAX_PAYLOAD + 1)).isEqualTo(NBD_EINVAL);
        assertThat(error(structured, NBD_CMD_READ, 0, 0, MAX_PAYLOAD + 1)).isEqualTo(NBD_EOVERFLOW);
        assertThat(error(simple, NBD_CMD_WRITE, 0, 0, MAX_PAYLOAD)).isZero();
        assertThat(error(simple, NBD_CMD_WRITE, 0, 0, MAX_PAYLOAD + 1)).isEqualTo(NBD_EINVAL);
    }

    @Test
    void readOnlyExportsRefuseEveryChange() {
        assertThat(error(readOnly, NBD_CMD_WRITE, 0, 0, 4096)).isEqualTo(NBD_EPERM);
        assertThat(error(readOnly, NBD_CMD_WRITE, 0, SIZE, 4096)).isEqualTo(NBD_EPERM);
        assertThat(error(readOnly, NBD_CMD_TRIM, 0, 0, 4096)).isEqualTo(NBD_EPERM);
        assertThat(error(readOnly, NBD_CMD_WRITE_ZEROES, 0, 0, 4096)).isEqualTo(NBD_EPERM);
        assertThat(error(readOnly, NBD_CMD_READ, 0, 0, 4096)).isZero();
        assertThat(error(readOnly, NBD_CMD_FLUSH, 0, 0, 0)).isZero();
    }

    @Test
    void unknownCommandsAreInvalid() {
        for (int command : new int[] {NBD_CMD_BLOCK_STATUS, 8, 9, 0xffff}) {
            assertThat(error(structured, command, 0, 0, 4096)).isEqualTo(NBD_EINVAL);
        }
    }

    /** A dumb model: which flags go with which command. */
    @Test
    void everyFlagIsRefusedWhereItIsNotDocumented() {
        for (int command = NBD_CMD_READ; command <= NBD_CMD_WRITE_ZEROES; command++) {
            if (command == NBD_CMD_DISC) {
                continue;
            }
            long length = command == NBD_CMD_FLUSH ? 0 : 4096;
            for (int bit = 0; bit < 16; bit++) {
                int flag = 1 << bit;
                boolean always = flag == NBD_CMD_FLAG_FUA;
                boolean noHole = flag == NBD_CMD_FLAG_NO_HOLE && command == NBD_CMD_WRITE_ZEROES;
                boolean df = flag == NBD_CMD_FLAG_DF && command == NBD_CMD_READ;
                assertThat(error(structured, command, flag, 0, length))
                        .as("command %d flag 0x%x", command, flag)
                        .isEqualTo(always || noHole || df ? NBD_SUCCESS : NBD_EINVAL);
                assertThat(error(simple, command, flag, 0, length))
                        .as("command %d flag 0x%x, simple replies", command, flag)
                        .isEqualTo(always || noHole ? NBD_SUCCESS : NBD_EINVAL);
            }
        }
    }

    @Test
    void flushTakesNoRange() {
        assertThat(error(simple, NBD_CMD_FLUSH, 0, 4096, 0)).isEqualTo(NBD_EINVAL);
        assertThat(error(simple, NBD_CMD_FLUSH, 0, 0, 1)).isEqualTo(NBD_EINVAL);
    }

    private static int error(
            RequestValidator validator, int command, int flags, long offset, long length) {
        Refusal refusal = validator.check(new NbdRequest(flags, command, 1, offset, length));
        return refusal == null ? NBD_SUCCESS : refusal.error();
    }
}
