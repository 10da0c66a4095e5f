//! Requests on real directories: what they do, what they leave alone, and what hostile entries cannot make them do.

mod changes;
mod hostile;

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use farhaul_session::{
    Digest, Existing, FailCode, Failure, FileInfo, Files, Finished, ListPage, ListedEntry, MakeDirectory, Move,
    NodeKind, Progressing, Put, Remove, Removing, ServicePath,
};

use super::super::held::HeldDirectories;
use super::*;

/// A root, and a directory beside it that nothing may reach.
struct World {
    base: PathBuf,
    files: DiskFiles<'static, Unguarded>,
}

impl World {
    fn new(test: &str) -> Self {
        let base = std::env::temp_dir().join(format!("farhaul-files-{}-{test}", std::process::id()));
        for folder in ["root", "outside"] {
            fs::create_dir_all(base.join(folder)).unwrap();
        }
        fs::write(base.join("outside/victim"), "untouched").unwrap();
        let root = Arc::new(Directory::open(&base.join("root")).unwrap());
        Self { base, files: DiskFiles::new(Reach::Beneath(root), Unguarded) }
    }

    fn at(&self, below: &str) -> PathBuf {
        self.base.join("root").join(below)
    }

    fn write(&self, below: &str, content: &str) {
        fs::create_dir_all(self.at(below).parent().unwrap()).unwrap();
        fs::write(self.at(below), content).unwrap();
    }

    fn read(&self, below: &str) -> String {
        fs::read_to_string(self.at(below)).unwrap()
    }

    /// Begins a file.
    fn begin(&mut self, name: &str, existing: Existing) -> Result<NewFile<()>, Failure> {
        self.files.create(&Put { place: place(name), size: None, existing, parents: true, mode: 0o666, mtime: None })
    }

    /// Writes a whole file.
    fn put(&mut self, name: &str, existing: Existing, content: &str) -> Result<(), Failure> {
        let mut file = self.begin(name, existing)?;
        self.files.write(&mut file, content.as_bytes())?;
        self.files.commit(file, &Digest::of(content.as_bytes()))
    }

    fn rename(&mut self, from: &str, to: &str, existing: Existing) -> Result<(), Failure> {
        self.files.rename(&moving(from, to, existing))
    }

    /// Removes an entry, and returns how many went.
    fn remove(&mut self, name: &str, removing: Removing) -> Result<u64, Failure> {
        let mut work = self.files.remove(&Remove { place: place(name), removing })?;
        loop {
            if let Progressing::Done(Finished::Removed(count)) = self.files.step(&mut work)? {
                return Ok(count);
            }
        }
    }

    fn copy(&mut self, from: &str, to: &str, existing: Existing) -> Result<u64, Failure> {
        let mut work = self.files.copy(&moving(from, to, existing))?;
        loop {
            if let Progressing::Done(Finished::Copied(written)) = self.files.step(&mut work)? {
                return Ok(written.size);
            }
        }
    }

    fn make(&mut self, name: &str, parents: bool) -> Result<bool, Failure> {
        self.files.make_directory(&MakeDirectory { place: place(name), parents })
    }

    /// All names in a directory, in pages of this many entries.
    fn list(&mut self, name: &str, most: usize) -> Result<Vec<String>, Failure> {
        let (mut names, mut cursor) = (Vec::new(), Vec::new());
        loop {
            let ListPage { entries, next } = self.files.list(&place(name), &RelPath::root(), &cursor, most)?;
            assert!(entries.len() <= most);
            names.extend(entries.iter().map(|entry: &ListedEntry| entry.name.to_string()));
            if next.is_empty() {
                return Ok(names);
            }
            assert!(next > cursor);
            cursor = next;
        }
    }

    /// The names in a directory as the system has them.
    fn names(&self, below: &str) -> Vec<String> {
        let entries = fs::read_dir(self.at(below)).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn victim(&self) -> String {
        fs::read_to_string(self.base.join("outside/victim")).unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.base);
    }
}

fn place(path: &str) -> ServicePath {
    ServicePath::new(path.as_bytes()).unwrap()
}

fn moving(from: &str, to: &str, existing: Existing) -> Move {
    Move { from: place(from), to: place(to), existing, parents: true }
}

fn code<T: std::fmt::Debug>(result: Result<T, Failure>) -> FailCode {
    result.unwrap_err().code
}

#[test]
fn lists_have_all_entries_in_order_and_no_incomplete_files() {
    let mut world = World::new("lists");
    for number in 0..2_500 {
        fs::write(world.at(&format!("{number:04}")), "").unwrap();
    }
    world.write(".hidden", "x");
    world.write(".a.0123456789abcdef.fhpart", "part");
    world.make("dir", false).unwrap();
    symlink("/nowhere", world.at("link")).unwrap();
    let mut expected: Vec<String> = (0..2_500).map(|number| format!("{number:04}")).collect();
    expected.extend([".hidden", "dir", "link"].map(String::from));
    expected.sort();
    for most in [7, 1_000, usize::MAX] {
        assert_eq!(world.list("", most).unwrap(), expected);
    }
    let info = |world: &mut World, name: &str| world.files.stat(&place(name)).unwrap();
    assert_eq!(info(&mut world, "link").target.as_deref(), Some(&b"/nowhere"[..]));
    assert_eq!((info(&mut world, "dir").kind, info(&mut world, ".").kind), (NodeKind::Directory, NodeKind::Directory));
    assert_eq!(
        info(&mut world, "/.hidden"),
        FileInfo { size: 1, ..info(&mut world, ".hidden") },
        "a slash in front is none"
    );
    assert_eq!(code(world.list("0001", 9)), FailCode::NotDirectory);
    assert_eq!(code(world.list("none", 9)), FailCode::NotFound);
}

