//! Directories below the root of a server that the lines of keys name. Each is looked up once, and then held open.
//!
//! A client that may change the directory above could otherwise put another directory, or a link, in the place of the one that
//! the line means. So nothing looks up the name again, and clients cannot take these directories away, nor those above them.
//!
//! | in the path of the directory | rule |
//! | --- | --- |
//! | links outside of the root | followed: the operator made them |
//! | links below the root | refused: a client may have made them |

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component as Part, Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use farhaul_session::{Component, RelPath};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat, readlinkat};
use rustix::io::Errno;

use super::directory::{Directory, Kept, kind};

/// Opens a handle that only names its entry. It needs no right to read it, which a confined thread would not have.
const NAME_ONLY: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
/// Most links in a path: as many as the kernel follows, path_resolution(7).
const MOST_LINKS: usize = 40;

/// Where a path of a client begins: at a directory that is held open. No link is followed below it.
#[derive(Clone, Debug)]
pub struct Place {
    /// The directory from which it is reached.
    pub start: Arc<Directory>,
    /// The path below that directory.
    pub below: RelPath,
}

impl Place {
    /// These paths below one directory.
    pub(super) fn each(root: &Directory, paths: &[RelPath]) -> Result<Vec<Self>, Errno> {
        let start = Arc::new(root.duplicate()?);
        Ok(paths.iter().map(|path| Self { start: Arc::clone(&start), below: path.clone() }).collect())
    }
}

/// The directories of keys below a root. Clones share everything.
#[derive(Clone, Debug)]
pub struct HeldDirectories {
    root: Arc<Directory>,
    kept: Kept,
    held: Arc<RwLock<Arc<Held>>>,
}

/// The directories of one reading of the keys, by their names in it.
#[derive(Debug, Default)]
pub struct Held(BTreeMap<PathBuf, Result<HeldDirectory, NotHeld>>);

#[derive(Debug)]
struct HeldDirectory {
    /// Where it was below the root.
    at: RelPath,
    directory: Arc<Directory>,
    /// The directory above it, unless it is the root.
    parent: Option<Arc<Directory>>,
}

/// Why a directory of a key is not held.
#[derive(Clone, Debug, PartialEq, Eq)]
enum NotHeld {
    System(Errno),
    /// A link below the root is in the path.
    Link(RelPath),
    /// It is not below the root.
    Outside,
}

impl HeldDirectories {
    /// None yet, below the directory at `root`.
    pub fn below(root: Directory) -> Self {
        let kept = Kept::none_yet();
        Self { root: Arc::new(root.keeping(kept.clone())), kept, held: Arc::default() }
    }

    /// The root.
    pub const fn root(&self) -> &Arc<Directory> {
        &self.root
    }

    /// Holds these directories in place of those of before.
    pub fn hold<'a>(&self, paths: impl IntoIterator<Item = &'a Path>) {
        let mut kept = BTreeSet::new();
        let mut held = BTreeMap::new();
        for path in paths {
            let found = find(&self.root, path).map(|chain| {
                kept.extend(chain.iter().map(|(_, directory)| directory.identity()));
                HeldDirectory::at_end_of(&self.root, chain)
            });
            held.insert(path.to_owned(), found);
        }
        self.kept.set(kept);
        *self.held.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Held(held));
    }

    /// Those of now.
    pub fn now(&self) -> Arc<Held> {
        Arc::clone(&self.held.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Held {
    /// Where `path`, below the root, is found from the directory with this name in the keys. `None` if it is not below that.
    pub fn place(&self, name: &Path, path: &RelPath) -> Option<Place> {
        let HeldDirectory { at, directory, .. } = self.0.get(name)?.as_ref().ok()?;
        let below = path.components().strip_prefix(at.components())?;
        Some(Place { start: Arc::clone(directory), below: joined(below)? })
    }

    /// The same for an entry that is sent under its own name, which the directory itself has in the directory above.
    ///
    /// # Errors
    /// Another directory has that name by now.
    pub fn entry(&self, name: &Path, path: &RelPath) -> Option<Result<Place, &'static str>> {
        let place = self.place(name, path)?;
        let held = self.0.get(name)?.as_ref().ok()?;
        Some(match (&held.parent, path.components().last()) {
            (Some(parent), Some(last)) if place.below.is_root() => {
                match parent.child(last).is_ok_and(|child| child.is_same(&held.directory)) {
                    true => joined(std::slice::from_ref(last))
                        .map(|below| Place { start: Arc::clone(parent), below })
                        .ok_or("its name is too long"),
                    false => Err("the directory of your key was replaced; the server reads its keys again at SIGHUP"),
                }
            }
            _ => Ok(place),
        })
    }

    /// The names that grant nothing, each with the reason.
    pub fn missing(&self) -> impl Iterator<Item = String> {
        self.0.iter().filter_map(|(name, found)| {
            let why = found.as_ref().err()?;
            Some(format!("path={} in authorized_keys grants nothing: {why}", name.display()))
        })
    }
}

impl HeldDirectory {
    fn at_end_of(root: &Arc<Directory>, mut chain: DirectoryChain) -> Self {
        let at = joined(chain.iter().map(|(name, _)| name)).unwrap_or_default();
        let last = chain.pop().map(|(_, directory)| directory);
        let parent = last.is_some().then(|| chain.pop().map_or_else(|| Arc::clone(root), |(_, directory)| directory));
        Self { at, directory: last.unwrap_or_else(|| Arc::clone(root)), parent }
    }
}

impl fmt::Display for NotHeld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(Errno::NOENT) => {
                f.write_str("there is no such directory; make it, and send this server SIGHUP")
            }
            Self::System(error) => write!(f, "{}", std::io::Error::from(*error)),
            Self::Link(link) => write!(f, "{link} below the root is a symbolic link, which a client may have made"),
            Self::Outside => f.write_str("it is not below the root of this server"),
        }
    }
}

