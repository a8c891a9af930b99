package io.holdfast.client.crypto;

import io.holdfast.proto.catalogue.Volume;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SeekableByteChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.GeneralSecurityException;
import java.security.InvalidKeyException;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collection;
import java.util.EnumSet;
import java.util.HexFormat;
import java.util.Set;
import javax.crypto.Cipher;
import javax.crypto.Mac;
import javax.crypto.SecretKey;
import javax.crypto.spec.SecretKeySpec;

/**
 * The key of the whole cluster. It wraps volume keys (AES key wrap, RFC 3394), so that the
 * catalogue holds nothing that is of use without it; it seals no data itself. Immutable; any
 * thread.
 */
public final class ClusterKey {
    /** Length in bytes. */
    public static final int SIZE = 32;

    private static final int HEX_DIGITS = 2 * SIZE;

    /** A key file is the digits and perhaps a line end; anything longer is some other file. */
    private static final int MAX_FILE_BYTES = HEX_DIGITS + 2;

    private static final byte[] CHECKED_TEXT =
            "holdfast cluster key check".getBytes(StandardCharsets.US_ASCII);

    private static final Set<PosixFilePermission> OTHERS =
            EnumSet.complementOf(
                    EnumSet.of(
                            PosixFilePermission.OWNER_READ,
                            PosixFilePermission.OWNER_WRITE,
                            PosixFilePermission.OWNER_EXECUTE));

    private final SecretKey key;

    /**
     * A key from its bytes, which are copied.
     *
     * @throws IllegalArgumentException when there are not {@link #SIZE} of them
     */
    public ClusterKey(byte[] bytes) {
        if (bytes.length != SIZE) {
            throw new IllegalArgumentException("cluster key is not " + SIZE + " bytes long");
        }
        key = new SecretKeySpec(bytes, "AES");
    }

    /**
     * Reads a key file: 64 hex digits and at most one line end. Blocks on the disk.
     *
     * @throws KeyException when the file is missing, is not a key file, or others than its owner
     *     may touch it
     */
    public static ClusterKey load(Path file) throws KeyException {
        byte[] text = new byte[0];
        byte[] bytes = new byte[0];
        try {
            Set<PosixFilePermission> permissions = Files.getPosixFilePermissions(file);
            if (permissions.stream().anyMatch(OTHERS::contains)) {
                throw new KeyException(
                        "cluster key file "
                                + file
                                + " is open to others ("
                                + PosixFilePermissions.toString(permissions)
                                + "); run: chmod 600 "
                                + file);
            }
            text = readBounded(file);
            bytes = parse(file, text);
            return new ClusterKey(bytes);
        } catch (NoSuchFileException e) {
            throw new KeyException("cluster key file " + file + " does not exist", e);
        } catch (IOException e) {
            throw new KeyException("cluster key file " + file + " cannot be read: " + e, e);
        } finally {
            Arrays.fill(text, (byte) 0);
            Arrays.fill(bytes, (byte) 0);
        }
    }

