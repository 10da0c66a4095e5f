//! The bytes of a datagram, as they lie on a link.
//!
//! A fast and long link holds tens of megabytes, more than any cache. What a bulk sender sends is mostly one byte again and
//! again; a datagram whose bytes behind its head are all equal is therefore kept *folded*, as its head and the length of that
//! run, and unfolded when somebody looks at it: a receiver, a tap, a capture, a model that damages it. This holds for any
//! bytes: what comes out is what was put in.

use std::cell::OnceCell;

/// Bytes that are kept as they are: UDT's header is 16, its longest acknowledgement 40.
pub(super) const HEAD: usize = 40;

/// What one datagram carries.
#[derive(Clone, Debug)]
pub(super) struct Body {
    head: [u8; HEAD],
    /// How many of those there are.
    head_len: u8,
    /// What the bytes behind the head all are.
    filler: u8,
    /// And how many.
    run: u32,
    /// All bytes, if they could not be folded or somebody has looked at them; then nothing else counts.
    whole: OnceCell<Vec<u8>>,
}

impl Body {
    /// A copy of `bytes`; `buffer` makes room for those that cannot be folded.
    pub(super) fn of(bytes: &[u8], buffer: impl FnOnce() -> Vec<u8>) -> Self {
        let (start, rest) = bytes.split_at(bytes.len().min(HEAD));
        let (filler, folds) = match rest {
            [] => (0, true),
            // All are equal if each equals the one before.
            [first, others @ ..] => (*first, rest[..others.len()] == *others),
        };
        let mut body = Self { head: [0; HEAD], head_len: 0, filler, run: 0, whole: OnceCell::new() };
        match u32::try_from(rest.len()) {
            Ok(run) if folds => {
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

    /// How many bytes there are.
    pub(super) fn len(&self) -> usize {
        self.whole.get().map_or(usize::from(self.head_len) + self.run as usize, Vec::len)
    }

    /// The first bytes, at least [`HEAD`] if there are so many.
    pub(super) fn head(&self) -> &[u8] {
        self.whole.get().map_or(&self.head[..usize::from(self.head_len)], Vec::as_slice)
    }

    /// All bytes; `buffer` makes room for them if they are folded.
    pub(super) fn bytes(&self, buffer: impl FnOnce() -> Vec<u8>) -> &[u8] {
        self.whole.get_or_init(|| {
            let mut whole = buffer();
            whole.clear();
            whole.extend_from_slice(self.head());
            whole.resize(self.len(), self.filler);
            whole
        })
    }

    /// All bytes, to be changed.
    pub(super) fn bytes_mut(&mut self, buffer: impl FnOnce() -> Vec<u8>) -> &mut Vec<u8> {
        self.bytes(buffer);
        self.whole.get_mut().expect("it was unfolded just now")
    }

    /// Leaves no bytes, and gives back the room that they took.
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
    fn a_header_before_equal_bytes_takes_no_buffer_until_somebody_looks() {
        let datagram = [&[1, 2, 3, 4][..], &[7; 1_468]].concat();
        let folded = Body::of(&datagram, || unreachable!("it folds"));
        assert_eq!((folded.len(), folded.head()), (1_472, &datagram[..HEAD]));
        assert_eq!(folded.bytes(Vec::new), datagram);
    }

    #[test]
    fn one_byte_that_differs_keeps_a_datagram_as_it_is() {
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

    /// Bytes as they are, and bytes behind which one is repeated.
    fn datagrams() -> impl Strategy<Value = Vec<u8>> {
        let bytes = prop::collection::vec(any::<u8>(), 0..2 * HEAD);
        (bytes, any::<u8>(), prop_oneof![Just(0usize), 0..2_000usize]).prop_map(|(mut bytes, filler, run)| {
            bytes.resize(bytes.len() + run, filler);
            bytes
        })
    }

    proptest! {
        #[test]
        fn what_comes_out_is_what_was_put_in(bytes in datagrams(), used in datagrams()) {
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
