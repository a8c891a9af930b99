package io.holdfast.client.crypto;

import java.security.SecureRandom;
import javax.crypto.SecretKey;
import javax.crypto.spec.SecretKeySpec;

/** One AES-256 key of one volume. Immutable; the bytes leave it only wrapped or into a cipher. */
public final class VolumeKey {
    /** Length in bytes. */
    public static final int SIZE = 32;

    private final int id;
    private final SecretKey key;

    /**
     * A key from its bytes, which are copied.
     *
     * @param id number of the key within its volume, from 1; stored with each block it seals
     * @throws IllegalArgumentException when the id or the length is wrong
     */
    public VolumeKey(int id, byte[] bytes) {
        this(id, new SecretKeySpec(bytes, "AES"));
    }

    VolumeKey(int id, SecretKey key) {
        if (id < 1) {
            throw new IllegalArgumentException("volume key id " + id + " is below 1");
        }
        byte[] encoded = key.getEncoded();
        if (encoded == null || encoded.length != SIZE) {
            throw new IllegalArgumentException("volume key is not " + SIZE + " bytes long");
        }
        this.id = id;
        this.key = key;
    }

    /** A new key from the operating system's random source. */
    public static VolumeKey generate(int id) {
        byte[] bytes = new byte[SIZE];
        new SecureRandom().nextBytes(bytes);
        return new VolumeKey(id, bytes);
    }

    /** Number of the key within its volume, from 1. */
    public int id() {
        return id;
    }

    SecretKey secret() {
        return key;
    }

    @Override
    public String toString() {
        return "VolumeKey[id=" + id + "]";
    }
}