impl From<Errno> for NotHeld {
    fn from(error: Errno) -> Self {
        Self::System(error)
    }
}

/// The directories of a path below the root, with their names. The last one is the end.
type DirectoryChain = Vec<(Component, Arc<Directory>)>;

/// Finds the directory at `path`. A directory above the root, or the root itself, is the root.
fn find(root: &Arc<Directory>, path: &Path) -> Result<DirectoryChain, NotHeld> {
    let top = || root.opened_below(openat(CWD, "/", NAME_ONLY, Mode::empty())?);
    let mut here = Arc::new(top()?);
    // The path below the root, once it was reached.
    let mut chain = here.is_same(root).then(DirectoryChain::new);
    let mut rest: VecDeque<OsString> = VecDeque::new();
    go_before(&mut rest, path);
    let mut links = 0;
    while let Some(name) = rest.pop_front() {
        let entry = openat(&here, &name, NAME_ONLY | OFlags::NOFOLLOW, Mode::empty())?;
        match kind(&fstat(&entry)?) {
            FileType::Symlink => {
                if let Some(chain) = chain {
                    return Err(NotHeld::Link(link(&chain, &name)));
                }
                links += 1;
                if links > MOST_LINKS {
                    return Err(Errno::LOOP.into());
                }
                let target = PathBuf::from(OsString::from_vec(readlinkat(&entry, "", Vec::new())?.into_bytes()));
                if target.is_absolute() {
                    here = Arc::new(top()?);
                }
                go_before(&mut rest, &target);
            }
            FileType::Directory => {
                here = Arc::new(root.opened_below(entry)?);
                if here.is_same(root) {
                    chain = Some(DirectoryChain::new());
                } else if let Some(chain) = &mut chain {
                    let name = Component::new(name.as_bytes()).map_err(|_| Errno::INVAL)?;
                    chain.push((name, Arc::clone(&here)));
                }
            }
            _ => return Err(Errno::NOTDIR.into()),
        }
    }
    match chain {
        Some(chain) => Ok(chain),
        None if is_above(&here, root)? => Ok(DirectoryChain::new()),
        None => Err(NotHeld::Outside),
    }
}

/// Puts the names of a path before those still to come. A parent directory stays a name, which the system resolves.
fn go_before(rest: &mut VecDeque<OsString>, path: &Path) {
    for part in path.components().rev() {
        match part {
            Part::Normal(name) => rest.push_front(name.to_owned()),
            Part::ParentDir => rest.push_front("..".into()),
            Part::CurDir | Part::RootDir | Part::Prefix(_) => {}
        }
    }
}

fn link(chain: &DirectoryChain, name: &OsStr) -> RelPath {
    let name = Component::new(name.as_bytes()).ok();
    joined(chain.iter().map(|(name, _)| name).chain(&name)).unwrap_or_default()
}

