//! Access control lists as the kernel has them in attributes (acl(5)), and the names of the users and groups in them.
//!
//! ```text
//! list     version u32 = 2, then entries, little-endian
//! entry    tag u16, permissions u16, number u32
//! names    kind u8 (0 user, 1 group), number u32 big-endian, length u8, name; one for each number with a name
//! ```
//!
//! Names travel in an attribute beside the lists. A receiver that does not know it keeps the numbers.

use std::collections::BTreeMap;

use farhaul_session::{Attribute, MAX_ATTRIBUTES};

use super::owners::{OwnerIds, OwnerNames};

/// Access control lists are attributes with these names.
pub(super) const ACLS: [&[u8]; 2] = [b"system.posix_acl_access", b"system.posix_acl_default"];
/// The attribute that carries names. No file system has it.
const NAMES: &[u8] = b"farhaul.acl_names";
/// The version of lists in attributes (`POSIX_ACL_XATTR_VERSION`).
const VERSION: u32 = 2;
/// Tags of entries of one user and of one group (`ACL_USER`, `ACL_GROUP`). Other entries have no number.
const USER: u16 = 0x02;
const GROUP: u16 = 0x08;
/// First bytes of names.
const NAME_OF_USER: u8 = 0;
const NAME_OF_GROUP: u8 = 1;

/// An access control list.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AccessControlList(Vec<AclEntry>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AclEntry {
    tag: u16,
    permissions: u16,
    id: u32,
}

/// Names of users and groups by their numbers on the sender's host.
#[derive(Debug, Default, PartialEq, Eq)]
struct AclNames {
    users: BTreeMap<u32, Vec<u8>>,
    groups: BTreeMap<u32, Vec<u8>>,
}

/// Adds the names for the lists among these attributes, as far as this host knows them and as they fit.
pub(super) fn add_names(attributes: &mut Vec<Attribute>, owners: &mut OwnerNames) {
    let mut names = AclNames::default();
    for attribute in attributes.iter().filter(|attribute| ACLS.contains(&&*attribute.name)) {
        for entry in AccessControlList::parse(&attribute.value).iter().flat_map(|list| &list.0) {
            match entry.tag {
                USER => drop(names.users.entry(entry.id).or_insert_with(|| owners.user(entry.id))),
                GROUP => drop(names.groups.entry(entry.id).or_insert_with(|| owners.group(entry.id))),
                _ => {}
            }
        }
    }
    let value = names.to_bytes();
    let len = |attribute: &Attribute| attribute.name.len() + attribute.value.len();
    let total = attributes.iter().map(len).sum::<usize>() + NAMES.len() + value.len();
    if !value.is_empty() && total <= MAX_ATTRIBUTES {
        attributes.push(Attribute { name: NAMES.to_vec(), value });
    }
}

/// These attributes of a peer with the numbers of this host in their lists.
pub(super) fn localized(attributes: &[Attribute], owners: &mut OwnerIds) -> Vec<Attribute> {
    let names = attributes.iter().find(|attribute| attribute.name == NAMES);
    let names = names.map(|attribute| AclNames::parse(&attribute.value)).unwrap_or_default();
    let here = |attribute: &Attribute| {
        let list = AccessControlList::parse(&attribute.value).filter(|_| ACLS.contains(&&*attribute.name));
        let value = list.map_or_else(|| attribute.value.clone(), |list| list.localized(&names, owners).to_bytes());
        Attribute { name: attribute.name.clone(), value }
    };
    attributes.iter().filter(|attribute| attribute.name != NAMES).map(here).collect()
}

impl AccessControlList {
    /// `None` for anything else than a list of this version.
    fn parse(value: &[u8]) -> Option<Self> {
        let (version, rest) = value.split_first_chunk()?;
        let (entries, []) = rest.as_chunks::<8>() else { return None };
        let entry = |&[a, b, c, d, id @ ..]: &[u8; 8]| AclEntry {
            tag: u16::from_le_bytes([a, b]),
            permissions: u16::from_le_bytes([c, d]),
            id: u32::from_le_bytes(id),
        };
        (u32::from_le_bytes(*version) == VERSION).then(|| Self(entries.iter().map(entry).collect()))
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = VERSION.to_le_bytes().to_vec();
        for AclEntry { tag, permissions, id } in &self.0 {
            bytes.extend_from_slice(&tag.to_le_bytes());
            bytes.extend_from_slice(&permissions.to_le_bytes());
            bytes.extend_from_slice(&id.to_le_bytes());
        }
        bytes
    }

    /// The list with the numbers of this host, in the order of tags and numbers as tools write it. Of two entries that are for
    /// one user or group here, the rights that both give are left.
    fn localized(mut self, names: &AclNames, owners: &mut OwnerIds) -> Self {
        let before = self.clone();
        for entry in &mut self.0 {
            entry.id = match entry.tag {
                USER => owners.user(entry.id, names.users.get(&entry.id).map_or(&[][..], Vec::as_slice)),
                GROUP => owners.group(entry.id, names.groups.get(&entry.id).map_or(&[][..], Vec::as_slice)),
                _ => entry.id,
            };
        }
        if self == before {
            return self;
        }
        self.0.sort_by_key(|entry| (entry.tag, entry.id));
        self.0.dedup_by(|next, entry| {
            let is_same = matches!(entry.tag, USER | GROUP) && (next.tag, next.id) == (entry.tag, entry.id);
            if is_same {
                entry.permissions &= next.permissions;
            }
            is_same
        });
        self
    }
}

