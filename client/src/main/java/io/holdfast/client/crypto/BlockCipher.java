package io.holdfast.client.crypto;

import io.holdfast.proto.peer.Blocks;
import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import javax.crypto.AEADBadTagException;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;

/**
 * Seals and opens the blocks of one volume with one of its keys: AES-256-GCM, 128-bit tag, on heap
 * arrays (twice as fast there as on direct buffers).
 *
 * <pre>
 * nonce (12 bytes)             additional data (16 bytes)       sealed block (4112 bytes)
 * offset size field            offset size field                offset size field
 *      0    4 session               0    4 volume number             0 4096 ciphertext
 *      4    8 counter               4    4 layer                  4096   16 tag
 *                                   8    8 block number
 * </pre>
 *
 * All numbers big-endian. The additional data binds a block to its address: a leader or a disk that
 * returns another block's bytes, valid in themselves, is found out. It says the layer that
 * <em>wrote</em> the block, for two reasons. It stays true for ever: the cleaner, catch-up and
 * repair move sealed blocks, and keep layer and block number. And whoever reads through a chain of
 * layers must know the writing layer anyway to choose the key, since a clone's frozen layers belong
 * to another volume with its own key; so binding it costs nothing and a mixed-up chain is noticed.
 * The epoch, sequence and place on disk are not part of it: they are not known when a block is
 * sealed, or change later.
 *
 * <p>One thread. One {@code Cipher} per direction is used over and over.
 */
public final class BlockCipher {
    private static final int NONCE_SIZE = 12;
    private static final int ADDRESS_SIZE = 16;
    private static final int TAG_BITS = 8 * Blocks.TAG_SIZE;

    private final VolumeKey key;
    private final Cipher sealing;
    private final Cipher opening;
    private final ByteBuffer nonce = ByteBuffer.allocate(NONCE_SIZE);
    private final byte[] address = new byte[ADDRESS_SIZE];
    private final ByteBuffer addressFields = ByteBuffer.wrap(address);

    /**
     * A cipher for one volume.
     *
     * @param volume number of the volume that owns the key, from 1
     */
    public BlockCipher(VolumeKey key, int volume) {
        this.key = key;
        addressFields.putInt(0, volume);
        try {
            sealing = Cipher.getInstance("AES/GCM/NoPadding", "SunJCE");
            opening = Cipher.getInstance("AES/GCM/NoPadding", "SunJCE");
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException("this JDK has no AES-GCM", e);
        }
    }

    /** Id of the key, as the nonces of blocks sealed here say it. */
    public int keyId() {
        return key.id();
    }

    /**
     * Seals one block.
     *
     * @param plain {@link Blocks#SIZE} bytes from {@code plainOffset}
     * @param layer that is written
     * @param block number of the block within the volume
     * @param session granted session number, from 1
     * @param counter a value that {@link NonceSource} gave out for this session and this block
     * @param sealed receives {@link Blocks#SEALED_SIZE} bytes from {@code sealedOffset}
     */
    public void seal(
            byte[] plain,
            int plainOffset,
            int layer,
            long block,
            int session,
            long counter,
            byte[] sealed,
            int sealedOffset) {
        try {
            prepare(sealing, Cipher.ENCRYPT_MODE, layer, block, session, counter);
            int length = sealing.doFinal(plain, plainOffset, Blocks.SIZE, sealed, sealedOffset);
            if (length != Blocks.SEALED_SIZE) {
                throw new IllegalStateException("sealed block of " + length + " bytes");
            }
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException("sealing block " + block + " failed", e);
        }
    }

    /**
     * Opens one block.
     *
     * @param sealed {@link Blocks#SEALED_SIZE} bytes from {@code sealedOffset}
     * @param layer that wrote the block
     * @param plain receives {@link Blocks#SIZE} bytes from {@code plainOffset}; undefined after an
     *     exception
     * @throws CorruptBlockException when the bytes are not what was sealed with this key at this
     *     address under this nonce
     */
    public void open(
            byte[] sealed,
            int sealedOffset,
            int layer,
            long block,
            int session,
            long counter,
            byte[] plain,
            int plainOffset)
            throws CorruptBlockException {
        try {
            prepare(opening, Cipher.DECRYPT_MODE, layer, block, session, counter);
            opening.doFinal(sealed, sealedOffset, Blocks.SEALED_SIZE, plain, plainOffset);
        } catch (AEADBadTagException e) {
            throw new CorruptBlockException(
                    block,
                    "tag of block " + block + " (nonce " + session + ":" + counter + ") is wrong");
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException("opening block " + block + " failed", e);
        }
    }

    private void prepare(Cipher cipher, int mode, int layer, long block, int session, long counter)
            throws GeneralSecurityException {
        nonce.putInt(0, session).putLong(4, counter);
        cipher.init(mode, key.secret(), new GCMParameterSpec(TAG_BITS, nonce.array()));
        addressFields.putInt(4, layer).putLong(8, block);
        cipher.updateAAD(address);
    }
}