/// Whether `directory` is above `root`.
fn is_above(directory: &Directory, root: &Arc<Directory>) -> Result<bool, Errno> {
    let mut at = Arc::clone(root);
    loop {
        let parent = root.opened_below(openat(&at, "..", NAME_ONLY, Mode::empty())?)?;
        if parent.is_same(&at) {
            return Ok(false);
        }
        if parent.is_same(directory) {
            return Ok(true);
        }
        at = Arc::new(parent);
    }
}

fn joined<'a>(names: impl IntoIterator<Item = &'a Component>) -> Option<RelPath> {
    let mut path = RelPath::root();
    names.into_iter().try_for_each(|name| path.push(name.clone())).ok()?;
    Some(path)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A root in a directory with a link to it.
    struct World(PathBuf, HeldDirectories);

    impl World {
        fn new(test: &str) -> Self {
            let base = std::env::temp_dir().join(format!("farhaul-held-{}-{test}", std::process::id()));
            fs::create_dir_all(base.join("root/in/deep")).unwrap();
            fs::create_dir_all(base.join("outside")).unwrap();
            fs::write(base.join("root/file"), "").unwrap();
            symlink("root", base.join("alias")).unwrap();
            symlink("in", base.join("root/link")).unwrap();
            let held = HeldDirectories::below(Directory::open(&base.join("root")).unwrap());
            Self(base, held)
        }

        /// What is held of this name, or why nothing is.
        fn hold(&self, name: &str) -> Result<String, NotHeld> {
            let name = self.0.join(name);
            self.1.hold([&*name]);
            let held = self.1.now();
            held.0[&name].as_ref().map(|held| held.at.to_string()).map_err(Clone::clone)
        }
    }

    impl Drop for World {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn links_are_followed_to_the_root_and_never_below_it() {
        let world = World::new("links");
        for (name, at) in [("root/in", "in"), ("alias/in/deep", "in/deep"), ("root", "."), ("alias", "."), ("", ".")] {
            assert_eq!(world.hold(name).as_deref(), Ok(at), "{name}");
        }
        for name in ["root/link", "alias/link", "root/link/deep"] {
            assert_eq!(world.hold(name), Err(NotHeld::Link(RelPath::parse(b"link").unwrap())), "{name}");
        }
        assert_eq!(world.hold("outside"), Err(NotHeld::Outside));
        assert_eq!(world.hold("root/file"), Err(NotHeld::System(Errno::NOTDIR)));
        assert_eq!(world.hold("root/none"), Err(NotHeld::System(Errno::NOENT)));
        symlink("loop", world.0.join("loop")).unwrap();
        assert_eq!(world.hold("loop/in"), Err(NotHeld::System(Errno::LOOP)));
    }

    #[test]
    fn a_directory_stays_that_of_its_key_whatever_gets_its_name() {
        let world = World::new("names");
        let (name, path) = (world.0.join("root/in"), RelPath::parse(b"in/deep").unwrap());
        world.hold("root/in").unwrap();
        let held = world.1.now();
        fs::rename(&name, world.0.join("root/moved")).unwrap();
        symlink(world.0.join("outside"), &name).unwrap();
        let place = held.place(&name, &path).unwrap();
        let there = Directory::open(&world.0.join("root/moved/deep")).unwrap();
        assert!(place.start.descend(&place.below).unwrap().is_same(&there));
        let own = RelPath::parse(b"in").unwrap();
        assert!(held.entry(&name, &own).unwrap().is_err(), "what has the name now is another entry");
        assert_eq!(world.hold("root/in"), Err(NotHeld::Link(own)));
        assert!(held.place(&name, &path).is_some(), "sessions that run keep theirs");
    }

    #[test]
    fn directories_of_keys_and_those_above_them_are_not_removed() {
        let world = World::new("kept");
        world.hold("root/in/deep").unwrap();
        let [inner, outer] = ["deep", "in"].map(|name| Component::new(name.as_bytes()).unwrap());
        let root = world.1.root();
        assert_eq!(root.child(&outer).unwrap().remove_directory(&inner), Err(Errno::BUSY));
        assert_eq!(root.remove_directory(&outer), Err(Errno::BUSY));
        world.hold("root").unwrap();
        assert_eq!(root.child(&outer).unwrap().remove_directory(&inner), Ok(()));
    }
}
