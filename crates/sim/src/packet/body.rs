//! Storage of a datagram's bytes in flight.
//!
//! A fast and long link holds tens of megabytes, more than any cache. Bulk senders mostly repeat one byte. A datagram
//! whose bytes behind its head are all equal is therefore stored *compressed*, as its head and the length of that run.
//! A receiver, a tap, a capture or a corruption model that reads it decompresses it. The reader always gets the
//! original bytes.

use std::cell::OnceCell;

/// Bytes stored uncompressed. UDT's header has 16, its longest acknowledgement 40.
pub(super) const HEAD: usize = 40;

/// The payload of one datagram.
#[derive(Clone, Debug)]
pub(super) struct Body {
    head: [u8; HEAD],
    /// Used bytes of `head`.
    head_len: u8,
    /// The repeated byte behind the head.
    filler: u8,
    /// Its number of repetitions.
    run: u32,
    /// All bytes, if they do not compress or a reader decompressed them. Overrides the other fields.
    whole: OnceCell<Vec<u8>>,
}

impl Body {
    /// A copy of `bytes`. `buffer` provides memory if they do not compress.
    pub(super) fn of(bytes: &[u8], buffer: impl FnOnce() -> Vec<u8>) -> Self {
        let (start, rest) = bytes.split_at(bytes.len().min(HEAD));
        let (filler, compresses) = match rest {
            [] => (0, true),
            // All bytes are equal if each equals its predecessor.
            [first, others @ ..] => (*first, rest[..others.len()] == *others),
        };
        let mut body = Self { head: [0; HEAD], head_len: 0, filler, run: 0, whole: OnceCell::new() };
        match u32::try_from(rest.len()) {
            Ok(run) if compresses => {
                body.head[..start.len()].copy_from_slice(start);
                (body.head_len, body.run) = (start.len() as u8, run);
            }
            _ => {
                let mut whole = buffer();
                whole.clear();
                whole.extend_from_slice(bytes);
                body.whole = OnceCell::from(whole);
            }
        }
        body
    }

    /// Another body with the same bytes.
    pub(super) fn copy(&self, buffer: impl FnOnce() -> Vec<u8>) -> Self {
        match self.whole.get() {
            Some(bytes) => Self::of(bytes, buffer),
            None => self.clone(),
        }
    }

    /// Number of bytes.
    pub(super) fn len(&self) -> usize {
        self.whole.get().map_or(usize::from(self.head_len) + self.run as usize, Vec::len)
    }

    /// The first bytes: at least [`HEAD`], or all.
    pub(super) fn head(&self) -> &[u8] {
        self.whole.get().map_or(&self.head[..usize::from(self.head_len)], Vec::as_slice)
    }

    /// All bytes. `buffer` provides memory if they are compressed.
    pub(super) fn bytes(&self, buffer: impl FnOnce() -> Vec<u8>) -> &[u8] {
        self.whole.get_or_init(|| {
            let mut whole = buffer();
            whole.clear();
            whole.extend_from_slice(self.head());
            whole.resize(self.len(), self.filler);
            whole
        })
    }

    /// All bytes, mutable.
    pub(super) fn bytes_mut(&mut self, buffer: impl FnOnce() -> Vec<u8>) -> &mut Vec<u8> {
        self.bytes(buffer);
        self.whole.get_mut().expect("`bytes` has decompressed it")
    }

    /// Removes all bytes and returns their memory.
    pub(super) fn take_buffer(&mut self) -> Option<Vec<u8>> {
        (self.head_len, self.run) = (0, 0);
        self.whole.take()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_header_before_equal_bytes_takes_no_buffer_until_it_is_read() {
        let datagram = [&[1, 2, 3, 4][..], &[7; 1_468]].concat();
        let compressed = Body::of(&datagram, || unreachable!("it compresses"));
        assert_eq!((compressed.len(), compressed.head()), (1_472, &datagram[..HEAD]));
        assert_eq!(compressed.bytes(Vec::new), datagram);
    }

    #[test]
    fn one_different_byte_prevents_compression() {
        for at in HEAD..1_472 {
            let mut datagram = [0; 1_472];
            datagram[at] = 1;
            let mut asked = false;
            let body = Body::of(&datagram, || {
                asked = true;
                Vec::new()
            });
            assert!(asked, "byte {at} would be lost");
            assert_eq!(body.bytes(Vec::new), datagram);
        }
    }

    #[test]
    fn changes_are_kept() {
        let mut body = Body::of(&[5; 1_000], Vec::new);
        body.bytes_mut(Vec::new)[999] = 6;
        assert_eq!((body.bytes(Vec::new)[998], body.bytes(Vec::new)[999]), (5, 6));
        body.bytes_mut(Vec::new).truncate(3);
        assert_eq!((body.len(), body.head()), (3, &[5; 3][..]));
    }

    /// Random bytes, and bytes behind which one is repeated.
    fn datagrams() -> impl Strategy<Value = Vec<u8>> {
        let bytes = prop::collection::vec(any::<u8>(), 0..2 * HEAD);
        (bytes, any::<u8>(), prop_oneof![Just(0usize), 0..2_000usize]).prop_map(|(mut bytes, filler, run)| {
            bytes.resize(bytes.len() + run, filler);
            bytes
        })
    }

    proptest! {
        #[test]
        fn the_stored_bytes_are_read_back(bytes in datagrams(), used in datagrams()) {
            let body = Body::of(&bytes, || used.clone());
            prop_assert_eq!(body.len(), bytes.len());
            prop_assert!(bytes.starts_with(body.head()) && body.head().len() >= bytes.len().min(HEAD));
            let copy = body.copy(|| used.clone());
            prop_assert_eq!(body.bytes(|| used.clone()), &bytes);
            let copy_of_whole = body.copy(|| used.clone());
            prop_assert_eq!(copy.bytes(|| used.clone()), &bytes);
            prop_assert_eq!(copy_of_whole.bytes(|| used.clone()), &bytes);
        }
    }
}
