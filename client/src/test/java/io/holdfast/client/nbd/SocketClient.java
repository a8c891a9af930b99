package io.holdfast.client.nbd;

import static io.holdfast.proto.nbd.NbdProtocol.*;

import io.netty.buffer.ByteBuf;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/** A client on a blocking TCP socket, for simple replies; every read has a time-out. */
final class SocketClient implements AutoCloseable {
    private static final int READ_TIMEOUT_MS = 20_000;

    final Socket socket;
    final DataInputStream in;
    final DataOutputStream out;

    /** Connects and takes the greeting, if there is one. */
    SocketClient(int port) throws IOException {
        socket = new Socket(InetAddress.getLoopbackAddress(), port);
        socket.setSoTimeout(READ_TIMEOUT_MS);
        in = new DataInputStream(socket.getInputStream());
        out = new DataOutputStream(socket.getOutputStream());
    }

    static SocketClient open(int port, String export) throws IOException {
        var client = new SocketClient(port);
        client.in.readFully(new byte[18]);
        byte[] name = export.getBytes(StandardCharsets.UTF_8);
        client.out.writeInt(NBD_FLAG_C_FIXED_NEWSTYLE | NBD_FLAG_C_NO_ZEROES);
        client.out.writeLong(IHAVEOPT);
        client.out.writeInt(NBD_OPT_EXPORT_NAME);
        client.out.writeInt(name.length);
        client.out.write(name);
        client.in.readFully(new byte[10]);
        return client;
    }

    void send(ByteBuf data) throws IOException {
        out.write(EmbeddedClient.array(data));
    }

    void request(int command, long cookie, long offset, long length) throws IOException {
        send(EmbeddedClient.header(0, command, cookie, offset, length));
    }

    /** Takes a simple reply with this cookie, and returns its error. */
    int reply(long cookie) throws IOException {
        int magic = in.readInt();
        int error = in.readInt();
        long answered = in.readLong();
        if (magic != NBD_SIMPLE_REPLY_MAGIC || answered != cookie) {
            throw new IOException("reply 0x%x to %d, not %d".formatted(magic, answered, cookie));
        }
        return error;
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
