package io.holdfast.node.store;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;

/** The real disk, and while it is broken down every sync fails. Thread-safe. */
final class UnsyncableDisk implements Disk {
    private boolean broken;

    synchronized void breakDown() {
        broken = true;
    }

    synchronized void heal() {
        broken = false;
    }

    @Override
    public void write(FileChannel file, ByteBuffer bytes, long offset) throws IOException {
        REAL.write(file, bytes, offset);
    }

    @Override
    public synchronized void force(FileChannel file) throws IOException {
        if (broken) {
            throw new IOException("Input/output error");
        }
        REAL.force(file);
    }
}
