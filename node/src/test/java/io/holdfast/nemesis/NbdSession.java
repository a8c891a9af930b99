package io.holdfast.nemesis;

import static io.holdfast.proto.nbd.NbdProtocol.*;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;

/**
 * A client's connection to one export, with simple replies. It repeats and hides nothing, so that
 * who uses it knows when each request left and when its answer came. For one thread.
 */
final class NbdSession implements AutoCloseable {
    /** An answer to the request with this cookie; {@code error} is 0 or an NBD error. */
    record Reply(long cookie, int error) {}

    /** The server does not offer the export. */
    static final class Refused extends IOException {
        private static final long serialVersionUID = 1;

        Refused(String why) {
            super(why);
        }
    }

    private static final int HEADER_BYTES = 28;

    private final Socket socket;
    private final DataInputStream in;
    private final OutputStream out;
    private int transmissionFlags;

    private NbdSession(Socket socket) throws IOException {
        this.socket = socket;
        this.in = new DataInputStream(new BufferedInputStream(socket.getInputStream(), 1 << 16));
        this.out = socket.getOutputStream();
    }

    /**
     * Connects and opens an export.
     *
     * @param limit of each step
     */
    static NbdSession open(InetSocketAddress server, String export, Duration limit)
            throws IOException {
        Socket socket = new Socket();
        try {
            socket.setTcpNoDelay(true);
            socket.connect(server, (int) limit.toMillis());
            socket.setSoTimeout((int) limit.toMillis());
            NbdSession session = new NbdSession(socket);
            session.handshake(export);
            return session;
        } catch (IOException e) {
            socket.close();
            throw e;
        }
    }

    private void handshake(String export) throws IOException {
        expect(in.readLong() == NBDMAGIC && in.readLong() == IHAVEOPT, "no NBD server");
        in.readUnsignedShort();
        byte[] name = export.getBytes(StandardCharsets.UTF_8);
        ByteBuffer hello = ByteBuffer.allocate(4 + 16 + 4 + name.length + 2);
        hello.putInt(NBD_FLAG_C_FIXED_NEWSTYLE | NBD_FLAG_C_NO_ZEROES);
        hello.putLong(IHAVEOPT).putInt(NBD_OPT_GO).putInt(4 + name.length + 2);
        hello.putInt(name.length).put(name).putShort((short) 0);
        out.write(hello.array());
        for (; ; ) {
            expect(in.readLong() == OPTION_REPLY_MAGIC && in.readInt() == NBD_OPT_GO, "reply");
            int type = in.readInt();
            int length = in.readInt();
            expect(length >= 0 && length <= MAX_STRING, "length of a reply");
            byte[] data = in.readNBytes(length);
            ByteBuffer info = ByteBuffer.wrap(data);
            if (type == NBD_REP_ACK) {
                return;
            } else if (type == NBD_REP_INFO && info.getShort() == NBD_INFO_EXPORT) {
                info.getLong();
                transmissionFlags = info.getShort();
            } else if (type < 0) {
                throw new Refused(new String(data, StandardCharsets.UTF_8));
            }
        }
    }

    private static void expect(boolean condition, String what) throws IOException {
        if (!condition) {
            throw new IOException("the server does not keep to the protocol: " + what);
        }
    }

    boolean isReadOnly() {
        return (transmissionFlags & NBD_FLAG_READ_ONLY) != 0;
    }

    void read(long cookie, long offset, int length) throws IOException {
        out.write(header(0, NBD_CMD_READ, cookie, offset, length, 0).array());
    }

    void write(long cookie, long offset, byte[] data, boolean fua) throws IOException {
        int flags = fua ? NBD_CMD_FLAG_FUA : 0;
        out.write(
                header(flags, NBD_CMD_WRITE, cookie, offset, data.length, data.length)
                        .put(data)
                        .array());
    }

    void flush(long cookie) throws IOException {
        out.write(header(0, NBD_CMD_FLUSH, cookie, 0, 0, 0).array());
    }

    private static ByteBuffer header(
            int flags, int command, long cookie, long offset, int length, int payload) {
        ByteBuffer header = ByteBuffer.allocate(HEADER_BYTES + payload);
        header.putInt(NBD_REQUEST_MAGIC).putShort((short) flags).putShort((short) command);
        return header.putLong(cookie).putLong(offset).putInt(length);
    }

    /**
     * Waits for an answer. Of a read that succeeded {@link #data} follows.
     *
     * @throws SocketTimeoutException when none comes; the session is of no more use then
     */
    Reply reply(long deadlineNanos) throws IOException {
        long millis = (deadlineNanos - System.nanoTime()) / 1_000_000;
        if (millis <= 0 && in.available() == 0) {
            throw new SocketTimeoutException("no answer in time");
        }
        socket.setSoTimeout((int) Math.max(1, millis));
        expect(in.readInt() == NBD_SIMPLE_REPLY_MAGIC, "magic of a reply");
        int error = in.readInt();
        return new Reply(in.readLong(), error);
    }

    byte[] data(int length) throws IOException {
        byte[] data = in.readNBytes(length);
        if (data.length < length) {
            throw new EOFException();
        }
        return data;
    }

    @Override
    public void close() {
        hangUp();
    }

    /** Closes as the death of the client would: without a word. */
    void hangUp() {
        try {
            socket.close();
        } catch (IOException e) {
            throw new AssertionError("closing a socket", e);
        }
    }

    static String errorName(int error) {
        return switch (error) {
            case NBD_EPERM -> "EPERM";
            case NBD_EIO -> "EIO";
            case NBD_ENOMEM -> "ENOMEM";
            case NBD_EINVAL -> "EINVAL";
            case NBD_ENOSPC -> "ENOSPC";
            case NBD_ESHUTDOWN -> "ESHUTDOWN";
            default -> "error " + error;
        };
    }
}
