//! The rules of a copy: what is kept, what is skipped, what is removed.

use farhaul_units::Duration;

use crate::field::{Fields, Malformed, numbered};
use crate::shard::Shard;

/// Longest filter in bytes: a pattern as long as a path, and its sign.
const MAX_FILTER: usize = 4096 + 1;

/// What a copy keeps, skips and removes. The connecting side sends them with its request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Properties of entries that the copy keeps besides content, time and the permissions of new files.
    pub keep: Kept,
    /// Files that are not sent, because the target has them.
    pub skip: Skip,
    /// Whether entries of target directories that the source lacks are removed, and at most how many of them.
    pub delete: Option<u64>,
    /// Whether the entries at the root are all of a directory, so that a removal reaches the root too.
    pub whole: bool,
    /// Whether nothing is changed, only reported.
    pub dry_run: bool,
    /// Whether the receiver reads each file again from its disk before it confirms it.
    pub verify_disk: bool,
    /// When the receiver makes files survive a crash.
    pub sync: SyncPolicy,
    /// Whether a file that changes while it is read is accepted as it was read last.
    pub allow_changing: bool,
    /// Whether the receiver waits for space while its disk is full. An older one does not.
    pub wait_for_space: bool,
    /// Times that are no farther apart are taken for the same. An older receiver takes only equal ones.
    pub modify_window: Duration,
    /// Names that take no part in the copy, as lines of a .gitignore file. A removal spares them.
    pub filters: Vec<Vec<u8>>,
    /// The part of the files that the sender sends. Senders that do not know of parts would send everything, so they get rules that
    /// they refuse.
    pub shard: Option<Shard>,
}

/// Properties that a copy keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The permission bits exactly, also of entries that exist, without the umask.
    pub permissions: bool,
    /// Set-user-id, set-group-id and sticky bits.
    pub special_bits: bool,
    /// User and group, where the receiver is allowed to set them.
    pub owners: bool,
    /// Their numbers instead of their names.
    pub numeric_ids: bool,
    /// Symbolic links as such.
    pub symlinks: bool,
    /// Several names of one file.
    pub hard_links: bool,
    /// Extended attributes of users, and as root those of the system's security.
    pub attributes: bool,
    /// Access control lists.
    pub acls: bool,
}

impl Kept {
    /// Everything, with the names of owners.
    pub const ALL: Self = Self {
        permissions: true,
        special_bits: true,
        owners: true,
        numeric_ids: false,
        symlinks: true,
        hard_links: true,
        attributes: true,
        acls: true,
    };

    const fn bits(self) -> [bool; 8] {
        [
            self.permissions,
            self.special_bits,
            self.owners,
            self.numeric_ids,
            self.symlinks,
            self.hard_links,
            self.attributes,
            self.acls,
        ]
    }
}

/// Which files the target is taken to have already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Skip {
    /// Those of the same size and time.
    #[default]
    SizeTime = 0,
    /// Those of the same content, which both sides read.
    Digest = 1,
    /// All that exist.
    Exists = 2,
    /// None.
    Never = 3,
}

/// When files are made to survive a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncPolicy {
    /// Before they get their final names.
    #[default]
    File = 0,
    /// The system decides.
    Never = 1,
    /// Also each chunk before it is noted as arrived.
    Chunk = 2,
}

const DRY_RUN: u16 = 1;
const VERIFY_DISK: u16 = 2;
const ALLOW_CHANGING: u16 = 4;
const DELETE: u16 = 8;
const WHOLE: u16 = 16;
const WAIT_FOR_SPACE: u16 = 32;
/// The window of times stands at the end, in ms.
const HAS_WINDOW: u16 = 64;
/// Beside the skip rule: a part of the copy stands at the end.
const HAS_SHARD: u8 = 0x80;

