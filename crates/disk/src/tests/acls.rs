//! Access control lists with users and groups of another host.

use farhaul_session::{Attribute, Kept, Properties, Rules};
use rustix::fs::{XattrFlags, getxattr, setxattr};

use super::*;

const ACCESS: &str = "system.posix_acl_access";
/// The number of the user nobody on another host.
const THERE: u32 = 70_001;

/// A list with an entry for this user.
fn list(user: u32) -> Vec<u8> {
    let entry = |tag: u16, permissions: u16, id: u32| {
        [&tag.to_le_bytes()[..], &permissions.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    let none = u32::MAX;
    let entries = [entry(1, 6, none), entry(2, 4, user), entry(4, 4, none), entry(16, 4, none), entry(32, 0, none)];
    [&2u32.to_le_bytes()[..], &entries.concat()].concat()
}

/// A list on the disk; `None` if its file system has none.
fn list_of(path: &Path) -> Option<Vec<u8>> {
    let mut value = vec![0; 200];
    let len = getxattr(path, ACCESS, &mut value).ok()?;
    value.truncate(len);
    Some(value)
}

fn rules(numeric_ids: bool) -> Rules {
    Rules { keep: Kept { numeric_ids, ..Kept::ALL }, ..Rules::default() }
}

#[test]
fn users_of_a_list_are_found_by_name_unless_numbers_are_kept() {
    let here = uzers::get_user_by_name("nobody").expect("every system has this user").uid();
    let scratch = Scratch::new("acls");
    scratch.write("from/file", b"new");
    if setxattr(scratch.path("from/file"), ACCESS, &list(here), XattrFlags::empty()).is_err() {
        eprintln!("skipped: this file system has no access control lists");
        return;
    }
    for (numeric, set) in [(false, here), (true, THERE)] {
        let mut source =
            DiskSource::new(&[scratch.path("from/file")], true).unwrap().under_rules(&rules(numeric)).unwrap();
        let Next::Entry(mut sent) = source.next_entry(EntryId(0)) else { panic!("the file is sent") };
        let properties = sent.properties.as_mut().unwrap();
        assert_eq!(properties.attributes.len(), if numeric { 1 } else { 2 }, "names travel beside the list");
        // As the other host would send it.
        let there = |Attribute { name, value }: &Attribute| {
            let value = match value.starts_with(&[0]) {
                true => [&[0], &THERE.to_be_bytes()[..], &value[5..]].concat(),
                false => list(THERE),
            };
            Attribute { name: name.clone(), value }
        };
        let attributes = properties.attributes.iter().map(there).collect();
        **properties = Properties { attributes, ..Properties::default() };
        let to = scratch.path(if numeric { "numbers" } else { "names" });
        let mut store = DiskStore::at(&to, true).unwrap().under_rules(&rules(numeric), true);
        begin_file(&mut store, EntryId(0), &sent).unwrap();
        store.write(EntryId(0), 0, b"new").unwrap();
        store.commit(EntryId(0), &sent, &Digest::of(b"new")).unwrap();
        assert_eq!(failures(&mut store), []);
        assert_eq!(list_of(&to.join("file")), Some(list(set)));
        // Another copy finds nothing to change.
        let mut store = DiskStore::at(&to, true).unwrap().under_rules(&rules(numeric), true);
        let verdict = store.examine(EntryId(0), &sent).unwrap();
        assert_eq!(verdict, farhaul_session::Verdict::Have(farhaul_session::Change::None));
    }
}
