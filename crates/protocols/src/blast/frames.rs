//! Reads frames from the bytes of a channel, and divides long records.

use farhaul_wire::blast::MAX_BODY;

/// Bytes that came on a channel and are not a whole frame yet.
#[derive(Debug, Default)]
pub(super) struct Unread {
    bytes: Vec<u8>,
}

impl Unread {
    /// Joins what is left of earlier bytes with `bytes`, lets `take` consume from the front, and keeps the rest. `take`
    /// returns how many bytes it consumed; zero if it needs more. An error ends the reading.
    pub(super) fn feed<E>(&mut self, bytes: &[u8], mut take: impl FnMut(&[u8]) -> Result<usize, E>) -> Result<(), E> {
        let mut held = std::mem::take(&mut self.bytes);
        // Most reads begin with a whole frame, which then needs no copy.
        let all = if held.is_empty() {
            bytes
        } else {
            held.extend_from_slice(bytes);
            &held[..]
        };
        let mut at = 0;
        loop {
            let taken = take(&all[at..])?;
            at += taken;
            if taken == 0 || at == all.len() {
                break;
            }
        }
        if held.is_empty() {
            held.extend_from_slice(&bytes[at..]);
        } else {
            held.drain(..at);
        }
        self.bytes = held;
        Ok(())
    }
}

/// Gives `bytes` in parts that fit a frame. Nothing for no bytes.
pub(super) fn in_parts(bytes: &[u8], give: impl FnMut(&[u8])) {
    bytes.chunks(MAX_BODY).for_each(give);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_joined_until_they_can_be_read() {
        let (mut unread, mut read) = (Unread::default(), Vec::new());
        // In this test a frame is a length and that many bytes.
        for piece in [&[2, 7][..], &[8, 1], &[9, 3, 1, 2], &[3], &[0, 0]] {
            let take = |bytes: &[u8]| -> Result<usize, ()> {
                let Some((&length, rest)) = bytes.split_first() else { return Ok(0) };
                let Some(body) = rest.get(..usize::from(length)) else { return Ok(0) };
                read.push(body.to_vec());
                Ok(1 + body.len())
            };
            unread.feed(piece, take).unwrap();
        }
        assert_eq!(read, [vec![7, 8], vec![9], vec![1, 2, 3], vec![], vec![]]);
        assert_eq!(unread.bytes, []);
    }
}