impl AclNames {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let kinds = [(NAME_OF_USER, &self.users), (NAME_OF_GROUP, &self.groups)];
        for (kind, (id, name)) in kinds.into_iter().flat_map(|(kind, all)| all.iter().map(move |name| (kind, name))) {
            let Ok(len @ 1..) = u8::try_from(name.len()) else { continue };
            bytes.push(kind);
            bytes.extend_from_slice(&id.to_be_bytes());
            bytes.push(len);
            bytes.extend_from_slice(name);
        }
        bytes
    }

    /// The names up to the first malformed one.
    fn parse(mut value: &[u8]) -> Self {
        let mut names = Self::default();
        while let Some((&[kind, a, b, c, d, len], rest)) = value.split_first_chunk() {
            let Some((name, rest)) = rest.split_at_checked(usize::from(len)) else { break };
            let all = match kind {
                NAME_OF_USER => &mut names.users,
                NAME_OF_GROUP => &mut names.groups,
                _ => break,
            };
            all.insert(u32::from_be_bytes([a, b, c, d]), name.to_vec());
            value = rest;
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// No number: entries of the owner, the mask and everybody.
    const NOBODY: u32 = u32::MAX;

    /// A user whom every host has.
    fn nobody() -> u32 {
        uzers::get_user_by_name("nobody").expect("every system has this user").uid()
    }

    fn list(entries: &[(u16, u16, u32)]) -> AccessControlList {
        AccessControlList(entries.iter().map(|&(tag, permissions, id)| AclEntry { tag, permissions, id }).collect())
    }

    fn access(value: Vec<u8>) -> Attribute {
        Attribute { name: ACLS[0].to_vec(), value }
    }

    /// Sent from a host with these names, as set on this one.
    fn arrived(sent: &AccessControlList, users: &[(u32, &str)], groups: &[(u32, &str)]) -> AccessControlList {
        let all = |names: &[(u32, &str)]| names.iter().map(|&(id, name)| (id, name.into())).collect();
        let names = AclNames { users: all(users), groups: all(groups) };
        let attributes = [access(sent.to_bytes()), Attribute { name: NAMES.to_vec(), value: names.to_bytes() }];
        let here = localized(&attributes, &mut OwnerIds::default());
        assert_eq!((here.len(), &here[0].name[..]), (1, ACLS[0]), "names are no attribute of the file");
        AccessControlList::parse(&here[0].value).unwrap()
    }

    #[test]
    fn entries_get_the_numbers_that_their_names_have_here() {
        let sent = list(&[
            (1, 6, NOBODY),
            (USER, 4, 70_001),
            (USER, 6, 70_002),
            (4, 4, NOBODY),
            (GROUP, 7, 70_001),
            (32, 0, NOBODY),
        ]);
        let here = arrived(&sent, &[(70_001, "nobody"), (70_002, "nobody-has-this-name")], &[(70_001, "root")]);
        assert_eq!(
            here,
            list(&[
                (1, 6, NOBODY),
                (USER, 4, nobody()),
                (USER, 6, 70_002),
                (4, 4, NOBODY),
                (GROUP, 7, 0),
                (32, 0, NOBODY)
            ])
        );
        assert_eq!(arrived(&sent, &[], &[]), sent, "numbers without names stay");
    }

    #[test]
    fn two_entries_for_one_user_here_leave_the_rights_of_both() {
        let here =
            arrived(&list(&[(USER, 6, nobody()), (USER, 5, 70_001)]), &[(nobody(), "nobody"), (70_001, "nobody")], &[]);
        assert_eq!(here, list(&[(USER, 4, nobody())]));
    }

    #[test]
    fn a_sender_adds_the_names_that_it_knows() {
        let sent = list(&[(USER, 6, nobody()), (USER, 6, 4_000_000_123), (GROUP, 4, 0)]);
        let mut attributes = vec![Attribute { name: b"user.a".to_vec(), value: vec![1] }, access(sent.to_bytes())];
        add_names(&mut attributes, &mut OwnerNames::default());
        let names = AclNames::parse(&attributes[2].value);
        assert_eq!(names.users, [(nobody(), b"nobody".to_vec())].into());
        assert_eq!(names.groups, [(0, b"root".to_vec())].into());
        let mut without = vec![access(list(&[(1, 6, NOBODY)]).to_bytes())];
        add_names(&mut without, &mut OwnerNames::default());
        assert_eq!(without.len(), 1);
    }

    proptest! {
        #[test]
        fn a_value_is_a_list_or_stays_as_it_is(
            value in prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..60),
                proptest::collection::vec(any::<[u8; 8]>(), 0..9).prop_map(|all| [&[2, 0, 0, 0], all.concat().as_slice()].concat()),
            ],
            names in proptest::collection::vec(0u8..6, 0..60),
        ) {
            if let Some(list) = AccessControlList::parse(&value) {
                prop_assert_eq!(list.to_bytes(), value.clone());
            }
            let parsed = AclNames::parse(&names);
            prop_assert!(parsed.to_bytes().len() <= names.len());
            prop_assert_eq!(AclNames::parse(&parsed.to_bytes()).to_bytes(), parsed.to_bytes());
            let attributes = [access(value.clone()), Attribute { name: NAMES.to_vec(), value: names }];
            let here = localized(&attributes, &mut OwnerIds::default());
            prop_assert!(here[0].value.len() <= value.len());
            let mut named = here;
            add_names(&mut named, &mut OwnerNames::default());
        }
    }
}
