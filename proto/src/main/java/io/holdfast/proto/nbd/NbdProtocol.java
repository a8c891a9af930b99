package io.holdfast.proto.nbd;

/** Numbers of the NBD standard under the standard's names. */
public final class NbdProtocol {
    private NbdProtocol() {}

    // Section "Newstyle negotiation".

    /** ASCII "NBDMAGIC", the first eight bytes a server sends. */
    public static final long NBDMAGIC = 0x4e42444d41474943L;

    /** ASCII "IHAVEOPT": follows NBDMAGIC, and starts each option. */
    public static final long IHAVEOPT = 0x49484156454F5054L;

    /** Starts each reply to an option. */
    public static final long OPTION_REPLY_MAGIC = 0x3e889045565a9L;

    /** Reserved zeroes that end the reply to EXPORT_NAME unless NO_ZEROES was agreed, bytes. */
    public static final int EXPORT_NAME_ZEROES = 124;

    // Section "Handshake flags" (16 bits, server) and "Client flags" (32 bits, client).

    public static final int NBD_FLAG_FIXED_NEWSTYLE = 1;
    public static final int NBD_FLAG_NO_ZEROES = 1 << 1;
    public static final int NBD_FLAG_C_FIXED_NEWSTYLE = 1;
    public static final int NBD_FLAG_C_NO_ZEROES = 1 << 1;

    // Section "Transmission flags" (16 bits).

    public static final int NBD_FLAG_HAS_FLAGS = 1;
    public static final int NBD_FLAG_READ_ONLY = 1 << 1;
    public static final int NBD_FLAG_SEND_FLUSH = 1 << 2;
    public static final int NBD_FLAG_SEND_FUA = 1 << 3;
    public static final int NBD_FLAG_SEND_TRIM = 1 << 5;
    public static final int NBD_FLAG_SEND_WRITE_ZEROES = 1 << 6;
    public static final int NBD_FLAG_SEND_DF = 1 << 7;
    public static final int NBD_FLAG_CAN_MULTI_CONN = 1 << 8;
    public static final int NBD_FLAG_SEND_CACHE = 1 << 10;

    // Section "Option types" (32 bits).

    public static final int NBD_OPT_EXPORT_NAME = 1;
    public static final int NBD_OPT_ABORT = 2;
    public static final int NBD_OPT_LIST = 3;
    public static final int NBD_OPT_STARTTLS = 5;
    public static final int NBD_OPT_INFO = 6;
    public static final int NBD_OPT_GO = 7;
    public static final int NBD_OPT_STRUCTURED_REPLY = 8;
    public static final int NBD_OPT_LIST_META_CONTEXT = 9;
    public static final int NBD_OPT_SET_META_CONTEXT = 10;
    public static final int NBD_OPT_EXTENDED_HEADERS = 11;

    // Section "Option reply types" (32 bits).

    public static final int NBD_REP_ACK = 1;
    public static final int NBD_REP_SERVER = 2;
    public static final int NBD_REP_INFO = 3;
    public static final int NBD_REP_ERR_UNSUP = 0x8000_0001;
    public static final int NBD_REP_ERR_INVALID = 0x8000_0003;
    public static final int NBD_REP_ERR_UNKNOWN = 0x8000_0006;
    public static final int NBD_REP_ERR_SHUTDOWN = 0x8000_0007;
    public static final int NBD_REP_ERR_TOO_BIG = 0x8000_0009;

    // Information types of NBD_REP_INFO (16 bits).

    public static final int NBD_INFO_EXPORT = 0;
    public static final int NBD_INFO_NAME = 1;
    public static final int NBD_INFO_DESCRIPTION = 2;
    public static final int NBD_INFO_BLOCK_SIZE = 3;

    // Section "Transmission": magic numbers (32 bits).

    public static final int NBD_REQUEST_MAGIC = 0x25609513;
    public static final int NBD_SIMPLE_REPLY_MAGIC = 0x67446698;
    public static final int NBD_STRUCTURED_REPLY_MAGIC = 0x668e33ef;

    // Section "Command flags" (16 bits).

    public static final int NBD_CMD_FLAG_FUA = 1;
    public static final int NBD_CMD_FLAG_NO_HOLE = 1 << 1;
    public static final int NBD_CMD_FLAG_DF = 1 << 2;
    public static final int NBD_CMD_FLAG_REQ_ONE = 1 << 3;
    public static final int NBD_CMD_FLAG_FAST_ZERO = 1 << 4;

    // Section "Request types" (16 bits).

    public static final int NBD_CMD_READ = 0;
    public static final int NBD_CMD_WRITE = 1;
    public static final int NBD_CMD_DISC = 2;
    public static final int NBD_CMD_FLUSH = 3;
    public static final int NBD_CMD_TRIM = 4;
    public static final int NBD_CMD_CACHE = 5;
    public static final int NBD_CMD_WRITE_ZEROES = 6;
    public static final int NBD_CMD_BLOCK_STATUS = 7;

    // Section "Structured reply flags" and "Structured reply types" (16 bits each).

    public static final int NBD_REPLY_FLAG_DONE = 1;
    public static final int NBD_REPLY_TYPE_NONE = 0;
    public static final int NBD_REPLY_TYPE_OFFSET_DATA = 1;
    public static final int NBD_REPLY_TYPE_ERROR = 0x8001;

    // Section "Error values" (32 bits).

    public static final int NBD_SUCCESS = 0;
    public static final int NBD_EPERM = 1;
    public static final int NBD_EIO = 5;
    public static final int NBD_ENOMEM = 12;
    public static final int NBD_EINVAL = 22;
    public static final int NBD_ENOSPC = 28;
    public static final int NBD_EOVERFLOW = 75;
    public static final int NBD_ESHUTDOWN = 108;

    /** Longest string in the protocol, bytes of UTF-8 (section "Conventions"). */
    public static final int MAX_STRING = 4096;

    /**
     * Largest payload that every server should take, bytes (section "Size constraints"); also the
     * largest this server takes.
     */
    public static final int MAX_PAYLOAD = 1 << 25;

    /** Smallest unit a client may address, bytes. */
    public static final int MIN_BLOCK = 1;

    /** Smallest unit that needs no read-modify-write, bytes. */
    public static final int PREFERRED_BLOCK = 4096;
}
