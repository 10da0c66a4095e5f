//! Data that can be generated and checked at any offset from a seed alone.

/// Odd, so that no two words of a stream are equal: the golden ratio in 64 bits.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// Bytes in a word.
const WORD: u64 = 8;

/// The bytes of one stream: word `i` is `seed ^ (i * STEP)`, little endian.
///
/// Word 0 is the seed itself, so the stream tells the receiver what to expect. All words differ, so dropped, repeated
/// or moved data is detected at its first byte or very soon after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    seed: u64,
}

impl Content {
    /// The stream of `seed`.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The seed, which identifies the stream.
    pub fn seed(self) -> u64 {
        self.seed
    }

    /// Writes the bytes from `offset` on into `out`.
    pub fn fill(self, offset: u64, out: &mut [u8]) {
        let (head, body) = out.split_at_mut(head_len(offset, out.len()));
        for (at, byte) in (offset..).zip(head) {
            *byte = self.byte(at);
        }
        let mut word = offset.div_ceil(WORD);
        let mut words = body.chunks_exact_mut(WORD as usize);
        for chunk in &mut words {
            chunk.copy_from_slice(&self.word(word));
            word += 1;
        }
        let tail = words.into_remainder();
        let length = tail.len();
        tail.copy_from_slice(&self.word(word)[..length]);
    }

    /// The first offset at which `data` differs from the stream, whose bytes from `offset` on it should be. Counted
    /// from the start of the stream.
    pub fn first_difference(self, offset: u64, data: &[u8]) -> Option<u64> {
        let (head, body) = data.split_at(head_len(offset, data.len()));
        let mut word = offset.div_ceil(WORD);
        let mut words = body.chunks_exact(WORD as usize);
        let body_is_right = words.by_ref().all(|chunk| {
            let right = chunk == self.word(word);
            word += 1;
            right
        });
        let tail = words.remainder();
        let head_is_right = (offset..).zip(head).all(|(at, &byte)| byte == self.byte(at));
        if body_is_right && head_is_right && tail == &self.word(word)[..tail.len()] {
            return None;
        }
        (offset..).zip(data).find(|&(at, &byte)| byte != self.byte(at)).map(|(at, _)| at)
    }

    fn word(self, index: u64) -> [u8; WORD as usize] {
        (self.seed ^ index.wrapping_mul(STEP)).to_le_bytes()
    }

    fn byte(self, at: u64) -> u8 {
        self.word(at / WORD)[(at % WORD) as usize]
    }
}

/// Bytes up to the next word boundary.
fn head_len(offset: u64, length: usize) -> usize {
    (((WORD - offset % WORD) % WORD) as usize).min(length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_word_is_the_seed() {
        let mut word = [0; 8];
        Content::new(0xABCD).fill(0, &mut word);
        assert_eq!(u64::from_le_bytes(word), 0xABCD);
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_make_up_the_same_stream(seed: u64, cuts in prop::collection::vec(0usize..40, 1..20)) {
            let content = Content::new(seed);
            let mut whole = vec![0; cuts.iter().sum()];
            content.fill(0, &mut whole);
            let mut offset = 0;
            for cut in cuts {
                let mut piece = vec![0; cut];
                content.fill(offset as u64, &mut piece);
                prop_assert_eq!(&piece[..], &whole[offset..offset + cut]);
                prop_assert_eq!(content.first_difference(offset as u64, &piece), None);
                offset += cut;
            }
        }

        #[test]
        fn a_changed_byte_is_found_where_it_is(seed: u64, offset in 0u64..99, length in 1usize..99, pick: usize) {
            let content = Content::new(seed);
            let mut data = vec![0; length];
            content.fill(offset, &mut data);
            data[pick % length] ^= 0x10;
            prop_assert_eq!(content.first_difference(offset, &data), Some(offset + (pick % length) as u64));
        }

        #[test]
        fn moved_data_is_noticed_within_two_words(seed: u64, offset in 0u64..9_999, shift in 1u64..9_999) {
            let mut data = [0; 16];
            Content::new(seed).fill(offset, &mut data);
            prop_assert!(Content::new(seed).first_difference(offset + shift, &data).is_some());
        }
    }
}
