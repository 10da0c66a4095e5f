//! One part of the files of a copy that several runs share.

use std::fmt;
use std::str::FromStr;

use crate::field::{Fields, Malformed};
use crate::path_rules::RelPath;

/// The `index`-th of `count` parts of the files of a copy.
///
/// Every path is in exactly one part, which its bytes alone decide: the first eight bytes of their BLAKE3 digest as a
/// little-endian number, modulo the count. So runs on different machines need no contact to divide a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shard {
    /// From 1 to `count`.
    index: u32,
    count: u32,
}

/// Why a part does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write a part as I/N, with numbers from 1/1 to N/N: 3/8 is the third of eight parts")]
pub struct NoShard;

impl Shard {
    /// The `index`-th of `count` parts, counted from 1.
    ///
    /// # Errors
    /// There is no such part.
    pub const fn new(index: u32, count: u32) -> Result<Self, NoShard> {
        if index == 0 || index > count { Err(NoShard) } else { Ok(Self { index, count }) }
    }

    /// Its number, from 1.
    pub const fn index(self) -> u32 {
        self.index
    }

    /// The number of parts.
    pub const fn count(self) -> u32 {
        self.count
    }

    /// Whether the entry at this path of the copy is in this part.
    pub fn has(self, path: &RelPath) -> bool {
        let digest = blake3::hash(&path.to_bytes());
        let first = digest.as_bytes().first_chunk().expect("a digest has 32 bytes");
        u64::from_le_bytes(*first) % u64::from(self.count) == u64::from(self.index - 1)
    }

    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.index.to_be_bytes());
        out.extend_from_slice(&self.count.to_be_bytes());
    }

    pub(crate) fn decode(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        Self::new(fields.u32()?, fields.u32()?).map_err(|NoShard| Malformed::Value("part of a copy"))
    }
}

impl FromStr for Shard {
    type Err = NoShard;

    fn from_str(text: &str) -> Result<Self, NoShard> {
        let (index, count) = text.split_once('/').ok_or(NoShard)?;
        let number = |text: &str| text.parse().map_err(|_| NoShard);
        Self::new(number(index)?, number(count)?)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn every_path_is_in_exactly_one_part() {
        for count in [1, 2, 3, 7, 64] {
            let mut sizes = vec![0; count as usize];
            for number in 0..2000 {
                let path = path(&format!("run/{}/file-{number}.dat", number % 13));
                let parts: Vec<u32> =
                    (1..=count).filter(|&index| Shard::new(index, count).unwrap().has(&path)).collect();
                assert_eq!(parts.len(), 1, "{path} of {count}");
                sizes[parts[0] as usize - 1] += 1;
            }
            let even = 2000 / count;
            assert!(sizes.iter().all(|&size| size * 2 > even && size < even * 2), "{sizes:?}");
        }
    }

    #[test]
    fn the_part_of_a_path_is_what_b3sum_prints_modulo_the_count() {
        // printf run42/a.dat | b3sum: its first eight bytes, read backwards, are the number.
        let digest = blake3::hash(b"run42/a.dat").to_hex();
        let bytes: Vec<u64> = (0..8).map(|at| u64::from_str_radix(&digest[2 * at..2 * at + 2], 16).unwrap()).collect();
        let number = bytes.iter().rev().fold(0u64, |all, byte| all << 8 | byte);
        let index = u32::try_from(number % 5).unwrap() + 1;
        assert!(Shard::new(index, 5).unwrap().has(&path("run42/a.dat")));
    }

    #[test]
    fn parts_are_written_as_they_are_read() {
        for text in ["1/1", "3/8", "4294967295/4294967295"] {
            assert_eq!(text.parse::<Shard>().unwrap().to_string(), text);
        }
        for text in ["", "1", "0/4", "5/4", "1/0", "a/4", "1/4/2", "-1/4", "1/4294967296", " 1/4"] {
            assert_eq!(text.parse::<Shard>(), Err(NoShard), "{text}");
        }
    }
}
