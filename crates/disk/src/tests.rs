//! Copies between real directories, driven as in a session.

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::thread;

use farhaul_session::{
    Chunk, Commit, Digest, Ending, Entry, EntryId, EntryKind, FailCode, Failure, Leftover, Mtime, Next, RelPath,
    Source, Stamp, Store,
};
use rustix::process::geteuid;
use rustix::thread::{Gid, Uid, set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use super::*;

mod acls;
mod breaks;
mod by_names;
mod changes;
mod commits;
mod compared;
mod depth;
mod folding;
mod modes;
mod patterns;
mod shards;
mod space;
mod targets;

/// A directory that is removed with its content.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("farhaul-disk-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.join(below)
    }

    fn write(&self, below: &str, content: &[u8]) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The user and group of the tests that need an ordinary user: `nobody`, as most systems number it.
const NOBODY: u32 = 65_534;

/// Runs a test with the rights of the test process. If these are root's, runs it again as an ordinary user. The kernel
/// keeps rights per thread, and a store's threads inherit them.
fn as_root_and_as_ordinary_user(test: impl Fn() + Send + Sync) {
    test();
    if geteuid().is_root() {
        let (group, user) = (Gid::from_raw(NOBODY), Uid::from_raw(NOBODY));
        let renounce = || {
            set_thread_groups(&[])?;
            set_thread_res_gid(group, group, group)?;
            set_thread_res_uid(user, user, user)
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                renounce().unwrap();
                test();
            });
        });
    }
}

/// Size of a file that is not kept in memory.
const LARGE: u64 = 100_000;

fn rel(path: &str) -> RelPath {
    RelPath::parse(path.as_bytes()).unwrap()
}

fn file(path: &str, size: u64) -> Entry {
    let mtime = Mtime { seconds: 1_000_000_000, nanos: 123_456_789 };
    Entry::new(rel(path), EntryKind::File, size, 0o640, mtime)
}

fn directory(path: &str) -> Entry {
    Entry { kind: EntryKind::Directory, mode: 0o755, ..file(path, 0) }
}

/// Examines the place of a file and begins it, as a session does.
fn begin_file(store: &mut DiskStore, id: EntryId, entry: &Entry) -> Result<(), Failure> {
    store.examine(id, entry)?;
    store.begin(id, entry)
}

/// Sends all entries of `source` to `store`, and returns the skipped ones.
fn copy(source: &mut DiskSource, store: &mut DiskStore) -> Vec<(String, FailCode)> {
    let (mut skipped, mut open): (_, Vec<(EntryId, Entry)>) = (Vec::new(), Vec::new());
    for id in (0..).map(EntryId) {
        let next = loop {
            match source.next_entry(id) {
                Next::Skipped(path, failure) => skipped.push((path.to_string(), failure.code)),
                next => break next,
            }
        };
        let entry = match next {
            Next::Entry(entry) => Some(entry),
            _ => None,
        };
        let inside = |dir: &Entry| {
            entry.as_ref().is_some_and(|entry| entry.path.components().starts_with(dir.path.components()))
        };
        while open.last().is_some_and(|(_, dir)| !inside(dir)) {
            let (id, dir) = open.pop().unwrap();
            assert_eq!(store.finish_dir(id, &dir), Ok(Commit::Pending));
        }
        let Some(entry) = entry else {
            assert_eq!(failures(store), []);
            return skipped;
        };
        if entry.kind == EntryKind::Directory {
            store.make_dir(id, &entry).unwrap();
            open.push((id, entry));
            continue;
        }
        let Stamp { size, mtime } = match source.open(id) {
            Ok(stamp) => stamp,
            Err(failure) => {
                skipped.push((entry.path.to_string(), failure.code));
                continue;
            }
        };
        let entry = Entry { size, mtime, ..entry };
        // If the size is unknown, stores are told zero.
        let announced = Entry { size: if entry.has_size() { entry.size } else { 0 }, ..entry.clone() };
        begin_file(store, id, &announced).unwrap();
        let (mut content, mut block) = (Vec::new(), [0; 1000]);
        while let Chunk::Data(len) = source.read(id, content.len() as u64, &mut block).unwrap() {
            store.write(id, content.len() as u64, &block[..len]).unwrap();
            content.extend_from_slice(&block[..len]);
        }
        let size = content.len() as u64;
        assert_eq!(source.recheck(id), Ok(Stamp { size, mtime: entry.mtime }));
        assert!(!entry.has_size() || entry.size == size, "{entry:?}");
        source.close(id);
        assert_eq!(store.commit(id, &entry, &Digest::of(&content)), Ok(Commit::Pending));
    }
    skipped
}