    /**
     * Creates a key file with a new random key, readable and writable by its owner only (mode 0600)
     * from its first moment on. Blocks on the disk.
     *
     * @throws KeyException when the file exists already (its key is never replaced) or cannot be
     *     written
     */
    public static ClusterKey create(Path file) throws KeyException {
        byte[] bytes = new byte[SIZE];
        new SecureRandom().nextBytes(bytes);
        byte[] text = (HexFormat.of().formatHex(bytes) + "\n").getBytes(StandardCharsets.US_ASCII);
        try (SeekableByteChannel out =
                Files.newByteChannel(
                        file,
                        Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE),
                        PosixFilePermissions.asFileAttribute(
                                PosixFilePermissions.fromString("rw-------")))) {
            ByteBuffer source = ByteBuffer.wrap(text);
            while (source.hasRemaining()) {
                out.write(source);
            }
            return new ClusterKey(bytes);
        } catch (FileAlreadyExistsException e) {
            throw new KeyException("cluster key file " + file + " exists already", e);
        } catch (IOException e) {
            throw new KeyException("cluster key file " + file + " cannot be written: " + e, e);
        } finally {
            Arrays.fill(text, (byte) 0);
            Arrays.fill(bytes, (byte) 0);
        }
    }

    private static byte[] readBounded(Path file) throws IOException, KeyException {
        ByteBuffer in = ByteBuffer.allocate(MAX_FILE_BYTES + 1);
        try (SeekableByteChannel channel = Files.newByteChannel(file)) {
            while (in.hasRemaining() && channel.read(in) >= 0) {
                // until the end of the file or one byte more than a key file can have
            }
        }
        if (in.position() > MAX_FILE_BYTES) {
            throw notAKey(file);
        }
        return Arrays.copyOf(in.array(), in.position());
    }

    private static byte[] parse(Path file, byte[] text) throws KeyException {
        int end = text.length;
        while (end > 0 && (text[end - 1] == '\n' || text[end - 1] == '\r')) {
            end--;
        }
        if (end != HEX_DIGITS) {
            throw notAKey(file);
        }
        byte[] bytes = new byte[SIZE];
        for (int i = 0; i < SIZE; i++) {
            if (!HexFormat.isHexDigit(text[2 * i]) || !HexFormat.isHexDigit(text[2 * i + 1])) {
                throw notAKey(file);
            }
            bytes[i] =
                    (byte)
                            (HexFormat.fromHexDigit(text[2 * i]) << 4
                                    | HexFormat.fromHexDigit(text[2 * i + 1]));
        }
        return bytes;
    }

    private static KeyException notAKey(Path file) {
        return new KeyException(
                "cluster key file " + file + " must hold " + HEX_DIGITS + " hex digits");
    }

    /**
     * Tells this key from others without telling anything of use about it: the first 8 bytes of
     * HMAC-SHA256 with this key over a fixed text.
     */
    public long check() {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(key);
            return ByteBuffer.wrap(mac.doFinal(CHECKED_TEXT)).getLong();
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException("this JDK has no HmacSHA256", e);
        }
    }

    /** The volume key wrapped with this key, in base64, as the catalogue keeps it. */
    public String wrap(VolumeKey volumeKey) {
        try {
            Cipher cipher = Cipher.getInstance("AESWrap");
            cipher.init(Cipher.WRAP_MODE, key);
            return Base64.getEncoder().encodeToString(cipher.wrap(volumeKey.secret()));
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException("this JDK cannot wrap keys (AESWrap)", e);
        }
    }

    /**
     * The volume key in a wrapped form.
     *
     * @param id the key's number within its volume
     * @param wrapped as {@link #wrap} gave it out
     * @throws KeyException when it was wrapped with another cluster key, or is damaged
     */
    public VolumeKey unwrap(int id, String wrapped) throws KeyException {
        try {
            byte[] bytes = Base64.getDecoder().decode(wrapped);
            Cipher cipher = Cipher.getInstance("AESWrap");
            cipher.init(Cipher.UNWRAP_MODE, key);
            if (!(cipher.unwrap(bytes, "AES", Cipher.SECRET_KEY) instanceof SecretKey secret)) {
                throw new KeyException("volume key " + id + " is not a secret key");
            }
            return new VolumeKey(id, secret);
        } catch (IllegalArgumentException | InvalidKeyException e) {
            throw new KeyException(
                    "volume key " + id + " is damaged or was wrapped with another cluster key");
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException("this JDK cannot unwrap keys (AESWrap)", e);
        }
    }

    /**
     * Refuses to go on with a key that opens none of the volumes: whoever has it cannot serve them,
     * and would wrap new ones with it.
     *
     * @throws KeyException when there are volumes, and this is not their key
     */
    public void requireOpensOneOf(Collection<Volume> volumes) throws KeyException {
        KeyException last = null;
        for (Volume volume : volumes) {
            try {
                unwrap(volume.keyId(), volume.wrappedKey());
                return;
            } catch (KeyException e) {
                last = e;
            }
        }
        if (last != null) {
            throw new KeyException(
                    "the cluster key opens none of the cluster's volumes ("
                            + volumes.size()
                            + "): it is not the one they were made with",
                    last);
        }
    }

    @Override
    public String toString() {
        return "ClusterKey[hidden]";
    }
}
