package io.holdfast.node.store;

import io.holdfast.node.port.Store.Owner;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** A replica as the store sees it; its state is its applied point in bytes. */
class TestOwner implements Owner {
    long applied;
    long appliedEpoch;
    final List<Exception> failures = new ArrayList<>();

    TestOwner() {}

    TestOwner(long appliedEpoch, long applied) {
        this.applied = applied;
        this.appliedEpoch = appliedEpoch;
    }

    static byte[] state(long applied) {
        return ByteBuffer.allocate(Long.BYTES).putLong(applied).array();
    }

    @Override
    public byte[] shardState() {
        return state(applied);
    }

    @Override
    public long applied() {
        return applied;
    }

    @Override
    public long appliedEpoch() {
        return appliedEpoch;
    }

    @Override
    public void failed(Exception cause) {
        failures.add(cause);
    }
}
