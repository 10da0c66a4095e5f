//! The MD5 digest (RFC 1321), for the proof of a Tsunami client alone.
//!
//! MD5 is broken, and nothing else here may use it. Programs of the original demand it.

/// Bytes of a digest.
pub(super) const DIGEST_LEN: usize = 16;
/// Bytes that one round of the digest takes.
const BLOCK: usize = 64;
/// Bytes at the end of the padded message that hold its length.
const LENGTH: usize = 8;
/// The digest of nothing yet (RFC 1321 §3.3).
const INITIAL: [u32; 4] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476];
/// How far the words rotate: four values for each of the four rounds (RFC 1321 §3.4).
const ROTATIONS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];
/// The integer part of 2^32 · |sin(i + 1)| (RFC 1321 §3.4).
const SINES: [u32; 64] = [
    0xD76A_A478,
    0xE8C7_B756,
    0x2420_70DB,
    0xC1BD_CEEE,
    0xF57C_0FAF,
    0x4787_C62A,
    0xA830_4613,
    0xFD46_9501,
    0x6980_98D8,
    0x8B44_F7AF,
    0xFFFF_5BB1,
    0x895C_D7BE,
    0x6B90_1122,
    0xFD98_7193,
    0xA679_438E,
    0x49B4_0821,
    0xF61E_2562,
    0xC040_B340,
    0x265E_5A51,
    0xE9B6_C7AA,
    0xD62F_105D,
    0x0244_1453,
    0xD8A1_E681,
    0xE7D3_FBC8,
    0x21E1_CDE6,
    0xC337_07D6,
    0xF4D5_0D87,
    0x455A_14ED,
    0xA9E3_E905,
    0xFCEF_A3F8,
    0x676F_02D9,
    0x8D2A_4C8A,
    0xFFFA_3942,
    0x8771_F681,
    0x6D9D_6122,
    0xFDE5_380C,
    0xA4BE_EA44,
    0x4BDE_CFA9,
    0xF6BB_4B60,
    0xBEBF_BC70,
    0x289B_7EC6,
    0xEAA1_27FA,
    0xD4EF_3085,
    0x0488_1D05,
    0xD9D4_D039,
    0xE6DB_99E5,
    0x1FA2_7CF8,
    0xC4AC_5665,
    0xF429_2244,
    0x432A_FF97,
    0xAB94_23A7,
    0xFC93_A039,
    0x655B_59C3,
    0x8F0C_CC92,
    0xFFEF_F47D,
    0x8584_5DD1,
    0x6FA8_7E4F,
    0xFE2C_E6E0,
    0xA301_4314,
    0x4E08_11A1,
    0xF753_7E82,
    0xBD3A_F235,
    0x2AD7_D2BB,
    0xEB86_D391,
];

/// The digest of `message`.
pub(super) fn digest(message: &[u8]) -> [u8; DIGEST_LEN] {
    let mut state = INITIAL;
    let (blocks, rest) = message.as_chunks::<BLOCK>();
    for block in blocks {
        compress(&mut state, block);
    }
    let mut last = [[0; BLOCK]; 2];
    let padded = last.as_flattened_mut();
    padded[..rest.len()].copy_from_slice(rest);
    padded[rest.len()] = 0x80;
    let used = if rest.len() + 1 + LENGTH > BLOCK { 2 } else { 1 };
    let bits = (message.len() as u64).wrapping_mul(8);
    padded[used * BLOCK - LENGTH..used * BLOCK].copy_from_slice(&bits.to_le_bytes());
    for block in &last[..used] {
        compress(&mut state, block);
    }
    let mut digest = [0; DIGEST_LEN];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    digest
}

/// Adds one block to the digest (RFC 1321 §3.4).
fn compress(state: &mut [u32; 4], block: &[u8; BLOCK]) {
    let mut words = [0; 16];
    for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    let [mut a, mut b, mut c, mut d] = *state;
    for step in 0..64 {
        let round = step / 16;
        let (mixed, word) = match round {
            0 => ((b & c) | (!b & d), step),
            1 => ((b & d) | (c & !d), (5 * step + 1) % 16),
            2 => (b ^ c ^ d, (3 * step + 5) % 16),
            _ => (c ^ (b | !d), (7 * step) % 16),
        };
        let sum = a.wrapping_add(mixed).wrapping_add(words[word]).wrapping_add(SINES[step]);
        let next = b.wrapping_add(sum.rotate_left(ROTATIONS[round][step % 4]));
        (a, d, c, b) = (d, c, b, next);
    }
    for (old, new) in state.iter_mut().zip([a, b, c, d]) {
        *old = old.wrapping_add(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(digest: [u8; DIGEST_LEN]) -> String {
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn the_test_suite_of_the_rfc_gives_its_digests() {
        // RFC 1321 appendix A.5.
        let digits = "1234567890".repeat(8);
        let suite = [
            ("", "d41d8cd98f00b204e9800998ecf8427e"),
            ("a", "0cc175b9c0f1b6a831c399e269772661"),
            ("abc", "900150983cd24fb0d6963f7d28e17f72"),
            ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
            ("abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"),
            ("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "d174ab98d277d9f5a5611c2c9f419d9f"),
            (&digits, "57edf4a22be3c955ac49da2e2107b67a"),
        ];
        for (message, expected) in suite {
            assert_eq!(hex(digest(message.as_bytes())), expected, "{message:?}");
        }
    }

    #[test]
    fn the_padding_fits_at_every_length_around_a_block() {
        // Digests of 55, 56, 63, 64 and 65 letters `a` by md5sum of GNU coreutils.
        for (length, expected) in [
            (55, "ef1772b6dff9a122358552954ad0df65"),
            (56, "3b0c8ac703f828b04c6c197006d17218"),
            (63, "b06521f39153d618550606be297466d5"),
            (64, "014842d480b571495a4a0363793f7367"),
            (65, "c743a45e0d2e6a95cb859adae0248435"),
        ] {
            assert_eq!(hex(digest(&vec![b'a'; length])), expected, "{length}");
        }
    }
}