#[test]
fn a_cursor_survives_what_comes_and_goes() {
    let mut world = World::new("cursor");
    for number in 0..10 {
        fs::write(world.at(&number.to_string()), "").unwrap();
    }
    let first = world.files.list(&place(""), &RelPath::root(), b"", 4).unwrap();
    assert_eq!(first.next, b"3");
    for gone in ["3", "4", "5"] {
        fs::remove_file(world.at(gone)).unwrap();
    }
    fs::write(world.at("0a"), "").unwrap();
    let names = |page: &ListPage| page.entries.iter().map(|entry| entry.name.to_string()).collect::<Vec<_>>();
    // The names that are kept, and those of a server that keeps none.
    for kept in [true, false] {
        let page = world.files.list(&place(""), &RelPath::root(), &first.next, 3).unwrap();
        assert_eq!(names(&page), ["6", "7", "8"]);
        if kept {
            world.files.listing = None;
        }
    }
}

#[test]
fn a_file_is_read_anywhere_and_a_change_is_seen() {
    let mut world = World::new("reads");
    world.write("f", "0123456789");
    let mut open = world.files.open(&place("f")).unwrap();
    let mut out = [0; 4];
    assert_eq!(world.files.read(&mut open, 8, &mut out), Ok(2));
    assert_eq!(out[..2], *b"89");
    assert_eq!(world.files.read(&mut open, u64::MAX, &mut out), Ok(0));
    assert!(!world.files.version(&mut open).unwrap().1);
    fs::write(world.at("f"), "other").unwrap();
    let (version, changed) = world.files.version(&mut open).unwrap();
    assert_eq!((version.stamp.size, changed), (5, true));
    assert_eq!(code(world.files.open(&place(""))), FailCode::IsDirectory);
}

/// One whose last write was just before its times were read, and may go on.
#[test]
fn a_file_that_was_written_just_before_may_change_although_its_times_do_not() {
    let mut world = World::new("unsettled");
    world.write("f", "0123456789");
    let writer = fs::File::options().write(true).open(world.at("f")).unwrap();
    let mut opened_while_it_was_written = || {
        let is_over = std::sync::atomic::AtomicBool::new(false);
        let open = std::thread::scope(|scope| {
            let writing = scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    writer.write_all_at(b"0", 0).unwrap();
                    std::thread::park_timeout(std::time::Duration::from_millis(20));
                }
            });
            let open = world.files.open(&place("f")).unwrap();
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            writing.thread().unpark();
            open
        });
        let has_its_times = state(&rustix::fs::fstat(open.file()).unwrap()) == state(open.before());
        has_its_times && open.version().unwrap().1
    };
    assert!((0..20).any(|_| opened_while_it_was_written()));
    let open = world.files.open(&place("f")).unwrap();
    assert!(!open.version().unwrap().1, "it is settled now");
}

#[test]
fn what_was_whole_before_it_had_its_name_is_read_without_a_wait_until_somebody_changes_it() {
    let mut world = World::new("whole");
    world.put("f", Existing::Keep, "content").unwrap();
    let is_known =
        |files: &DiskFiles<'_, Unguarded>, stat: &Stat| files.whole.iter().any(|whole| state(whole) == state(stat));
    let mut open = world.files.open(&place("f")).unwrap();
    assert!(is_known(&world.files, open.before()) && !world.files.version(&mut open).unwrap().1);
    fs::write(world.at("f"), "changed").unwrap();
    let mut open = world.files.open(&place("f")).unwrap();
    assert!(!is_known(&world.files, open.before()) && !world.files.version(&mut open).unwrap().1);
}

#[test]
fn the_user_of_this_host_reaches_everything_as_usual() {
    let world = World::new("own");
    world.write("d/f", "content");
    symlink("d", world.at("link")).unwrap();
    symlink("d/f", world.at("to-file")).unwrap();
    let base = world.at("");
    let with_home = move |path: &[u8]| {
        let text = std::str::from_utf8(path).unwrap();
        Ok(text.strip_prefix("~/").map_or_else(|| PathBuf::from(text), |below| base.join(below)))
    };
    let mut files = DiskFiles::new(Reach::Own(Box::new(with_home)), Unguarded);
    let absolute = world.at("link/f").to_str().unwrap().to_owned();
    for path in ["~/link/f", "~/to-file", "~/d/../d/f", &absolute] {
        let mut open = files.open(&place(path)).unwrap();
        assert_eq!(files.read(&mut open, 0, &mut [0; 20]), Ok(7), "{path}");
    }
    assert_eq!(files.list(&place("~/link"), &RelPath::root(), b"", 9).unwrap().entries.len(), 1);
    assert_eq!(files.stat(&place("~/link")).unwrap().kind, NodeKind::Link, "it is named itself");
    assert_eq!(files.stat(&place("/")).unwrap().kind, NodeKind::Directory);
    let put = Put {
        place: place("~/new/deep/f"),
        size: None,
        existing: Existing::Keep,
        parents: true,
        mode: 0o600,
        mtime: None,
    };
    let file = files.create(&put).unwrap();
    files.commit(file, &Digest::of(b"")).unwrap();
    assert!(world.at("new/deep/f").is_file());
    assert!(files.open(&place("/dev/null")).is_err_and(|failure| failure.code == FailCode::SpecialFile));
}