impl Rules {
    /// The rules as they are sent.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        bytes
    }

    /// The rules that were sent as these bytes. Later versions may append to them.
    ///
    /// # Errors
    /// They are none of this version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
        Self::decode(&mut Fields::new(bytes))
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let kept = self.keep.bits().into_iter().rev().fold(0u8, |all, bit| all << 1 | u8::from(bit));
        let flags = [
            (DRY_RUN, self.dry_run),
            (VERIFY_DISK, self.verify_disk),
            (ALLOW_CHANGING, self.allow_changing),
            (DELETE, self.delete.is_some()),
            (WHOLE, self.whole),
            (WAIT_FOR_SPACE, self.wait_for_space),
            (HAS_WINDOW, self.modify_window > Duration::ZERO),
        ];
        let flags = flags.iter().filter(|(_, set)| *set).fold(0, |all, (flag, _)| all | flag);
        out.push(kept);
        out.extend_from_slice(&flags.to_be_bytes());
        out.push(self.skip as u8 | if self.shard.is_some() { HAS_SHARD } else { 0 });
        out.push(self.sync as u8);
        out.extend_from_slice(&self.delete.unwrap_or(0).to_be_bytes());
        out.extend_from_slice(&u16::try_from(self.filters.len()).unwrap_or(u16::MAX).to_be_bytes());
        for filter in self.filters.iter().take(usize::from(u16::MAX)) {
            let filter = &filter[..filter.len().min(MAX_FILTER)];
            out.extend_from_slice(&u16::try_from(filter.len()).expect("cut to MAX_FILTER").to_be_bytes());
            out.extend_from_slice(filter);
        }
        if let Some(shard) = self.shard {
            shard.encode(out);
        }
        if self.modify_window > Duration::ZERO {
            let millis = u32::try_from(self.modify_window.as_millis()).unwrap_or(u32::MAX);
            out.extend_from_slice(&millis.to_be_bytes());
        }
    }

    pub(crate) fn decode(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        let kept = fields.u8()?;
        let bit = |index: u8| kept & 1 << index != 0;
        let keep = Kept {
            permissions: bit(0),
            special_bits: bit(1),
            owners: bit(2),
            numeric_ids: bit(3),
            symlinks: bit(4),
            hard_links: bit(5),
            attributes: bit(6),
            acls: bit(7),
        };
        let flags = fields.u16()?;
        let skip = fields.u8()?;
        let has_shard = skip & HAS_SHARD != 0;
        let skips = [Skip::SizeTime, Skip::Digest, Skip::Exists, Skip::Never];
        let skip = numbered(&skips, skip & !HAS_SHARD, "skip rule")?;
        let sync = numbered(&[SyncPolicy::File, SyncPolicy::Never, SyncPolicy::Chunk], fields.u8()?, "sync rule")?;
        let most = fields.u64()?;
        let mut filters = Vec::new();
        for _ in 0..fields.u16()? {
            let length = usize::from(fields.u16()?);
            if length > MAX_FILTER {
                return Err(Malformed::Value("length of a filter"));
            }
            filters.push(fields.bytes(length)?.to_vec());
        }
        let shard = if has_shard { Some(Shard::decode(fields)?) } else { None };
        let millis = if flags & HAS_WINDOW == 0 { 0 } else { fields.u32()? };
        Ok(Self {
            keep,
            skip,
            delete: (flags & DELETE != 0).then_some(most),
            whole: flags & WHOLE != 0,
            dry_run: flags & DRY_RUN != 0,
            verify_disk: flags & VERIFY_DISK != 0,
            sync,
            allow_changing: flags & ALLOW_CHANGING != 0,
            wait_for_space: flags & WAIT_FOR_SPACE != 0,
            modify_window: Duration::from_millis(millis.into()),
            filters,
            shard,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_arrive_as_they_were_sent() {
        let all = Rules {
            keep: Kept { numeric_ids: true, ..Kept::ALL },
            skip: Skip::Exists,
            delete: Some(7),
            whole: true,
            dry_run: true,
            verify_disk: true,
            sync: SyncPolicy::Chunk,
            allow_changing: true,
            wait_for_space: true,
            modify_window: Duration::from_millis(2_000),
            filters: vec![b"*.o".to_vec(), b"!keep.o".to_vec()],
            shard: Shard::new(3, 8).ok(),
        };
        for rules in [Rules::default(), all, Rules { skip: Skip::Digest, sync: SyncPolicy::Never, ..Rules::default() }]
        {
            let mut bytes = Vec::new();
            rules.encode(&mut bytes);
            assert_eq!(Rules::decode(&mut Fields::new(&bytes)), Ok(rules));
        }
    }

    #[test]
    fn unknown_rules_are_refused() {
        let mut bytes = Vec::new();
        Rules::default().encode(&mut bytes);
        for at in [3, 4] {
            let mut bytes = bytes.clone();
            bytes[at] = 9;
            assert!(Rules::decode(&mut Fields::new(&bytes)).is_err());
        }
    }
}
