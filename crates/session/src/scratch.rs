//! Records that outgrow memory: what a session must remember of every entry, however many a peer announces.

use std::fmt;

use crate::failure::{FailCode, Failure};

/// Bytes of records in memory: those of a small copy, which then needs no file.
const IN_MEMORY: usize = 256 << 10;

/// A file without a name that its owner alone can reach, and that is gone with it.
pub trait Scratch: fmt::Debug + Send {
    /// Reads bytes that were written.
    ///
    /// # Errors
    /// The disk failed.
    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Failure>;

    /// Writes bytes, at the end or over others.
    ///
    /// # Errors
    /// The disk failed or is full.
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Failure>;
}

/// Records that are appended, and read by their places. The first ones stay in memory, and the others go to a file.
#[derive(Debug, Default)]
pub struct Records {
    head: Vec<u8>,
    tail: Option<Box<dyn Scratch>>,
    len: u64,
}

impl Records {
    /// Bytes of all records.
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a record and returns its place. `make` makes the file once it is needed.
    ///
    /// # Errors
    /// There is no file, or it cannot be written.
    pub fn push(
        &mut self,
        record: &[u8],
        make: impl FnOnce() -> Result<Box<dyn Scratch>, Failure>,
    ) -> Result<u64, Failure> {
        let place = self.len;
        if self.tail.is_none() && self.head.len() + record.len() <= IN_MEMORY {
            self.head.extend_from_slice(record);
        } else {
            let tail = match &mut self.tail {
                Some(tail) => tail,
                None => self.tail.insert(make()?),
            };
            tail.write(place - self.head.len() as u64, record)?;
        }
        self.len += record.len() as u64;
        Ok(place)
    }

    /// Reads from the record at `place`, and those behind it as far as `out` has room. Returns how many bytes it read.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self, place: u64, out: &mut [u8]) -> Result<usize, Failure> {
        let from = usize::try_from(place).unwrap_or(usize::MAX);
        if let Some(held) = self.head.get(from..).filter(|held| !held.is_empty()) {
            let count = held.len().min(out.len());
            out[..count].copy_from_slice(&held[..count]);
            return Ok(count);
        }
        let count = usize::try_from(self.len.saturating_sub(place)).unwrap_or(out.len()).min(out.len());
        if let Some(tail) = self.tail.as_ref().filter(|_| count > 0) {
            tail.read(place - self.head.len() as u64, &mut out[..count])?;
        }
        Ok(count)
    }

    /// Writes `bytes` over a part of a record.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn overwrite(&mut self, place: u64, bytes: &[u8]) -> Result<(), Failure> {
        let from = usize::try_from(place).unwrap_or(usize::MAX);
        if let Some(held) = self.head.get_mut(from..).and_then(|held| held.get_mut(..bytes.len())) {
            held.copy_from_slice(bytes);
            return Ok(());
        }
        let tail = self.tail.as_mut().ok_or_else(|| Failure::from(FailCode::Io))?;
        tail.write(place.saturating_sub(self.head.len() as u64), bytes)
    }

    /// Bytes in memory.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.head.capacity()
    }
}

/// A file in memory, for tests and for stores in memory.
#[cfg(any(test, feature = "testing"))]
#[derive(Debug, Default)]
pub(crate) struct MemoryScratch(Vec<u8>);

#[cfg(any(test, feature = "testing"))]
impl Scratch for MemoryScratch {
    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Failure> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let there = self.0.get(from..).and_then(|there| there.get(..out.len())).ok_or(FailCode::Io)?;
        out.copy_from_slice(there);
        Ok(())
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        let from = usize::try_from(offset).expect("memory");
        self.0.resize(self.0.len().max(from + bytes.len()), 0);
        self.0[from..from + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_beyond_their_memory_go_to_a_file_and_are_read_from_there() {
        let (mut records, mut places, mut files) = (Records::default(), Vec::new(), 0);
        let record = |number: u32| [number.to_be_bytes().as_slice(), &[7; 96][..(number % 97) as usize]].concat();
        for number in 0..10 * IN_MEMORY as u32 / 50 {
            let place = records.push(&record(number), || {
                files += 1;
                Ok(Box::<MemoryScratch>::default())
            });
            places.push(place.unwrap());
        }
        assert!(records.len() > 9 * IN_MEMORY as u64 && records.held() <= 2 * IN_MEMORY && files == 1);
        for (number, place) in places.iter().enumerate() {
            let expected = record(u32::try_from(number).unwrap());
            let mut found = vec![0; expected.len()];
            assert_eq!(records.read(*place, &mut found), Ok(expected.len()));
            assert_eq!(found, expected);
        }
        for place in [places[3], places[places.len() - 1]] {
            records.overwrite(place, b"new!").unwrap();
            let mut found = [0; 4];
            records.read(place, &mut found).unwrap();
            assert_eq!(&found, b"new!");
        }
        assert_eq!(records.read(records.len(), &mut [0; 9]), Ok(0));
    }

    #[test]
    fn without_a_file_no_record_is_taken_beyond_their_memory() {
        let mut records = Records::default();
        let full = || Err(FailCode::NoSpace.into());
        assert_eq!(records.push(&[1; IN_MEMORY], full), Ok(0));
        assert!(records.push(b"x", full).is_err());
        assert_eq!(records.len(), IN_MEMORY as u64);
    }
}
