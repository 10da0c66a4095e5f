//! Properties of an entry besides kind, size, mode and time, for copies that keep them.

use super::EntryId;
use crate::field::{Fields, Malformed, put_counted};
use crate::path_rules::MAX_PATH;

/// Most bytes of the extended attributes of one entry, names included. Linux permits 64 KiB for one value (xattr(7)).
pub const MAX_ATTRIBUTES: usize = 64 << 10;
/// Longest name of an attribute in bytes (`XATTR_NAME_MAX`, xattr(7)).
const MAX_NAME: usize = 255;
/// Longest name of a user or group: that of `useradd`(8) several times.
const MAX_OWNER: usize = 255;

const OWNER: u8 = 1;
const LINK_TARGET: u8 = 2;
const FIRST_NAME: u8 = 4;
const HAS_LINKS: u8 = 8;
const ATTRIBUTES: u8 = 16;
const IS_SPARSE: u8 = 32;

/// Further properties of an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    /// User and group.
    pub owner: Option<Owner>,
    /// The target of a symbolic link, as it stands there. Empty for other entries.
    pub link_target: Vec<u8>,
    /// The entry of which this one is a further name.
    pub first_name: Option<EntryId>,
    /// Whether further names of this file may follow.
    pub has_links: bool,
    /// Whether the file has holes, so that it needs less space than its size.
    pub is_sparse: bool,
    /// Extended attributes and access control lists.
    pub attributes: Vec<Attribute>,
}

/// The owner of an entry, by numbers and by names. A name is empty if the sender does not know it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// The user's number.
    pub uid: u32,
    /// The group's number.
    pub gid: u32,
    /// The user's name.
    pub user: Vec<u8>,
    /// The group's name.
    pub group: Vec<u8>,
}

/// An extended attribute.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attribute {
    /// The name with its name space, for instance `user.comment`.
    pub name: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
}

impl Owner {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.uid.to_be_bytes());
        out.extend_from_slice(&self.gid.to_be_bytes());
        put_short(out, &self.user);
        put_short(out, &self.group);
    }

    pub(crate) fn decode(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        let (uid, gid) = (fields.u32()?, fields.u32()?);
        Ok(Self { uid, gid, user: short(fields)?, group: short(fields)? })
    }
}

impl Properties {
    /// Bytes of memory that they take, roughly.
    pub(super) fn weight(&self) -> usize {
        let owner = self.owner.as_ref().map_or(0, |owner| owner.user.len() + owner.group.len());
        let of = |attribute: &Attribute| size_of::<Attribute>() + attribute.name.len() + attribute.value.len();
        size_of::<Self>() + owner + self.link_target.len() + self.attributes.iter().map(of).sum::<usize>()
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let flags = [
            (OWNER, self.owner.is_some()),
            (LINK_TARGET, !self.link_target.is_empty()),
            (FIRST_NAME, self.first_name.is_some()),
            (HAS_LINKS, self.has_links),
            (IS_SPARSE, self.is_sparse),
            (ATTRIBUTES, !self.attributes.is_empty()),
        ];
        out.push(flags.iter().filter(|(_, set)| *set).fold(0, |all, (flag, _)| all | flag));
        if let Some(owner) = &self.owner {
            owner.encode(out);
        }
        if !self.link_target.is_empty() {
            let target = &self.link_target[..self.link_target.len().min(MAX_PATH)];
            put_counted(out, target);
        }
        if let Some(EntryId(id)) = self.first_name {
            out.extend_from_slice(&id.to_be_bytes());
        }
        if !self.attributes.is_empty() {
            out.extend_from_slice(&u16::try_from(self.attributes.len()).expect("MAX_ATTRIBUTES").to_be_bytes());
            for Attribute { name, value } in &self.attributes {
                put_short(out, name);
                out.extend_from_slice(&u32::try_from(value.len()).expect("MAX_ATTRIBUTES").to_be_bytes());
                out.extend_from_slice(value);
            }
        }
    }

    pub(super) fn decode(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        let flags = fields.u8()?;
        let has = |flag| flags & flag != 0;
        let mut properties = Self { has_links: has(HAS_LINKS), is_sparse: has(IS_SPARSE), ..Self::default() };
        if has(OWNER) {
            properties.owner = Some(Owner::decode(fields)?);
        }
        if has(LINK_TARGET) {
            let length = usize::from(fields.u16()?);
            let target = fields.bytes(length)?;
            if length > MAX_PATH || target.contains(&0) {
                return Err(Malformed::Value("target of a link"));
            }
            properties.link_target = target.to_vec();
        }
        if has(FIRST_NAME) {
            properties.first_name = Some(EntryId(fields.u64()?));
        }
        if has(ATTRIBUTES) {
            let mut total = 0;
            for _ in 0..fields.u16()? {
                let name = short(fields)?;
                let length = usize::try_from(fields.u32()?).unwrap_or(usize::MAX);
                let value = fields.bytes(length)?.to_vec();
                total += name.len() + value.len();
                if total > MAX_ATTRIBUTES || name.is_empty() || name.contains(&0) {
                    return Err(Malformed::Value("extended attribute"));
                }
                properties.attributes.push(Attribute { name, value });
            }
        }
        Ok(properties)
    }
}

/// Bytes with their length in one byte.
fn put_short(out: &mut Vec<u8>, bytes: &[u8]) {
    const { assert!(MAX_NAME <= u8::MAX as usize && MAX_OWNER <= u8::MAX as usize) };
    let bytes = &bytes[..bytes.len().min(usize::from(u8::MAX))];
    out.push(u8::try_from(bytes.len()).expect("cut"));
    out.extend_from_slice(bytes);
}

fn short(fields: &mut Fields<'_>) -> Result<Vec<u8>, Malformed> {
    let length = usize::from(fields.u8()?);
    Ok(fields.bytes(length)?.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_arrive_as_they_were_sent() {
        let all = Properties {
            owner: Some(Owner { uid: 1000, gid: 4, user: b"me".to_vec(), group: Vec::new() }),
            link_target: b"../there".to_vec(),
            first_name: Some(EntryId(7)),
            has_links: true,
            is_sparse: true,
            attributes: vec![Attribute { name: b"user.a".to_vec(), value: vec![0; 3000] }],
        };
        for properties in [all, Properties::default()] {
            let mut bytes = Vec::new();
            properties.encode(&mut bytes);
            let mut fields = Fields::new(&bytes);
            assert_eq!(Properties::decode(&mut fields), Ok(properties));
            assert_eq!(fields.end(), Ok(()));
        }
    }

    #[test]
    fn attributes_beyond_their_limit_and_names_that_end_a_string_are_refused() {
        let of = |name: &[u8], len| {
            let attributes = vec![Attribute { name: name.to_vec(), value: vec![0; len] }];
            let mut bytes = Vec::new();
            Properties { attributes, ..Properties::default() }.encode(&mut bytes);
            Properties::decode(&mut Fields::new(&bytes)).is_ok()
        };
        assert!(of(b"user.a", MAX_ATTRIBUTES - 6));
        assert!(!of(b"user.a", MAX_ATTRIBUTES - 5) && !of(b"", 1) && !of(b"user.\0", 1));
    }
}
