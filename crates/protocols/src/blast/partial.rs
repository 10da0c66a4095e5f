//! Control records that arrive in any division.

use farhaul_proto::error::{ControlFault, PeerMisbehaved};
use farhaul_wire::blast::RecordError;

/// The bytes of a record that is not complete yet. They are fewer than the longest record, because
/// [`feed`](Self::feed) takes all complete ones.
#[derive(Debug, Default)]
pub(crate) struct Partial {
    bytes: Vec<u8>,
}

impl Partial {
    /// Whether no record has begun.
    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Takes `bytes`, and calls `take` with everything unread until it returns `None`. `take` handles one record from
    /// the front of them and returns its length, which is not zero.
    ///
    /// # Errors
    /// That of `take`. The rest is of no more use then.
    pub(crate) fn feed<E>(
        &mut self,
        bytes: &[u8],
        mut take: impl FnMut(&[u8]) -> Result<Option<usize>, E>,
    ) -> Result<(), E> {
        if self.bytes.is_empty() {
            let mut rest = bytes;
            while let Some(length) = take(rest)? {
                rest = &rest[length..];
            }
            self.bytes.extend_from_slice(rest);
            return Ok(());
        }
        self.bytes.extend_from_slice(bytes);
        let mut at = 0;
        while let Some(length) = take(&self.bytes[at..])? {
            at += length;
        }
        self.bytes.drain(..at);
        Ok(())
    }
}

/// Takes `bytes` of the channel for `owner`, of which `partial` is a part. `take` handles one record from the front of
/// what it gets, as for [`Partial::feed`].
///
/// # Errors
/// That of `take`.
pub(crate) fn feed<T: ?Sized, E>(
    owner: &mut T,
    partial: impl Fn(&mut T) -> &mut Partial,
    bytes: &[u8],
    mut take: impl FnMut(&mut T, &[u8]) -> Result<Option<usize>, E>,
) -> Result<(), E> {
    let mut held = std::mem::take(partial(owner));
    held.feed(bytes, |bytes| take(owner, bytes))?;
    *partial(owner) = held;
    Ok(())
}

/// The fault of a peer behind a record that cannot be read.
pub(crate) fn unreadable(error: RecordError) -> PeerMisbehaved {
    PeerMisbehaved::ControlRecord(match error {
        RecordError::UnknownType(kind) => ControlFault::UnknownType(kind.into()),
        RecordError::OutOfRange { field, value, valid } => ControlFault::OutOfRange { field, value, valid },
        _ => ControlFault::OutOfTurn("an unreadable record"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records of a length and as many bytes.
    fn records(feeds: &[&[u8]]) -> Vec<Vec<u8>> {
        let (mut partial, mut records) = (Partial::default(), Vec::new());
        for bytes in feeds {
            let taken: Result<(), ()> = partial.feed(bytes, |rest| {
                let Some((length, rest)) = rest.split_first() else { return Ok(None) };
                let Some(record) = rest.get(..usize::from(*length)) else { return Ok(None) };
                records.push(record.to_vec());
                Ok(Some(1 + record.len()))
            });
            taken.unwrap();
        }
        records
    }

    #[test]
    fn records_are_whole_however_they_are_divided() {
        let bytes = [2, 7, 8, 0, 1, 9, 3, 1, 2, 3];
        let whole = records(&[&bytes]);
        assert_eq!(whole, [&[7, 8][..], &[], &[9], &[1, 2, 3]]);
        for cut in 0..bytes.len() {
            assert_eq!(records(&[&bytes[..cut], &bytes[cut..]]), whole, "cut at {cut}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(records(&single), whole);
    }
}
