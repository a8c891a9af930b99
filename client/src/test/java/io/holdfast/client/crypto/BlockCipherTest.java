package io.holdfast.client.crypto;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.holdfast.proto.peer.Blocks;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Random;
import org.junit.jupiter.api.Test;

final class BlockCipherTest {
    private static final byte[] KEY = new byte[VolumeKey.SIZE];
    private static final byte[] PLAIN = new byte[Blocks.SIZE];

    static {
        for (int i = 0; i < KEY.length; i++) {
            KEY[i] = (byte) i;
        }
        for (int i = 0; i < PLAIN.length; i++) {
            PLAIN[i] = (byte) (i * 7 + 3);
        }
    }

    private final BlockCipher cipher = new BlockCipher(new VolumeKey(1, KEY), 9);

    /** Computed with OpenSSL's AES-256-GCM over the layout in the class comment. */
    @Test
    void sealedBlockEqualsIndependentComputation() throws Exception {
        byte[] sealed = new byte[Blocks.SEALED_SIZE];
        cipher.seal(PLAIN, 0, 2, 0x0102030405L, 5, 0x1122334455667788L, sealed, 0);
        assertThat(HexFormat.of().formatHex(sealed, 0, 32))
                .isEqualTo("dd16950abb9c24ab4c40d5d1899d458e9ff6353c8f927ebfff8b2d46f916f5ad");
        assertThat(HexFormat.of().formatHex(sealed, Blocks.SIZE, Blocks.SEALED_SIZE))
                .isEqualTo("1bb7fe27ca64fc9149a04e9e70d5dcc8");
        assertThat(HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(sealed)))
                .isEqualTo("4b63aaaf39cb0b1b5ced436ad0b3edaccd5088de4ff4ce0b51092a5bef445482");
    }

    @Test
    void opensWhatItSealedAtAnyOffset() throws Exception {
        Random random = new Random(1);
        byte[] plain = new byte[3 * Blocks.SIZE];
        byte[] sealed = new byte[3 * Blocks.SEALED_SIZE];
        for (int round = 0; round < 50; round++) {
            random.nextBytes(plain);
            int from = random.nextInt(2 * Blocks.SIZE);
            int at = random.nextInt(2 * Blocks.SEALED_SIZE);
            int layer = random.nextInt(100);
            long block = random.nextLong() >>> 1;
            int session = 1 + random.nextInt(1000);
            cipher.seal(plain, from, layer, block, session, round, sealed, at);
            byte[] opened = new byte[Blocks.SIZE + 5];
            cipher.open(sealed, at, layer, block, session, round, opened, 5);
            assertThat(Arrays.copyOfRange(opened, 5, opened.length))
                    .isEqualTo(Arrays.copyOfRange(plain, from, from + Blocks.SIZE));
        }
    }

    @Test
    void everyChangedByteIsNoticed() {
        byte[] sealed = new byte[Blocks.SEALED_SIZE];
        cipher.seal(PLAIN, 0, 1, 7, 1, 1, sealed, 0);
        byte[] plain = new byte[Blocks.SIZE];
        for (int i = 0; i < sealed.length; i++) {
            int bit = 1 << (i % 8);
            sealed[i] ^= (byte) bit;
            assertThatThrownBy(() -> cipher.open(sealed, 0, 1, 7, 1, 1, plain, 0))
                    .as("byte " + i)
                    .isInstanceOf(CorruptBlockException.class);
            sealed[i] ^= (byte) bit;
        }
    }

    @Test
    void anotherAddressNonceVolumeOrKeyIsNoticed() {
        byte[] sealed = new byte[Blocks.SEALED_SIZE];
        cipher.seal(PLAIN, 0, 1, 7, 1, 1, sealed, 0);
        refuses(cipher, sealed, 1, 8, 1, 1);
        refuses(cipher, sealed, 2, 7, 1, 1);
        refuses(cipher, sealed, 1, 7, 2, 1);
        refuses(cipher, sealed, 1, 7, 1, 2);
        refuses(new BlockCipher(new VolumeKey(1, KEY), 10), sealed, 1, 7, 1, 1);
        refuses(new BlockCipher(VolumeKey.generate(1), 9), sealed, 1, 7, 1, 1);
    }

    @Test
    void aCorruptBlockDoesNotSpoilTheNext() throws Exception {
        byte[] sealed = new byte[Blocks.SEALED_SIZE];
        cipher.seal(PLAIN, 0, 1, 7, 1, 1, sealed, 0);
        refuses(cipher, sealed, 1, 8, 1, 1);
        byte[] plain = new byte[Blocks.SIZE];
        cipher.open(sealed, 0, 1, 7, 1, 1, plain, 0);
        assertThat(plain).isEqualTo(PLAIN);
    }

    private static void refuses(
            BlockCipher cipher, byte[] sealed, int layer, long block, int session, long counter) {
        assertThatThrownBy(() ->
                        cipher.open(
                                sealed,
                                0,
                                layer,
                                block,
                                session,
                                counter,
                                new byte[Blocks.SIZE],
                                0))
                .isInstanceOfSatisfying(
                        CorruptBlockException.class, e -> assertThat(e.block()).isEqualTo(block));
    }
}
