//! Entries of directories in the order of a stack, the last one first. Beyond 256 KiB they are on the disk.

use farhaul_session::{Component, FailCode, Failure, Records, RelPath, Scratch};

/// Lengths of the path and of the name, behind both.
const TRAILER: u64 = 2 + 1;

/// First everything is pushed, and then everything is popped.
#[derive(Debug, Default)]
pub(super) struct PlaceStack {
    records: Records,
    popped: u64,
    count: u64,
}

impl PlaceStack {
    /// The number of entries.
    pub(super) const fn len(&self) -> u64 {
        self.count
    }

    /// Adds the entry `name` of the directory at `parent`.
    pub(super) fn push(
        &mut self,
        parent: &RelPath,
        name: &Component,
        scratch: impl FnOnce() -> Result<Box<dyn Scratch>, Failure>,
    ) -> Result<(), Failure> {
        let (parent, name) = (parent.to_bytes(), name.as_bytes());
        let refused = |_| Failure::from(FailCode::NameRefused);
        let lengths = (u16::try_from(parent.len()).map_err(refused)?, u8::try_from(name.len()).map_err(refused)?);
        self.records.push(&[&parent, name, &lengths.0.to_be_bytes()[..], &[lengths.1]].concat(), scratch)?;
        self.count += 1;
        Ok(())
    }

    /// Takes the last one.
    pub(super) fn pop(&mut self) -> Result<Option<(RelPath, Component)>, Failure> {
        let Some(end) = (self.records.len() - self.popped).checked_sub(TRAILER) else { return Ok(None) };
        let mut lengths = [0; TRAILER as usize];
        self.records.read(end, &mut lengths)?;
        let [high, low, name] = lengths;
        let parent = usize::from(u16::from_be_bytes([high, low]));
        let mut bytes = vec![0; parent + usize::from(name)];
        self.records.read(end - bytes.len() as u64, &mut bytes)?;
        self.popped += TRAILER + bytes.len() as u64;
        self.count -= 1;
        let (parent, name) = bytes.split_at(parent);
        let refused = |_| Failure::from(FailCode::NameRefused);
        Ok(Some((RelPath::parse(parent).map_err(refused)?, Component::new(name).map_err(refused)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::Directory;
    use crate::scratch::scratch_in;

    /// Ten times what is kept in memory.
    #[test]
    fn entries_come_back_in_the_opposite_order_from_memory_and_from_the_disk() {
        let here = Directory::open(&std::env::temp_dir()).unwrap();
        let (mut stack, mut files) = (PlaceStack::default(), 0);
        let entry = |number: u32| {
            let parent =
                if number.is_multiple_of(3) { String::new() } else { format!("d/{number}/{}", "e".repeat(200)) };
            (RelPath::parse(parent.as_bytes()).unwrap(), Component::new(number.to_string().as_bytes()).unwrap())
        };
        for number in 0..20_000 {
            let (parent, name) = entry(number);
            let scratch = || {
                files += 1;
                scratch_in(&here, None)
            };
            stack.push(&parent, &name, scratch).unwrap();
        }
        assert!(stack.records.len() > 10 << 18 && files == 1 && stack.len() == 20_000);
        for number in (0..20_000).rev() {
            assert_eq!(stack.pop().unwrap(), Some(entry(number)));
        }
        assert_eq!((stack.pop().unwrap(), stack.len()), (None, 0));
    }
}