/// Waits for running commits, and returns the failed ones.
fn failures(store: &mut DiskStore) -> Vec<(EntryId, FailCode)> {
    store.finish_commits();
    let outcomes = std::iter::from_fn(|| store.poll_committed());
    outcomes.filter_map(|(id, outcome)| Some((id, outcome.err()?.code))).collect()
}

/// Every path below with its content, directories and links included.
fn tree(root: &Path) -> Vec<(PathBuf, String)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(root).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let kind = entry.file_type().unwrap();
        let content = match () {
            () if kind.is_dir() => "dir".into(),
            () if kind.is_symlink() => "link".into(),
            () => String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned(),
        };
        all.push((path.strip_prefix(root).unwrap().to_owned(), content));
        if kind.is_dir() {
            all.extend(
                tree(&path).into_iter().map(|(below, content)| (path.strip_prefix(root).unwrap().join(below), content)),
            );
        }
    }
    all.sort();
    all
}

#[test]
fn a_tree_arrives_with_its_bytes_modes_and_times() {
    let (from, to) = (Scratch::new("tree-from"), Scratch::new("tree-to"));
    from.write("t/b/deep/file", &[b'x'; 5_000]);
    from.write("t/a", b"first");
    from.write("t/b.empty", b"");
    fs::set_permissions(from.path("t/a"), fs::Permissions::from_mode(0o600)).unwrap();
    let mut source = DiskSource::new(&[from.path("t")], true).unwrap();
    let mut store = DiskStore::at(&to.0, true).unwrap();
    assert_eq!(copy(&mut source, &mut store), []);
    assert_eq!(tree(&from.0), tree(&to.0));
    let modified = |path: PathBuf| fs::metadata(path).unwrap().modified().unwrap();
    for path in ["t", "t/a", "t/b", "t/b/deep", "t/b/deep/file"] {
        assert_eq!(modified(from.path(path)), modified(to.path(path)), "{path}");
    }
    assert_eq!(fs::metadata(to.path("t/a")).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn links_and_pipes_are_skipped_and_never_followed() {
    let (from, to) = (Scratch::new("links-from"), Scratch::new("links-to"));
    from.write("secret", b"outside");
    from.write("t/file", b"inside");
    symlink("../secret", from.path("t/link")).unwrap();
    symlink("..", from.path("t/up")).unwrap();
    let mut source = DiskSource::new(&[from.path("t")], true).unwrap();
    let mut store = DiskStore::at(&to.0, true).unwrap();
    let special = FailCode::SpecialFile;
    assert_eq!(copy(&mut source, &mut store), [("t/link".into(), special), ("t/up".into(), special)]);
    assert_eq!(tree(&to.0), [("t".into(), "dir".into()), ("t/file".into(), "inside".into())]);
}

#[test]
fn a_link_to_a_directory_is_followed_with_a_slash_behind_it_too() {
    let from = Scratch::new("slash-from");
    from.write("real/file", b"content");
    symlink("real", from.path("alias")).unwrap();
    for (index, ending) in ["alias", "alias/", "alias//"].iter().enumerate() {
        let to = Scratch::new(&format!("slash-to-{index}"));
        let mut source = DiskSource::new(&[from.path(ending)], true).unwrap();
        copy(&mut source, &mut DiskStore::at(&to.0, true).unwrap());
        assert_eq!(tree(&to.0), [("alias".into(), "dir".into()), ("alias/file".into(), "content".into())], "{ending}");
    }
}

/// As of `cp -r`, `scp -r` and `rsync -r`.
#[test]
fn a_path_that_ends_in_a_dot_brings_the_content_and_one_that_ends_in_a_slash_the_directory() {
    let from = Scratch::new("dot-from");
    from.write("d/deep/file", b"1");
    from.write("d/.hidden", b"2");
    from.write("e/other", b"3");
    symlink("d", from.path("alias")).unwrap();
    let names = |to: &Scratch| -> Vec<_> {
        tree(&to.0).into_iter().map(|(path, _)| path.to_str().unwrap().to_owned()).collect()
    };
    let (whole, content) = (["d", "d/.hidden", "d/deep", "d/deep/file"], [".hidden", "deep", "deep/file"]);
    for (ending, expected) in [
        ("d", &whole[..]),
        ("d/", &whole),
        ("d/.", &content),
        ("d/./", &content),
        ("alias/.", &content),
        ("e/../d/.", &content),
    ] {
        let to = Scratch::new("dot-to");
        let mut source = DiskSource::new(&[from.path(ending)], true).unwrap();
        assert_eq!(copy(&mut source, &mut DiskStore::at(&to.0, true).unwrap()), []);
        assert_eq!(names(&to), expected, "{ending}");
    }
    // A pattern stands for directories then.
    let to = Scratch::new("dot-pattern");
    let selection = Selection::named(&[from.path("?/.")], Wording::Patterns, true).unwrap();
    copy(&mut DiskSource::of(selection), &mut DiskStore::at(&to.0, true).unwrap());
    assert_eq!(names(&to), [".hidden", "deep", "deep/file", "other"]);
    assert!(Selection::named(&[from.path("x*/.")], Wording::Patterns, true).is_err());
}

#[test]
fn the_content_of_a_directory_is_sent_for_recursive_requests_alone() {
    let from = Scratch::new("content");
    from.write("d/secret", b"1");
    from.write("file", b"2");
    let root = Directory::open(&from.path("d")).unwrap();
    let named = DiskSource::new(&[from.path("d/."), from.path("file")], false).unwrap();
    for (mut source, shown) in [
        (named, from.path("d/.").to_str().unwrap()),
        (DiskSource::beneath(&root, &[RelPath::root()], false).unwrap(), "."),
    ] {
        let Next::Skipped(path, failure) = source.next_entry(EntryId(0)) else { panic!("{shown} is no file") };
        assert_eq!((path.to_string().as_str(), failure.code), (shown, FailCode::IsDirectory));
        match source.next_entry(EntryId(0)) {
            Next::Entry(entry) => assert_eq!(entry.path, rel("file"), "the others are sent"),
            next => assert_eq!((next, shown), (Next::End, ".")),
        }
    }
    assert!(DiskSource::new(&[from.path("missing/.")], false).is_err());
}

#[test]
fn a_link_that_the_user_names_is_followed_and_keeps_its_name() {
    let (from, to) = (Scratch::new("named-from"), Scratch::new("named-to"));
    from.write("real", b"content");
    symlink("real", from.path("alias")).unwrap();
    let mut source = DiskSource::new(&[from.path("alias")], false).unwrap();
    copy(&mut source, &mut DiskStore::at(&to.0, true).unwrap());
    assert_eq!(tree(&to.0), [("alias".into(), "content".into())]);
}

#[test]
fn a_link_planted_at_the_target_leads_nowhere() {
    let (to, outside) = (Scratch::new("plant-to"), Scratch::new("plant-out"));
    symlink(&outside.0, to.path("dir")).unwrap();
    outside.write("victim", b"untouched");
    symlink(outside.path("victim"), to.path("file")).unwrap();
    let mut store = DiskStore::at(&to.0, true).unwrap();
    assert_eq!(store.make_dir(EntryId(0), &directory("dir")).unwrap_err().code, FailCode::Exists);
    assert_eq!(begin_file(&mut store, EntryId(1), &file("dir/x", 1)).unwrap_err().code, FailCode::ParentFailed);
    assert_eq!(begin_file(&mut store, EntryId(2), &file("file", 3)).unwrap_err().code, FailCode::Exists);
    assert_eq!(tree(&outside.0), [("victim".into(), "untouched".into())]);
    assert_eq!(tree(&to.0), [("dir".into(), "link".into()), ("file".into(), "link".into())]);
    let root = Directory::open(&to.0).unwrap();
    assert!(root.descend(&rel("dir")).is_err(), "nor does a path that a peer asks for");
    assert!(DiskSource::beneath(&root, &[rel("dir/victim")], true).is_err());
}

#[test]
fn a_directory_swapped_for_a_link_while_files_arrive_changes_nothing() {
    let (to, outside) = (Scratch::new("swap-to"), Scratch::new("swap-out"));
    let mut store = DiskStore::at(&to.0, true).unwrap();
    store.make_dir(EntryId(0), &directory("dir")).unwrap();
    fs::rename(to.path("dir"), to.path("moved")).unwrap();
    symlink(&outside.0, to.path("dir")).unwrap();
    begin_file(&mut store, EntryId(1), &file("dir/x", 0)).unwrap();
    store.commit(EntryId(1), &file("dir/x", 0), &Digest::of(b"")).unwrap();
    assert_eq!(failures(&mut store), []);
    assert_eq!(tree(&outside.0), []);
    assert!(to.path("moved/x").exists());
}

#[test]
fn a_file_larger_than_the_free_space_is_refused_before_a_byte_is_written() {
    let to = Scratch::new("space");
    let mut store = DiskStore::at(&to.0, true).unwrap();
    let failure = begin_file(&mut store, EntryId(0), &file("file", u64::MAX)).unwrap_err();
    assert_eq!(failure.code, FailCode::NoSpace);
    assert_eq!(tree(&to.0), []);
}

#[test]
fn a_file_system_without_a_size_refuses_with_its_own_reason() {
    let mut store = DiskStore::at(Path::new("/proc"), true).unwrap();
    let failure = begin_file(&mut store, EntryId(0), &file("file", LARGE)).unwrap_err();
    assert_ne!(failure.code, FailCode::NoSpace, "{failure}");
}

#[test]
fn bytes_beyond_four_gibibytes_are_read_and_written_at_their_offset() {
    const FAR: u64 = (4 << 30) + 7;
    let scratch = Scratch::new("large");
    // Sparse: it takes no room.
    let sparse = fs::File::create(scratch.path("from")).unwrap();
    sparse.write_all_at(b"the end", FAR).unwrap();
    let mut source = DiskSource::new(&[scratch.path("from")], false).unwrap();
    let Next::Entry(entry) = source.next_entry(EntryId(0)) else { panic!("it is a file") };
    assert_eq!(entry.size, FAR + 7);
    let mut block = [0; 100];
    assert_eq!(source.open(EntryId(0)), Ok(entry.stamp()));
    assert_eq!(source.read(EntryId(0), 0, &mut block), Ok(Chunk::Zeros(FAR - FAR % 4096)));
    assert_eq!(source.read(EntryId(0), FAR, &mut block), Ok(Chunk::Data(7)));
    let mut store = DiskStore::at(&scratch.path("to"), false).unwrap();
    begin_file(&mut store, EntryId(0), &Entry { size: 0, ..entry.clone() }).unwrap();
    store.write(EntryId(0), FAR, &block[..7]).unwrap();
    assert_eq!(store.commit(EntryId(0), &entry, &Digest::of(b"")), Ok(Commit::Pending));
    assert_eq!(failures(&mut store), []);
    let copied = fs::File::open(scratch.path("to")).unwrap();
    block.fill(0);
    copied.read_exact_at(&mut block[..7], FAR).unwrap();
    assert_eq!((copied.metadata().unwrap().len(), &block[..7]), (FAR + 7, &b"the end"[..]));
}

#[test]
fn a_file_does_not_replace_a_directory_nor_the_reverse() {
    let to = Scratch::new("kinds");
    to.write("dir/file", b"");
    to.write("file", b"");
    let mut store = DiskStore::at(&to.0, true).unwrap();
    assert_eq!(begin_file(&mut store, EntryId(0), &file("dir", 0)).unwrap_err().code, FailCode::Exists);
    assert_eq!(store.make_dir(EntryId(1), &directory("file")).unwrap_err().code, FailCode::Exists);
}

#[test]
fn a_target_that_does_not_exist_becomes_the_name_of_one_entry() {
    let to = Scratch::new("rename");
    let mut store = DiskStore::at(&to.path("new"), false).unwrap();
    store.make_dir(EntryId(0), &directory("old")).unwrap();
    begin_file(&mut store, EntryId(1), &file("old/file", 0)).unwrap();
    store.commit(EntryId(1), &file("old/file", 0), &Digest::of(b"")).unwrap();
    store.finish_dir(EntryId(0), &directory("old")).unwrap();
    assert_eq!(failures(&mut store), []);
    assert_eq!(begin_file(&mut store, EntryId(2), &file("other", 0)).unwrap_err().code, FailCode::Exists);
    assert_eq!(tree(&to.0), [("new".into(), "dir".into()), ("new/file".into(), String::new())]);
    let made = DiskStore::beneath(&Directory::open(&to.0).unwrap(), &rel("new/made"), true);
    assert!(made.is_ok() && to.path("new/made").is_dir());
}

#[test]
fn a_tree_that_is_copied_into_itself_ends_where_its_copy_begins() {
    let scratch = Scratch::new("itself");
    scratch.write("top/a", b"1");
    fs::create_dir_all(scratch.path("top/x/root")).unwrap();
    if Directory::open(&scratch.path("top")).unwrap().made().is_none() {
        eprintln!("skipped: this file system does not tell when a directory was made");
        return;
    }
    let mut source = DiskSource::new(&[scratch.path("top")], true).unwrap();
    source.leave_out_younger_directories();
    let mut store = DiskStore::at(&scratch.path("top/x/root"), false).unwrap();
    assert_eq!(copy(&mut source, &mut store), [("top/x/root/top".into(), FailCode::SourceChanged)]);
    assert_eq!(fs::read(scratch.path("top/x/root/top/a")).unwrap(), b"1");
    assert_eq!(fs::read_dir(scratch.path("top/x/root/top/x/root")).unwrap().count(), 0);
}

#[test]
fn a_source_that_was_replaced_is_noticed() {
    let from = Scratch::new("replaced");
    from.write("file", b"old");
    let mut source = DiskSource::new(&[from.path("file")], false).unwrap();
    assert!(matches!(source.next_entry(EntryId(0)), Next::Entry(_)));
    source.open(EntryId(0)).unwrap();
    from.write("other", b"new");
    fs::rename(from.path("other"), from.path("file")).unwrap();
    assert_eq!(source.recheck(EntryId(0)).unwrap_err().code, FailCode::SourceChanged);
}

#[test]
fn names_ascend_by_bytes_and_two_of_the_same_are_refused() {
    let from = Scratch::new("order");
    for name in ["b", "a", "a.x", "A", "sub/a"] {
        from.write(name, b"");
    }
    let paths = ["b", "a", "a.x", "A"].map(|name| from.path(name));
    let mut source = DiskSource::new(&paths, false).unwrap();
    let mut names = Vec::new();
    while let Next::Entry(entry) = source.next_entry(EntryId(names.len() as u64)) {
        names.push(entry.path.to_string());
        source.close(EntryId(names.len() as u64 - 1));
    }
    assert_eq!(names, ["A", "a", "a.x", "b"]);
    let mut source = DiskSource::new(&[from.path("sub")], false).unwrap();
    let Next::Skipped(_, failure) = source.next_entry(EntryId(0)) else { panic!("directories were not asked for") };
    assert_eq!(failure.code, FailCode::IsDirectory);
    assert!(DiskSource::new(&[from.path("a"), from.path("sub/a")], false).is_err());
}
